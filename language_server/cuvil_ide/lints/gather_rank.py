"""A gather whose index has another number of axes than its source.

What: the index of `gather`, `scatter`, `take_along_dim` or `take_along_axis` has fewer or more axes than what it picks from.
Why: these do not broadcast the axes that are missing: the line raises for every input that reaches it.
Example: `states.gather(1, last[:, None])` for states [B, T, C]
Instead: `states.gather(1, last[:, None, None].expand(-1, 1, states.size(-1)))`

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
    "import torch\n\ndef f():\n    i = torch.zeros(2, 3, dtype=torch.long)\n    return torch.zeros(2, 3, 4).gather(1, i[..., None].expand(-1, -1, 4))\n",
)
INVALID = (
    Invalid("import torch\n\ndef f():\n    i = torch.zeros(2, 3, dtype=torch.long)\n    return »torch.zeros(2, 3, 4).gather(1, i)«\n", "3 and 2 axes"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    return report(facts, RULE)


RULE = Rule("CUV119", "gather-rank", kind="shape-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
