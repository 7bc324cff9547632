"""One buffer collected many times.

What: in a loop, a tensor or array that was made before the loop is changed in place and appended, yielded or stored as it is; or
`[t] * n`, whose items are one tensor, is written to.
Why: a list holds the object and no copy, so at the end all entries show the last round.
Example: `for x in frames: state.mul_(0.9).add_(x); states.append(state)`
Instead: `states.append(state.clone())`
Fix: unsafe: a copy is kept. Each entry then keeps the values of its round, which is the point.

Silent when the entry is copied, when the name is bound to a new tensor in each round, and for numbers and lists.
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
from .carried import inside
from .recorded import assigns, owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(frames: torch.Tensor):\n    state = torch.zeros(4)\n    states = []\n    for i in range(10):\n"
_END = "    return torch.stack(states)\n"
VALID = (
    _START + "        state.mul_(0.9).add_(frames[i])\n        states.append(state.clone())\n" + _END,
    _START + "        state = state * 0.9 + frames[i]\n        states.append(state)\n" + _END,
    _START + "        state.mul_(0.9)\n        states.append(state + frames[i])\n" + _END,
    # made anew in each round
    _START + "        row = torch.zeros(4)\n        row.add_(frames[i])\n        states.append(row)\n" + _END,
    "import torch\n\ndef f(n: int):\n    total, totals = 0, []\n    for i in range(n):\n        total += i\n        totals.append(total)\n    return totals\n",
    "import torch\n\ndef f(n: int):\n    rows = [torch.zeros(4)] * n\n    return torch.stack(rows)\n",
    "import torch\n\ndef f(n: int, x: torch.Tensor):\n    rows = [torch.zeros(4)] * n\n    rows[0] = x\n    return torch.stack(rows)\n",
    # the loop is left at once
    _START + "        state.mul_(0.9).add_(frames[i])\n        if i == 3:\n            states.append(state)\n            break\n" + _END,
)
INVALID = (
    Invalid(_START + "        state.mul_(0.9).add_(frames[i])\n        states.append(»state«)\n" + _END, "same memory",
            _START + "        state.mul_(0.9).add_(frames[i])\n        states.append(state.clone())\n" + _END),
    Invalid(_START + "        state += frames[i]\n        states.append(»state«)\n" + _END, "last round",
            _START + "        state += frames[i]\n        states.append(state.clone())\n" + _END),
    Invalid("import torch\n\ndef f(frames: torch.Tensor):\n    state = torch.zeros(4)\n    for i in range(10):\n        state[0] = frames[i, 0]\n        yield »state«\n",
            "same memory", "import torch\n\ndef f(frames: torch.Tensor):\n    state = torch.zeros(4)\n    for i in range(10):\n        state[0] = frames[i, 0]\n"
            "        yield state.clone()\n"),
    Invalid("import torch\n\ndef f(n: int, x: torch.Tensor):\n    rows = »[torch.zeros(4)] * n«\n    for i in range(n):\n        rows[i] += x\n    return rows\n",
            "one tensor"),
)

_WHERE = re.compile(r"\.(?:append|appendleft|add|put|insert)\((?:[^()]*,\s*)?\w+\)|\byield\s+\w+\s*(?:#.*)?$|\]\s*\*", re.MULTILINE)
_KEEPS = frozenset(("append", "appendleft", "add", "put", "insert"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function in nodes(facts, _WHERE, cst.FunctionDef, analysed=True):
        if owner(facts, facts.module.span(function.name)) is None:
            continue
        for loop in inside(facts, function, cst.For, cst.While):
            yield from _collected(facts, function, loop)
        yield from _multiplied(facts, function)


def _collected(facts: FileFacts, function: cst.FunctionDef, loop: cst.For | cst.While) -> Iterator[Diagnostic]:
    written: dict[str, cst.CSTNode] = {}
    bound: set[str] = set()
    for node in inside(facts, loop, cst.AugAssign, cst.Assign, cst.AnnAssign, cst.Call, cst.For):
        match node:
            case cst.AugAssign(target=target):
                written.setdefault(_base(target), node)
            case cst.Assign(targets=targets):
                for each in targets:
                    if isinstance(each.target, cst.Subscript):
                        written.setdefault(_base(each.target), node)
                    else:
                        bound |= _names(each.target)
            case cst.AnnAssign(target=target) | cst.For(target=target):
                bound |= _names(target)
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if _in_place(name):
                written.setdefault(_base(inner), node)
            case cst.Call(args=args):
                for each in args:
                    if each.keyword is not None and each.keyword.value == "out":
                        written.setdefault(_base(each.value), node)
    for place, kept in _kept(facts, loop):
        name = kept.value
        if name in written and name not in bound and not _leaves(facts, place) and _nearest(facts, place, loop):
            made = _made_before(facts, function, loop, name)
            if made is not None:
                yield _finding(facts, kept, written[name], made)


def _kept(facts: FileFacts, loop: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.Name]]:
    for node in inside(facts, loop, cst.Call, cst.Yield):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method)), args=[*_, cst.Arg(value=cst.Name() as kept)]) if method in _KEEPS:
                yield node, kept
            case cst.Yield(value=cst.Name() as kept):
                yield node, kept


def _made_before(facts: FileFacts, function: cst.FunctionDef, loop: cst.CSTNode, name: str) -> Span | None:
    """Where the name was last given a tensor before the loop."""
    from cuvil.frontends.python.values import Tensor
    whole, start = facts.module.span(function), facts.module.span(loop)
    found = [a for a in assigns(facts) if a.name == name and not a.context.callers and whole.encloses(a.span) and a.span.line < start.line]
    last = max(found, key=lambda a: (a.span.line, a.span.column), default=None)
    return last.span if last is not None and isinstance(last.value, Tensor) and last.value.type.rank != 0 or last is not None \
        and isinstance(last.value, Tensor) and last.value.library == "torch" else None


def _nearest(facts: FileFacts, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
    above = facts.module.parent(node)
    while above is not None and not isinstance(above, (cst.For, cst.While)):
        above = facts.module.parent(above)
    return above is loop


def _leaves(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Whether the block around a statement ends the loop."""
    above = node
    while above is not None and not isinstance(above, cst.IndentedBlock):
        above = facts.module.parent(above)
    last = above.body[-1] if above is not None and above.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Break, cst.Return, cst.Raise))


