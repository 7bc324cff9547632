"""A normalisation over an axis of another size.

What: LayerNorm of another size than the last axes, or BatchNorm and GroupNorm of tensors that have their channels last.
Why: the line raises for every input that reaches it: LayerNorm normalises the last axes, BatchNorm and GroupNorm have channels on axis 1.
Example: `nn.BatchNorm1d(8)(x)` for x [B, T, 8]
Instead: `nn.BatchNorm1d(8)(x.transpose(1, 2)).transpose(1, 2)`

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
    "import torch\nfrom torch import nn\n\ndef f():\n    return nn.BatchNorm1d(8)(torch.zeros(2, 5, 8).transpose(1, 2))\n",
    "import torch\nfrom torch import nn\n\ndef f():\n    return nn.LayerNorm(8)(torch.zeros(2, 5, 8))\n",
)
INVALID = (
    Invalid("import torch\nfrom torch import nn\n\ndef f():\n    return »nn.BatchNorm1d(8)(torch.zeros(2, 5, 8))«\n", "the channels are last: transpose(1, 2) first"),
    Invalid("import torch\nfrom torch import nn\n\ndef f():\n    return »nn.LayerNorm(8)(torch.zeros(2, 3, 4))«\n", "over (8)"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV120", "norm-axis", kind="shape-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
