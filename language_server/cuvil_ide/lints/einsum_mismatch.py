"""An einsum whose letters do not fit the tensors.

What: a term has more or fewer letters than its tensor has axes, or one letter stands for axes of two sizes.
Why: the line raises for every input that reaches it.
Example: `torch.einsum("bij,bjk->bik", torch.zeros(2, 3, 4), torch.zeros(2, 5, 6))`
Instead: one letter for each axis, the same letter for axes of one size.

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
    "import torch\n\ndef f():\n    return torch.einsum(\"bij,bjk->bik\", torch.zeros(2, 3, 4), torch.zeros(2, 4, 6))\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return torch.einsum(\"...i,ij->...j\", torch.zeros(2, 3, 4), torch.zeros(4, 6))\n",
)
INVALID = (
    Invalid("import torch\n\ndef f():\n    return »torch.einsum(\"bij,bjk->bik\", torch.zeros(2, 3, 4), torch.zeros(2, 5, 6))«\n", "axis j has sizes 4 and 5"),
    Invalid("import torch\n\ndef f():\n    return »torch.einsum(\"bi,bj->bij\", torch.zeros(2, 3, 4), torch.zeros(2, 5))«\n", "3 axes"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV118", "einsum-mismatch", kind="shape-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
