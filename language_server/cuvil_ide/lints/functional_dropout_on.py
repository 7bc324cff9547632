"""F.dropout in a module, without saying when it is on.

What: `torch.nn.functional.dropout` (or a relative of it) in a method of a module, called without `training`.
Why: its default is training=True, and `.eval()` does not reach a function: inference stays random.
Example: `w = F.dropout(w, p=self.p)`
Instead: `w = F.dropout(w, p=self.p, training=self.training)`, or an `nn.Dropout` made in `__init__`
Fix: unsafe: it changes what inference computes, which is the point.

Silent when `training` is written, whatever it says: then it is meant.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = ("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Block(nn.Module):\n"
          "    def forward(self, x: torch.Tensor):\n")
VALID = (
    _START + "        return F.dropout(x, 0.5, training=self.training)\n",
    _START + "        return F.dropout(x, 0.5, True)\n",
    "import torch\nimport torch.nn.functional as F\n\ndef augment(x: torch.Tensor):\n    return F.dropout(x, 0.5)\n",
    _START + "        return self.dropout(x)\n",
)
INVALID = (
    Invalid(_START + "        return »F.dropout(x, p=0.5)«\n", "stays on after .eval()",
            _START + "        return F.dropout(x, p=0.5, training=self.training)\n"),
)

_WHERE = re.compile(r"dropout\w*\s*\(")
_FUNCTIONS = {f"torch.nn.functional.{name}" for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for call in nodes(facts, _WHERE, cst.Call, analysed=True):
        value = value_of(facts, facts.module.span(call.func))
        if not isinstance(value, Library) or value.name not in _FUNCTIONS:
            continue
        if len(call.args) > 2 or any(a.star or (a.keyword is not None and a.keyword.value == "training") for a in call.args):
            continue
        definition = facts.module.owner(call)
        if not definition.owner or not isinstance(definition.node, cst.FunctionDef) or not _has_self(definition.node):
            continue
        span = facts.module.span(call)
        end = Span(span.path, span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
        yield RULE.finding("this dropout has training=True by default and stays on after .eval(); inference is random", span,
                           fix=Fix("unsafe", "Pass training=self.training", (Edit(end, ", training=self.training"),)))


def _has_self(function: cst.FunctionDef) -> bool:
    return bool(function.params.params) and function.params.params[0].name.value == "self"


RULE = Rule("CUV702", "functional-dropout-on", kind="dropout-in-inference", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
