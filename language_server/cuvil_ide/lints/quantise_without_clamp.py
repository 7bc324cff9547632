"""Values quantised to 8 bits without a clamp.

What: `round(x / scale) + zero_point` is cast to int8 or uint8, and nothing keeps it inside of the type.
Why: a scale is chosen from other data (a calibration set, a running range), so some values lie outside of it. The cast wraps them around: the largest
activations come out as the most negative ones.
Example: `torch.round(x / scale).to(torch.int8)`
Instead: `torch.round(x / scale).clamp(-128, 127).to(torch.int8)`
Fix: unsafe: a clamp before the cast; values outside change, which is the point.

Silent after clamp and clip, where the scale comes from the largest value of the same data, and where the interval of the values is proved to fit.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from . import flow
from .recorded import node_of, owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import numpy as np\nimport torch\n\ndef quantise(x: torch.Tensor, scale: float, zero_point: int):\n"
_NUMPY = "import numpy as np\n\ndef encode(x: np.ndarray, scale: np.ndarray):\n"
VALID = (
    _START + "    return torch.clamp(torch.round(x / scale) + zero_point, 0, 255).to(torch.uint8)\n",
    _START + "    scale = x.abs().max() / 127\n    return torch.round(x / scale).to(torch.int8)\n",
    _START + "    low, high = x.min().item(), x.max().item()\n    scale = (high - low) / 255\n    return torch.round((x - low) / scale).to(torch.uint8)\n",
    _START + "    return torch.round(torch.tanh(x) / 0.01).to(torch.int8)\n",
    _NUMPY + "    return np.clip(np.rint(x / scale), -128, 127).astype(np.int8)\n",
    "import numpy as np\n\ndef half(img: np.ndarray):\n    return np.round(img / 2).astype(np.uint8)\n",
)
INVALID = (
    Invalid(_START + "    return »torch.round(x / scale).to(torch.int8)«\n", "wraps", _START + "    return torch.round(x / scale).clamp(-128, 127).to(torch.int8)\n"),
    Invalid(_START + "    codes = torch.round(x / scale) + zero_point\n    return »codes.to(torch.uint8)«\n", "uint8",
            _START + "    codes = torch.round(x / scale) + zero_point\n    return codes.clamp(0, 255).to(torch.uint8)\n"),
    Invalid(_NUMPY + "    return »np.rint(x / scale).astype(np.int8)«\n", "int8", _NUMPY + "    return np.rint(x / scale).clip(-128, 127).astype(np.int8)\n"),
    Invalid(_START + "    scale = x.abs().max() / 128\n    return »torch.round(x / scale).to(torch.int8)«\n", "128",
            _START + "    scale = x.abs().max() / 128\n    return torch.round(x / scale).clamp(-128, 127).to(torch.int8)\n"),
)

_QUANTISES = re.compile(r"scale|zero_?point|\bzp\b|quanti[sz]e|\bqparams\b|\binv_s\b", re.IGNORECASE)
_RANGE = re.compile(r"\b(?:abs)?a?(?:max|min|minmax|ptp)\(")
_SHIFTED = flow.PARTS | {"add", "sub", "round", "floor", "ceil", "trunc", "neg"}
_CALLED = frozenset(("operator.add", "operator.sub", "operator.iadd"))
_SCALED = frozenset(("operator.truediv", "operator.mul"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.rounding import limits
    from cuvil.ir.types import DType
    if not facts.module.mentions(_QUANTISES):
        return
    for function, op in flow.ops(facts, "cast"):
        if op.type.dtype not in (DType.I8, DType.U8):
            continue
        scaled, rounded = _scaled(function, flow.operand(function, op))
        low, high = limits(op.type.dtype)
        if scaled is None or flow.ranges(function)[op.operands[0]].within(low - 1, high + 0.999):
            continue
        where = flow.span(op)
        home = owner(facts, where)
        text = facts.source.slice(home.span) if home is not None else facts.source.text
        if not _QUANTISES.search(text) or not (rounded or re.search(r"quanti[sz]e", text, re.IGNORECASE)):
            continue
        own = _own_range(function, scaled)
        step = next((n for n in own if n == high + 1), None) if own is not None else None
        if own is not None and step is None or own is None and _RANGE.search(text):
            continue
        what = f"the largest value becomes {step:g}" if step is not None else "nothing keeps the codes inside of the type"
        yield RULE.finding(f"{what}, and the cast to {op.type.dtype.numpy} wraps what is outside {low} to {high}; clamp({low}, {high}) before it", where,
                           flow.evidence((scaled, "is scaled here")), _fix(facts, where, low, high))


def _scaled(function: Function, value: Op) -> tuple[Op | None, bool]:
    """(the division by the scale, whether it is rounded after it) of a value that is cast to codes."""
    rounded = False
    while value.operands:
        rounded = rounded or value.name == "round"
        if value.name in ("div", "mul") or value.attr("call") in _SCALED:
            known = [flow.number(function, function.by_id[id]) for id in value.operands] if value.name in ("div", "mul") else [None]
            return (value if known[-1] is None or value.name == "div" and known[-1] < 1 else None), rounded
        if value.name not in _SHIFTED and value.attr("call") not in _CALLED:
            return None, rounded
        value = flow.operand(function, value)
    return None, rounded


def _own_range(function: Function, scaled: Op) -> list[float] | None:
    """The numbers by which the largest value of the data itself becomes the scale; None when the scale comes from elsewhere."""
    data = {op.id for op in flow.sources(function, flow.operand(function, scaled), flow.LAYOUT | {"sub", "mul"})}
    numbers, todo, seen, own = [], [function.by_id[id] for id in scaled.operands], set(), False
    while todo:
        op = todo.pop()
        if op.id in seen:
            continue
        seen.add(op.id)
        if op.name in ("reduce_max", "reduce_min") or str(op.attr("call")).rpartition(".")[2] in ("aminmax", "max", "min", "amax", "amin"):
            own = own or any(each.id in data for each in flow.sources(function, op, flow.LAYOUT | {"abs", "reduce_max", "reduce_min", "neg", "maximum"}))
        number = flow.number(function, op) if op.name == "constant" else None
        numbers += [number] if number is not None else []
        todo += [function.by_id[id] for id in op.operands if id not in data]
    return numbers if own else None


def _fix(facts: FileFacts, where: Span, low: float, high: float) -> Fix | None:
    from cuvil.frontends.python.values import Tensor

    from ..lookup import value_of
    node = node_of(facts, where, cst.Call)
    if node is None or not isinstance(node.func, cst.Attribute):
        return None
    value = value_of(facts, facts.module.span(node.func.value))
    if not isinstance(value, Tensor):
        return None
    at = facts.module.span(node.func.attr)
    name = "clip" if value.library == "numpy" else "clamp"
    return Fix("unsafe", f"Clamp to {low:g}..{high:g}", (Edit(replace(at, end_line=at.line, end_column=at.column), f"{name}({low:g}, {high:g})."),))


RULE = Rule("CUV933", "quantise-without-clamp", kind="integer-wrap", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
