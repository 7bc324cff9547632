"""A padding mask that lies along the queries.

What: a mask over words [B, T] is given its new axis behind T, `mask[:, None, :, None]` or `mask.unsqueeze(1).unsqueeze(3)`, and goes onto
scores [.., queries, keys].
Why: whole rows are masked, those of padded queries, and every query still reads the padded keys. Rows that are masked in full give NaN.
Example: `scores.masked_fill(mask[:, None, :, None] == 0, float("-inf"))`
Instead: `scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))`
Fix: unsafe: the result changes, which is the point.

Silent when rows and columns are masked together, for values that are no scores, and when it is not known what the mask says.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from . import flow
from .bindings import bound_before, dotted_text
from .mask_polarity import WHERE, arguments
from .polarity import polarity
from .recorded import call_nodes
from .rule import Invalid, Rule
from .zero_one_float_mask import are_scores

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_F = "import torch\nimport torch.nn.functional as F\n\n"
VALID = (
    _F + "def f(scores, attention_mask):\n    return scores.masked_fill(attention_mask[:, None, None, :] == 0, -1e9).softmax(-1)\n",
    # Values, not scores: padded rows are left out of a maximum.
    _F + "def f(states, attention_mask):\n    return states.masked_fill(attention_mask[:, :, None] == 0, -1e9).amax(1)\n",
    # Both axes.
    _F + "def f(scores, attention_mask):\n    m = attention_mask.bool()\n    both = m[:, None, :, None] & m[:, None, None, :]\n"
    "    return scores.masked_fill(~both, -1e9).softmax(-1)\n",
)
INVALID = (
    Invalid(_F + "def f(scores, attention_mask):\n    pad = (attention_mask == 0)[:, None, :, None]\n    return scores.masked_fill(»pad«, -1e9).softmax(-1)\n", "queries"),
    Invalid(_F + "def f(q, k, v, attention_mask):\n    return F.scaled_dot_product_attention(q, k, v, »attn_mask=attention_mask.bool()[:, None, :, None]«)\n", "keys",
            _F + "def f(q, k, v, attention_mask):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask.bool()[:, None, None, :])\n"),
    Invalid(_F + "def f(q, k, v, ids, pad_id):\n    keep = (ids != pad_id).unsqueeze(1).unsqueeze(-1)\n"
            "    return F.scaled_dot_product_attention(q, k, v, »attn_mask=keep«)\n", "rows"),
)


_PADDING = re.compile(r"pad|valid|(?:attention|key|src|tgt)_mask|^mask$", re.IGNORECASE)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "attention"):
        mask = flow.operand(function, op, 3) if len(op.operands) > 3 else None
        table, keys = flow.source(function, mask, {"reshape", "not", "cast"}) if mask is not None else None, flow.operand(function, op, 1).type.shape
        shape = mask.type.shape if mask is not None else None
        if shape is not None and len(shape) == 4 and table.type.rank == 2 and shape[-1] == 1 and shape[-2] != 1 and keys is not None and shape[-2] == keys[-2]:
            where = op.origins[0].span
            yield RULE.finding(f"a padding mask {flow.shape(table)} is laid along the queries, as {flow.shape(mask)}: whole rows are masked, and every query still "
                               "reads the padded keys. Its new axes stand before the last", where, flow.evidence((mask, f"has shape {flow.shape(mask)}")))
    for call, node in call_nodes(facts, WHERE):
        fused = call.name == "torch.nn.functional.scaled_dot_product_attention"
        for arg, name in arguments(node, call.name):
            if name != ("attn_mask" if fused else "mask") or not fused and not are_scores(facts, node.func.value):
                continue
            mask = polarity(facts, arg.value)
            placed = _behind(facts, arg.value)
            if placed is None or mask is None and not _named(facts, placed) or mask is not None and mask.origin == "causal":
                continue
            yield RULE.finding("the padding mask lies along the queries: whole rows are masked, and every query still reads the padded keys. "
                               "Put the new axis before the last, [:, None, None, :]", facts.module.span(arg), (), _fix(facts, arg.value, placed))


def _behind(facts: FileFacts, node: cst.BaseExpression | None) -> cst.CSTNode | None:
    """The index or unsqueeze that puts the last axis of one element behind the mask's own."""
    for _ in range(12):
        match node:
            case cst.Subscript(slice=elements) if len(elements) > 1:
                parts = [_part(element.slice) for element in elements]
                return node if parts[-1] == "None" and ":" in parts[:-1] and parts.count(":") == 2 else None
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="unsqueeze")), args=[cst.Arg(value=axis)]):
                if isinstance(axis, cst.UnaryOperation) and isinstance(axis.expression, cst.Integer) and axis.expression.value == "1":
                    return node
                if isinstance(axis, cst.Integer) and axis.value == "3":
                    return node
                node = inner
            case cst.Call(func=cst.Attribute(value=inner)) | cst.UnaryOperation(expression=inner) | cst.Comparison(left=inner):
                node = inner
            case cst.Name() | cst.Attribute():
                node = bound_before(facts, node, dotted_text(facts, node))
            case _:
                return None
    return None


def _named(facts: FileFacts, placed: cst.CSTNode) -> bool:
    """`pad[:, None, :, None]`: what is a table before and has this name is a mask of padding."""
    return isinstance(placed, cst.Subscript) and len(placed.slice) == 4 and _PADDING.search(facts.module.code(placed.value)) is not None


def _part(index: cst.BaseSlice) -> str:
    match index:
        case cst.Slice(lower=None, upper=None, step=None):
            return ":"
        case cst.Index(value=cst.Name(value="None")):
            return "None"
    return "?"


def _fix(facts: FileFacts, value: cst.BaseExpression, placed: cst.CSTNode) -> Fix | None:
    if placed is not value or not isinstance(placed, cst.Subscript) or len(placed.slice) != 4:
        return None
    span = facts.module.span(placed)
    return Fix("unsafe", "Along the keys", (Edit(span, f"{facts.module.code(placed.value)}[:, None, None, :]"),))


RULE = Rule("CUV603", "mask-on-query-axis", kind="mask-shape", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
