"""Positions that count the padding in front of a text.

What: positions 0, 1, 2, … by `arange` for a batch that is padded on the left.
Why: a short text's first word gets the position of its padding's length: the same prompt gives another answer in another batch.
Example: `model(**batch, position_ids=torch.arange(T)[None])` with `padding_side="left"`
Instead: `position_ids = (attention_mask.cumsum(-1) - 1).clamp_min(0)`
Fix: display: where the mask is has to be known.

Silent for padding on the right, when the side is not known, and where positions come from the mask.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from ..syntax import nodes
from .bindings import bound_before, dotted_text
from .flow import once
from .padded import Padded, last
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_TOK = "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\ntok = AutoTokenizer.from_pretrained(\"m\", padding_side=\"SIDE\")\n\n"
_USE = "def logits(model, texts):\n    batch = tok(texts, padding=True, return_tensors=\"pt\")\n    T = batch[\"input_ids\"].shape[1]\n"
_LEFT = _TOK.replace("SIDE", "left") + _USE
VALID = (
    _LEFT + "    pos = (batch[\"attention_mask\"].cumsum(-1) - 1).clamp_min(0)\n    return model(**batch, position_ids=pos).logits\n",
    _TOK.replace("SIDE", "right") + _USE + "    return model(**batch, position_ids=torch.arange(T)[None]).logits\n",
    _LEFT + "    return model(**batch).logits\n",
    "import torch\n\ndef embed(self, ids):\n    B, T = ids.shape\n    return self.tok_emb(ids) + self.pos_emb(torch.arange(T))\n",
)
INVALID = (
    Invalid(_LEFT + "    return model(**batch, »position_ids=torch.arange(T)[None]«).logits\n", "cumsum"),
    Invalid(_LEFT + "    pos = torch.arange(T).unsqueeze(0)\n    return model(**batch, »position_ids=pos«).logits\n", "left"),
    Invalid("import torch\n\ndef embed(self, ids, attention_mask):\n    \"\"\"ids [B, T], left-padded; attention_mask is 1 for words\"\"\"\n    B, T = ids.shape\n"
            "    return self.tok_emb(ids) + »self.pos_emb(torch.arange(T))«\n", "padding"),
)

_WHERE = re.compile(r"\barange\(")
_POSITION = re.compile(r"pos|wpe", re.IGNORECASE)


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    flow = Padded(facts)
    for call in nodes(facts, _WHERE, cst.Call):
        given = next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value in ("position_ids", "positions", "cache_position")), None)
        if given is not None and given.keyword.value != "cache_position" and _counted(facts, given.value):
            reading = flow.reading(call)
            batch = reading.batch if reading is not None else None
            if batch is not None and not batch.single and batch.side == "left" or flow.left_by_word(call) and batch is None and reading is not None:
                made = (Evidence(facts.module.span(batch.call), "the batch is padded here, on the left"),) if batch is not None else ()
                yield _finding(facts, given, made)
        elif _POSITION.search(last(call.func)) and len(call.args) == 1 and not _WHERE.search(last(call.func)) and _counted(facts, call.args[0].value):
            if flow.left_by_word(call) and "mask" in facts.module.owner(call).text and "past" not in facts.module.owner(call).text:
                yield _finding(facts, call, ())


def _finding(facts: FileFacts, node: cst.CSTNode, evidence: tuple[Evidence, ...]) -> Diagnostic:
    return RULE.finding("positions count the padding: the batch is padded on the left, so a short text does not begin at 0. Use attention_mask.cumsum(-1) - 1",
                        facts.module.span(node), evidence, Fix("display", "position_ids = (attention_mask.cumsum(-1) - 1).clamp_min(0)"))


def _counted(facts: FileFacts, node: cst.BaseExpression | None) -> bool:
    """An arange, in some shape, that nothing was added to or taken from."""
    for _ in range(10):
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Name(value="torch"), attr=cst.Name(value="arange"))):
                return True
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="unsqueeze" | "expand" | "expand_as" | "to" | "view" | "reshape" | "repeat" | "long" | "cuda"))):
                node = inner
            case cst.Subscript(value=inner):
                node = inner
            case cst.Name() | cst.Attribute():
                node = bound_before(facts, node, dotted_text(facts, node))
            case _:
                return False
    return False


RULE = Rule("CUV607", "positions-ignore-padding", kind="position-ids", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
