"""Token ids of a padded batch go into a model without their mask.

What: `model.generate(batch["input_ids"])` or `model(batch.input_ids)` where the tokenizer padded the batch.
Why: the model takes padding for words: it attends to it, and a text's result hangs on its neighbours in the batch.
Example: `model.generate(tok(prompts, padding=True, return_tensors="pt").input_ids)`
Instead: `model.generate(**batch)`
Fix: unsafe: the result changes, which is the point.

Silent without padding, for a single text, for `padding="max_length"` (models of a fixed length are made for it), and when the mask goes in
by any name or is at work elsewhere in the function.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from .flow import once
from .padded import Padded
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef answer(tok, model, texts):\n    batch = tok(texts, padding=True, return_tensors=\"pt\")\n"
VALID = (
    _START + "    return model.generate(**batch)\n",
    _START + "    return model(batch[\"input_ids\"], attention_mask=batch[\"attention_mask\"])\n",
    _START + "    mask = batch.attention_mask\n    return model(batch.input_ids, mask)\n",
    _START.replace("padding=True, ", "") + "    return model.generate(batch[\"input_ids\"])\n",
    _START + "    h = model.get_input_embeddings()(batch.input_ids)\n    return h\n",
    _START.replace("=True", "=\"max_length\"") + "    return model(batch.input_ids)\n",
    _START + "    ids = batch[\"input_ids\"]\n    print(ids)\n    return tok.batch_decode(ids), len(batch[\"input_ids\"]), torch.tensor(ids)\n",
)
INVALID = (
    Invalid(_START + "    return »model.generate(batch[\"input_ids\"], max_new_tokens=8)«\n", "attention_mask",
            _START + "    return model.generate(batch[\"input_ids\"], max_new_tokens=8, attention_mask=batch[\"attention_mask\"])\n"),
    Invalid(_START + "    ids = batch.input_ids.to(\"cuda\")\n    return »model(input_ids=ids)«.logits\n", "padding"),
)

_NO_MODEL = frozenset(("torch", "np", "numpy", "F", "nn"))


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    flow = Padded(facts)
    for call in flow.calls():
        if isinstance(call.func, cst.Attribute) and (call.func.attr.value != "generate" or _root(call.func) in _NO_MODEL) and not _own(call.func):
            continue
        if any(arg.star == "**" for arg in call.args) or "emb" in facts.module.code(call.func).lower():
            continue                                                     # a table of embeddings looks each word up by itself
        if not facts.module.code(call.func).endswith("generate") and "attention_mask" in facts.module.owner(call).text:
            continue                                                     # the mask is at work elsewhere in the function
        reading = flow.reading(call)
        if reading is None or reading.masked or reading.batch is None or reading.batch.single or not reading.batch.longest or not _are_ids(flow, reading.ids.value):
            continue
        yield RULE.finding("ids of a padded batch without their attention_mask: the model takes the padding for words",
                           facts.module.span(call), (Evidence(facts.module.span(reading.batch.call), "the batch is padded here"),), _fix(facts, call, reading.ids))


def _own(func: cst.Attribute) -> bool:
    """self.model(...)"""
    return isinstance(func.value, cst.Name) and func.value.value == "self" and not func.attr.value.startswith(("_", "tok"))


def _root(node: cst.BaseExpression) -> str:
    while isinstance(node, (cst.Attribute, cst.Call, cst.Subscript)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else ""


def _are_ids(flow: Padded, node: cst.BaseExpression, depth: int = 8) -> bool:
    """The ids of a batch, and not all of it (a function may look for the mask itself)."""
    match node:
        case cst.Attribute(attr=cst.Name(value="input_ids")):
            return True
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(value=text)))]):
            return "input_ids" in text
        case cst.Call(func=cst.Attribute(value=inner)):
            return depth > 0 and _are_ids(flow, inner, depth - 1)
    value = flow.bound(node)
    return value is not None and depth > 0 and _are_ids(flow, value, depth - 1)


def _fix(facts: FileFacts, call: cst.Call, ids: cst.Arg) -> Fix | None:
    """The mask beside ids that are taken from a batch on the spot."""
    text, span = facts.module.code(ids.value), facts.module.span(call)
    mask = text.replace("input_ids", "attention_mask")
    if not isinstance(ids.value, (cst.Subscript, cst.Attribute)) or mask == text:
        return None
    return Fix("unsafe", "Pass the mask", (Edit(span, f"{facts.source.slice(span)[:-1].rstrip().rstrip(',')}, attention_mask={mask})"),))


RULE = Rule("CUV611", "mask-not-passed", kind="mask-shape", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
