"""A mask whose batch axis lines up with heads.

What: a mask [B, 1, L, S] meets scores [B, groups, heads, L, S], or one of [B, L, S] (or of padding, [B, S]) meets scores [B, heads, L, S].
Why: axes line up from the last one, so the mask's batch stands at the heads. It raises, or, when both sizes agree, masks the heads
of all samples by the masks of different samples.
Example: `scores + mask` with scores [B, kv_heads, groups, L, S] and mask [B, 1, L, S]
Instead: `scores + mask.unsqueeze(1)`, or `mask[:, None, None, :]` for padding
Fix: unsafe: the result changes, which is the point.

Silent when the mask has an axis for each axis of the scores, when its first axis has one element, and for biases per head.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .axes import axes_of, batches, shown
from .problems import report
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\nimport torch.nn.functional as F\n\n"
_Q = "def f(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor):\n    B, H, L, D = q.shape\n    B, H, S, D = k.shape\n"
VALID = (
    _START + _Q + "    B, one, L, S = mask.shape\n    return (q @ k.transpose(2, 3) + mask).softmax(-1)\n",
    _START + _Q + "    L, S = mask.shape\n    return (q @ k.transpose(2, 3) + mask).softmax(-1)\n",
    # A bias per head.
    _START + "def f(q: torch.Tensor, bias: torch.Tensor):\n    B, H, L, D = q.shape\n    H, L, L = bias.shape\n    return (q @ q.transpose(2, 3) + bias).softmax(-1)\n",
)
INVALID = (
    Invalid(_START + "def f(q: torch.Tensor):\n    B, H, L, D = q.shape\n    scores = q @ q.transpose(2, 3)\n    mask = torch.zeros(B, L, L)\n"
            "    return (»scores + mask«).softmax(-1)\n", "lines up"),
    Invalid(_START + "def f():\n    q, k, mask = torch.ones(2, 2, 2, 3, 8), torch.ones(2, 2, 1, 3, 8), torch.zeros(2, 1, 3, 3)\n    scores = q @ k.transpose(-1, -2)\n"
            "    return (»scores + mask«).softmax(-1)\n", "unsqueeze"),
)

_MASK = re.compile(r"mask", re.IGNORECASE)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    yield from report(facts, RULE)
    for function, op in flow.ops(facts, "add", "select", "attention"):
        found = _pair(function, op)
        if found is None:
            continue
        scores, mask = found
        shape, own = scores.type.shape, mask.type.shape
        if shape is None or own is None or not 2 <= len(own) < len(shape) or len(shape) < 4 or own[0] == 1 or not _of_batch(function, scores, mask):
            continue
        where = op.origins[0].span
        at = len(shape) - len(own)
        yield RULE.finding(f"a mask {shown(own)} on scores {shown(shape)}: axes line up from the last, so the mask's batch axis lines up with axis {at} of the scores, "
                           f"not with the batch. mask.unsqueeze({'1' if len(own) > 2 else '1).unsqueeze(1'})", where,
                           flow.evidence((mask, f"has shape {shown(own)}"), (scores, f"has shape {shown(shape)}")), Fix("display", "mask.unsqueeze(1)"))


def _pair(function: Function, op: Op) -> tuple[Op, Op] | None:
    """(scores, mask), where one is what goes into a softmax."""
    operands = [function.by_id[id] for id in op.operands]
    if op.name == "attention":
        return (operands[0], operands[3]) if len(operands) > 3 else None
    if not any(user.name == "softmax" for user, _ in flow.uses(function, op, flow.LAYOUT | {"add", "select", "maximum"})):
        return None
    if op.name == "select":
        scores = next((o for o in operands[1:] if o.type.rank == op.type.rank), None)
        return (scores, operands[0]) if scores is not None and scores.name not in ("constant", "broadcast") else None
    named = [o for o in operands if _named_mask(function, o)]
    rest = [o for o in operands if o not in named]
    return (rest[0], named[0]) if len(named) == len(rest) == 1 else None


def _named_mask(function: Function, op: Op) -> bool:
    for _ in range(12):
        if _MASK.search(op.label or str(op.attr("name") or "")):
            return True
        if op.name not in flow.LAYOUT and op.name not in ("slice", "not", "eq", "ne") and op.attr("call") != "[]=" or not op.operands:
            return False
        op = function.by_id[op.operands[0]]
    return False


def _of_batch(function: Function, scores: Op, mask: Op) -> bool:
    """The mask's first axis is the batch: the same symbol as that of the scores, or by its form, [B, 1, L, S] on five axes."""
    shape, own = scores.type.shape, mask.type.shape
    if not isinstance(own[0], int):
        return own[0] == shape[0] and own[0] != shape[len(shape) - len(own)]
    if len(own) == 4 and len(shape) == 5:
        return own[1] == 1 and own[-2:] == shape[-2:] and own[0] == shape[0]
    if len(own) == 2 and len(shape) == 4 and own[0] == shape[0] and own[1] == shape[2]:
        return _rows_of_samples(function, mask)
    first = axes_of(function)[mask.id][0]
    return bool(set(first) & batches(function)) and set(first) <= set(axes_of(function)[scores.id][0])


def _rows_of_samples(function: Function, mask: Op) -> bool:
    """A table of given numbers that is no triangle: a row for each sample and not for each query."""
    sources = list(flow.sources(function, mask, flow.LAYOUT | {"not", "eq", "ne", "and"}))
    tables = [op.attr("value") for op in sources if op.name == "constant" and isinstance(op.attr("value"), tuple)]
    return len(tables) == 1 and all(op.name == "constant" for op in sources) and any(any(row[i + 1:]) for i, row in enumerate(tables[0]) if isinstance(row, tuple))


RULE = Rule("CUV604", "mask-rank", kind="mask-shape", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
