"""Shapes after the names that assignments bind: `h = x @ w` shows `: f32[B, 768]`.

A hint is at most LIMIT characters; the whole type is its tooltip. A parameter whose annotation already says its shape and a
name that is bound to the same type again on the next line get one all the same: a hint that comes and goes is worse.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from .describe import describe, shorten

if TYPE_CHECKING:
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
    found: dict[tuple[int, int], Hint] = {}
    groups = [facts.expressions, *(f.expressions for f in facts.functions if f.span.line <= last and first <= f.span.end_line)]
    for expressions in groups:
        for expression in expressions:
            span = expression.span
            if expression.node != "Name" or not first <= span.line <= last:
                continue
            text = describe(expression.value)
            if text and _is_target(facts, span):
                found[span.end_line, span.end_column] = Hint(span.end_line, span.end_column, shorten(f": {text}"), text)
    return [found[place] for place in sorted(found)]


def _is_target(facts: FileFacts, span) -> bool:
    """The name is bound here by an assignment, alone or in a tuple."""
    node = facts.module.node_at(span.line, span.column)
    parent = facts.module.parent(node) if node is not None else None
    while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
        node, parent = parent, facts.module.parent(parent)
    return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.AnnAssign) and parent.target is node)
