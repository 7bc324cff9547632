"""Applies fixes of findings to texts. Edits that touch what an earlier fix already changed wait for the next round."""
from __future__ import annotations

from collections.abc import Iterable

from cuvil.diagnostics import Diagnostic
from cuvil.source import Edit, Source, apply_edits

ROUNDS = 8                                   # a fix may make room for the next; more rounds than this are two rules at odds


def chosen(diagnostics: Iterable[Diagnostic], path: str, unsafe: bool) -> list[Diagnostic]:
    """The findings whose fixes can be made together in this file: in order, none overlapping one before it."""
    allowed = ("safe", "unsafe") if unsafe else ("safe",)
    taken: list[Diagnostic] = []
    done: list[Edit] = []
    for d in sorted(diagnostics, key=lambda d: d.span):
        if d.fix is None or d.fix.applicability not in allowed or not d.fix.edits or any(e.span.path != path for e in d.fix.edits):
            continue
        if any(_clash(edit, other) for edit in d.fix.edits for other in done[-64:]):
            continue
        taken.append(d)
        done += d.fix.edits
    return taken


def repair(source: Source, diagnostics: Iterable[Diagnostic], unsafe: bool = False) -> tuple[Source, list[Diagnostic]]:
    """The text with one round of fixes made, and the findings that were fixed."""
    taken = chosen(diagnostics, source.path, unsafe)
    edits = list(dict.fromkeys(edit for d in taken for edit in d.fix.edits))
    try:
        return Source(source.path, apply_edits(source, edits)), taken
    except ValueError:                       # far-apart fixes that overlap after all: make the first alone
        first = taken[:1]
        return Source(source.path, apply_edits(source, [e for d in first for e in d.fix.edits])), first


def _clash(a: Edit, b: Edit) -> bool:
    if a == b:
        return False
    a_start, a_end = (a.span.line, a.span.column), (a.span.end_line, a.span.end_column)
    b_start, b_end = (b.span.line, b.span.column), (b.span.end_line, b.span.end_column)
    return a_start < b_end and b_start < a_end or a_start == b_start
