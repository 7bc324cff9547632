"""An exponential of numbers that reach further than its type holds.

What: `exp` of a value whose known bounds pass 88.7 (float32, bfloat16), 11.1 (float16) or 709.8 (float64).
Why: the result is inf there, and the next subtraction or division makes NaN of it. A clamp that is too wide guards against nothing.
Example: `torch.exp(log_scale.clamp(-100, 100))`
Instead: `torch.exp(log_scale.clamp(-100, 80))`
Fix: none; the right bound is a matter of the model.

Silent where no bound is known, where the element type is not known, for differences of two values, which their bounds say little of, and for what stays
in range.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from . import flow
from .overflow import LARGEST
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\n\ndef f(x: torch.Tensor):\n"
VALID = (
    "import math\n\ndef f(layer: int):\n    return 0.8 - 0.6 * math.exp(-0.3 * layer)\n",
    _START + "    return x.float().exp()\n",
    _START + "    return x.float().clamp(-100, 80).exp()\n",
    _START + "    return x.clamp(-100, 100).exp()\n",
    _START + "    return x.half().clamp(-30, 20).mul(0.5).exp()\n",
    _START + "    x = x.float()\n    return torch.exp(x - x.max(-1, keepdim=True).values)\n",
    _START + "    return torch.exp(-torch.arange(1000.0))\n",
    _START + "    x = x.float().clamp(0, 100)\n    return torch.exp(x - torch.logsumexp(x, -1, keepdim=True))\n",
    _START + "    return x.half().float().clamp(max=50).exp()\n",
)
INVALID = (
    Invalid(_START + "    return »torch.exp(x.float().clamp(-100, 100))«\n", "88.7"),
    Invalid(_START + "    return »x.half().clamp(-30, 20).exp()«\n", "11.1"),
    Invalid(_START + "    return »torch.exp(x.to(torch.uint8).float())«\n", "255"),
    Invalid(_START + "    gate = torch.sigmoid(x.half()) * 20\n    return »gate.exp()« - 1\n", "inf"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "exp"):
        argument = flow.operand(function, op)
        known, most = flow.ranges(function)[argument.id], LARGEST.get(op.type.dtype.name) if op.type.dtype is not None else None
        if most is not None and most < known.hi < float("inf") and not _related(function, argument) and not _any_integer(function, argument) \
                and not flow.autocast(facts, flow.span(op)):
            yield RULE.finding(f"exp of up to {known.hi:g} is inf in {op.type.dtype.numpy}, which holds exp of at most {most:.3g}",
                               flow.span(op), flow.evidence((argument, f"lies in {known}")))


def _related(function: Function, argument: Op) -> bool:
    """A difference of two values may be smaller than their bounds say: x - logsumexp(x)."""
    return any(op.name == "sub" and flow.number(function, flow.operand(function, op, 1)) is None
               for op in flow.sources(function, argument, flow.PARTS | {"add", "mul", "div", "neg"}))


def _any_integer(function: Function, argument: Op) -> bool:
    """What is known of a counter or an index is no more than what its type can hold."""
    known = flow.ranges(function)
    return any(op.type.dtype is not None and op.type.dtype.is_int and max(-known[op.id].lo, known[op.id].hi) >= 2 ** 31 - 1
               for op in flow.sources(function, argument, flow.PARTS | {"add", "sub", "mul", "div", "neg", "cast"}))


RULE = Rule("CUV510", "exp-overflow", kind="dtype-overflow", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
