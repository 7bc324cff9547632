"""A softmax of probabilities.

What: `softmax` or `log_softmax` of what a softmax (or sigmoid) gave, over the same axis, through variables, functions and modules.
Why: probabilities lie between 0 and 1, so the second softmax makes all of them nearly equal: the order stays, confidence and losses are wrong.
Example: `torch.softmax(model(x), dim=-1)` where the model ends in nn.Softmax
Instead: one of the two: return logits from the model
Fix: display: which of the two to drop only the author knows.

Silent where something else happens in between (a temperature, a product, a logarithm), and for softmax over different axes.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nfrom torch import nn\n\n"
VALID = (
    _START + "def f(x: torch.Tensor):\n    return torch.softmax(x, dim=-1)\n",
    _START + "def f(x: torch.Tensor):\n    return torch.softmax(torch.softmax(x, dim=-1) - 0.5, dim=-1)\n",
    _START + "def f(x: torch.Tensor):\n    B, C, D = x.shape\n    return torch.softmax(torch.softmax(x, dim=1), dim=2)\n",
    _START + "def f(x: torch.Tensor):\n    return torch.softmax(torch.softmax(x, dim=-1) * 8, dim=-1)\n",
)
INVALID = (
    Invalid(_START + "def f(x: torch.Tensor):\n    p = torch.softmax(x, dim=-1)\n    return »torch.softmax(p, dim=-1)«\n", "twice"),
    Invalid(_START + "class Head(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Sequential(nn.Linear(8, 4), nn.Softmax(dim=-1))\n\n"
            "    def forward(self, x):\n        return self.net(x)\n\ndef f():\n    return »Head()(torch.zeros(2, 8)).softmax(dim=-1)«\n", "probabilities"),
)

_MOVED = frozenset(("cast", "broadcast"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "softmax", "log_softmax"):
        made = flow.source(function, flow.operand(function, op), _MOVED)
        if made.name == "sigmoid" or made.name == "softmax" and made.attr("axis") == op.attr("axis"):
            yield RULE.finding(f"{op.name} of probabilities: {made.name} was applied before, and normalising twice makes all of them nearly equal", flow.span(op),
                               flow.evidence((made, f"the first: {made.name}")), Fix("display", "drop one of the two"))


RULE = Rule("CUV507", "double-softmax", kind="double-activation", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
