"""A mask made by comparing ids with a padding token that is also the end token.

What: `tok.pad_token = tok.eos_token`, and then a mask `ids != tok.pad_token_id`.
Why: the end tokens of the texts themselves are masked too: the model never sees them, and a loss never learns to stop.
Example: `attention_mask = (ids != tok.pad_token_id).long()`
Instead: the tokenizer's own `batch["attention_mask"]`, or one made from lengths

Silent when the padding token is another one, and where the tokenizer's mask is used.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence
from cuvil.source import Span

from ..syntax import nodes
from .bindings import bound
from .flow import once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "from transformers import AutoTokenizer\n\ntok = AutoTokenizer.from_pretrained(\"m\")\n"
VALID = (
    _START + "tok.pad_token = tok.eos_token\n\ndef f(model, texts):\n    batch = tok(texts, padding=True, return_tensors=\"pt\")\n    return model(**batch)\n",
    _START + "tok.pad_token = tok.unk_token\n\ndef f(model, ids):\n    return model(ids, attention_mask=ids != tok.pad_token_id)\n",
    _START + "\ndef f(model, ids):\n    mask = (ids != tok.pad_token_id).long()\n    return model(ids, attention_mask=mask)\n",
    _START + "tok.pad_token = tok.eos_token\n\ndef f(name):\n    return tok.pad_token_id != 0 and name\n",
)
INVALID = (
    Invalid(_START + "tok.pad_token = tok.eos_token\n\ndef f(model, ids):\n    mask = (»ids != tok.pad_token_id«).long()\n    return model(ids, attention_mask=mask)\n", "end token"),
    Invalid(_START + "tok.pad_token_id = tok.eos_token_id\n\ndef f(model, ids):\n    return model(ids, attention_mask=»ids.ne(tok.pad_token_id)«)\n", "attention_mask"),
)

_SET = re.compile(r"pad_token(?:_id)?\s*=[^=]")
_ID = re.compile(r"pad_token_id|eos_token_id")


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    same = _set_to_end(facts)
    if not same:
        return
    for node in nodes(facts, _ID, cst.Comparison, cst.Call):
        match node:
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.NotEqual(), comparator=cst.Attribute(value=home, attr=cst.Name(value="pad_token_id")))]):
                pass
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="ne")), args=[cst.Arg(value=cst.Attribute(value=home, attr=cst.Name(value="pad_token_id")))]):
                pass
            case _:
                continue
        where = same.get(_last(facts, home))
        if where is not None and _is_mask(facts, node):
            yield RULE.finding("the padding token is the end token, so this mask also leaves out the end of each text: use the tokenizer's attention_mask",
                               facts.module.span(node), (Evidence(where, "the padding token is set to the end token"),))


def _set_to_end(facts: FileFacts) -> dict[str, Span]:
    """The tokenizers (by the last word of their name) whose padding token is their end token."""
    found = {}
    for node in nodes(facts, _SET, cst.Assign):
        for target, value in bound(facts, node):
            home, _, what = target.rpartition(".")
            if what in ("pad_token", "pad_token_id") and isinstance(value, cst.Attribute) and value.attr.value in ("eos_token", "eos_token_id"):
                found[home.rpartition(".")[2]] = facts.module.span(node)
    return found


def _last(facts: FileFacts, node: cst.BaseExpression) -> str:
    return facts.module.code(node).rpartition(".")[2]


def _is_mask(facts: FileFacts, node: cst.CSTNode) -> bool:
    """What the comparison is bound or given to is called a mask."""
    above = facts.module.parent(node)
    for _ in range(8):
        match above:
            case cst.Assign(targets=[cst.AssignTarget(target=target), *_]):
                return "mask" in facts.module.code(target)
            case cst.Arg(keyword=cst.Name(value=name)):
                return "mask" in name
            case cst.Attribute() | cst.Call() | cst.UnaryOperation() | cst.Subscript():
                above = facts.module.parent(above)
            case _:
                return False
    return False


RULE = Rule("CUV612", "pad-equals-eos", kind="mask-polarity", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
