"""`~` on a mask of integers 0 and 1.

What: `~mask`, or bitwise_not, where the mask holds the integers 0 and 1: a tokenizer's attention mask, a comparison that was cast with `.long()`.
Why: `~` flips bits: 0 becomes -1 and 1 becomes -2 (255 and 254 in uint8). Both are true, so as a mask the result says the same everywhere, and
as an index it takes the last two rows.
Example: `pad = (~batch["attention_mask"]).bool()`
Instead: `pad = batch["attention_mask"] == 0`
Fix: unsafe: `mask == 0`; the result changes, which is the point.

Silent for bool masks, where the lowest bit alone is used (`~mask & 1`, `a & ~b`), and where it is not known what the mask holds.
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
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\nfrom transformers import AutoTokenizer\n\ndef f(ids: torch.Tensor, h: torch.Tensor):\n"
_LONG = _START + "    mask = (ids != 0).long()\n"
VALID = (
    _START + "    return h.masked_fill(~(ids != 0), 0.0)\n",
    _LONG + "    return h.masked_fill(mask == 0, 0.0), h.masked_fill(~mask.bool(), 0.0)\n",
    _LONG + "    return ~mask & 1, mask & ~(ids > 5).long()\n",
    _LONG + "    return torch.logical_not(mask)\n",
    _START + "    return ~ids.long()\n",
)
INVALID = (
    Invalid("import torch\n\ndef f(attention_mask: torch.LongTensor):\n    return (»~attention_mask«).bool()\n", "true",
            "import torch\n\ndef f(attention_mask: torch.LongTensor):\n    return (attention_mask == 0).bool()\n"),
    Invalid(_LONG + "    return h.masked_fill((»~mask«).bool(), 0.0)\n", "-1", _LONG + "    return h.masked_fill((mask == 0).bool(), 0.0)\n"),
    Invalid(_LONG + "    keep = mask.to(torch.uint8)\n    return »torch.bitwise_not(keep)«\n", "255",
            _LONG + "    keep = mask.to(torch.uint8)\n    return (keep == 0)\n"),
    Invalid(_START + "    batch = AutoTokenizer.from_pretrained('x')(['a', 'bc'], padding=True, return_tensors='pt')\n    pad = »~batch['attention_mask']«\n    return pad.bool()\n", "== 0",
            _START + "    batch = AutoTokenizer.from_pretrained('x')(['a', 'bc'], padding=True, return_tensors='pt')\n    pad = (batch['attention_mask'] == 0)\n    return pad.bool()\n"),
    Invalid("import numpy as np\n\ndef f(ids: np.ndarray):\n    keep = (ids > 0).astype(int)\n    return ids[»~keep«]\n", "true",
            "import numpy as np\n\ndef f(ids: np.ndarray):\n    keep = (ids > 0).astype(int)\n    return ids[(keep == 0)]\n"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for home in facts.functions:
        function = home.function
        for op in function.by_name.get("not", ()) if function is not None else ():
            if not op.origins or op.origins[0].span.path != facts.source.path or op.type.dtype is None or not op.type.dtype.is_int:
                continue
            mask = flow.operand(function, op)
            if not (flow.ranges(function)[mask.id].within(0, 1) or mask.id in _masks(home) or "attention_mask" in str(mask.attr("name"))) or _lowest_bit(function, op):
                continue
            zero, one = (255, 254) if op.type.dtype.name == "U8" else (-1, -2)
            yield RULE.finding(f"~ flips the bits of a mask of {op.type.dtype.numpy}: 0 becomes {zero} and 1 becomes {one}, which are both true; "
                               f"compare instead: mask == 0", flow.span(op), flow.evidence((mask, f"holds 0 and 1 as {op.type.dtype.numpy}")), _fix(facts, op))


def _masks(home: FunctionFacts) -> set[int]:
    """Tensors that are masks of 0 and 1 by where they come from."""
    from cuvil.frontends.python.values import Tensor
    return {fact.value.op.id for fact in home.expressions if isinstance(fact.value, Tensor) and fact.value.mask is not None and fact.value.mask.form == "01"}


def _lowest_bit(function: Function, op: Op) -> bool:
    """All that reads the flipped bits takes the lowest of them."""
    users = function.users[op.id]
    return bool(users) and all(user.name == "and" and any(flow.ranges(function)[id].within(0, 1) for id in user.operands if id != op.id) for user in users)


def _fix(facts: FileFacts, op: Op) -> Fix | None:
    node = node_of(facts, flow.span(op), cst.UnaryOperation, cst.Call)
    match node:
        case cst.UnaryOperation(expression=inner):
            pass
        case cst.Call(args=[cst.Arg(value=inner, star="", keyword=None)]):
            pass
        case _:
            return None
    text = facts.source.slice(facts.module.span(inner))
    text = text if isinstance(inner, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) else f"({text})"
    return Fix("unsafe", "Compare with 0", (Edit(flow.span(op), f"{text} == 0" if node.lpar else f"({text} == 0)"),))


RULE = Rule("CUV214", "bitwise-not-on-01", kind="mask-dtype", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
