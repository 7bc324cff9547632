"""view() of a tensor whose axes do not lie in that order.

What: `.view(...)` that merges axes after a transpose, permute or slice.
Why: a view cannot move elements, so torch raises `view size is not compatible with input tensor's size and stride`.
Example: `mixed.transpose(1, 2).view(B, T, C)`
Instead: `mixed.transpose(1, 2).reshape(B, T, C)`, which copies when it must
Fix: safe: `reshape` has the same result where view works, and copies where view raised.

Silent when the strides allow it (an axis is only split, or has size 1), after `.contiguous()`, and where the layout is not known.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import nodes
from .carried import Carried
from .guards import expected_to_fail
from .recorded import node_of, owner
from .rule import Invalid, Rule
from .strides import splits, strides

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts, FunctionFacts

_START = "import torch\n\ndef f(x: torch.Tensor):\n    B, T, H, D = x.shape\n"
VALID = (
    _START + "    return x.transpose(1, 2).reshape(B, H, T * D)\n",
    _START + "    return x.transpose(1, 2).contiguous().view(B, H * T, D)\n",
    _START + "    y = x.transpose(1, 2).contiguous()\n    return y.view(B, H * T, D)\n",
    "import torch\n\ndef heads(x):\n    return x.transpose(1, 2).contiguous()\n\ndef f(x: torch.Tensor):\n    B, T, H, D = x.shape\n"
    "    return heads(x).view(B * H, T, D)\n",
    _START + "    return x.view(B, T, H * D)\n",
    # an axis is only split
    "import torch\n\ndef f(x: torch.Tensor):\n    B, T, C = x.shape\n    return x.transpose(1, 2).view(B, 4, C // 4, T)\n",
    # the axes that are merged still lie together
    _START + "    return x.transpose(0, 1).view(T, B, H * D)\n",
    "import torch\n\ndef f():\n    x = torch.zeros(4, 1, 8)\n    return x.transpose(0, 1).view(4, 8)\n",
    _START + "    return (x @ x.transpose(2, 3)).view(B, T, H * H)\n",
)
INVALID = (
    Invalid(_START + "    return »x.transpose(1, 2).view(B, H * T, D)«\n", "reshape", _START + "    return x.transpose(1, 2).reshape(B, H * T, D)\n"),
    Invalid(_START + "    y = x.permute(0, 2, 3, 1)\n    return »(y + 1).view(B, -1)«\n", "raises",
            _START + "    y = x.permute(0, 2, 3, 1)\n    return (y + 1).reshape(B, -1)\n"),
    Invalid("import torch\n\ndef heads(x):\n    return x.transpose(1, 2)\n\ndef f(x: torch.Tensor):\n    B, T, H, D = x.shape\n"
            "    return »heads(x).view(B, H * T, D)«\n", "raises",
            "import torch\n\ndef heads(x):\n    return x.transpose(1, 2)\n\ndef f(x: torch.Tensor):\n    B, T, H, D = x.shape\n"
            "    return heads(x).reshape(B, H * T, D)\n"),
    Invalid("import torch\n\ndef f():\n    x = torch.zeros(4, 6)\n    return »x.t().view(24)«\n", "strides",
            "import torch\n\ndef f():\n    x = torch.zeros(4, 6)\n    return x.t().reshape(24)\n"),
    Invalid("import torch\n\ndef f():\n    x = torch.zeros(4, 6)\n    return »x[:, :3].view(-1)«\n", "reshape",
            "import torch\n\ndef f():\n    x = torch.zeros(4, 6)\n    return x[:, :3].reshape(-1)\n"),
)

_WHERE = re.compile(r"\.view\(")
_DENSE = frozenset(("torch.Tensor.contiguous", "numpy.ascontiguousarray"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for node in nodes(facts, _WHERE, cst.FunctionDef, analysed=True):
        function = owner(facts, facts.module.span(node.name))
        if function is None or function.function is None:
            continue
        own = [c for c in function.calls if not c.context.callers]
        dense = {c.span: c.result.op.id for c in own if c.name in _DENSE and _is_tensor(c.result)}
        carried = Carried(facts, node, dense)
        elsewhere = {c.result.op.id for c in function.calls if c.context.callers and c.name in _DENSE and _is_tensor(c.result)}      # by a function it calls
        for call in own:
            if call.name == "torch.Tensor.view" and call.span.path == facts.source.path and not expected_to_fail(facts, call.span) and not (
                    _is_tensor(call.args[0]) and call.args[0].op.id in elsewhere):
                yield from _view(facts, function, call, carried, dense)


def _view(facts: FileFacts, function: FunctionFacts, call: CallFact, carried: Carried, dense: dict) -> Iterator[Diagnostic]:
    source, result, node = call.args[0], call.result, node_of(facts, call.span, cst.Call)
    if not (_is_tensor(source) and _is_tensor(result)) or source.type.shape is None or result.type.shape is None or not isinstance(node.func, cst.Attribute):
        return
    op = function.function.by_id.get(source.op.id)
    if op is None:
        return
    known = strides(function.function, op, dense.values() if carried.source(node.func.value) is not None else ())
    clash = splits(known, source.type.shape, result.type.shape) if known is not None else None
    if clash is None:
        return
    where, name = facts.module.span(node.func.value), facts.module.span(node.func.attr)
    i, j = clash
    yield RULE.finding(
        f"view raises here: axes {i} and {j} of {_shape(source.type.shape)} do not lie together in memory (strides {_shape(known)}); use reshape",
        call.span, (Evidence(where, f"has shape {_shape(source.type.shape)} and strides {_shape(known)}"),),
        Fix("safe", "Use reshape, which copies where it must", (Edit(name, "reshape"),)))


def _is_tensor(value) -> bool:
    from cuvil.frontends.python.values import Tensor
    return isinstance(value, Tensor) and value.library == "torch"


def _shape(sizes) -> str:
    return f"[{', '.join(map(str, sizes))}]"


RULE = Rule("CUV711", "view-of-noncontiguous", kind="non-contiguous-view", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
