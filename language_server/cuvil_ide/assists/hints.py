"""Shapes after the names that assignments bind: `h = x @ w` shows `: f32[B, 768]`.

A type of more than LIMIT characters is cut, the whole is the tooltip; "as called" stands after what only callers in the file say. A parameter whose annotation already says its shape and a
name that is bound to the same type again on the next line get one all the same: a hint that comes and goes is worse.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from ..lookup import fact_of
from ..stale import present
from ..syntax import by_type
from .describe import brought_by, describe, shorten

if TYPE_CHECKING:
    from cuvil.cst import Tree
    from cuvil.frontends.python.facts import FileFacts


@dataclass(frozen=True)
class Hint:
    """label stands after (line, column); tooltip is the whole of it."""

    line: int
    column: int
    label: str
    tooltip: str


def hints(facts: FileFacts, first: int = 1, last: int | None = None) -> list[Hint]:
    """The hints of lines first to last, in the order of the text."""
    last = len(facts.source.index) if last is None else last
    path = facts.source.path
    found = []
    for definition in facts.module.definitions:
        if definition.first > last or definition.last < first or "=" not in definition.text or definition.tree is None:
            continue
        for name in _bound(definition.tree):
            span = definition.span(name, path)
            fact, here = fact_of(facts, span), present(definition, span)
            if here is not None and first <= here.line <= last and fact is not None and (text := describe(fact.value)):
                reason = brought_by(fact)
                label = shorten(f": {text}") + (f" {reason.partition(',')[0].partition(' from ')[0]}" if reason else "")
                found.append(Hint(here.end_line, here.end_column, label, f"{text}\n{reason}" if reason else text))
    return sorted(found, key=lambda h: (h.line, h.column))


def _bound(tree: Tree) -> Iterator[cst.Name]:
    """The names that assignments bind, alone or in tuples."""
    nodes = by_type(tree)
    todo = [node.target for kind in (cst.AssignTarget, cst.AnnAssign) for node in nodes.get(kind, ())]
    while todo:
        node = todo.pop()
        if isinstance(node, (cst.Tuple, cst.List)):
            todo += [element.value for element in node.elements]
        elif isinstance(node, cst.Name):
            yield node