def _multiplied(facts: FileFacts, function: cst.FunctionDef) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    repeated = {}
    for node in inside(facts, function, cst.Assign):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))],
                            value=cst.BinaryOperation(left=cst.List(elements=[cst.Element(value=item)]), operator=cst.Multiply()) as value):
                if isinstance(value_of(facts, facts.module.span(item)), Tensor):
                    repeated[name] = value
    for node in inside(facts, function, cst.AugAssign, cst.Assign, cst.Call) if repeated else ():
        target: cst.BaseExpression | None = None
        match node:
            case cst.AugAssign(target=cst.Subscript() as target):
                pass
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Subscript() as target))]):
                pass
            case cst.Call(func=cst.Attribute(value=cst.Subscript() as target, attr=cst.Name(value=name))) if _in_place(name):
                pass
        if target is not None and _base(target) in repeated:
            made = repeated.pop(_base(target))
            yield RULE.finding("all items of this list are one tensor, and a write to one changes all; make them one by one", facts.module.span(made),
                               (Evidence(facts.module.span(node), "is written to here"),),
                               Fix("display", "[... for _ in range(n)] makes a tensor for each item"))


def _finding(facts: FileFacts, kept: cst.Name, write: cst.CSTNode, made: Span) -> Diagnostic:
    from cuvil.frontends.python.values import Tensor
    span = facts.module.span(kept)
    value = value_of(facts, span)
    copy = "copy" if isinstance(value, Tensor) and value.library == "numpy" else "clone"
    return RULE.finding(f"`{kept.value}` is changed in place in each round, and every entry is the same memory: all show the last round; keep {kept.value}.{copy}()",
                        span, (Evidence(made, "is made here, once"), Evidence(facts.module.span(write), "is changed in place here")),
                        Fix("unsafe", f"Keep a copy: {kept.value}.{copy}()", (Edit(span, f"{kept.value}.{copy}()"),)))


def _in_place(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__") and not method.startswith("_")


def _base(node: cst.BaseExpression) -> str:
    """The name that a target or a chain of in-place calls works on: `state` of `state[0]` and of `state.mul_(2).add_(1)`."""
    while True:
        match node:
            case cst.Subscript(value=inner) | cst.Call(func=cst.Attribute(value=inner, attr=cst.Name())):
                node = inner
            case cst.Name(value=name):
                return name
            case _:
                return ""


def _names(target: cst.BaseExpression) -> set[str]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return {name for element in target.elements for name in _names(element.value)}
    return {target.value} if isinstance(target, cst.Name) else set()


RULE = Rule("CUV712", "aliased-entries", kind="aliasing-mutation", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
