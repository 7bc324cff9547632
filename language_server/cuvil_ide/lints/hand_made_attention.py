"""Attention written out step by step.

What: softmax of a scaled (and maybe masked) product of queries and keys, contracted with values, with the weights used for nothing else.
Why: written out, the scores (length × length for each head) go to memory and back several times; `scaled_dot_product_attention` picks a fused
kernel that never writes them, on every device.
Example: `torch.softmax(q @ k.transpose(-2, -1) / d ** 0.5, dim=-1) @ v`
Instead: `F.scaled_dot_product_attention(q, k, v)`, with `attn_mask=` for the mask and `scale=` for another factor
Fix: display: masks and dropout have to be handed over.

Silent when the weights are returned or read elsewhere, when they are dropped out by hand, when the softmax is not over the keys, in functions that call
`scaled_dot_product_attention` on another path, and in those that Cuvil compiles: it fuses what is written out.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\nimport torch.nn.functional as F\n\ndef f(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor):\n    B, H, T, D = q.shape\n"
VALID = (
    _START + "    return F.scaled_dot_product_attention(q, k, v)\n",
    _START + "    w = torch.softmax(q @ k.transpose(-2, -1) / D ** 0.5, dim=-1)\n    return w @ v, w\n",
    _START + "    if D > 64:\n        return F.scaled_dot_product_attention(q, k, v)\n    return torch.softmax(q @ k.transpose(-2, -1) * 0.1, dim=-1) @ v\n",
    # A gate of features, not of keys.
    _START + "    return torch.softmax(q, dim=-1) @ v\n",
)
INVALID = (
    Invalid(_START + "    w = »torch.softmax(q @ k.transpose(-2, -1) / D ** 0.5, dim=-1)«\n    return w @ v\n", "scaled_dot_product_attention"),
    Invalid(_START + "    s = (q @ k.transpose(-2, -1)) * 0.125\n    s = s.masked_fill(mask == 0, float('-inf'))\n    return »s.softmax(dim=-1)« @ v\n", "length × length"),
)

_TRANSPOSES = frozenset(("transpose", "mT", "T", "permute", "swapaxes"))
_STEPS = flow.LAYOUT | {"mul", "div", "add", "sub", "select"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for home, function, weights in ((f, f.function, op) for f in facts.functions if f.function is not None for op in f.function.by_name.get("softmax", ())):
        origin = weights.origins[0] if weights.origins else None
        if origin is None or origin.callers or weights.attr("axis") != (-1 if weights.type.rank is None else weights.type.rank - 1) or flow.leaves(function, weights):
            continue
        product = _contracted(function, weights)
        scores = next((op for op in flow.sources(function, flow.operand(function, weights), _STEPS) if op.name == "matmul"), None)
        if home.entry is not None or product is None or scores is None or not _of_keys(function, scores):
            continue
        if "scaled_dot_product_attention" in facts.source.slice(home.span) or flow.read_again(facts, home, weights):
            continue
        yield RULE.finding("attention written out: the length × length scores go through memory at each step; F.scaled_dot_product_attention computes the same in "
                           "one fused kernel", origin.span, flow.evidence((scores, "queries meet keys"), (product, "and values are weighted")),
                           Fix("display", "F.scaled_dot_product_attention(q, k, v, attn_mask=..., scale=...)"))


def _contracted(function: Function, weights: Op) -> Op | None:
    """The product with the values, when it is all that reads the weights."""
    users = list(flow.uses(function, weights))
    if len(users) != 1 or users[0][0].name != "matmul" or flow.source(function, flow.operand(function, users[0][0])) is not weights:
        return None
    return users[0][0]


def _of_keys(function: Function, scores: Op) -> bool:
    """The right side is transposed in its last two axes: one row for each key."""
    right = flow.operand(function, scores, 1)
    return right.name == "transpose" or right.name == "opaque" and right.attr("call", "").rpartition(".")[2] in _TRANSPOSES


RULE = Rule("CUV804", "hand-made-attention", kind="inefficient-construction", severity="info", certainty="hint", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
