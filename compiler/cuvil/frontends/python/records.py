"""Facts of calls, branches, assignments and writes, kept as the walk meets them: each place once for each chain of calls that leads there.

The first round of an unrolled loop is the one that is kept. Code that is walked apart (constants, constructors) is left out:
its facts are found where it is walked by itself.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import libcst as cst

from .facts import AssignFact, BranchFact, CallFact, WriteFact
from .values import Instance, Library, Scalar, Sequence, Tensor, Unknown, Untyped, UserClass, UserFunction, Value
from .walk import Walk
from .workspace import dotted

MOST, MOST_INSIDE = 4000, 1500                 # facts of one kind in one walk, and of those the facts of called functions
Fact = TypeVar("Fact", CallFact, BranchFact, AssignFact, WriteFact)


def _new(walk: Walk, kept: dict, node: cst.CSTNode) -> tuple[int, int] | None:
    """The key of a fact that is not there yet, or None."""
    if walk.quiet or len(kept) >= (MOST_INSIDE if walk.frame.chain else MOST):
        return None
    key = id(node), walk.frame.chain
    return None if key in kept else key


def called(walk: Walk, function: Value, args: list[Value], keywords: dict[str, Value], result: Value, training: bool | None, node: cst.Call) -> None:
    key = _new(walk, walk.calls, node)
    if key is None:
        return
    receiver, name = None, ""
    match function:
        case Library(name=name, receiver=receiver) | UserFunction(name=name, receiver=receiver):
            args = args if receiver is None else [receiver, *args]
        case UserClass(name=name):
            pass
        case Instance():
            receiver, name = function, getattr(function.of, "name", "")
    walk.calls[key] = node, CallFact(walk.span(node), name, tuple(args), tuple(keywords.items()), result, receiver, node is walk.statement,
                                     training, walk.context)


def formatted(walk: Walk, value: Value, spec: str, node: cst.FormattedStringExpression) -> None:
    """`{value:spec}` in an f-string: what Python calls format(value, spec) for."""
    key = _new(walk, walk.calls, node)
    if key is not None:
        walk.calls[key] = node, CallFact(walk.span(node), "builtins.format", (value, Scalar(spec)), (), Unknown("a formatted string"), context=walk.context)


def branch(walk: Walk, kind: str, test: Value, node: cst.CSTNode) -> None:
    key = _new(walk, walk.branches, node)
    if key is not None:
        walk.branches[key] = node, BranchFact(walk.span(node), kind, test, walk.context)


def assigned(walk: Walk, target: cst.CSTNode, value: Value) -> None:
    key = _new(walk, walk.assigns, target)
    name = dotted(target) if key is not None else ""
    if name:
        walk.assigns[key] = target, AssignFact(walk.span(target), name, value, walk.context)


def written(walk: Walk, target: Value, operation: str, value: Value, node: cst.CSTNode, into: cst.CSTNode | None = None) -> None:
    """into: the expression that is written to, where node does not show it."""
    key = _new(walk, walk.writes, node)
    if key is not None and isinstance(target, (Tensor, Untyped)):
        walk.writes[key] = node, WriteFact(walk.span(node), target, operation.strip("`"), value, dotted(into or _target(node)), walk.context)


def _target(node: cst.CSTNode) -> cst.CSTNode | None:
    """What `x += y`, `x[i] = y` and `x.add_(y)` write to."""
    match node:
        case cst.AugAssign(target=inner):
            return inner.value if isinstance(inner, cst.Subscript) else inner
        case cst.Subscript(value=inner):
            return inner
        case cst.Call(func=cst.Attribute(value=inner)):
            return inner.value if isinstance(inner, cst.Subscript) else inner
    return None


def settled(walk: Walk, kept: dict[Any, tuple[cst.CSTNode, Fact]]) -> tuple[Fact, ...]:
    """The facts at the end of the walk: with the types and sizes that were learnt after them."""
    facts = [fact for _, fact in kept.values()]
    if not walk.sizes and not walk.learned:
        return tuple(facts)
    return tuple(_settled(walk, fact) for fact in facts)


def _settled(walk: Walk, fact: Fact) -> Fact:
    match fact:
        case CallFact():
            return replace(fact, args=tuple(_all(walk, fact.args)), result=as_it_was(walk, fact.result), receiver=as_it_was(walk, fact.receiver),
                           keywords=tuple((name, as_it_was(walk, value)) for name, value in fact.keywords))
        case WriteFact():
            return replace(fact, target=as_it_was(walk, fact.target), value=as_it_was(walk, fact.value))
        case BranchFact():
            return replace(fact, test=as_it_was(walk, fact.test))
    return replace(fact, value=as_it_was(walk, fact.value))


def _all(walk: Walk, values: Iterable[Value]) -> list[Value]:
    return [as_it_was(walk, value) for value in values]


def as_it_was(walk: Walk, value: Value | None) -> Value | None:
    """A value as it was then, with what is known of its type now: unlike Walk.resolve, not as it was changed since."""
    match value:
        case Tensor():
            op = walk.op(value.op.id)
            return value if op is None or op is value.op else replace(value, op=op)
        case Untyped() if value.index in walk.learned:
            return as_it_was(walk, walk.learned[value.index])
        case Sequence(items=tuple() as items):
            return Sequence(tuple(_all(walk, items)), value.kind)
    return value
