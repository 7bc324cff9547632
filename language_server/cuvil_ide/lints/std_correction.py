"""A standard deviation of PyTorch that meets one of NumPy.

What: `std` or `var` of a tensor (over n − 1) is subtracted from, divided by or compared with that of an array (over n), both by their defaults.
Why: the two differ by a factor of √(n / (n − 1)): 5 % for ten numbers. Statistics that were saved by one library do not fit those of the other.
Example: `torch.from_numpy(x).std(0) / torch.from_numpy(x.std(0))`
Instead: `x.std(0, correction=0)` in PyTorch, or `np.std(x, ddof=1)`
Fix: display: which of both is meant is not in the code.

Silent where `correction=`, `unbiased=` or `ddof=` is given.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .recorded import calls
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Op

_START = "import numpy as np\nimport torch\n\ndef f(n: int):\n    x = np.random.rand(10, 4)\n    t = torch.from_numpy(x)\n"
VALID = (
    _START + "    return t.std(0, correction=0) - torch.from_numpy(x.std(0))\n",
    _START + "    return t.std(0) - torch.from_numpy(x.std(0, ddof=1)), t.std(0) / t.var(0)\n",
    _START + "    return np.allclose(t.std(0).numpy(), x.std(0, ddof=1))\n",
    _START + "    return t.std(0, unbiased=False) - torch.from_numpy(np.std(x, axis=0))\n",
)
INVALID = (
    Invalid(_START + "    return »t.std(0) - torch.from_numpy(x.std(0))«\n", "n - 1"),
    Invalid(_START + "    return »torch.var(t, dim=0) / torch.from_numpy(np.var(x, axis=0))«\n", "correction=0"),
    Invalid(_START + "    return »np.allclose(t.std(0).numpy(), x.std(0))«\n", "NumPy"),
)

_MEET = ("sub", "div", "eq", "ne", "lt", "le", "gt", "ge")
_CLOSE = frozenset(("allclose", "isclose", "assert_allclose", "assert_close", "assert_almost_equal"))
_SAID = re.compile(r"\b(?:correction|unbiased|ddof)\b|\bTrue\b|\bFalse\b")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    met = [(flow.span(op), *(flow.source(function, flow.operand(function, op, place)) for place in (0, 1))) for function, op in flow.ops(facts, *_MEET)]
    for call in calls(facts):
        if call.name.rpartition(".")[2] in _CLOSE and len(call.args) > 1 and all(isinstance(arg, Tensor) for arg in call.args[:2]):
            met.append((call.span, call.args[0].op, call.args[1].op))
    for span, a, b in met:
        if {_kind(facts, a), _kind(facts, b)} in ({("std", 0), ("std", 1)}, {("var", 0), ("var", 1)}):
            yield RULE.finding(f"{a.name} of PyTorch divides by n - 1, that of NumPy by n: here they meet. correction=0 makes them alike", span,
                               flow.evidence(*((each, f"{'PyTorch: n - 1' if each.attr('correction') else 'NumPy: n'}") for each in (a, b))),
                               Fix("display", f"x.{a.name}(dim, correction=0)"))


def _kind(facts: FileFacts, op: Op) -> tuple[str, int] | None:
    """(std or var, what is taken off the count) of one that says nothing of it."""
    span = flow.span(op)
    if op.name not in ("std", "var") or span is None or span.path != facts.source.path or _SAID.search(facts.source.slice(span)):
        return None
    return op.name, op.attr("correction")


RULE = Rule("CUV516", "std-correction", kind="unstable-numerics", severity="info", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
