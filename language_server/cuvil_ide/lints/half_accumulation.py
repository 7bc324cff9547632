"""A long sum that is kept in half precision.

What: a float16 tensor is summed over so many elements that the sum passes 65504, or flags and probabilities are added up one by one (`cumsum`) in
float16 or bfloat16.
Why: 65504 is the largest float16: the squares of 4096 elements of size 4 add up to inf. Past 2048 float16 counts in steps of 2 (bfloat16 past 256), so
positions repeat; near 1 its numbers stand 0.0005 apart, so that the small probabilities of a large vocabulary are lost.
Example: `positions = mask.half().cumsum(1) - 1`
Instead: `positions = mask.long().cumsum(1) - 1`; `x.pow(2).sum(-1, dtype=torch.float32)`
Fix: unsafe: `dtype=torch.float32` for the sum; what follows is computed in float32, too.

Silent with `dtype=`, in float32, for means and norms (which PyTorch accumulates in float32), inside torch.autocast, and for axes that are not known to be long.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.ir.dims import bounds
from cuvil.ir.ranges import ANY
from cuvil.source import Edit, Span

from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\n\ndef f(mask: torch.Tensor):\n    x = torch.randn(8, 4096).half()\n"
VALID = (
    _START + "    return x.pow(2).sum(-1, dtype=torch.float32), x.float().pow(2).sum(-1), x.pow(2).mean(-1), x.norm(dim=-1)\n",
    _START + "    return x.sum(-1), x.softmax(-1).sum(-1)\n",
    _START + "    return (mask > 0).long().cumsum(1) - 1\n",
    _START + "    return (mask > 0).half().cumsum(1, dtype=torch.float32)\n",
    _START + "    return (x[:, :77] > 0).half().cumsum(1)\n",
    _START + "    with torch.autocast('cuda'):\n        return (x * x).sum(-1)\n",
)
INVALID = (
    Invalid(_START + "    return »x.pow(2).sum(-1)«.sqrt()\n", "65504", _START + "    return x.pow(2).sum(-1, dtype=torch.float32).sqrt()\n"),
    Invalid(_START + "    return »(mask > 0).half().cumsum(1)« - 1\n", "2048", _START + "    return (mask > 0).half().cumsum(1, dtype=torch.float32) - 1\n"),
    Invalid(_START + "    p, order = torch.sort(mask.bfloat16().softmax(-1), descending=True)\n    return »torch.cumsum(p, dim=-1)« > 0.9\n", "bfloat16",
            _START + "    p, order = torch.sort(mask.bfloat16().softmax(-1), descending=True)\n    return torch.cumsum(p, dim=-1, dtype=torch.float32) > 0.9\n"),
    Invalid("import torch\n\ndef f():\n    masks = torch.randn(4, 512, 512).half()\n    return »masks.sigmoid().sum((1, 2))«\n", "262144",
            "import torch\n\ndef f():\n    masks = torch.randn(4, 512, 512).half()\n    return masks.sigmoid().sum((1, 2), dtype=torch.float32)\n"),
)

_LARGEST = 65504
_SQUARES_OF = 4                                # elements of this size are common in activations
_WHOLE = {"F16": 2048, "BF16": 256}            # up to here each whole number is one of the type's
_ORDERED = flow.PARTS | {"opaque"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "reduce_sum", "cumsum", "norm"):
        what = _counted(function, op) if op.name == "cumsum" else _summed(facts, function, op)
        if what and not flow.autocast(facts, flow.span(op)):
            yield RULE.finding(f"{what}; add in float32: dtype=torch.float32", flow.span(op),
                               flow.evidence((_before(function, op), f"has type {_before(function, op).type}")), _fix(facts, flow.span(op)))


def _before(function: Function, op: Op) -> Op:
    """What is added, as the code has it: sums of halves are computed in float32 and rounded to half again."""
    value = flow.operand(function, op)
    return flow.operand(function, value) if value.name == "cast" and value.origins == op.origins else value


def _summed(facts: FileFacts, function: Function, op: Op) -> str:
    from cuvil.ir.types import DType
    value = _before(function, op)
    back = any(user.name == "cast" and user.type.dtype == DType.F16 and user.origins == op.origins for user in function.users[op.id])
    shape, axes = value.type.shape, op.attr("axes")
    if value.type.dtype != DType.F16 or not (back or op.type.dtype == DType.F16) or shape is None or axes is None:
        return ""
    sizes = [shape[axis] for axis in axes if -len(shape) <= axis < len(shape)]
    if not sizes or not all(isinstance(size, int) for size in sizes):
        return ""
    count, known = math.prod(sizes), flow.ranges(function)[value.id]
    squares = value.name in ("mul", "pow") and known.lo >= 0 and (value.name == "pow" or value.operands[0] == value.operands[1])
    if op.name == "norm":                                         # NumPy takes the root of a float16 sum, PyTorch of a float32 one
        squares, known = facts.source.slice(flow.span(op)).startswith(("np.", "numpy.")), ANY
    if squares and count * _SQUARES_OF ** 2 >= _LARGEST and not count * known.hi <= _LARGEST:
        return f"{count} squares are summed in float16, whose largest number is 65504: elements of size {math.sqrt(_LARGEST / count):.2g} give inf"
    most = min(known.hi, 1) if op.name == "reduce_sum" and flow.source(function, value).name != "softmax" else 0
    return f"{count} elements are summed in float16, whose largest number is 65504: a mean of {_LARGEST / count:.2g} gives inf" if count * most > _LARGEST else ""


def _counted(function: Function, op: Op) -> str:
    value = flow.operand(function, op)
    limit = _WHOLE.get(op.type.dtype.name) if op.type.dtype is not None else None
    if limit is None:
        return ""
    shape, axis = value.type.shape, op.attr("axis")
    most = bounds(shape[axis])[1] if shape is not None and isinstance(axis, int) and -len(shape) <= axis < len(shape) else None
    if most is not None and most <= limit:
        return ""
    name, made = op.type.dtype.numpy, list(flow.sources(function, value, _ORDERED))
    if any(each.name == "softmax" for each in made):
        return f"probabilities are added up in {name}: near 1 its numbers stand {1 / limit:.1g} apart, so smaller ones are lost"
    flags = value
    while flags.name in flow.LAYOUT and flags.operands:
        before = flow.operand(function, flags)
        if flags.name == "cast" and before.type.dtype is not None and not before.type.dtype.is_float:
            whole = flow.ranges(function)[before.id].within(0, 1)
            return f"flags are counted in {name}, which has no odd numbers past {limit}: positions repeat" if whole else ""
        flags = before
    return ""


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    node = node_of(facts, span, cst.Call)
    if node is None or any(arg.keyword is not None and arg.keyword.value == "dtype" for arg in node.args):
        return None
    numpy = facts.source.slice(span).startswith(("np.", "numpy."))
    if numpy and facts.source.slice(span).endswith(")") and ".norm(" in facts.source.slice(span):
        return None
    end = Span(span.path, span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
    return Fix("unsafe", "Add in float32", (Edit(end, f"{', ' if node.args else ''}dtype={'np' if numpy else 'torch'}.float32"),))


RULE = Rule("CUV213", "half-accumulation", kind="dtype-overflow", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
