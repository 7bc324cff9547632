"""A dropout layer that is made where it is used.

What: `nn.Dropout(...)(x)` in a method other than `__init__`, or the same in two lines.
Why: a new layer is in training mode, and `.eval()` of the model never reaches it: inference stays random.
Example: `x = nn.Dropout(p=0.5)(x)`
Instead: `self.drop = nn.Dropout(p=0.5)` in `__init__`, `x = self.drop(x)` in `forward`
Fix: display: it takes two places.

Silent in functions that are not methods, and when `.eval()` or `.train(...)` is called on the new layer.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..lookup import value_of
from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nfrom torch import nn\n\nclass Block(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
VALID = (
    "import torch\nfrom torch import nn\n\nclass Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.drop = nn.Dropout(0.5)\n\n    def forward(self, x: torch.Tensor):\n        return self.drop(x)\n",
    _START + "        return nn.Dropout(0.5).eval()(x)\n",
    "import torch\nfrom torch import nn\n\ndef augment(x: torch.Tensor):\n    return nn.Dropout(0.5)(x)\n",
    _START + "        return nn.Linear(4, 4)(x)\n",
)
INVALID = (
    Invalid(_START + "        return »nn.Dropout(p=0.5)(x)«\n", "always in training mode"),
    Invalid(_START + "        drop = »nn.Dropout(p=0.5)«\n        return drop(x)\n", "always in training mode"),
)

_WHERE = re.compile(r"Dropout\w*\s*\(")
_LAYERS = {f"torch.nn.{name}" for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for call in nodes(facts, _WHERE, cst.Call, analysed=True):
        made = call.func if isinstance(call.func, cst.Call) else call if _called_later(facts, call) else None
        if made is None:
            continue
        value = value_of(facts, facts.module.span(made.func))
        definition = facts.module.owner(call)
        if not isinstance(value, Library) or value.name not in _LAYERS or not definition.owner or definition.name.endswith(".__init__"):
            continue
        yield RULE.finding(f"this {value.name.rpartition('.')[2]} is made anew in each call and is always in training mode; .eval() does not reach it",
                           facts.module.span(call), fix=Fix("display", "make the layer in __init__ and call it here"))


def _called_later(facts: FileFacts, call: cst.Call) -> bool:
    """`drop = nn.Dropout(0.1)` with `drop(...)` in the same function, and no word of its mode."""
    match facts.module.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            text = facts.module.owner(call).text
            return re.search(rf"\b{name}\(", text) is not None and not re.search(rf"\b{name}\.(?:eval|train)\(", text)
    return False


RULE = Rule("CUV704", "dropout-made-in-forward", kind="dropout-in-inference", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
