"""Shapes that cannot go together.

What: an operation gets shapes that its rule forbids: sizes that do not broadcast, a wrong rank, a normalised axis of another size.
Why: the line raises for every input that reaches it.
Example: `torch.zeros(4, 3) + torch.zeros(4)`
Instead: add the missing axis (`b[:, None]`), or expand one side on purpose.

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
    return torch.zeros(4, 3) + torch.zeros(3)
""",
)
INVALID = (
    Invalid("""import torch

def f():
    return »torch.zeros(4, 3) + torch.zeros(4)«
""", "4"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV100", "shape-mismatch", kind="shape-mismatch", severity="error", certainty="proved", check=check, manual=__doc__, valid=VALID, invalid=INVALID)
