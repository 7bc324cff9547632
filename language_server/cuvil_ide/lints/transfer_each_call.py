"""The same tensor moved to the device in every round.

What: `.to(device)`, `.cuda()` or `.cpu()` in a loop, on a tensor that the loop does not change.
Why: each round copies the same bytes again, and a copy from or to the host waits.
Example: `for x in batches: y = x @ weights.to("cuda")`
Instead: `weights = weights.to("cuda")` before the loop
Fix: display: move it before the loop.

Silent when the loop binds or writes to the tensor, when the device changes with the loop, when the tensor is known to be there already,
for modules, and for loops of one round.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from .carried import inside
from .recorded import around, calls, node_of, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts

_START = "import torch\n\ndef f(weights: torch.Tensor, batches: torch.Tensor, n: int):\n    found = []\n"
VALID = (
    _START + '    weights = weights.to("cuda")\n    for i in range(n):\n        found.append(batches[i] @ weights)\n    return found\n',
    _START + '    for i in range(n):\n        x = batches[i]\n        found.append(x.to("cuda"))\n    return found\n',
    _START + '    for i in range(n):\n        weights = weights * 2\n        found.append(weights.cuda())\n    return found\n',
    _START + '    for i in range(n):\n        weights.mul_(2.0)\n        found.append(weights.cuda())\n    return found\n',
    _START + '    for i in range(n):\n        found.append(weights.to(f"cuda:{i}"))\n    return found\n',
    _START + '    weights = weights.cuda()\n    for i in range(n):\n        found.append(weights.cuda())\n    return found\n',
    _START + "    for i in range(n):\n        found.append(weights.to(torch.float16))\n    return found\n",
)
INVALID = (
    Invalid(_START + '    for i in range(n):\n        found.append(batches[i] @ »weights.to("cuda")«)\n    return found\n', "before the loop"),
    Invalid(_START + "    return [batches[i] @ »weights.cuda()« for i in range(n)]\n", "every round"),
)

_MOVES = {"torch.Tensor.to", "torch.Tensor.cuda", "torch.Tensor.cpu"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call in once(c for c in calls(facts) if c.name in _MOVES and c.context.loops and not c.context.callers):
        node = node_of(facts, call.span, cst.Call)
        if node is None or not isinstance(node.func, cst.Attribute) or not isinstance(node.func.value, (cst.Name, cst.Attribute)) or not _copies(call):
            continue
        loop = around(facts, node, cst.For, cst.While, cst.ListComp, cst.GeneratorExp)
        if loop is None or call.context.loops[0].rounds in (0, 1):
            continue
        name = facts.module.code(node.func.value)
        changed = _changed(facts, loop)
        words = set(re.findall(r"[A-Za-z_]\w*", facts.module.code(node))) - {name.rpartition(".")[2]}
        if name in changed or name.partition(".")[0] in changed or words & changed:
            continue
        start = facts.module.span(loop)
        yield RULE.finding(f"`{name}` is the same in every round, and is copied each time; move it before the loop", call.span,
                           (Evidence(Span(start.path, start.line, start.column, start.line, start.column + 3), "the loop"),),
                           Fix("display", f"{name} = {facts.module.code(node)} before the loop"))


def _copies(call: CallFact) -> bool:
    """A move to a device, other than the one it is on."""
    from cuvil.frontends.python.values import Tensor
    tensor, moved = call.args[0], call.result
    if not isinstance(tensor, Tensor) or tensor.library != "torch" or tensor.type.rank == 0 or not isinstance(moved, Tensor) or moved.device is None:
        return False
    return bool(moved.device.kind or moved.device.like) and moved.device != tensor.device and moved.type.dtype == tensor.type.dtype


def _changed(facts: FileFacts, loop: cst.CSTNode) -> set[str]:
    """Names that a loop binds or writes to."""
    found: set[str] = set()
    if isinstance(loop, (cst.ListComp, cst.GeneratorExp)):
        part = loop.for_in
        while part is not None:
            found |= _names(facts, part.target)
            part = part.inner_for_in
        return found
    for node in inside(facts, loop, cst.For, cst.CompFor, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.With, cst.Call):
        match node:
            case cst.Assign(targets=targets):
                for each in targets:
                    found |= _names(facts, each.target)
            case cst.For(target=target) | cst.CompFor(target=target) | cst.AnnAssign(target=target) | cst.AugAssign(target=target) | cst.NamedExpr(target=target):
                found |= _names(facts, target)
            case cst.With(items=items):
                for item in items:
                    found |= _names(facts, item.asname.name) if item.asname is not None else set()
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method.endswith("_"):
                found |= _names(facts, inner)
    return found


def _names(facts: FileFacts, target: cst.BaseExpression) -> set[str]:
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return {name for element in elements for name in _names(facts, element.value)}
        case cst.Subscript(value=inner) | cst.Call(func=cst.Attribute(value=inner)):
            return _names(facts, inner)
        case cst.Name() | cst.Attribute():
            return {facts.module.code(target)}
    return set()


RULE = Rule("CUV304", "transfer-each-call", kind="host-sync-in-loop", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
