"""What walks recorded about a file, whichever walk it was: the file's own functions, and calls from elsewhere that came through them.

    for fact in calls(facts): ...        # once for each place and chain of calls; those of a function's own walk first
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from re import Pattern
from typing import TYPE_CHECKING

import libcst as cst

from ..syntax import nodes

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import AssignFact, BranchFact, CallFact, FileFacts, FunctionFacts, WriteFact
    from cuvil.frontends.python.values import Value
    from cuvil.source import Span


def calls(facts: FileFacts) -> Iterator[CallFact]:
    yield from _of_file(facts, "calls")


def writes(facts: FileFacts) -> Iterator[WriteFact]:
    yield from _of_file(facts, "writes")


def branches(facts: FileFacts) -> Iterator[BranchFact]:
    yield from _of_file(facts, "branches")


def assigns(facts: FileFacts) -> Iterator[AssignFact]:
    yield from _of_file(facts, "assigns")


def _of_file(facts: FileFacts, kind: str) -> Iterator:
    """Own walks first: what they prove holds for every caller."""
    path, reached = facts.source.path, []
    for home in (facts, *facts.functions):
        for fact in getattr(home, kind):
            if fact.span.path == path:
                if fact.context.callers:
                    reached.append(fact)
                else:
                    yield fact
    yield from reached


def call_nodes(facts: FileFacts, where: Pattern[str]) -> Iterator[tuple[CallFact, cst.Call]]:
    """Recorded calls with their nodes, in definitions that the pattern finds; each with the facts of all walks that came there."""
    found: dict[int, list[CallFact]] = {}
    for call in calls(facts) if any(definition.mentions(where) for definition in facts.module.definitions) else ():
        found.setdefault(id(call.span.node), []).append(call)
    for node in nodes(facts, where, cst.Call) if found else ():
        for call in found.get(id(node), ()):
            yield call, node


def once(found: Iterable) -> Iterator:
    """The first fact of each place."""
    seen: set[int] = set()
    for fact in found:
        if id(fact.span.node) not in seen:
            seen.add(id(fact.span.node))
            yield fact


def node_of(facts: FileFacts, span: Span, *types: type[cst.CSTNode]) -> cst.CSTNode | None:
    """The node of one of these types that is exactly there."""
    node = facts.module.node_at(span.line, span.column)
    while node is not None:
        if isinstance(node, types) and facts.module.span(node) == span:
            return node
        node = facts.module.parent(node)
    return None


def around(facts: FileFacts, node: cst.CSTNode, *types: type[cst.CSTNode]) -> cst.CSTNode | None:
    """The nearest node of these types that holds a node."""
    above = facts.module.parent(node)
    while above is not None and not isinstance(above, types):
        above = facts.module.parent(above)
    return above


def owner(facts: FileFacts, span: Span) -> FunctionFacts | None:
    """The function that a place stands in."""
    from ..lookup import function_at
    found = function_at(facts, span.line, span.column)
    return found if found is not None and found.span.encloses(span) else None


def tensors(value: Value | None) -> Iterator:
    """The tensors in a value: itself, or those in a list, tuple or dict."""
    from cuvil.frontends.python.values import Deferred, Mapping, Sequence, Tensor
    todo, steps = [value], 0
    while todo and steps < 1000:
        steps += 1
        match todo.pop():
            case Tensor() as tensor:
                yield tensor
            case Deferred(tensor=tensor):
                yield tensor
            case Sequence(items=items):
                todo += items
            case Mapping(items=items):
                todo += items.values()
