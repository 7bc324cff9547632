"""squeeze() without an axis, where the batch may be one.

What: `x.squeeze()` on a tensor whose first size is open while another axis is fixed to 1.
Why: for a batch of one the batch axis goes too, and the next layer fails or, worse, works along the wrong axis. It passes
every test that has more than one sample.
Example: `features = pool(x).squeeze()` for [B, 32, 1, 1]
Instead: `features = pool(x).squeeze(-1).squeeze(-1)` or `.flatten(1)`
Fix: unsafe: when just one axis is 1 in the types, that axis is named. For a batch of one the result then keeps its axis, which
is the point; while no open size is 1 it is bit for bit what it was.

Silent when all sizes are known, when the result becomes a Python number (`.item()`), and when no axis is known to be 1.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ir.types import TensorType
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from . import flow
from .axes import axes_of, batches, rows
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor):\n    B, C = x.shape\n"
VALID = (
    _START + "    return x.sum(dim=1, keepdim=True).squeeze(1)\n",
    "import torch\n\ndef f():\n    return torch.zeros(4, 1).squeeze()\n",
    _START + "    return x[:1, :1].squeeze().item()\n",
    _START + "    return x.squeeze()\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return x.squeeze()\n",
)
INVALID = (
    Invalid(_START + "    return »x.sum(dim=1, keepdim=True).squeeze()«\n", "[B, 1]",
            _START + "    return x.sum(dim=1, keepdim=True).squeeze(1)\n"),
    Invalid(_START + "    return »torch.squeeze(x.sum(dim=1, keepdim=True))«\n", "[B, 1]",
            _START + "    return torch.squeeze(x.sum(dim=1, keepdim=True), 1)\n"),
    Invalid(_START + "    return »x[:, :1, None].squeeze()«\n", "[B, 1, 1]"),
    Invalid("import torch\nfrom torch import nn\n\ndef score(net, x):\n    return »net(x).squeeze()«.tolist()\n\ndef run():\n    return score(nn.Linear(8, 1), torch.ones(3, 8))\n",
            "batch", "import torch\nfrom torch import nn\n\ndef score(net, x):\n    return net(x).squeeze(1).tolist()\n\ndef run():\n    return score(nn.Linear(8, 1), torch.ones(3, 8))\n"),
)

_LISTS = ("tolist", "argsort", "sort", "topk")
_WHERE = re.compile(r"\bsqueeze\s*\(")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    yield from _through_calls(facts)
    for call in nodes(facts, _WHERE, cst.Call, analysed=True):
        squeezed = _squeezed(call)
        if squeezed is None:
            continue
        where = facts.module.span(squeezed)
        value = value_of(facts, where)
        if not isinstance(value, Tensor) or not _loses_batch(value.type) or _becomes_number(facts, call):
            continue
        batch, span = value.type.shape[0], facts.module.span(call)
        ones = [axis for axis, size in enumerate(value.type.shape) if size == 1]
        yield RULE.finding(
            f"squeeze() of {flow.shape(value)} also drops the first axis when {batch} is 1; name the axis",
            span, (Evidence(where, f"has type {value.type}"),), _fix(facts, call, squeezed, ones[0]) if len(ones) == 1 else None)


def _through_calls(facts: FileFacts) -> Iterator[Diagnostic]:
    """Functions of which only a caller says the types: the first axis is that of samples, by what layers do to it."""
    from cuvil.frontends.python.values import Tensor
    seen: set[Span] = set()
    for home in facts.functions:
        for fact in home.calls if home.function is not None else ():
            value = fact.args[0] if fact.args else None
            if fact.name.rpartition(".")[2] != "squeeze" or not fact.context.callers or fact.span in seen or fact.span.path != facts.source.path:
                continue
            if not isinstance(value, Tensor) or value.type.rank is None or value.type.rank < 2 or 1 not in value.type.shape[1:]:
                continue
            call, pieces = node_of(facts, fact.span, cst.Call), axes_of(home.function).get(value.op.id)
            squeezed = _squeezed(call) if call is not None else None
            if squeezed is None or _becomes_number(facts, call) or not pieces:
                continue
            one = value.type.shape[0] == 1                        # a call with one sample says nothing of the axis: what is done with the result does
            if not (_walked_through(facts, call) if one else set(pieces[0]) & (batches(home.function) | rows(home.function))):
                continue
            seen.add(fact.span)
            ones = [axis for axis, size in enumerate(value.type.shape) if size == 1]
            calls = tuple(Evidence(span, "called here") for span in fact.context.callers)
            yield RULE.finding(f"squeeze() of {flow.shape(value)} also drops the first axis, that of the batch, when it is 1; name the axis", fact.span, calls,
                               _fix(facts, call, squeezed, ones[0]) if len(ones) == 1 else None)


def _walked_through(facts: FileFacts, call: cst.Call) -> bool:
    """The result is taken as a list of several: `.tolist()`, `len()`, a loop, a sort."""
    outer = facts.module.parent(call)
    if isinstance(outer, cst.Attribute):
        return outer.attr.value in _LISTS
    if not isinstance(outer, cst.Assign) or not isinstance(outer.targets[0].target, cst.Name):
        return False
    name = outer.targets[0].target.value
    return re.search(rf"\b{name}\.(?:{'|'.join(_LISTS)})\(|\b(?:len|enumerate|zip)\([^)]*\b{name}\b|\bin {name}\b", facts.module.owner(call).text) is not None


def _squeezed(call: cst.Call) -> cst.BaseExpression | None:
    """The tensor of x.squeeze() or torch.squeeze(x) / np.squeeze(x), when no axis is given."""
    match call:
        case cst.Call(func=cst.Attribute(value=cst.Name(value="torch" | "np" | "numpy"), attr=cst.Name(value="squeeze")), args=[cst.Arg(star="", value=value)]):
            return value
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="squeeze")), args=[]):
            return value
    return None


def _loses_batch(type: TensorType) -> bool:
    return type.shape is not None and type.rank >= 2 and not isinstance(type.shape[0], int) and 1 in type.shape[1:]


def _becomes_number(facts: FileFacts, call: cst.Call) -> bool:
    outer = facts.module.parent(call)
    return isinstance(outer, cst.Attribute) and outer.attr.value == "item"


def _fix(facts: FileFacts, call: cst.Call, squeezed: cst.BaseExpression, axis: int) -> Fix:
    span = facts.module.span(call)
    place = Span(span.path, span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)      # before the last bracket
    return Fix("unsafe", f"Name the axis: {axis}", (Edit(place, f", {axis}" if call.args else str(axis)),))


RULE = Rule("CUV111", "bare-squeeze", kind="batch-dim-lost", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
