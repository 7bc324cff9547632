"""Findings as people read them: the line, the place marked, the facts that prove it, the fix.

    warning[CUV108]: (N, 1) and (N,) broadcast to (N, N)
      --> loss.py:12:8
       |
    12 | loss = scores - labels
       |        ^^^^^^^^^^^^^^^
     9 | labels = batch["y"]
       | ------ f32[N]
       |
       = fix (safe): squeeze the last axis first
       = likely; `cuvil rule CUV108` explains outer-broadcast
"""
from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from cuvil.diagnostics import Diagnostic
from cuvil.source import Source, Span

from ..findings import Findings
from ..terminal import paint, plural

COLOURS = {"error": "red", "warning": "yellow", "performance": "magenta", "info": "cyan"}
WIDEST = 160                                 # longer lines are cut around the mark: a minified file has lines of a megabyte


def render(findings: Findings, colour: bool = False) -> str:
    frames = ["\n".join(frame(d, findings.read, colour)) for d in sorted(
        [*findings.problems, *findings.diagnostics], key=lambda d: (d.span.path, d.span))]
    return "\n\n".join([*frames, closing(findings)])


def frame(diagnostic: Diagnostic, read, colour: bool = False) -> Iterator[str]:
    d, tint = diagnostic, COLOURS[diagnostic.severity]
    first, *more = d.message.splitlines() or [""]
    yield f"{paint(f'{d.severity}[{d.code}]', tint, colour)}: {paint(first, 'bold', colour)}"
    yield from (f"  {line}" for line in more)
    lines = [d.span.line, *(e.span.line for e in d.evidence)]
    gutter = len(str(max(lines)))
    bar = " " * gutter + " |"
    yield f"{' ' * gutter}--> {d.span}"
    yield from _excerpt(read(d.span.path), d.span, "^", "", gutter, tint, colour)
    path = d.span.path
    for fact in d.evidence:
        if fact.span.path != path:
            path = fact.span.path
            yield f"{' ' * gutter}::: {fact.span}"
        if not (marked := list(_excerpt(read(path), fact.span, "-", fact.text, gutter, "cyan", colour))):
            marked = [f"{' ' * gutter} = {fact.span}: {fact.text}"]
        yield from marked[1:] or marked
    if d.fix:
        yield bar
        yield f"{' ' * gutter} = {paint('fix', 'green', colour)} ({d.fix.applicability}): {d.fix.title}"
        yield from (f"{bar}   {shown}" for shown in _replacements(d))
    if d.name not in ("unreadable-file", "refused", "syntax-error"):
        yield f"{' ' * gutter} = {d.certainty}; `cuvil rule {d.code}` explains {d.name}"


def _excerpt(source: Source | None, span: Span, mark: str, label: str, gutter: int, tint: str, colour: bool) -> Iterator[str]:
    if source is None or not (text := source.line(span.line)).strip():
        return
    start = min(span.column, len(text))
    end = min(max(span.end_column if span.end_line == span.line else len(text), start + 1), max(len(text), start + 1))
    cut = max(0, start - WIDEST // 2) if len(text) > WIDEST else 0
    shown = text[cut:cut + WIDEST].expandtabs(4)
    before = _columns(text[cut:start].expandtabs(4))
    width = max(1, _columns(text[cut:min(end, cut + WIDEST)].expandtabs(4)) - before)
    yield " " * gutter + " |"
    yield f"{span.line:>{gutter}} | {shown}"
    yield f"{' ' * gutter} | {' ' * before}{paint(mark * width + (f' {label}' if label else ''), tint, colour)}"


def _replacements(diagnostic: Diagnostic) -> Iterator[str]:
    for edit in diagnostic.fix.edits[:4]:
        text = edit.text if len(edit.text) <= WIDEST else edit.text[:WIDEST] + "…"
        yield f"{edit.span.line}:{edit.span.column + 1}: " + (f"write `{text}`" if text.strip() else "delete")


def _columns(text: str) -> int:
    """Width on a terminal: CJK and emoji take two cells, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def closing(findings: Findings) -> str:
    s = findings.summary()
    if not s["findings"] and not s["unreadable"]:
        return f"No findings in {plural(s['files'], 'file')}."
    parts = [f"{s['certainty'][c]} {c}" for c in ("proved", "likely", "hint") if c in s["certainty"]]
    text = f"{plural(s['findings'], 'finding')}" + (f" ({', '.join(parts)})" if parts else "") + f" in {plural(s['files'], 'file')}"
    if s["unreadable"]:
        text += f"; {plural(s['unreadable'], 'file')} could not be checked"
    if s["fixable"]:
        text += f". `--fix` repairs {s['fixable']}"
    return text + "."
