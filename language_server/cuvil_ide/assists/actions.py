"""What can be done about the findings of a piece of text: their fixes, a comment that silences one, and all safe fixes at once."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.diagnostics import Diagnostic
from cuvil.source import Edit, Source, Span, apply_edits

from ..suppressions import suppressions

QUICKFIX, FIX_ALL = "quickfix", "source.fixAll.cuvil"
MARKER = "# cuvil: ignore["
LINES = 8                                                  # of a finding over many lines, so many are tried for a comment
CAUTION = "This may change results: it is probably what was meant, but not proved to be the same."


@dataclass(frozen=True)
class Action:
    """diagnostics: those it answers. preferred: safe, and what most people would do. caution: what the user must agree to first."""

    title: str
    kind: str
    edits: tuple[Edit, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    preferred: bool = False
    caution: str = ""


def actions(source: Source, diagnostics: Sequence[Diagnostic], span: Span) -> list[Action]:
    """For the lines that the span touches. A display fix is words, not an action; it is in the finding's message."""
    here = [d for d in diagnostics if d.span.path == source.path and d.span.line <= span.end_line and span.line <= d.span.end_line]
    found = [Action(d.fix.title, QUICKFIX, d.fix.edits, (d,), preferred=d.fix.applicability == "safe",
                    caution="" if d.fix.applicability == "safe" else CAUTION)
             for d in here if d.fix is not None and d.fix.applicability != "display"]
    found += [Action(f"Silence {d.name} on this line", QUICKFIX, (edit,), (d,))
              for d in here if d.code.startswith("CUV") and d.name != "unused-suppression" and d.code > "CUV099" and (edit := suppression(source, d))]
    everything = fix_all(diagnostics)
    if everything:
        found.append(Action("Fix all safe findings (Cuvil)", FIX_ALL, everything))
    return found


def fix_all(diagnostics: Sequence[Diagnostic]) -> tuple[Edit, ...]:
    """The edits of all safe fixes; of two that overlap, the first in the text. A second round takes the other."""
    edits: list[Edit] = []
    taken: list[Span] = []
    for diagnostic in diagnostics:
        if diagnostic.fix is None or diagnostic.fix.applicability != "safe":
            continue
        spans = [e.span for e in diagnostic.fix.edits]
        if any(_overlap(a, b) for a in spans for b in taken):
            continue
        taken += spans
        edits += diagnostic.fix.edits
    return tuple(edits)


def suppression(source: Source, diagnostic: Diagnostic) -> Edit | None:
    """A comment at the end of one of the finding's lines, or one more name in the comment that is already there. None when each of these
    lines ends within a string, or goes on behind a backslash."""
    for number in range(diagnostic.span.line, min(diagnostic.span.end_line, diagnostic.span.line + LINES) + 1):
        line = source.line(number)
        start = line.find(MARKER)
        column, text = (start + len(MARKER), f"{diagnostic.name}, ") if start >= 0 else (len(line.rstrip()), f"  {MARKER}{diagnostic.name}]")
        edit = Edit(Span(source.path, number, column, number, column if start >= 0 else len(line)), text)
        after = Source(source.path, apply_edits(source, [edit]))
        if not line.rstrip().endswith("\\") and any(s.rule == diagnostic.name and s.whole.line == number for s in suppressions(after)):
            return edit
    return None


def _overlap(a: Span, b: Span) -> bool:
    return (a.line, a.column) < (b.end_line, b.end_column) and (b.line, b.column) < (a.end_line, a.end_column)
