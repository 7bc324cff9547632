"""A mask of numbers 0 and 1 where numbers are added to the scores.

What: a mask with 1 for words and 0 for padding, as float, is given as `attn_mask` or added to attention scores.
Why: a float mask is added: padding gets +0 and words +1, so padding still takes part, with a weight of 1/e of a word's. Nothing fails.
Example: `F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask[:, None, None, :].to(q.dtype))`
Instead: `attn_mask=attention_mask[:, None, None, :].bool()`
Fix: unsafe: the result changes, which is the point.

Silent for bool masks, for additive masks (0 and a very negative number), and when it is not known what the mask holds.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..lookup import value_of
from ..syntax import nodes
from . import flow
from .mask_polarity import WHERE, arguments, wanted
from .polarity import polarity
from .recorded import call_nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.frontends.python.values import Mask

_F = "import torch\nimport torch.nn.functional as F\n\n"
VALID = (
    _F + "def f(q, k, v, attention_mask):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask[:, None, None, :].bool())\n",
    _F + "def f(q, k, v, attention_mask):\n    mask = (1.0 - attention_mask[:, None, None, :].to(q.dtype)) * torch.finfo(q.dtype).min\n"
    "    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n",
    # It may be additive already: layers inside a model get it so.
    _F + "def f(q, k, v, attention_mask):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask)\n",
    _F + "def f(scores, attention_mask):\n    return (scores + attention_mask).softmax(-1)\n",
    _F + "def f(states, attention_mask):\n    m = attention_mask.unsqueeze(-1).float()\n    return (states * m).sum(1) / m.sum(1)\n",
)
INVALID = (
    Invalid(_F + "def f(q, k, v, attention_mask):\n    mask = attention_mask[:, None, None, :].to(q.dtype)\n"
            "    return F.scaled_dot_product_attention(q, k, v, »attn_mask=mask«)\n", "added to the scores",
            _F + "def f(q, k, v, attention_mask):\n    mask = attention_mask[:, None, None, :].to(q.dtype)\n"
            "    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.bool())\n"),
    Invalid(_F + "def f(q, k, attention_mask):\n    scores = q @ k.transpose(-1, -2)\n    scores = »scores + attention_mask[:, None, None].float()«\n"
            "    return scores.softmax(-1)\n", "bool"),
    Invalid(_F + "def f(scores, attention_mask):\n    return (»scores + attention_mask[:, None, None, :]«).softmax(-1)\n", "bool"),
    Invalid(_F + "def f(q: torch.Tensor, ids, pad_id: int = 0):\n    keep = (ids != pad_id).float()\n    return F.scaled_dot_product_attention(q, q, q, »keep[:, None, None]«)\n", "0 and 1",
            _F + "def f(q: torch.Tensor, ids, pad_id: int = 0):\n    keep = (ids != pad_id).float()\n    return F.scaled_dot_product_attention(q, q, q, keep[:, None, None].bool())\n"),
)

SCORES = re.compile(r"(?:^|_)(?:scores?|attn|attention|energy|sim|dots|weights|logits|att|qk)(?:_|$|s$)|attn_weights|attention_scores", re.IGNORECASE)
_WHERE = re.compile(r"\bsoftmax\b")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call, node in call_nodes(facts, WHERE):
        takes = wanted(call)
        if "attn_mask" not in takes and "key_padding_mask" not in takes:
            continue
        for arg, name in arguments(node, call.name):
            mask = _numbers(facts, arg.value, dict(call.keywords).get(name)) if name in takes else None
            if mask is not None:
                text, span = facts.module.code(arg.value), facts.module.span(arg.value)
                keeps = mask.keep == takes[name] and isinstance(arg.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
                fix = Fix("unsafe", "As bool", (Edit(span, f"{text}.bool()"),)) if keeps else None
                yield _report(facts.module.span(arg), mask, fix)
    for node in nodes(facts, _WHERE, cst.BinaryOperation):
        if isinstance(node.operator, cst.Add):
            for scores, other in ((node.left, node.right), (node.right, node.left)):
                mask = _numbers(facts, other, None) if are_scores(facts, scores) else None
                if mask is not None:
                    yield _report(facts.module.span(node), mask, None)


def _report(span, mask: Mask, fix: Fix | None) -> Diagnostic:
    born = (Evidence(mask.span, "the mask is made here"),) if mask.span is not None and mask.span.path == span.path else ()
    return RULE.finding("a float mask of 0 and 1 is added to the scores: what should be left out still takes part. Give it as bool, "
                        "or as 0 and a very negative number", span, born, fix)


def _numbers(facts: FileFacts, node: cst.BaseExpression, given: object) -> Mask | None:
    """The mask, if it is one of floats 0 and 1: of integers it is not known that they get so far."""
    from cuvil.frontends.python.values import Tensor
    for value in (value_of(facts, facts.module.span(node)), given):
        if isinstance(value, Tensor) and value.mask is not None:
            floats = value.type.dtype is None or value.type.dtype.is_float
            return value.mask if value.mask.form == "01" and floats and value.mask.keep is not None else None
    mask = polarity(facts, node)
    return mask if mask is not None and mask.form == "01" and mask.keep is not None and not isinstance(node, cst.Attribute) else None


def are_scores(facts: FileFacts, node: cst.BaseExpression) -> bool:
    match node:
        case cst.Name(value=name):
            return SCORES.search(name) is not None
        case cst.BinaryOperation(operator=cst.Divide() | cst.Multiply(), left=left):
            return are_scores(facts, left)
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="matmul" | "bmm" | "einsum"))):
            return True
    return False


RULE = Rule("CUV602", "zero-one-float-mask", kind="mask-dtype", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
