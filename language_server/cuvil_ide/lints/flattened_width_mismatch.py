"""A linear layer behind a flatten takes another width than convolutions and pooling leave.

What: `nn.Linear(in_features, ...)` where in_features differs from the product of channels, height and width that arrive for the size
of picture that is given.
Why: the line raises for every picture of that size. The width is worked out by hand too often; here it is computed.
Example: `nn.Linear(16 * 6 * 6, 10)` behind two convolutions and two poolings of a 28 x 28 picture, which leave 16 * 7 * 7
Instead: `nn.Linear(16 * 7 * 7, 10)`
Fix: unsafe: the computed width is put in; weights that were saved for the old one will not fit.

Silent when the picture's size is not known, behind adaptive pooling, and where the error is caught or expected.
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
from .problems import called, flattened, of_family
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_NET = ("import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.conv = nn.Conv2d(1, 8, 3, padding=1)\n"
        "        self.pool = nn.MaxPool2d(2)\n        self.head = nn.Linear(WIDTH, 10)\n\n    def forward(self, x):\n        h = self.pool(self.conv(x)).flatten(1)\n"
        "        return HEAD\n\ndef run():\n    return Net()(torch.zeros(2, 1, 28, 28))\n")
_GOOD = _NET.replace("HEAD", "self.head(h)")
VALID = (
    _GOOD.replace("WIDTH", "8 * 14 * 14"),
    # No size of a picture is known.
    _GOOD.replace("WIDTH", "8 * 13 * 13").partition("\ndef run")[0],
)
INVALID = (
    Invalid(_NET.replace("WIDTH", "8 * 13 * 13").replace("HEAD", "»self.head(h)«"), "has 1568 features", _GOOD.replace("WIDTH", "1568")),
    Invalid(_NET.replace("WIDTH", "1000").replace("HEAD", "»self.head(h)«").replace(".flatten(1)", ".view(x.size(0), -1)"), "nn.Linear(1568, ...)",
            _GOOD.replace("WIDTH", "1568").replace(".flatten(1)", ".view(x.size(0), -1)")),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for problem in of_family(facts, "matmul-shape-mismatch"):
        found = flattened(facts, problem)
        if found is not None:
            has, takes = found
            yield RULE.finding(f"the flattened tensor has {has} features and the Linear layer takes {takes}: nn.Linear({has}, ...)", problem.span,
                               problem.evidence + called(problem), _fix(facts, has, takes))


def _fix(facts: FileFacts, has: str, takes: str) -> Fix | None:
    """The width in the one Linear of the file that takes the wrong one."""
    from cuvil.frontends.python.values import Scalar
    places = []
    for call in nodes(facts, re.compile(r"\bLinear\("), cst.Call):
        first = next((arg for arg in call.args if arg.keyword is None or arg.keyword.value == "in_features"), None)
        if first is not None and isinstance(call.func, (cst.Name, cst.Attribute)) and facts.module.code(call.func).rpartition(".")[2] == "Linear":
            value = value_of(facts, facts.module.span(first.value))
            if isinstance(value, Scalar) and str(value.value) == takes:
                places.append(first.value)
    if len(places) != 1 or not has.isdigit():
        return None
    return Fix("unsafe", f"in_features = {has}", (Edit(facts.module.span(places[0]), has),))


RULE = Rule("CUV102", "flattened-width-mismatch", kind="shape-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
