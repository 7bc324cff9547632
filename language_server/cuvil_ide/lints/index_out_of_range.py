"""An index behind the end of what it picks from.

What: a literal index, the k of `topk`, or an id that an embedding looks up lies outside; or tokens are added to a tokenizer and the
model's table is not made larger.
Why: the line raises for every input that reaches it; on a GPU an embedding's index ends the process with an assertion that names no line.
Example: `tok.add_special_tokens({"pad_token": "[PAD]"})` and then `model(**tok(texts, padding=True))`
Instead: `model.resize_token_embeddings(len(tok))`
Fix: display: where the table grows has to be chosen.

Silent when the size or the index is not known, where the table is resized or the index clamped, and for Python's own lists and tuples,
whose lengths are mostly those of a constructor's defaults.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from ..syntax import nodes
from . import flow
from .guards import expected_to_fail
from .problems import report
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_HF = "from transformers import AutoModelForCausalLM, AutoTokenizer\n\ntok = AutoTokenizer.from_pretrained(\"m\")\nmodel = AutoModelForCausalLM.from_pretrained(\"m\")\n"
VALID = (
    "import torch\n\ndef f():\n    return torch.zeros(4, 3)[-4], torch.zeros(4, 3).topk(3)\n",
    "import torch\nfrom torch import nn\n\ndef f():\n    return nn.Embedding(10, 4)(torch.tensor([3, 9]))\n",
    "import torch\nfrom torch import nn\n\ndef f(ids: torch.Tensor):\n    return nn.Embedding(10, 4)(ids)\n",
    "import torch\nfrom torch import nn\n\ndef f():\n    return nn.Embedding(10, 4)(torch.tensor([3, 12]).clamp(max=9))\n",
    _HF + "tok.add_special_tokens({\"pad_token\": \"[PAD]\"})\nmodel.resize_token_embeddings(len(tok))\n",
    _HF + "tok.pad_token = tok.eos_token\n",
    # A placeholder that another method replaces.
    "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table = torch.zeros(1, 3)\n\n"
    "    def fill(self, n: int):\n        self.table = torch.zeros(n, 3)\n\n    def last(self):\n        return self.table[5]\n",
    "import torch\n\ndef f(widths=(4, 8)):\n    return [torch.zeros(widths[i + 1]) for i in range(len(widths))]\n",
)
INVALID = (
    Invalid("import torch\n\ndef f():\n    return »torch.zeros(4, 3)[5]«\n", "ndex 5"),
    Invalid("import torch\n\ndef f():\n    return »torch.zeros(4, 3).topk(9, dim=1)«\n", "opk of 9"),
    Invalid("import torch\nfrom torch import nn\n\ndef f():\n    return »nn.Embedding(10, 4)(torch.tensor([3, 10]))«\n", "10 rows"),
    Invalid(_HF + "»tok.add_special_tokens({\"pad_token\": \"[PAD]\"})«\n", "resize_token_embeddings"),
)

_ADDS = re.compile(r"\.add_(?:special_)?tokens\(")
_MODEL = re.compile(r"\b\w*(?:Model|LM)\w*\.from_pretrained\(")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    yield from (finding for finding in report(facts, RULE) if " of a sequence of " not in finding.message and " for ?[" not in finding.message)
    for function, op in flow.ops(facts, "take"):
        table, index = flow.operand(function, op), flow.operand(function, op, 1)
        rows, axis = table.type.shape, op.attr("axis")
        size, where = rows[axis] if rows else None, op.origins[0].span
        if not isinstance(size, int):
            continue
        base = flow.source(function, index, {"reshape", "broadcast", "cast"})
        literal = base.type.shape[base.attr("axis")] - 1 if base.name == "iota" and isinstance(base.type.shape[base.attr("axis")], int) else _largest(base.attr("value"))
        between = flow.ranges(function).get(index.id)
        highest = literal if literal is not None else between.lo if between is not None else 0
        if not highest >= size or expected_to_fail(facts, where):
            continue
        yield RULE.finding(f"index {int(highest)} of a table of {size} rows", where, flow.evidence((table, f"has {size} rows"), (index, f"reaches {int(highest)}")))
    if "resize_token_embeddings" not in facts.source.text and facts.module.mentions(_MODEL):
        for call in nodes(facts, _ADDS, cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("add_special_tokens", "add_tokens") and _is_tokenizer(facts, call.func.value):
                yield RULE.finding("a token is added and the model's table has no row for it: its id is out of range. Call model.resize_token_embeddings(len(tokenizer))",
                                   facts.module.span(call), (Evidence(facts.module.span(call), "new tokens"),), Fix("display", "model.resize_token_embeddings(len(tokenizer))"))


def _largest(value: object) -> float | None:
    """Of a number, or of numbers in nested tuples."""
    if isinstance(value, tuple):
        return max((found for each in value if (found := _largest(each)) is not None), default=None)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_tokenizer(facts: FileFacts, node: cst.BaseExpression) -> bool:
    return "tok" in facts.module.code(node).lower()


RULE = Rule("CUV116", "index-out-of-range", kind="index-out-of-range", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
