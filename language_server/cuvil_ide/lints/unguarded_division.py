"""A division by what may be zero, with nothing to guard it.

What: a division by `x.max() - x.min()` of the same x, which is 0 where x is constant, or by what is 0 with the data that this file itself hands over.
Why: 0 / 0 is NaN, for just the blank image, the silent clip or the empty row; one of them in a batch makes its loss NaN.
Example: `(x - x.min()) / (x.max() - x.min())`
Instead: `(x - x.min()) / (x.max() - x.min()).clamp_min(1e-8)`
Fix: display: the right guard is a matter of the scale.

Silent where a small number is added, where the divisor is clamped or chosen, where a branch asks for it, and where NaN is replaced afterwards.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .evaluated import evaluated
from .recorded import branches, owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\n\ndef f(x: torch.Tensor, mask: torch.Tensor):\n"
_MEAN = _START + "    return (x * mask).sum(1) / mask.sum(1)\n"
_RUN = "\ndef run():\n    return f(torch.ones(2, 3), torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))\n"
VALID = (
    _START + "    return (x - x.min()) / (x.max() - x.min() + 1e-8)\n",
    _START + "    return (x - x.min()) / (x.max() - x.min()).clamp_min(1e-8)\n",
    _START + "    lo, hi = x.min(), x.max()\n    if hi > lo:\n        x = (x - lo) / (hi - lo)\n    return x\n",
    _START + "    lo, hi = x.amin(), x.amax()\n    return torch.where(hi > lo, (x - lo) / (hi - lo), 0.0)\n",
    _START + "    return torch.nan_to_num((x - x.min()) / (x.max() - x.min()))\n",
    # Nothing says that it is 0.
    _MEAN, _MEAN + _RUN.replace("[0.0, 0.0, 0.0]", "[1.0, 0.0, 0.0]"), _START + "    return x / x.norm(dim=-1, keepdim=True), x / x.std()\n",
    _MEAN.replace("mask.sum(1)\n", "mask.sum(1).clamp_min(1)\n") + _RUN,
)
INVALID = (
    Invalid(_START + "    return »(x - x.min()) / (x.max() - x.min())«\n", "constant"),
    Invalid(_START + "    lo, hi = x.amin((1, 2), keepdim=True), x.amax((1, 2), keepdim=True)\n    x = »(x - lo) / (hi - lo)«\n    return x * 255\n", "NaN"),
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return »(x - np.min(x)) / (np.max(x) - np.min(x))«\n", "constant"),
    Invalid(_MEAN.replace("(x *", "»(x *").replace("mask.sum(1)\n", "mask.sum(1)«\n") + _RUN, "data"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    found = [(function, op, why) for function, op in flow.ops(facts, "div") if (why := _zero(function, op))]
    for function, op, why in found:
        if not flow.nan_replaced(function, op) and not _asked(facts, op):
            yield RULE.finding(f"nothing guards the division: {why}, and 0 / 0 is NaN; .clamp_min(1e-8) on the divisor does", flow.span(op),
                               flow.evidence((flow.operand(function, op, 1), "the divisor")), Fix("display", "a / b.clamp_min(1e-8)"))


def _zero(function: Function, op: Op) -> str:
    """In words, when the divisor is 0."""
    divisor = flow.source(function, flow.operand(function, op, 1))
    if op.type.dtype is not None and not op.type.dtype.is_float:
        return ""
    if divisor.name == "sub":
        most, least = (flow.source(function, flow.operand(function, divisor, place)) for place in (0, 1))
        if (most.name, least.name) == ("reduce_max", "reduce_min") and most.operands == least.operands and most.attr("axes") == least.attr("axes"):
            return "the largest less the smallest is 0 where all are alike, in a constant image or row"
    if divisor.name == "constant":
        return ""
    known = evaluated(function, divisor)
    return "with the data of this file's own call the divisor is 0" if known is not None and known.size and (known == 0).any() else ""


def _asked(facts: FileFacts, op: Op) -> bool:
    """A branch on a number that is computed stands in the same function."""
    from cuvil.frontends.python.values import Scalar, Sequence
    home = owner(facts, flow.span(op))
    return home is not None and any(home.span.encloses(branch.span) and not isinstance(branch.test, (Scalar, Sequence)) for branch in branches(facts))


RULE = Rule("CUV509", "unguarded-division", kind="nan-risk", severity="info", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
