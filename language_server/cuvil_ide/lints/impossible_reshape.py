"""A reshape to another number of elements.

What: the element counts before and after are proved different, or -1 cannot come out even.
Why: the line raises for every input that reaches it.
Example: `torch.zeros(4, 6).reshape(5, 5)`
Instead: let -1 stand for the size that follows from the others.

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
    return torch.zeros(4, 6).reshape(3, -1)
""",
    """import torch

def f(x: torch.Tensor):
    return x.reshape(5, 5)
""",
)
INVALID = (
    Invalid("""import torch

def f():
    return »torch.zeros(4, 6).reshape(5, 5)«
""", "24"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV105", "impossible-reshape", kind="shape-mismatch", severity="error", certainty="proved",
            check=check, manual=__doc__, valid=VALID, invalid=INVALID)
