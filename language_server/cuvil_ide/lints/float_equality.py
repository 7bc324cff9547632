"""Computed floats compared with == or !=.

What: a sum, mean, quotient or product of floats is compared for equality with a number other than 0, or with another computed float.
Why: both are rounded, each on its own way: ten times 0.1 is not 1, and the same sum on a GPU or over another batch size has other last digits.
Example: `(probs.sum(-1) == 1.0).all()`
Instead: `torch.isclose(probs.sum(-1), torch.ones(())).all()`, `torch.allclose`, `abs(a - b) < 1e-5`
Fix: display: a tolerance has to be chosen.

Silent for comparisons with 0, infinity and a value's own maximum or minimum (which are copied unchanged), for numbers that are whole by what they are made of,
and for data as it comes in.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .guards import expected_to_fail
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    p = x.softmax(-1)\n"
VALID = (
    _START + "    return torch.isclose(p.sum(-1), torch.ones(())), p == p.max(-1, keepdim=True).values, p == 0\n",
    _START + "    return x == y, x == 1.0, x / 3 == 1.0, p == 1.0, x.relu() == 0.0, p.round() == 1.0\n",
    _START + "    return (x > 0).float().mean() == 1.0, x.long().sum() == 3, (x > 0).float().sum(-1) == y.shape[-1]\n",
    _START + "    return (p * 2) == float('inf'), torch.where(x > 0, 1.0, p) == 1.0\n",
    _START + "    m = p.amax(-1)\n    return m[:, None] == p\n",
)
INVALID = (
    Invalid(_START + "    return (»p.sum(-1) == 1.0«).all()\n", "isclose"),
    Invalid(_START + "    return »p.mean(0) != torch.sigmoid(y).mean(0)«\n", "rounded"),
    Invalid(_START + "    return »x.exp() * 0.1 == 0.3«\n", "isclose"),
)

_ROUNDED = frozenset(("reduce_sum", "mean", "div", "mul", "add", "sub"))
_FRACTIONS = frozenset(("exp", "log", "sqrt", "rsqrt", "norm", "std", "var", "softmax", "sigmoid", "tanh", "sin", "cos", "matmul", "linear", "einsum"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "eq", "ne"):
        left, right = (flow.source(function, flow.operand(function, op, place)) for place in (0, 1))
        if not _computed(function, left):
            left, right = right, left
        number = flow.number(function, right)
        other = _computed(function, right) and left.key != right.key if number is None else number != 0 and math.isfinite(number)
        if _computed(function, left) and other and not expected_to_fail(facts, flow.span(op)):
            yield RULE.finding(f"floats are compared with {'==' if op.name == 'eq' else '!='}: each is rounded on its own way, so equal ones differ; use torch.isclose",
                               flow.span(op), flow.evidence((left, "computed here"), *(((right, "and here"),) if number is None else ())),
                               Fix("display", "torch.isclose(a, b)"))


def _computed(function: Function, op: Op) -> bool:
    """A sum, product or quotient of what has fractions by its kind. Those of whole numbers may be exact, as is a share of all."""
    inner = flow.LAYOUT | _ROUNDED
    return op.name in _ROUNDED and (op.type.dtype is None or op.type.dtype.is_float) and any(
        each.name in _FRACTIONS for each in flow.sources(function, op, inner))


RULE = Rule("CUV512", "float-equality", kind="unstable-numerics", severity="info", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
