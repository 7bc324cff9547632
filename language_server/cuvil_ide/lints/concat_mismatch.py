"""Tensors joined although they differ outside the joined axis.

What: the operands of `cat` or `stack` are proved to differ on an axis that must agree.
Why: the line raises for every input that reaches it.
Example: `torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)], dim=0)`
Instead: join along the axis that differs, or bring the others to one size first.

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
    return torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)], dim=1)
""",
)
INVALID = (
    Invalid("""import torch

def f():
    return »torch.cat([torch.zeros(2, 3), torch.zeros(2, 4)], dim=0)«
""", "4"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV103", "concat-mismatch", kind="shape-mismatch", severity="error", certainty="proved", check=check, manual=__doc__, valid=VALID, invalid=INVALID)
