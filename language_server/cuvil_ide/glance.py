"""Findings of a text that was edited a moment ago, before the whole of it is looked at again.

What was found in the text before stays where its lines still read the same; the definitions that were typed are checked anew. What an edit
does to the code that calls them, and to findings of rules that have to see the whole file, is seen when the typing pauses.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic
from cuvil.source import Edit, Source, Span

from . import lints

if TYPE_CHECKING:
    from cuvil.frontends.python import Glance


def at_a_glance(last: lints.Findings | None, glance: Glance, rules: Iterable[lints.Rule]) -> lints.Findings:
    facts, rules, fresh = glance.facts, list(rules), glance.fresh
    moves = Moves(last.source, facts.source) if last is not None else None
    if glance.complete and not fresh:                   # somebody who asked for facts had the whole text walked
        fresh = tuple(d for d in facts.module.definitions if moves is None or moves.touch(d.first, d.last))
    places, owners = {(definition.name, definition.first) for definition in fresh}, {definition.owner for definition in fresh}
    part = replace(facts, functions=tuple(f for f in facts.functions if (f.name, f.span.line) in places), module=facts.module.part(fresh),
                   classes=tuple(c for c in facts.classes if c.name in owners))
    if all(definition.kind == "function" for definition in fresh):
        part = replace(part, expressions=(), problems=(), calls=(), writes=(), branches=(), assigns=())
    anew = {rule.name for rule in rules if rule.needs == "text"}
    found = lints.find(part, (rule for rule in rules if rule.needs != "file" or glance.complete and last is None))
    if moves is None:
        return lints.Findings(facts.source, tuple(found))
    told = {(d.code, d.span) for d in found}
    before = (d for d in moves.diagnostics(last.found) if d.name not in anew and (d.code, d.span) not in told)
    return lints.Findings(facts.source, (*found, *before), tuple(moves.diagnostics(last.unused)))


class Moves:
    """Where the lines of a text are in the next one, if they still read the same."""

    def __init__(self, old: Source, new: Source) -> None:
        self.path = old.path
        a, b = old.text.split("\n"), new.text.split("\n")
        self.above = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        below = next((i for i, (x, y) in enumerate(zip(reversed(a), reversed(b))) if x != y), min(len(a), len(b)))
        self.below, self.lines = len(a) - min(below, min(len(a), len(b)) - self.above), len(b) - len(a)

    def touch(self, first: int, last: int) -> bool:
        """Whether lines of the new text are among those that changed, or next to some that went."""
        return last >= self.above and first <= self.below + self.lines + 1

    def span(self, span: Span) -> Span | None:
        if span.path != self.path or span.end_line <= self.above:
            return span
        return span.lower(self.lines) if span.line > self.below else None

    def diagnostics(self, found: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
        """Those on lines that still read the same, with as much of their evidence and their fix as is there."""
        for diagnostic in found:
            if (span := self.span(diagnostic.span)) is None:
                continue
            evidence = tuple(replace(e, span=moved) for e in diagnostic.evidence if (moved := self.span(e.span)) is not None)
            yield replace(diagnostic, span=span, evidence=evidence, fix=self._fix(diagnostic))

    def _fix(self, diagnostic: Diagnostic):
        if diagnostic.fix is None:
            return None
        edits = [(self.span(edit.span), edit.text) for edit in diagnostic.fix.edits]
        return replace(diagnostic.fix, edits=tuple(Edit(span, text) for span, text in edits)) if all(span for span, _ in edits) else None
