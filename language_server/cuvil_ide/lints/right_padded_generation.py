"""Generation that goes on behind padding.

What: `generate` of a decoder-only model on a batch that is padded on the right.
Why: new tokens are appended behind the padding, so all but the longest prompt are continued after a gap; the answers are worse, or noise.
Example: `AutoTokenizer.from_pretrained(name, padding_side="right")` and `model.generate(**tok(prompts, padding=True, return_tensors="pt"))`
Instead: `AutoTokenizer.from_pretrained(name, padding_side="left")`
Fix: unsafe: the answers change, which is the point.

Silent for encoder-decoder models, for single prompts, and when the side is not known: no side is said, and the tokenizer may bring a
padding token and a side of its own. A tokenizer whose padding token is set to its end token was made without, and pads on the right.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import nodes
from .bindings import bound
from .flow import once
from .padded import Padded, last
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

    from .padded import Batch

_START = "from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer\n\ndef answer(prompts, name):\n"
_MODEL = "    model = AutoModelForCausalLM.from_pretrained(name).to(\"cuda\")\n"
_USE = "    batch = tok(prompts, padding=True, return_tensors=\"pt\").to(\"cuda\")\n    return »model.generate(**batch, max_new_tokens=32)«\n"
_SILENT = _USE.replace("»", "").replace("«", "")
VALID = (
    _START + "    tok = AutoTokenizer.from_pretrained(name, padding_side=\"left\")\n" + _MODEL + _SILENT,
    _START + "    tok = AutoTokenizer.from_pretrained(name)\n    tok.padding_side = \"left\"\n    tok.pad_token = tok.eos_token\n" + _MODEL + _SILENT,
    # A tokenizer that may have a side of its own.
    _START + "    tok = AutoTokenizer.from_pretrained(name)\n" + _MODEL + _SILENT,
    _START + "    tok = AutoTokenizer.from_pretrained(name, padding_side=\"right\")\n    model = AutoModelForSeq2SeqLM.from_pretrained(name)\n" + _SILENT,
    _START + "    tok = AutoTokenizer.from_pretrained(name, padding_side=\"right\")\n" + _MODEL + _SILENT.replace("prompts,", "[prompts],"),
)
INVALID = (
    Invalid(_START + "    tok = AutoTokenizer.from_pretrained(name, padding_side=\"right\")\n" + _MODEL + _USE, "padding_side=\"left\"",
            _START + "    tok = AutoTokenizer.from_pretrained(name, padding_side=\"left\")\n" + _MODEL + _SILENT),
    Invalid(_START + "    tok = AutoTokenizer.from_pretrained(name)\n    tok.pad_token = tok.eos_token\n" + _MODEL + _USE, "right",
            _START + "    tok = AutoTokenizer.from_pretrained(name, padding_side=\"left\")\n    tok.pad_token = tok.eos_token\n" + _MODEL + _SILENT),
)

_DECODERS = re.compile(r"(?:CausalLM|LMHeadModel|GPT\w*Model)$")
_PAD_IS_EOS = re.compile(r"\.pad_token(?:_id)?\s*=\s*[\w.]*\.eos_token")


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    flow = Padded(facts)
    for call in flow.calls("generate"):
        model = flow.loaded(call.func.value) if isinstance(call.func, cst.Attribute) else None
        if model is None or not isinstance(model.func, cst.Attribute) or not _DECODERS.search(last(model.func.value)):
            continue
        reading = flow.reading(call)
        batch = reading.batch if reading is not None else None
        if batch is None or batch.single or batch.side == "left" or not batch.side and not _takes_end_token(facts, batch):
            continue
        how = "is padded on the right" if batch.side else "is padded on the right, the default of a tokenizer whose pad token is set to its end token"
        loaded = flow.loaded(batch.call.func)
        evidence = (Evidence(facts.module.span(loaded), "the tokenizer is loaded here"),) if loaded is not None else ()
        yield RULE.finding(f"a decoder-only model goes on behind the padding: the batch {how}. Load the tokenizer with padding_side=\"left\"",
                           facts.module.span(call), (*evidence, Evidence(facts.module.span(batch.call), "the batch is padded here")), _fix(facts, loaded))


def _takes_end_token(facts: FileFacts, batch: Batch) -> bool:
    name = last(batch.call.func)
    return any(target.rpartition(".")[0].rpartition(".")[2] == name and target.endswith((".pad_token", ".pad_token_id")) and
               isinstance(value, cst.Attribute) and value.attr.value.startswith("eos_token")
               for node in nodes(facts, _PAD_IS_EOS, cst.Assign) for target, value in bound(facts, node))


def _fix(facts: FileFacts, loaded: cst.Call | None) -> Fix | None:
    if loaded is None or any(arg.star for arg in loaded.args):
        return None
    side = next((arg for arg in loaded.args if arg.keyword is not None and arg.keyword.value == "padding_side"), None)
    span = facts.module.span(side.value if side is not None else loaded)
    text = "\"left\"" if side is not None else f"{facts.source.slice(span)[:-1].rstrip().rstrip(',')}, padding_side=\"left\")"
    return Fix("unsafe", "Pad on the left", (Edit(span, text),))


RULE = Rule("CUV610", "right-padded-generation", kind="padding-side", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
