"""A checkpoint loaded so that it may run code.

What: `torch.load(..., weights_only=False)`, or with a pickle module of one's own, on a path that is not written in the code.
Why: unpickling runs whatever the file says; a file from elsewhere is a program from elsewhere.
Example: `torch.load(path, weights_only=False)`
Instead: `torch.load(path, weights_only=True)`, or safetensors
Fix: unsafe: weights_only=True; files that hold more than tensors will not load any more.

Silent with weights_only=True or its default (True since PyTorch 2.6), and for a path that is a literal.
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
from .literal import string
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef restore(path):\n"
VALID = (
    _START + "    return torch.load(path)\n",
    _START + "    return torch.load(path, weights_only=True)\n",
    _START + "    return torch.load('ours.pt', weights_only=False)\n",
    "def restore(torch, path):\n    return torch.load(path, weights_only=False)\n",
)
INVALID = (
    Invalid(_START + "    return »torch.load(path, weights_only=False)«\n", "runs whatever the file says",
            _START + "    return torch.load(path, weights_only=True)\n"),
)

_WHERE = re.compile(r"weights_only\s*=\s*False")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for call in nodes(facts, _WHERE, cst.Call, analysed=True):
        keywords = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
        unsafe = keywords.get("weights_only")
        if not isinstance(unsafe, cst.Name) or unsafe.value != "False" or not call.args or string(call.args[0].value) is not None:
            continue
        value = value_of(facts, facts.module.span(call.func))
        if isinstance(value, Library) and value.name == "torch.load":
            place = facts.module.span(unsafe)
            fix = None if "pickle_module" in keywords else Fix("unsafe", "Load weights only", (Edit(place, "True"),))
            yield RULE.finding("load with weights_only=False unpickles the file, which runs whatever the file says; it must not come from an untrusted place",
                               facts.module.span(call), fix=fix)


RULE = Rule("CUV901", "unsafe-load", kind="unsafe-load", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
