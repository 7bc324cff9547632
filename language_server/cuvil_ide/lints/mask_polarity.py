"""A mask that keeps what it should leave out.

What: a mask with True (or 1) for words where True means "leave out": `key_padding_mask` and `attn_mask` of torch.nn's attention,
`masked_fill(mask, -inf)`; or one with True for padding where True means "take part": `scaled_dot_product_attention`, pretrained models.
Why: attention reads exactly the padding and ignores the words. Nothing fails, unless all of a row is left out, which gives NaN.
Example: `self.attn(x, x, x, key_padding_mask=attention_mask.bool())` with a tokenizer's mask
Instead: `self.attn(x, x, x, key_padding_mask=attention_mask == 0)`
Fix: unsafe: the result changes, which is the point.

Silent when it is not known what the mask says, for additive masks, and for modules of your own, which may have another convention.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from . import flow
from .bindings import bound_before
from .polarity import polarity
from .recorded import call_nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.frontends.python.values import Mask, Value

_NET = ("import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nclass Reader(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.att = nn.MultiheadAttention(16, 2, batch_first=True)\n\n")
_F = "import torch\nimport torch.nn.functional as F\n\n"
VALID = (
    _F + "def f(scores, attention_mask):\n    return scores.masked_fill(attention_mask.to(torch.bool), -1e9).softmax(-1)\n",
    _F + "def order(logits: torch.Tensor):\n    n = 4\n    lower = torch.ones(n, n).tril().bool()\n    return logits.masked_fill(lower, -1e4)\n",
    _NET + "    def forward(self, x, attention_mask):\n        return self.att(x, x, x, key_padding_mask=attention_mask == 0)[0]\n",
    _NET + "    def forward(self, x, attention_mask):\n        pad = ~attention_mask.bool()\n        return self.att(x, x, x, key_padding_mask=pad)[0]\n",
    _NET + "    def forward(self, x, ids, pad_id: int = 0):\n        return self.att(x, x, x, key_padding_mask=ids == pad_id)[0]\n",
    _F + "def f(q, k, v, ids, pad_id):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=(ids != pad_id)[:, None, None])\n",
    _F + "def f(scores, attention_mask):\n    return scores.masked_fill(attention_mask[:, None, None] == 0, float(\"-inf\")).softmax(-1)\n",
    # The name is of what is left out here, as the other branch shows.
    _F + "def f(q, k, v, scores, attention_mask, fused):\n    if fused:\n        return F.scaled_dot_product_attention(q, k, v, ~attention_mask)\n"
    "    if attention_mask is None:\n        attention_mask = ~torch.ones(4, 4, dtype=torch.bool).tril()\n"
    "    return scores.masked_fill(attention_mask, float(\"-inf\")).softmax(-1) @ v\n",
    # A module with a convention of its own.
    _F + "def f(net, x, attention_mask):\n    return net(x, mask=attention_mask.bool())\n",
    _F + "def f(scores: torch.Tensor):\n    T = 4\n    later = torch.ones(T, T, dtype=torch.bool).triu(1)\n    return scores.masked_fill(later, float(\"-inf\"))\n",
    # Not scores: words are replaced on purpose.
    _F + "def f(x, attention_mask):\n    return x.masked_fill(attention_mask.bool(), 0.0)\n",
)
INVALID = (
    Invalid(_F + "def f(q, k, v, attention_mask):\n    return F.scaled_dot_product_attention(q, k, v, »~attention_mask«)\n", "take part",
            _F + "def f(q, k, v, attention_mask):\n    return F.scaled_dot_product_attention(q, k, v, attention_mask)\n"),
    Invalid(_NET + "    def forward(self, x, attention_mask):\n        keep = attention_mask.bool()\n        return self.att(x, x, x, »key_padding_mask=keep«)[0]\n", "leave out",
            _NET + "    def forward(self, x, attention_mask):\n        keep = attention_mask.bool()\n        return self.att(x, x, x, key_padding_mask=~keep)[0]\n"),
    Invalid(_NET + "    def forward(self, x, ids, pad_id: int = 0):\n        return self.att(x, x, x, »key_padding_mask=(ids != pad_id)«)[0]\n", "True",
            _NET + "    def forward(self, x, ids, pad_id: int = 0):\n        return self.att(x, x, x, key_padding_mask=(ids == pad_id))[0]\n"),
    Invalid(_F + "def f(q, k, v, ids, pad_id):\n    pad = (ids == pad_id)[:, None, None, :]\n    return F.scaled_dot_product_attention(q, k, v, »attn_mask=pad«)\n", "take part",
            _F + "def f(q, k, v, ids, pad_id):\n    pad = (ids == pad_id)[:, None, None, :]\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=~pad)\n"),
    Invalid(_F + "def f(scores, attention_mask):\n    keep = attention_mask[:, None, None].bool()\n    return scores.masked_fill(»keep«, float(\"-inf\")).softmax(-1)\n", "masked_fill",
            _F + "def f(scores, attention_mask):\n    keep = attention_mask[:, None, None].bool()\n    return scores.masked_fill(~keep, float(\"-inf\")).softmax(-1)\n"),
    Invalid(_F + "def f(scores: torch.Tensor):\n    T = 4\n    seen = torch.ones(T, T, dtype=torch.bool).tril()\n    return scores.masked_fill(»seen«, float(\"-inf\")).softmax(-1)\n",
            "masked_fill",
            _F + "def f(scores: torch.Tensor):\n    T = 4\n    seen = torch.ones(T, T, dtype=torch.bool).tril()\n    return scores.masked_fill(~seen, float(\"-inf\")).softmax(-1)\n"),
)

# parameter -> True if True in it means "take part"
_LAYERS = {"key_padding_mask": False, "src_key_padding_mask": False, "tgt_key_padding_mask": False, "memory_key_padding_mask": False,
           "attn_mask": False, "src_mask": False, "tgt_mask": False, "memory_mask": False}
_NEVER = re.compile(r"inf|finfo|-\s*\d*\.?\d*e\+?\d+|-\s*\d{4,}|MIN|min", re.IGNORECASE)
WHERE = re.compile(r"mask|scaled_dot_product_attention")
FUSED = {"torch.nn.functional.scaled_dot_product_attention": {"attn_mask": True}}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call, node in call_nodes(facts, WHERE):
        takes = wanted(call)
        if not takes:
            continue
        for arg, name in arguments(node, call.name):
            if name not in takes:
                continue
            mask = _known(dict(call.keywords).get(name)) or polarity(facts, arg.value)
            if mask is None or mask.keep is None or mask.form not in ("bool", "01") or mask.keep == takes[name]:
                continue
            if name == "mask" and (_fills_no_scores(facts, node, mask) or _was_extended(facts, arg.value, mask)):
                continue
            yield _report(facts, call, arg, name, mask, takes[name])


def wanted(call: CallFact) -> dict[str, bool]:
    from cuvil.frontends.python.values import Instance, Library
    of = call.receiver.of.name if isinstance(call.receiver, Instance) and isinstance(call.receiver.of, Library) else call.name
    last = call.name.rpartition(".")[2]
    if call.name in FUSED:
        return FUSED[call.name]
    if of.startswith("torch.nn.") and of.rpartition(".")[2].startswith(("MultiheadAttention", "Transformer")):
        return _LAYERS
    if of.startswith("transformers.") and not of.endswith("Tokenizer"):
        return {"attention_mask": True}
    if last in ("masked_fill", "masked_fill_") or not call.name and not call.keywords:
        return {"mask": False}
    return {"key_padding_mask": False, "src_key_padding_mask": False} if call.keywords and not call.name else {}


def arguments(node: cst.Call, name: str) -> Iterator[tuple[cst.Arg, str]]:
    filling = isinstance(node.func, cst.Attribute) and node.func.attr.value in ("masked_fill", "masked_fill_")
    if filling:
        values = [arg for arg in node.args if arg.keyword is None or arg.keyword.value in ("mask", "value")]
        if len(values) == 2 and not (isinstance(node.func.value, cst.Name) and node.func.value.value == "torch") and _never(values[1].value):
            yield values[0], "mask"
        return
    for place, arg in enumerate(node.args):
        if arg.keyword is not None:
            yield arg, arg.keyword.value
        elif place == 3 and name in FUSED:
            yield arg, "attn_mask"


def _never(node: cst.BaseExpression) -> bool:
    """A number so low that a softmax leaves it out."""
    return _NEVER.search(cst.Module([]).code_for_node(node)) is not None


def _fills_no_scores(facts: FileFacts, node: cst.Call, mask: Mask) -> bool:
    """A triangle may be filled for other reasons; what is meant for attention comes to a softmax."""
    return mask.origin == "causal" and "softmax" not in facts.module.owner(node).text


def _was_extended(facts: FileFacts, value: cst.BaseExpression, mask: Mask) -> bool:
    """`attention_mask.bool()` over scores, with no axis put in for heads and queries: it has them from outside, where 1 may have become 0
    and 0 a very negative number."""
    if mask.origin != "tokenizer":
        return False
    for _ in range(4):
        if _AXES.search(facts.module.code(value)):
            return False
        while isinstance(value, (cst.Call, cst.Attribute, cst.UnaryOperation, cst.Subscript)):
            value = value.func if isinstance(value, cst.Call) else value.expression if isinstance(value, cst.UnaryOperation) else value.value
        bound = bound_before(facts, value, value.value) if isinstance(value, cst.Name) else None
        if bound is None:
            break
        value = bound
    return isinstance(value, cst.Name) and any(p.name.value == value.value for p in _parameters(facts, value))


def _parameters(facts: FileFacts, node: cst.CSTNode) -> tuple[cst.Param, ...]:
    function = facts.module.owner(node).node
    return (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params) if isinstance(function, cst.FunctionDef) else ()


_AXES = re.compile(r"\bNone\b|unsqueeze|view|expand|reshape|repeat|broadcast|rearrange")


def _known(value: Value | None) -> Mask | None:
    from cuvil.frontends.python.values import Tensor
    return value.mask if isinstance(value, Tensor) else None


def _report(facts: FileFacts, call: CallFact, arg: cst.Arg, name: str, mask: Mask, keeps: bool) -> Diagnostic:
    says = "take part" if mask.keep else "are left out"
    where = facts.module.span(arg)
    shown = "masked_fill" if name == "mask" else name
    born = (Evidence(mask.span, f"{'True' if mask.form == 'bool' else '1'} for what {'is a word' if mask.keep and mask.origin != 'causal' else says}"),) \
        if mask.span is not None and mask.span.path == where.path else ()
    chain = tuple(Evidence(span, "called here") for span in call.context.callers)
    message = (f"True in {shown} means {'take part' if keeps else 'leave out'}, and this mask is True for what should {'take part' if mask.keep else 'be left out'}: "
               "invert it")
    return RULE.finding(message, where, born + chain, _fix(facts, arg, mask))


def _fix(facts: FileFacts, arg: cst.Arg, mask: Mask) -> Fix:
    """`~mask`; a comparison is turned round, and what was inverted is taken as it is."""
    text, span = facts.module.code(arg.value), facts.module.span(arg.value)
    match arg.value:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as operator, comparator=right)]):
            turned = "!=" if isinstance(operator, cst.Equal) else "=="
            new = f"{facts.module.code(left)} {turned} {facts.module.code(right)}"
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            new = facts.module.code(inner)
        case cst.Name() | cst.Attribute() | cst.Call() | cst.Subscript():
            new = f"~{text}" if mask.form == "bool" else f"{text} == 0"
        case _:
            new = f"~({text})" if mask.form == "bool" else f"({text}) == 0"
    return Fix("unsafe", "Invert the mask", (Edit(span, new),))


RULE = Rule("CUV601", "mask-polarity", kind="mask-polarity", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
