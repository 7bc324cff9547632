"""Attention weights that are masked after the softmax.

What: the weights of a softmax over unmasked scores are multiplied by a mask (or filled with 0) and contracted with the values as they are.
Why: the masked places took their share before: what is left of a row adds up to less than 1, so the output shrinks with the amount of padding, and a
causal model still looks ahead through the denominator.
Example: `w = (q @ k.transpose(-2, -1)).softmax(-1) * keep; w @ v`
Instead: `(q @ k.transpose(-2, -1)).masked_fill(~keep, torch.finfo(q.dtype).min).softmax(-1) @ v`
Fix: display: the scores have to be masked where they are made.

Silent where a division by the sum follows, where the scores are masked as well, for masks over the queries alone, and for weights on heads or experts.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from ..lookup import value_of
from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = ("import torch\nimport torch.nn.functional as F\n\ndef attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor):\n    B, T, D = q.shape\n"
          "    keep = torch.arange(T) < lengths[:, None]\n    s = torch.einsum('bqd,bkd->bqk', q, k) / 8\n")
VALID = (
    _START + "    return s.masked_fill(~keep[:, None], -1e9).softmax(-1).bmm(v)\n",
    _START + "    w = s.softmax(-1) * keep[:, None].float()\n    w = w / w.sum(-1, keepdim=True)\n    return w.bmm(v)\n",
    _START + "    w = F.normalize(s.softmax(-1) * keep[:, None], p=1, dim=-1)\n    return w.bmm(v)\n",
    # Rows that are masked in full are made zeros of.
    _START + "    w = s.masked_fill(~keep[:, None], -1e9).softmax(-1)\n    return w.masked_fill(~keep[:, None], 0.0).bmm(v)\n",
    _START + "    bias = torch.zeros(T, T)\n    return ((s + bias).softmax(-1) * keep[:, None]).bmm(v)\n",
    # Queries that are padding.
    _START + "    lengths = lengths.view(B)\n    keep = torch.arange(T)[None] < lengths[:, None]\n    return (s.softmax(-1) * keep[:, :, None]).bmm(v)\n",
    _START.replace("lengths: torch.Tensor", "lengths: torch.Tensor, gate: torch.Tensor") + "    return (s.softmax(-1) * gate).bmm(v)\n",
)
INVALID = (
    Invalid(_START + "    w = s.softmax(-1)\n    w = »w * torch.tril(torch.ones(T, T))«\n    return w.bmm(v)\n", "after the softmax"),
    Invalid(_START + "    w = s.softmax(-1)\n    return torch.bmm(»w.tril()«, v)\n", "mask the scores"),
    Invalid(_START + "    keep = torch.arange(T)[None] < lengths.view(B, 1)\n    w = »s.softmax(-1).masked_fill(~keep[:, None], 0.0)«\n    return torch.bmm(w, v), w\n", "less than 1"),
    Invalid("import torch\n\ndef attend(x, mask):\n    w = torch.softmax(x @ x.transpose(1, 2), dim=-1)\n    w = »w.masked_fill(~mask[:, None], 0.0)«\n    return w @ x\n\n"
            "def run():\n    return attend(torch.randn(1, 3, 4), torch.tensor([[True, True, False]]))\n", "less than 1"),
    Invalid("import torch\nfrom torch import nn\n\nclass Pool(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.score = nn.Linear(16, 1)\n\n"
            "    def forward(self, h: torch.Tensor, lengths: torch.Tensor):\n        B, T, D = h.shape\n        w = torch.softmax(self.score(h).squeeze(-1), dim=1)\n"
            "        w = »w * (torch.arange(T) < lengths.view(B, 1)).float()«\n        return (w.unsqueeze(-1) * h).sum(1)\n", "softmax"),
)

_CONTRACT = frozenset(("matmul", "einsum", "bmm", "baddbmm"))
_MOVE = frozenset(("getitem", "unsqueeze", "squeeze", "reshape", "view", "transpose", "permute", "flatten", "expand", "to", "float", "dropout"))
_NAMES = re.compile(r"\b(?:(?:attention|attn|key_padding|padding|pad|src|tgt|causal)_)?mask\b")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "mul", "select", "tril", "triu"):
        for weights, mask in _parts(function, op):
            softmax = flow.source(function, weights)
            if softmax.name == "softmax" and _unmasked(function, softmax) and (mask is op or _masks(facts, function, mask, softmax)) and _contracted(function, op):
                yield RULE.finding("weights masked after the softmax add up to less than 1, since the masked places took their share: mask the scores, or divide by the sum",
                                   flow.span(op), flow.evidence((softmax, "the softmax over unmasked scores"), (mask, "the mask")),
                                   Fix("display", "scores.masked_fill(~keep, torch.finfo(scores.dtype).min).softmax(-1)"))


def _parts(function: Function, op: Op) -> Iterator[tuple[Op, Op]]:
    """(weights, mask) as they may stand in a product or a fill with 0. A triangle that is cut out is its own mask."""
    inner = [function.by_id[id] for id in op.operands]
    if op.name == "mul":
        yield from ((inner[0], inner[1]), (inner[1], inner[0]))
    elif op.name in ("tril", "triu"):
        yield inner[0], op
    else:
        yield from ((inner[2 - place], inner[0]) for place in (0, 1) if flow.number(function, inner[1 + place]) == 0)


def _unmasked(function: Function, softmax: Op) -> bool:
    """Its scores are a product, scaled or not, to which nothing was added and nothing was filled in."""
    scores = list(flow.sources(function, flow.operand(function, softmax), flow.LAYOUT | {"mul", "div", "slice"}))
    made = [op for op in scores if op.name not in ("constant", "parameter")]
    return bool(made) and all(op.name in ("matmul", "einsum", "linear") or op.name == "opaque" and _last(op) in _CONTRACT for op in made)


def _masks(facts: FileFacts, function: Function, mask: Op, softmax: Op) -> bool:
    """It says of the places that the softmax shares out, not of rows, which take part."""
    axis, shape = softmax.attr("axis"), mask.type.shape
    axis = axis if axis < 0 or softmax.type.rank is None else axis - softmax.type.rank
    if shape is None or axis >= 0 or len(shape) < -axis or shape[axis] == 1:
        return False
    made, span = flow.source(function, mask, flow.LAYOUT | {"not"}), flow.span(mask)
    if made.name in ("tril", "triu"):
        return True
    here = [where for where in (span, flow.span(made)) if where is not None and where.path == facts.source.path]
    if made.name in ("input", "constant"):
        return any(_NAMES.search(facts.source.slice(where)) for where in here[:1]) or _NAMES.fullmatch(made.label) is not None
    return any(getattr(value_of(facts, where), "mask", None) is not None for where in here)


def _contracted(function: Function, op: Op) -> bool:
    """They weight something as they are: no sum of them is taken, and nothing unknown gets them."""
    found, todo, seen = False, [op], {op.id}
    while todo:
        value = todo.pop()
        for user in function.users[value.id]:
            if user.name in flow.LAYOUT or user.name == "slice" or user.name == "opaque" and _last(user) in _MOVE:
                if user.id not in seen:
                    seen.add(user.id)
                    todo.append(user)
            elif user.name in _CONTRACT or user.name == "opaque" and _last(user) in _CONTRACT:
                found = True
            elif user.name == "mul" and any(each.name == "reduce_sum" for each, _ in flow.uses(function, user)):
                found = True
            else:
                return False
    return found


def _last(op: Op) -> str:
    return op.attr("call", "").rpartition(".")[2]


RULE = Rule("CUV506", "mask-after-softmax", kind="mask-after-softmax", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
