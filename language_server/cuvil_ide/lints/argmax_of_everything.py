"""One argmax for a whole table, used as one for each row.

What: `argmax`, `argmin` without an axis on a table [N, C], and its result is compared with N labels or gives N predictions.
Why: without an axis the table is flattened: the result is one number below N*C. The comparison broadcasts, so an accuracy comes out and is
nonsense.
Example: `(logits.argmax() == labels).float().mean()`
Instead: `(logits.argmax(dim=-1) == labels).float().mean()`
Fix: unsafe: the result changes, which is the point.

Silent for vectors, for tables of one row, and where the result is not compared with one value for each row.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.source import Span

_START = "import torch\n\ndef accuracy(logits: torch.Tensor, labels: torch.Tensor):\n    N, C = logits.shape\n"
VALID = (
    _START + "    return (logits.argmax(dim=-1) == labels).float().mean()\n",
    _START + "    best = logits.argmax()\n    return best // C, best % C\n",
    "import torch\n\ndef f(scores: torch.Tensor, labels: torch.Tensor):\n    C, = scores.shape\n    return scores.argmax() == labels\n",
)
INVALID = (
    Invalid(_START + "    return (»logits.argmax()« == labels).float().mean()\n", "[N, C]", _START + "    return (logits.argmax(-1) == labels).float().mean()\n"),
    Invalid("import numpy as np\n\ndef f():\n    scores, labels = np.zeros((4, 3)), np.zeros(4)\n    guess = »np.argmax(scores)«\n    return (guess == labels).mean()\n", "row",
            "import numpy as np\n\ndef f():\n    scores, labels = np.zeros((4, 3)), np.zeros(4)\n    guess = np.argmax(scores, -1)\n    return (guess == labels).mean()\n"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "argmax", "argmin"):
        if op.type.shape != ():
            continue
        table = flow.source(function, flow.operand(function, op), {"reshape", "cast"})
        shape = table.type.shape
        if shape is None or len(shape) < 2 or shape[0] == 1:
            continue
        for user, value in flow.uses(function, op, flow.LAYOUT):
            other = next((function.by_id[id] for id in user.operands if id != value.id), None)
            if user.name in ("eq", "ne") and other is not None and (other.type.rank == 1 and other.type.shape[0] != 1 or other.type.shape is None and other.name == "input"):
                span = op.origins[0].span
                yield RULE.finding(f"{op.name} without an axis flattens {flow.shape(table)}: one number, compared with one for each row. Use dim=-1", span,
                                   flow.evidence((table, f"has shape {flow.shape(table)}"), (user, "is compared here")), _fix(facts, span))
                break


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    call = node_of(facts, span, cst.Call)
    if call is None or any(arg.keyword is not None for arg in call.args):
        return None
    text = facts.source.slice(span)[:-1].rstrip().rstrip(",")
    return Fix("unsafe", "For each row: -1", (Edit(span, f"{text}{', ' if call.args else ''}-1)"),))


RULE = Rule("CUV112", "argmax-of-everything", kind="wrong-axis", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
