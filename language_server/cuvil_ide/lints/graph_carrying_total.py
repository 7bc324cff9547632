"""A running total that carries the graph of every step.

What: in a loop that trains, `total += loss` (or `losses.append(loss)`) with the very loss that `backward()` is called on.
Why: the total hangs on the graph of each step, so none of them is freed: memory grows with every batch.
Example: `loss.backward(); total += loss`
Instead: `total += loss.detach()`, or `loss.item()` where waiting for the device does not matter
Fix: unsafe: the loss is detached where it is added; nothing can be differentiated through the total any more.

Silent when the total itself is differentiated, when the loss was detached or made a number, and when nothing calls `backward` on it.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import nodes
from .carried import inside
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(net, loader, opt):\n    total, losses = 0.0, []\n    for x, y in loader:\n        loss = (net(x) - y).pow(2).mean()\n"
_STEP = "        opt.zero_grad()\n        loss.backward()\n        opt.step()\n"
VALID = (
    _START + _STEP + "        total += loss.item()\n    return total\n",
    _START + _STEP + "        total += loss.detach()\n    return total\n",
    _START + "        total += loss\n    total.backward()\n    return total\n",
    _START + "        total = total + loss\n        losses.append(loss)\n    torch.stack(losses).sum().backward()\n",
    _START + _STEP + "        loss = loss.item()\n        total += loss\n    return total\n",
    _START + _STEP + "        losses.append(float(loss))\n    return losses\n",
)
INVALID = (
    Invalid(_START + _STEP + "        total += »loss«\n    return total\n", "graph", _START + _STEP + "        total += loss.detach()\n    return total\n"),
    Invalid(_START + _STEP + "        losses.append(»loss«)\n    return losses\n", "detach", _START + _STEP + "        losses.append(loss.detach())\n    return losses\n"),
    Invalid(_START + "        total += »loss« * 2\n" + _STEP + "    return total\n", "memory", _START + "        total += loss.detach() * 2\n" + _STEP + "    return total\n"),
)

_WHERE = re.compile(r"\.backward\(")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function in nodes(facts, _WHERE, cst.FunctionDef):
        done: set[cst.CSTNode] = set()
        for loop in reversed(inside(facts, function, cst.For, cst.While)):      # inner loops first
            back = {_called(c): c for c in inside(facts, loop, cst.Call) if _is(c, "backward") and _called(c)}
            again = {name for a in inside(facts, loop, cst.Assign) if _plain(facts, a) for name in _targets(a)}
            for place, target, kept in _kept(facts, loop):
                name = kept.value
                if kept in done or name not in back or name in again or _differentiated(facts, function, target):
                    continue
                done.add(kept)
                span = facts.module.span(kept)
                yield RULE.finding(f"`{target}` keeps the graph of every step, so memory grows with each batch; add {name}.detach()", span,
                                   (Evidence(facts.module.span(back[name]), "its graph is used here"),),
                                   Fix("unsafe", f"Detach {name} here", (Edit(span, f"{name}.detach()"),)))


def _kept(facts: FileFacts, loop: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, str, cst.Name]]:
    for node in inside(facts, loop, cst.AugAssign, cst.Call):
        match node:
            case cst.AugAssign(target=cst.Name() | cst.Attribute() as target, operator=cst.AddAssign(), value=value):
                inner = value.left if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Multiply, cst.Divide)) else value
                if isinstance(inner, cst.Name):
                    yield node, facts.module.code(target), inner
            case cst.Call(func=cst.Attribute(value=target, attr=cst.Name(value="append")), args=[cst.Arg(value=cst.Name() as kept)]):
                yield node, facts.module.code(target), kept


def _differentiated(facts: FileFacts, function: cst.FunctionDef, target: str) -> bool:
    """The total itself meets a backward(), directly or under a name made from it."""
    word = re.compile(rf"\b{re.escape(target)}\b")
    made = {name for a in inside(facts, function, cst.Assign) if word.search(facts.module.code(a.value)) for name in _targets(a) if name != target}
    return any(_is(call, "backward") and (word.search(facts.module.code(call.func)) or _called(call) in made) for call in inside(facts, function, cst.Call))


def _plain(facts: FileFacts, assign: cst.Assign) -> bool:
    """`loss = loss.item()`: from there on the name holds a number or a detached tensor."""
    return re.search(r"\.(?:item|detach|tolist)\(|^float\(", facts.module.code(assign.value)) is not None


def _targets(assign: cst.Assign) -> list[str]:
    return [t.target.value for t in assign.targets if isinstance(t.target, cst.Name)]


def _is(call: cst.Call, method: str) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == method


def _called(call: cst.Call) -> str:
    return call.func.value.value if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name) else ""


RULE = Rule("CUV706", "graph-carrying-total", kind="missing-no-grad", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
