"""A number that float16 cannot hold.

What: a finite number beyond ±65504 is filled into, added to or multiplied with a float16 tensor.
Why: `masked_fill` and `full` raise ("value cannot be converted to type at::Half without overflow"); elsewhere the number becomes inf,
and `(1 - mask) * -1e9` then holds 0 * -inf, which is NaN.
Example: `scores.half().masked_fill(~mask, -1e9)`
Instead: `scores.masked_fill(~mask, torch.finfo(scores.dtype).min)`
Fix: safe where the call raised before: the number of `masked_fill` becomes the least of the tensor's own type.

Silent for bfloat16 and float32, for -inf itself, for comparisons and bounds (`clamp(max=1e9)` bounds nothing and harms nothing),
and inside autocast.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op
    from cuvil.source import Span

_HALF = "import torch\n\ndef f(x: torch.Tensor, keep: torch.Tensor):\n    x = x.half()\n"
VALID = (
    _HALF + "    return x.masked_fill(keep, -1e4)\n",
    _HALF + "    return x.masked_fill(keep, float('-inf'))\n",
    _HALF + "    return x.masked_fill(keep, torch.finfo(x.dtype).min)\n",
    _HALF + "    return x.float().masked_fill(keep, -1e9)\n",
    _HALF + "    return x.clamp(max=1e9)\n",
    _HALF + "    return x > 1e6\n",
    "import torch\n\ndef f(x: torch.Tensor, keep: torch.Tensor):\n    return x.bfloat16().masked_fill(keep, -1e9)\n",
    "import torch\n\ndef f(x: torch.Tensor, keep: torch.Tensor):\n    return x.masked_fill(keep, -1e9)\n",
)
INVALID = (
    Invalid(_HALF + "    return »x.masked_fill(keep > 0, -1e9)«\n", "float16",
            _HALF + "    return x.masked_fill(keep > 0, torch.finfo(x.dtype).min)\n"),
    Invalid(_HALF + "    return x + »(1 - keep.half()) * -1e9«\n", "0 * inf"),
    Invalid("import torch\n\ndef f():\n    return »torch.full((2, 2), -1e9, dtype=torch.float16)«\n", "65504"),
    Invalid(_HALF + "    return »torch.where(keep > 0, x, -1e9)«\n", "65504"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "select", "add", "sub", "mul", "broadcast"):
        value = _too_large(function, op)
        if value is None or flow.autocast(facts, flow.span(op)):
            continue
        then = {"mul": "it becomes inf, and 0 * inf is NaN", "add": "it becomes inf", "sub": "it becomes inf"}.get(op.name, "the call raises, or it becomes inf")
        yield RULE.finding(f"{value!r} overflows float16, whose greatest number is 65504: {then}", flow.span(op),
                           flow.evidence((op, f"has type {op.type}")), _fix(facts, flow.span(op), value))


def _too_large(function: Function, op: Op) -> float | None:
    from cuvil.ir.rounding import nearest
    from cuvil.ir.types import DType
    if op.type.dtype != DType.F16:
        return None
    for id in op.operands:
        constant = function.by_id[id]
        value = constant.attr("value") if constant.name == "constant" and constant.type.dtype == DType.F16 else None
        if isinstance(value, (int, float)) and abs(value) != float("inf") and abs(nearest(value, DType.F16)) == float("inf"):
            return value
    return None


def _fix(facts: FileFacts, span: Span, value: float) -> Fix | None:
    """`x.masked_fill(mask, -1e9)`: the number, where it is written in the call and x is a name."""
    node = node_of(facts, span, cst.Call)
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="masked_fill" | "masked_fill_")), args=[_, cst.Arg(value=written)]):
            pass
        case _:
            return None
    if isinstance(written, (cst.Name, cst.Attribute)) or value > 0:
        return None
    return Fix("safe", f"The least that {name} can hold", (Edit(facts.module.span(written), f"torch.finfo({name}.dtype).min"),))


RULE = Rule("CUV208", "constant-overflows-half", kind="dtype-overflow", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
