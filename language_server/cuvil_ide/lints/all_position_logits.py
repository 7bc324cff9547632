"""The vocabulary head runs over all positions, and only the last one is read.

What: a linear layer that widens (a vocabulary head) is applied to [B, T, C], and the result is only read at the last position.
Why: the head is the largest product of a small language model: T-1 of T rows, and B*T*V numbers of memory, are computed and thrown away in each step.
Example: `self.lm_head(h)[:, -1]`
Instead: `self.lm_head(h[:, -1])`
Fix: unsafe: the index moves to what the head takes; rounding may differ in the last bit, as another kernel may be chosen.

Silent where other positions or the whole result are read, for heads that do not widen, and where the value is not known to be what a head gives.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from ..syntax import last_name, nodes
from .carried import inside
from .recorded import around
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.frontends.python.values import Instance

_START = ("import torch\nfrom torch import nn\n\nclass LM(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lm_head = nn.Linear(64, 32000, bias=False)\n"
          "        self.gate = nn.Linear(64, 8)\n\n    def f(self, h: torch.Tensor):\n")
VALID = (
    _START + "        return self.lm_head(h[:, -1])\n",
    _START + "        logits = self.lm_head(h)\n        return logits[:, -1], logits\n",
    _START + "        return self.lm_head(h)[:, 0]\n",
    _START + "        return self.gate(h)[:, -1]\n",
    _START + "        logits = self.lm_head(h)\n        if self.training:\n            return logits\n        return logits[:, -1]\n",
)
INVALID = (
    Invalid(_START + "        return »self.lm_head(h)«[:, -1]\n", "32000", _START + "        return self.lm_head(h[:, -1])\n"),
    Invalid(_START + "        logits = »self.lm_head(h)«\n        logits = logits[:, -1, :] / 0.7\n        return logits.softmax(-1)\n", "last position"),
)

_WHERE = re.compile(r"-1\s*(?::\s*)?[\],]")
_LAST = re.compile(r"\[\s*(?::|\.\.\.)\s*,\s*-1\s*:?\s*(?:,\s*(?::|\.\.\.)\s*)?\]")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for subscript in nodes(facts, _WHERE, cst.Subscript, analysed=True):
        code, head = facts.module.code(subscript), subscript.value
        index = code[len(facts.module.code(head)):]
        if not _LAST.fullmatch(index.strip()):
            continue
        call = _bound(facts, subscript, head.value) if isinstance(head, cst.Name) else head
        layer = _widening(facts, call) if isinstance(call, cst.Call) and len(call.args) == 1 else None
        if layer is not None:
            width, features = layer.constructor["out_features"], layer.constructor["in_features"]
            fix = None
            if call is head and isinstance(call.args[0].value, (cst.Name, cst.Attribute, cst.Call)) and not call.args[0].star:
                given = facts.source.slice(facts.module.span(call.args[0].value))
                fix = Fix("unsafe", "Take the last position first", (Edit(facts.module.span(subscript), f"{facts.source.slice(facts.module.span(call.func))}({given}{index.strip()})"),))
            yield RULE.finding(f"{last_name(call.func)} gives {width} numbers for each position ({features} features), and only those of the last position are read; index its input",
                               facts.module.span(call), (), fix)


def _bound(facts: FileFacts, use: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """What the name holds, if it is bound once before it is read here and nothing else reads it before it is bound again."""
    function = around(facts, use, cst.FunctionDef)
    if function is None:
        return None
    here = facts.module.span(use)
    own = [(facts.module.span(n), n) for n in inside(facts, function, cst.Name) if n.value == name]
    assigns = [a for a in inside(facts, function, cst.Assign) if len(a.targets) == 1 and isinstance(a.targets[0].target, cst.Name) and a.targets[0].target.value == name]
    before = [a for a in assigns if (facts.module.span(a).end_line, facts.module.span(a).end_column) <= (here.line, here.column)]
    if not before:
        return None
    last, rebinds = before[-1], next((a for a in assigns if facts.module.span(a).encloses(here)), None)
    start = facts.module.span(last)
    reads = [span for span, n in own if span > start and not start.encloses(span)]
    if rebinds is not None:
        target = facts.module.span(rebinds.targets[0].target)
        reads = [span for span in reads if span < facts.module.span(rebinds) or facts.module.span(rebinds.value).encloses(span)]
        reads = [span for span in reads if span != target]
    return last.value if len(reads) == 1 else None


def _widening(facts: FileFacts, call: cst.Call) -> Instance | None:
    """The linear layer that is called, if it gives more features than it takes."""
    from cuvil.frontends.python.values import Instance, Library

    from ..lookup import value_of
    value = value_of(facts, facts.module.span(call.func))
    if not isinstance(value, Instance) or not isinstance(value.of, Library) or value.of.name != "torch.nn.Linear" or not value.constructor:
        return None
    width, features = value.constructor.get("out_features"), value.constructor.get("in_features")
    return value if isinstance(width, int) and isinstance(features, int) and width > 2 * features else None


RULE = Rule("CUV810", "all-position-logits", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
