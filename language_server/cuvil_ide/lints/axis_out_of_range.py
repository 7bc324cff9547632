"""An axis that the tensor does not have.

What: a literal axis lies outside the proved rank.
Why: the line raises for every input that reaches it.
Example: `torch.zeros(2, 3).sum(dim=2)`
Instead: count axes from 0, or from the end with negative numbers.

Silent when a size is unknown, when the sizes may be equal for some input, and where the error is caught or expected.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .problems import report
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = (
    """import torch

def f():
    return torch.zeros(2, 3).sum(dim=-2)
""",
)
INVALID = (
    Invalid("""import torch

def f():
    return »torch.zeros(2, 3).sum(dim=2)«
""", "xis 2"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV104", "axis-out-of-range", kind="shape-mismatch", severity="error", certainty="proved",
            check=check, manual=__doc__, valid=VALID, invalid=INVALID)
