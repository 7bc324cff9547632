"""numpy() of a tensor that hangs on gradients.

What: `.numpy()` on what a network gave outside `no_grad`, or on a parameter.
Why: NumPy cannot follow gradients, so torch raises `Can't call numpy() on Tensor that requires grad` while gradients are on.
Example: `scores = model(images).numpy()`
Instead: `scores = model(images).detach().numpy()`, or the whole call under `torch.inference_mode()`
Fix: safe: `.detach()` is put in; before, this line raised.

Silent when the tensor is detached, when gradients are off here or in a caller, and where the error is expected.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from .carried import Carried, inside
from .guards import expected_to_fail
from .modules import module_calls
from .recorded import owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nfrom torch import nn\n\n"
VALID = (
    _START + "def f(model: nn.Module, x: torch.Tensor):\n    return model(x).detach().numpy()\n",
    _START + "@torch.inference_mode()\ndef f(model: nn.Module, x: torch.Tensor):\n    return model(x).numpy()\n",
    _START + "def f(model: nn.Module, x: torch.Tensor):\n    with torch.no_grad():\n        y = model(x)\n    return y.numpy()\n",
    _START + "def f(model: nn.Module, x: torch.Tensor):\n    return model(x).argmax(dim=-1).numpy()\n",
    _START + "def f(x: torch.Tensor):\n    return x.numpy()\n",
    # without gradients it may be read, wherever it comes from
    _START + "def f(model: nn.Module, x: torch.Tensor):\n    y = model(x)\n    with torch.no_grad():\n        return y.numpy(), nn.Linear(4, 2).weight.numpy()\n",
    _START + "def f(net: nn.Module, x: torch.Tensor):\n    for p in net.parameters():\n        p.requires_grad_(False)\n    return net(x).numpy()\n",
)
INVALID = (
    Invalid(_START + "def f(model: nn.Module, x: torch.Tensor):\n    model.eval()\n    out = torch.sigmoid(model(x))\n    return »out.squeeze(-1).numpy()«\n",
            "raises", _START + "def f(model: nn.Module, x: torch.Tensor):\n    model.eval()\n    out = torch.sigmoid(model(x))\n"
            "    return out.squeeze(-1).detach().numpy()\n"),
    Invalid(_START + "def f(x: torch.Tensor):\n    net = nn.Linear(4, 2)\n    return »net(x).cpu().numpy()«\n", "detach",
            _START + "def f(x: torch.Tensor):\n    net = nn.Linear(4, 2)\n    return net(x).cpu().detach().numpy()\n"),
    Invalid("import numpy as np\n" + _START + "def f(model: nn.Module, x: torch.Tensor):\n    return »np.asarray(model(x))«\n", "raises",
            "import numpy as np\n" + _START + "def f(model: nn.Module, x: torch.Tensor):\n    return np.asarray(model(x).detach())\n"),
    Invalid(_START + "def f():\n    net = nn.Linear(4, 2)\n    return »net.weight.numpy()«\n", "parameter",
            _START + "def f():\n    net = nn.Linear(4, 2)\n    return net.weight.detach().numpy()\n"),
)

_WHERE = re.compile(r"\.numpy\(|\b(?:np|numpy)\.(?:asarray|array|ascontiguousarray|save|argmax|argsort|clip|round)\(")
_FROZEN = re.compile(r"requires_grad|set_grad_enabled")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    off: set[Span] | None = None
    for node in nodes(facts, _WHERE, cst.FunctionDef, analysed=True):
        function = owner(facts, facts.module.span(node.name))
        if function is None or _FROZEN.search(facts.module.code(node)):
            continue
        quiet = {c.span for c in function.calls if c.context.grad in ("no_grad", "inference")}      # gradients are off: it may be read
        running = [call for call in module_calls(facts, function, node) if call.fact.context.grad not in ("no_grad", "inference")]
        if off is None:
            off = {call.span for each in facts.functions for call in each.calls if call.context.callers and call.context.grad in ("no_grad", "inference")}
        carried = Carried(facts, node, {call.span for call in running if call.span not in off and _floating(call.fact.result)})
        for call in inside(facts, node, cst.Call):
            receiver, span = _read(facts, call), facts.module.span(call)
            if receiver is None or span in quiet:
                continue
            source = carried.source(receiver)
            where = facts.module.span(receiver)
            if source is None and not _is_parameter(value_of(facts, where)) or expected_to_fail(facts, span):
                continue
            what = "this is a parameter, which requires grad" if source is None else "this hangs on the gradients of a network"
            end = Span(where.path, where.end_line, where.end_column, where.end_line, where.end_column)
            yield RULE.finding(f"{facts.module.code(call.func).rpartition('.')[2]}() raises: {what}; detach() it, or run under torch.inference_mode()", span,
                               (Evidence(source, "is computed here with gradients on"),) if source is not None else (),
                               Fix("safe", "Detach it first", (Edit(end, ".detach()"),)))


def _read(facts: FileFacts, call: cst.Call) -> cst.BaseExpression | None:
    """What NumPy is to read: x of `x.numpy()` and `np.asarray(x)`."""
    match call:
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="numpy")), args=args):
            return None if any(_named(a, "force") for a in args) else value
        case cst.Call(func=cst.Attribute(value=cst.Name(value="np" | "numpy"), attr=cst.Name(value=name)), args=[cst.Arg(value=value, star="", keyword=None), *_]):
            return value if name in ("asarray", "array", "ascontiguousarray", "save", "argmax", "argsort", "clip", "round") else None
    return None


def _floating(result) -> bool:
    """Not known to be something without gradients."""
    from cuvil.frontends.python.values import Tensor
    return not isinstance(result, Tensor) or result.type.dtype is None or result.type.dtype.is_float and result.grad is not False


def _is_parameter(value) -> bool:
    from cuvil.frontends.python.values import Instance, Tensor, Weight
    if isinstance(value, Weight):
        return isinstance(value.owner, Instance) and value.name in value.owner.weights
    return isinstance(value, Tensor) and "parameter" in value.marks


def _named(arg: cst.Arg, name: str) -> bool:
    return arg.keyword is not None and arg.keyword.value == name


RULE = Rule("CUV707", "numpy-on-grad", kind="missing-no-grad", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
