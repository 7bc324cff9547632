"""A mean or maximum over time that counts the padding.

What: the states of an encoder are averaged (or their maximum is taken) over the time axis, and the batch was padded.
Why: the states at padding positions are numbers like others: a short text's vector hangs on how long its neighbours in the batch are.
Example: `encoder(**batch).last_hidden_state.mean(dim=1)` with `padding=True`
Instead: `m = batch["attention_mask"].unsqueeze(-1)` and `(states * m).sum(1) / m.sum(1)`
Fix: display: which mask, and where it is, has to be chosen.

Silent when nothing was padded, for a single text, when states are multiplied or filled by a mask before, and for sums.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from ..syntax import nodes
from .flow import once
from .padded import WHERE, Padded, last
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_BATCH = "import torch\n\ndef vectors(tokenizer, encoder, texts):\n    batch = tokenizer(texts, padding=True, return_tensors=\"pt\")\n"
VALID = (
    _BATCH + "    states = encoder(**batch).last_hidden_state\n    m = batch[\"attention_mask\"].unsqueeze(-1)\n    return (states * m).sum(1) / m.sum(1)\n",
    _BATCH + "    states = encoder(**batch).last_hidden_state\n    states = states.masked_fill(batch[\"attention_mask\"][..., None] == 0, -1e9)\n    return states.amax(dim=1)\n",
    _BATCH + "    return encoder(**batch).last_hidden_state[:, 0]\n",
    _BATCH + "    return encoder(**batch).pooler_output.mean(dim=1)\n",
    "import torch\n\ndef vectors(tokenizer, encoder, text):\n    batch = tokenizer(text, return_tensors=\"pt\")\n    return encoder(**batch).last_hidden_state.mean(dim=1)\n",
    "import torch\n\ndef vector(tokenizer, encoder):\n    batch = tokenizer(\"one text\", padding=True, return_tensors=\"pt\")\n"
    "    return encoder(**batch).last_hidden_state.mean(dim=1)\n",
)
INVALID = (
    Invalid(_BATCH + "    states = encoder(**batch).last_hidden_state\n    return »states.mean(dim=1)«\n", "attention_mask"),
    Invalid(_BATCH + "    out = encoder(batch[\"input_ids\"], attention_mask=batch[\"attention_mask\"])\n    return »torch.mean(out[0], 1)«.cpu()\n", "padding"),
    Invalid("import torch\nfrom torch.nn.utils.rnn import pad_sequence\n\ndef encode(rnn, parts):\n    x = pad_sequence(parts, batch_first=True)\n"
            "    out, _ = rnn(x)\n    return »out.max(dim=1)«.values\n", "maximum"),
    Invalid("from torch import nn\n\nclass Pool(nn.Module):\n    def forward(self, x, pad):\n        h = self.encoder(x, src_key_padding_mask=pad)\n"
            "        return »h.mean(1)«\n", "mask"),
    Invalid("def embed(session, tokenizer, texts):\n    enc = tokenizer(texts, padding=True, return_tensors=\"np\")\n    hidden = session.run(None, dict(enc))[0]\n"
            "    return »hidden.mean(axis=1)«\n", "padding"),
    Invalid("import torch\n\ndef vectors(encoder, ids, attention_mask):\n    h = encoder(ids, attention_mask)\n    return »h.sum(dim=1) / h.shape[1]«\n", "mean"),
)

_POOLS = {"mean": "mean", "max": "maximum", "amax": "maximum", "average": "mean"}


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    flow = Padded(facts)
    for call, pooled in (*_pools(facts, flow), *_sums(facts)):
        reading = flow.states(pooled)
        if reading is None or reading.batch is not None and reading.batch.single:
            continue
        what = _POOLS[last(call.func)] if isinstance(call, cst.Call) else "mean"
        source = (Evidence(facts.module.span(reading.batch.call), "the batch is padded here"),) if reading.batch is not None else ()
        yield RULE.finding(f"the {what} over time counts padding positions too: pool with the attention_mask, so that a text's vector does not hang on its neighbours",
                           facts.module.span(call), (*source, Evidence(facts.module.span(reading.call), "the states come from here")),
                           Fix("display", "m = attention_mask.unsqueeze(-1); (states * m).sum(1) / m.sum(1)"))


def _pools(facts: FileFacts, flow: Padded) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    for call in flow.calls(*_POOLS):
        pooled, rest = _receiver(call)
        if pooled is not None and _over_time(call, rest):
            yield call, pooled


def _sums(facts: FileFacts) -> Iterator[tuple[cst.BinaryOperation, cst.BaseExpression]]:
    """`h.sum(1) / h.shape[1]`: a mean as well."""
    for node in nodes(facts, WHERE, cst.BinaryOperation):
        match node:
            case cst.BinaryOperation(left=cst.Call(func=cst.Attribute(attr=cst.Name(value="sum"))) as call, operator=cst.Divide(), right=right):
                pooled, rest = _receiver(call)
                name = facts.module.code(pooled) if pooled is not None else ""
                if pooled is not None and _over_time(call, rest) and facts.module.code(right) in (f"{name}.shape[1]", f"{name}.size(1)"):
                    yield node, pooled


def _receiver(call: cst.Call) -> tuple[cst.BaseExpression | None, list[cst.Arg]]:
    """The tensor of x.mean(...) or torch.mean(x, ...), and the other arguments."""
    if not isinstance(call.func, cst.Attribute):
        return None, []
    if isinstance(call.func.value, cst.Name) and call.func.value.value in ("torch", "np", "numpy"):
        return (call.args[0].value, list(call.args[1:])) if call.args else (None, [])
    return call.func.value, list(call.args)


def _over_time(call: cst.Call, rest: list[cst.Arg]) -> bool:
    axis = [arg.value for arg in rest if arg.keyword is None or arg.keyword.value in ("dim", "axis")]
    match axis[:1]:
        case [cst.Integer(value="1")]:
            return True
        case [cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="2"))]:
            return True
    return False


RULE = Rule("CUV608", "unmasked-pooling", kind="unmasked-pooling", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
