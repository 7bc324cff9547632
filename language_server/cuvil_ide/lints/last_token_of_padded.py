"""The last position of a batch that is padded on the right, or the first of one padded on the left.

What: `states[:, -1]` (or `logits[:, -1]`) of a batch padded on the right, `states[:, 0]` of one padded on the left.
Why: for all but the longest text that position is padding, so its state says nothing about the text.
Example: `encoder(**tokenizer(texts, padding=True, return_tensors="pt", padding_side="right")).last_hidden_state[:, -1]`
Instead: `last = batch["attention_mask"].sum(1) - 1` and `states[torch.arange(len(states)), last]`
Fix: display: the length has to be at hand.

Silent when the side is not known, for a single text, and when positions are taken by length.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from ..syntax import nodes
from .flow import once
from .padded import WHERE, Padded
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_TOK = ("from transformers import AutoModel, AutoTokenizer\n\ntok = AutoTokenizer.from_pretrained(\"some/model\", padding_side=\"SIDE\")\n"
        "net = AutoModel.from_pretrained(\"some/model\")\n\ndef vectors(texts):\n    batch = tok(texts, padding=True, return_tensors=\"pt\")\n")
_RIGHT, _LEFT = _TOK.replace("SIDE", "right"), _TOK.replace("SIDE", "left")
VALID = (
    _LEFT + "    return net(**batch).last_hidden_state[:, -1]\n",
    _RIGHT + "    return net(**batch).last_hidden_state[:, 0]\n",
    _TOK.replace(", padding_side=\"SIDE\"", "") + "    return net(**batch).last_hidden_state[:, 0]\n",
    _RIGHT + "    h = net(**batch).last_hidden_state\n    return h[range(len(h)), batch[\"attention_mask\"].sum(1) - 1]\n",
    _RIGHT.replace("tok(texts,", "tok(texts[0],").replace("padding=True, ", "") + "    return net(**batch).last_hidden_state[:, -1]\n",
    # Another function's tokenizer of the same name.
    _LEFT.replace("\n\ntok = AutoT", "\n\ndef load():\n    tok = AutoT").replace("def vectors(texts)", "def vectors(texts, tok)") + "    return net(**batch).last_hidden_state[:, 0]\n",
)
INVALID = (
    Invalid(_RIGHT + "    h = net(**batch).last_hidden_state\n    return »h[:, -1]«\n", "right"),
    Invalid(_RIGHT + "    h = net(**batch)[0]\n    return »h[:, -1, :]«\n", "last position"),
    Invalid(_LEFT + "    return »net(**batch).last_hidden_state[:, 0]«\n", "left"),
    Invalid("import torch\nfrom torch.nn.utils.rnn import pad_sequence\n\ndef encode(rnn, parts):\n    x = pad_sequence(parts, batch_first=True)\n"
            "    out, _ = rnn(x)\n    return »out[:, -1]«\n", "padding"),
    Invalid("import torch\n\ndef last(net, seqs, pad=0):\n    n = max(map(len, seqs))\n    ids = torch.tensor([s + [pad] * (n - len(s)) for s in seqs])\n"
            "    attention_mask = (ids != pad).long()\n    return »net(ids, attention_mask)[:, -1]«\n", "right"),
)




@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    flow = Padded(facts)
    for node in nodes(facts, WHERE, cst.Subscript):
        place = _position(node)
        if place is None:
            continue
        reading = flow.states(node.value)
        batch = reading.batch if reading is not None else None
        side = batch.side if batch is not None else flow.by_lists() if reading is not None else ""
        if batch is not None and batch.single or side != ("right" if place == "last" else "left"):
            continue
        yield RULE.finding(f"the {place} position of a batch padded on the {side} is padding for all but the longest text: take each text's own, by its length",
                           facts.module.span(node), (Evidence(facts.module.span(batch.call), "the batch is padded here"),) if batch is not None else (),
                           Fix("display", "last = attention_mask.sum(1) - 1; states[torch.arange(len(states)), last]" if place == "last" else
                               "first = attention_mask.argmax(1); states[torch.arange(len(states)), first]"))


def _position(node: cst.Subscript) -> str | None:
    match [element.slice for element in node.slice]:
        case [cst.Slice(lower=None, upper=None, step=None), cst.Index(value=at), *rest] if all(isinstance(each, cst.Slice) for each in rest):
            match at:
                case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="1")):
                    return "last"
                case cst.Integer(value="0"):
                    return "first"
    return None


RULE = Rule("CUV609", "last-token-of-padded", kind="padding-side", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
