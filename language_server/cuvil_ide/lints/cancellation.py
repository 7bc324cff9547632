"""A logarithm near 1, or an exponential less 1, that loses its small part.

What: `log(1 + x)`, and `exp(x) - 1` or `1 - exp(x)`, where x may be small.
Why: 1 + 1e-8 is 1 in float32, so that log gives 0 in place of 1e-8; of exp(1e-8) - 1 nothing is left either. `log1p` and `expm1` keep every digit.
Example: `torch.log(1 + torch.exp(-x))`
Instead: `torch.log1p(torch.exp(-x))`, `torch.expm1(x)`
Fix: display: `torch.log1p(x)`, `torch.expm1(x)`.

Silent where x is whole by what it is made of, where it is known to stay away from 0, and where it is not known what it is.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor):\n"
VALID = (
    _START + "    return torch.log1p(x.exp()), torch.expm1(x.sigmoid())\n",
    # Counts, for all that is known; a clamp that stays away.
    _START + "    return torch.log(1 + x), torch.log(1 + x.long()), torch.log(1 + x.sigmoid().clamp_min(0.5))\n",
    _START + "    return torch.log(2 + x.exp()), x.exp() - 2, 1 - torch.exp(-x.abs() - 1)\n",
    _START + "    return torch.log(1 + x.argmax(-1).float().sqrt())\n",
)
INVALID = (
    Invalid(_START + "    return »torch.log(1 + torch.exp(-x))«\n", "log1p"),
    Invalid(_START + "    p = x.softmax(-1)\n    return »(p + 1.0).log()«\n", "log1p"),
    Invalid(_START + "    return »torch.exp(x * 0.01) - 1«\n", "expm1"),
    Invalid(_START + "    return »1 - torch.exp(-0.5 * x)«\n", "expm1"),
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return »np.log(1 + np.exp(x))«\n", "log1p"),
)

_FRACTIONS = frozenset(("exp", "sigmoid", "softmax", "tanh", "mean", "norm", "std", "var", "linear", "matmul"))
_NEAR = 0.01


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "log"):
        value = flow.operand(function, op)
        small = _beside_one(function, value) if value.name == "add" else None
        if small is not None and _may_be_small(function, small):
            yield RULE.finding("log(1 + x) loses what x is in the rounding of 1 + x where x is small; log1p(x) keeps it", flow.span(op),
                               flow.evidence((small, "may be small")), Fix("display", "torch.log1p(x)"))
    for function, op in flow.ops(facts, "sub"):
        other = _beside_one(function, op)
        argument = flow.operand(function, other) if other is not None and other.name == "exp" else None
        if argument is not None and _may_be_small(function, argument):
            yield RULE.finding("exp(x) - 1 loses digits of x where x is small; expm1(x) keeps them", flow.span(op),
                               flow.evidence((argument, "may be small")), Fix("display", "torch.expm1(x)"))


def _beside_one(function: Function, op: Op) -> Op | None:
    for place in (0, 1):
        if flow.number(function, flow.operand(function, op, place)) == 1:
            return flow.operand(function, op, 1 - place)
    return None


def _may_be_small(function: Function, op: Op) -> bool:
    """It has a fraction by what it is made of, and its bounds do not keep it from 0."""
    known = flow.ranges(function)[op.id]
    if known.lo > _NEAR or known.hi < -_NEAR:
        return False
    made = flow.source(function, op, flow.PARTS)
    scaled = made.name in ("mul", "div") and any(isinstance(flow.number(function, function.by_id[id]), float) for id in made.operands)
    return made.name in _FRACTIONS or scaled


RULE = Rule("CUV511", "cancellation", kind="unstable-numerics", severity="info", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
