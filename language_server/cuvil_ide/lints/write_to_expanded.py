"""A write into a tensor whose elements share memory.

What: an in-place operation on the result of `expand` or `broadcast_to`.
Why: expanding copies nothing, so many indices are one element. torch raises when it sees it, and where it does not, one write
changes many rows.
Example: `mask = row.expand(4, 8); mask[0, 2] = 0`
Instead: `mask = row.expand(4, 8).clone()`
Fix: display: a clone where it is expanded.

Silent when it was cloned or made contiguous before.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from .guards import expected_to_fail
from .recorded import once, tensors, writes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(row: torch.Tensor):\n"
VALID = (
    _START + "    table = row.expand(4, 8).clone()\n    table[0, 2] = 0.0\n    return table\n",
    _START + "    table = row.repeat(4, 1)\n    table[0, 2] = 0.0\n    return table\n",
    _START + "    table = row.expand(4, 8) + 0\n    table.mul_(2.0)\n    return table\n",
    _START + "    return row.expand(4, 8) * 2.0\n",
    _START + "    table = row.expand(4, 8).contiguous()\n    table.mul_(2.0)\n    return table.sum()\n",
)
INVALID = (
    Invalid(_START + "    table = row.expand(4, 8)\n    »table[0, 2]« = 0.0\n    return table\n", "share memory"),
    Invalid(_START + "    table = torch.zeros(1, 8).expand(4, 8)\n    »table.add_(row)«\n    return table\n", "clone()"),
    Invalid(_START + "    table = torch.broadcast_to(torch.zeros(8), (4, 8))\n    »table += row«\n    return table\n", "clone()"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for write in once(w for w in writes(facts) if any("expanded" in t.marks for t in tensors(w.target))):
        if expected_to_fail(facts, write.span):
            continue
        target = next(iter(tensors(write.target)))
        made = tuple(Evidence(origin.span, "is expanded here") for origin in target.op.origins[:1])
        yield RULE.finding("this writes into an expanded tensor, whose elements share memory: torch raises, or one write changes many; clone() it first",
                           write.span, made, Fix("display", "make a copy: .expand(...).clone()"))


RULE = Rule("CUV710", "write-to-expanded", kind="expanded-write", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
