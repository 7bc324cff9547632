"""Weights loaded to wherever they were saved.

What: `torch.load(path)` without `map_location`, whose result goes into a module, in code that runs without a GPU, too.
Why: each tensor goes to the device it was saved from. A checkpoint of a GPU fails to load on a machine without one, and on one with several
it fills the first.
Example: `net.load_state_dict(torch.load(path, weights_only=True))`
Instead: `torch.load(path, map_location="cpu", weights_only=True)`
Fix: safe: `load_state_dict` copies into the module's own weights, so where they come from changes no value.

Silent unless the code runs without a GPU, too (it falls back to "cpu", or that is the project's target), when map_location is given or a default
device is set, when the file was saved in this function, and for what does not go into `load_state_dict`.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .carried import inside
from .recorded import calls
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_PLAIN = "import torch\nfrom torch import nn\n\n"
_START = _PLAIN + 'DEVICE = "cuda" if torch.cuda.is_available() else "cpu"\n\n' + "def f(net: nn.Module, path: str):\n"
VALID = (
    # nothing says that it must run without a GPU
    _PLAIN + "def f(net: nn.Module, path: str):\n    net.load_state_dict(torch.load(path, weights_only=True))\n",
    _START + '    net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))\n',
    _START + "    return torch.load(path, weights_only=True)\n",
    _START + "    with torch.device(\"cuda\"):\n        net.load_state_dict(torch.load(path, weights_only=True))\n",
    _START + "    torch.save(net.state_dict(), path)\n    net.load_state_dict(torch.load(path, weights_only=True))\n",
)
INVALID = (
    Invalid(_START + "    net.load_state_dict(»torch.load(path, weights_only=True)«)\n    return net\n", "map_location",
            _START + '    net.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))\n    return net\n'),
    Invalid(_START + "    state = »torch.load(path, weights_only=True)«\n    net.load_state_dict(state)\n    return net\n", "saved",
            _START + '    state = torch.load(path, weights_only=True, map_location="cpu")\n    net.load_state_dict(state)\n    return net\n'),
)

_OR_CPU = re.compile(r"""else\s+(?:torch\.device\()?["']cpu["']""")
_WHERE = re.compile(r"load_state_dict\(")
_PLACED = re.compile(r"torch\.device\(|set_default_device|torch\.save\(|mmap\s*=\s*True|map_location")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    text = facts.source.text
    if "load_state_dict" not in text or not (facts.targets.device == "cpu" or _OR_CPU.search(text)):
        return
    loads = {c.span for c in calls(facts) if c.name == "torch.load"}
    for function in nodes(facts, _WHERE, cst.FunctionDef, analysed=True) if loads else ():
        if _PLACED.search(facts.module.code(function)):
            continue
        bound = {t.target.value: a.value for a in inside(facts, function, cst.Assign) for t in a.targets if isinstance(t.target, cst.Name)}
        for call in inside(facts, function, cst.Call):
            if not (isinstance(call.func, cst.Attribute) and call.func.attr.value == "load_state_dict" and call.args):
                continue
            given = call.args[0].value
            given = bound.get(given.value, given) if isinstance(given, cst.Name) else given
            while isinstance(given, cst.Subscript):
                given = given.value
                given = bound.get(given.value, given) if isinstance(given, cst.Name) else given
            span = facts.module.span(given)
            if span in loads and not any(a.star for a in given.args):
                end = Span(span.path, span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
                yield RULE.finding("without map_location each tensor goes to the device it was saved from, which this machine may not have", span,
                                   fix=Fix("safe", 'Load to the host: map_location="cpu"', (Edit(end, ', map_location="cpu"'),)))


RULE = Rule("CUV309", "missing-map-location", kind="device-mismatch", severity="info", certainty="hint", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
