"""Places in a definition that does not parse at the moment.

Its facts are those of its last good text. What stands on a line that still reads the same is shown there, moved by the lines
that were added above it; the rest waits until the definition can be read again. So nothing flashes while someone types.
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


def present(definition: Definition, span: Span) -> Span | None:
    """Where the lines of a span of the last good text are now; None if they were changed."""
    if not definition.stale:
        return span
    old, new = definition.tree.text.split("\n"), definition.text.split("\n")
    first, last = span.line - definition.first, span.end_line - definition.first
    for shift in (0, len(new) - len(old)):
        if 0 <= first + shift and last + shift < len(new) and old[first:last + 1] == new[first + shift:last + shift + 1]:
            return span.lower(shift)
    return None


def present_findings(facts: FileFacts, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    stale = [d for d in facts.module.definitions if d.parsed and d.stale]
    for diagnostic in diagnostics:
        line = diagnostic.span.line
        definition = next((d for d in stale if d.first <= line <= d.first + d.tree.text.count("\n")), None)
        if definition is None or diagnostic.name == "syntax-error":
            yield diagnostic
        elif (moved := present(definition, diagnostic.span)) is not None:
            evidence = tuple(replace(e, span=place) for e in diagnostic.evidence if (place := _there(definition, e.span)) is not None)
            fix = diagnostic.fix if diagnostic.fix and all(_there(definition, e.span) == e.span for e in diagnostic.fix.edits) else None
            yield replace(diagnostic, span=moved, evidence=evidence, fix=fix)


def _there(definition: Definition, span: Span) -> Span | None:
    """Where a span is now that may also be of other definitions."""
    return present(definition, span) if definition.first <= span.line <= definition.first + definition.tree.text.count("\n") else span
