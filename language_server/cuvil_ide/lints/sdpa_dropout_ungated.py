"""Attention dropout that does not ask for the mode.

What: `scaled_dot_product_attention(..., dropout_p=p)` with a p above 0 that hangs on no `self.training`.
Why: the function drops whenever it is told to; `.eval()` does not reach it, so inference stays random.
Example: `F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)`
Instead: `F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)`
Fix: unsafe: it changes what inference computes, which is the point.

Silent when the p is 0, is a parameter of the function, comes from a property or an attribute that other methods set, or stands under
a test of the mode.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from ..lookup import value_of
from ..syntax import nodes
from .recorded import calls, node_of, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts

_START = ("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Attention(nn.Module):\n    def __init__(self, p=0.1):\n"
          "        super().__init__()\n        self.p = p\n        self.drop = nn.Dropout(p)\n\n"
          "    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n")
_CALL = "F.scaled_dot_product_attention(q, k, v, dropout_p={})"
VALID = (
    _START + f"        return {_CALL.format('self.p if self.training else 0.0')}\n",
    _START + f"        return {_CALL.format('0.0')}\n",
    _START + f"        p = self.p if self.training else 0.0\n        return {_CALL.format('p')}\n",
    _START + f"        if self.training:\n            return {_CALL.format('self.p')}\n        return {_CALL.format('0.0')}\n",
    _START + f"        return {_CALL.format('self.p * self.training')}\n",
    "import torch\nimport torch.nn.functional as F\n\ndef attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, p: float):\n"
    f"    return {_CALL.format('p')}\n",
)
INVALID = (
    Invalid(_START + f"        return {_CALL.format('»self.p«')}\n", "after .eval()",
            _START + f"        return {_CALL.format('self.p if self.training else 0.0')}\n"),
    Invalid(_START + f"        return {_CALL.format('»self.drop.p«')}\n", "training",
            _START + f"        return {_CALL.format('self.drop.p if self.training else 0.0')}\n"),
    Invalid(_START + f"        return {_CALL.format('»0.1«')}\n", "0.1", _START + f"        return {_CALL.format('0.1 if self.training else 0.0')}\n"),
)

_NAME = "torch.nn.functional.scaled_dot_product_attention"
_SDPA = re.compile(r"scaled_dot_product_attention")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if not facts.module.mentions(_SDPA):
        return
    for call in once(calls(facts)):
        if call.name != _NAME or any("training" in facts.source.slice(span) for span, _ in call.context.tests):
            continue
        node = node_of(facts, call.span, cst.Call)
        given = next((a.value for a in node.args if a.keyword is not None and a.keyword.value == "dropout_p"), None) if node is not None else None
        if given is not None and _above_zero(facts, call, given):
            yield _finding(facts, given)


def _above_zero(facts: FileFacts, call: CallFact, given: cst.BaseExpression) -> bool:
    from cuvil.frontends.python.values import Scalar
    if isinstance(given, (cst.Float, cst.Integer)):
        return given.value.strip("0._") != ""
    text = facts.module.code(given)
    if not isinstance(given, cst.Attribute) or not text.startswith("self."):
        return False
    value = value_of(facts, facts.module.span(given))
    if isinstance(value, Scalar) and not value.value:
        return False
    cls, attribute = facts.module.owner(given).owner, text.split(".")[1]
    return f"{cls}.{attribute}" not in facts.module.by_name and not _set_elsewhere(facts, cls, attribute)


def _set_elsewhere(facts: FileFacts, cls: str, attribute: str) -> bool:
    """Whether a method other than `__init__` sets the attribute, perhaps by the mode."""
    sets = re.compile(rf"\bself\.{re.escape(attribute)}(?:\.p)?\s*=[^=]")
    return any(definition.owner == cls and not definition.name.endswith(".__init__") and sets.search(definition.text)
               for definition in facts.module.definitions)


def _finding(facts: FileFacts, given: cst.BaseExpression) -> Diagnostic:
    text, fix = facts.module.code(given), None
    span = facts.module.span(given)
    function = next((f for f in nodes(facts, _SDPA, cst.FunctionDef, analysed=True) if facts.module.span(f).encloses(span)), None)
    if function is not None and function.params.params and function.params.params[0].name.value == "self":
        fix = Fix("unsafe", "Drop only while training", (Edit(span, f"{text} if self.training else 0.0"),))
    return RULE.finding(f"attention drops with p = {text} after .eval(), too: the function does not ask for the mode; gate it with self.training", span, fix=fix)


RULE = Rule("CUV703", "sdpa-dropout-ungated", kind="dropout-in-inference", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
