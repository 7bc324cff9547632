"""Findings of a definition that does not parse at the moment were made from its last good text; here they find their place in the present one.

A finding whose line still reads the same stays, moved by the lines that were added above it; the others wait until the
definition can be read again. So nothing flashes while someone types.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic
from cuvil.source import Span

if TYPE_CHECKING:
    from cuvil.cst import Definition
    from cuvil.frontends.python.facts import FileFacts


def in_present_text(facts: FileFacts, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    stale = [d for d in facts.module.definitions if d.parsed and d.stale]
    for diagnostic in diagnostics:
        line = diagnostic.span.line
        definition = next((d for d in stale if d.first <= line <= d.first + d.tree.text.count("\n")), None)
        if definition is None or diagnostic.name == "syntax-error":
            yield diagnostic
        elif (moved := _moved(definition, diagnostic.span)) is not None:
            yield replace(diagnostic, span=moved, fix=None)         # an edit of the old text would fall on the new


def _moved(definition: Definition, span: Span) -> Span | None:
    old, new = definition.tree.text.split("\n"), definition.text.split("\n")
    first, last = span.line - definition.first, span.end_line - definition.first
    for shift in (0, len(new) - len(old)):
        if 0 <= first + shift and last + shift < len(new) and old[first:last + 1] == new[first + shift:last + shift + 1]:
            return replace(span, line=span.line + shift, end_line=span.end_line + shift)
    return None
