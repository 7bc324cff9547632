"""A matrix product whose inner sizes differ.

What: the contracted sizes of `@`, `matmul`, `bmm`, `nn.Linear`, `einsum`, a convolution or an attention are proved unequal.
Why: the line raises for every input that reaches it.
Example: `torch.zeros(4, 3) @ torch.zeros(5, 2)`
Instead: make the last axis of the left side as long as the last but one of the right, or transpose one of them.

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
    return torch.zeros(4, 3) @ torch.zeros(3, 2)
""",
    """import torch

def f(x: torch.Tensor):
    return x @ torch.zeros(3, 2)
""",
    """import torch

def f():
    try:
        return torch.zeros(4, 3) @ torch.zeros(5, 2)
    except RuntimeError:
        return None
""",
)
INVALID = (
    Invalid("""import torch

def f():
    return »torch.zeros(4, 3) @ torch.zeros(5, 2)«
""", "3"),
    Invalid("""import torch
import torch.nn as nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        return »self.out(torch.zeros(4, 16))«
""", "16"),
    Invalid("""import torch
import torch.nn as nn

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 32), nn.Linear(16, 8)

    def forward(self, x):
        return »self.down(x + self.up(x).relu())«
""", "32"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV101", "matmul-shape-mismatch", kind="shape-mismatch", severity="error", certainty="proved",
            check=check, manual=__doc__, valid=VALID, invalid=INVALID)
