"""A division by what may be zero, with nothing to guard it.

What: a division by `x.max() - x.min()` of the same x, which is 0 where x is constant, or by what is 0 with the data that this file itself hands over.
Why: 0 / 0 is NaN, for just the blank image, the silent clip or the empty row; one of them in a batch makes its loss NaN.
Example: `(x - x.min()) / (x.max() - x.min())`
Instead: `(x - x.min()) / (x.max() - x.min()).clamp_min(1e-8)`
Fix: display: the right guard is a matter of the scale.

Silent where a small number is added, where the divisor is clamped or chosen, where a branch asks for it, and where NaN is replaced afterwards.
"""
from __future__ import annotations

import re
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
    _START + "    n = mask.sum(1)\n    x = (x * mask).sum(1) / n\n    x[n == 0] = 0.0\n    return x\n" + _RUN,
    # Nothing says that it is 0.
    _MEAN, _MEAN + _RUN.replace("[0.0, 0.0, 0.0]", "[1.0, 0.0, 0.0]"), _START + "    return x / x.norm(dim=-1, keepdim=True), x / x.std()\n",
    _MEAN.replace("mask.sum(1)\n", "mask.sum(1).clamp_min(1)\n") + _RUN,
)
INVALID = (
    Invalid(_START + "    return »(x - x.min()) / (x.max() - x.min())«\n", "constant"),
    Invalid(_START + "    x = x - x.min()\n    return »x / x.max()«\n", "constant"),
    Invalid(_START + "    lo, hi = x.amin((1, 2), keepdim=True), x.amax((1, 2), keepdim=True)\n    x = »(x - lo) / (hi - lo)«\n    return x * 255\n", "NaN"),
    Invalid(_START + "    lo, hi = x.view(8, -1).min(1).values, x.view(8, -1).max(1).values\n    if mask is not None:\n        x = x * 2\n"
            "    return »(x - lo.view(8, 1, 1)) / (hi.view(8, 1, 1) - lo.view(8, 1, 1))«\n", "constant"),
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return »(x - np.min(x)) / (np.max(x) - np.min(x))«\n", "constant"),
    Invalid(_MEAN.replace("(x *", "»(x *").replace("mask.sum(1)\n", "mask.sum(1)«\n") + _RUN, "data"),
)

_SHAPES = frozenset(f"torch.Tensor.{name}" for name in ("view", "reshape", "flatten", "unsqueeze", "squeeze", "expand"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "div"):
        divisor = _moved(function, flow.operand(function, op, 1))
        if op.type.dtype is not None and not op.type.dtype.is_float or divisor.name == "constant":
            continue
        ends = _ends(function, divisor)
        known = evaluated(function, divisor) if not ends else None
        why = "the largest less the smallest is 0 where all are alike, in a constant image or row" if ends else \
            "with the data of this file's own call the divisor is 0" if known is not None and known.size and (known == 0).any() else ""
        if why and not flow.nan_replaced(facts, function, op) and not _asked(facts, op, (divisor, *ends)):
            yield RULE.finding(f"nothing guards the division: {why}, and 0 / 0 is NaN; .clamp_min(1e-8) on the divisor does", flow.span(op),
                               flow.evidence((divisor, "the divisor"), *((each, "over the same values") for each in ends)), Fix("display", "a / b.clamp_min(1e-8)"))


def _ends(function: Function, op: Op) -> tuple[Op, ...]:
    """(max, min) of what is max(x) - min(x), or max(x - min(x))."""
    if op.name == "reduce_max":
        shifted = _moved(function, flow.operand(function, op))
        least = _moved(function, flow.operand(function, shifted, 1)) if shifted.name == "sub" else shifted
        same = least.name == "reduce_min" and _moved(function, flow.operand(function, least)) is _moved(function, flow.operand(function, shifted))
        return (op, least) if same and op.attr("axes") == least.attr("axes") else ()
    if op.name != "sub":
        return ()
    most, least = (_moved(function, flow.operand(function, op, place)) for place in (0, 1))
    if (most.name, least.name) != ("reduce_max", "reduce_min") or most.attr("axes") != least.attr("axes"):
        return ()
    return (most, least) if _moved(function, flow.operand(function, most)) is _moved(function, flow.operand(function, least)) else ()


def _moved(function: Function, op: Op) -> Op:
    """A value before it is given another shape, also where the shapes are not known."""
    while op.name in flow.LAYOUT or op.name == "opaque" and op.attr("call") in _SHAPES and op.operands:
        op = flow.operand(function, op)
    return op


def _asked(facts: FileFacts, op: Op, about: tuple[Op, ...]) -> bool:
    """A branch of the same function asks for a number that is computed, or for one of these by its name."""
    from cuvil.frontends.python.values import Tensor
    home, names = owner(facts, flow.span(op)), "|".join(re.escape(each.label) for each in about if each.label)
    return home is not None and any(home.span.encloses(branch.span) and (isinstance(branch.test, Tensor) or names and re.search(
        rf"\b(?:{names})\b", facts.source.slice(branch.span))) for branch in branches(facts))


RULE = Rule("CUV509", "unguarded-division", kind="nan-risk", severity="info", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
