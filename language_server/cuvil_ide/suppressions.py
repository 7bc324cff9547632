"""Comments that silence a finding, and the finding about those that silence nothing.

    x = a - b          # noqa: CUV108
    x = a - b          # cuvil: ignore[outer-broadcast] pairwise on purpose
    # cuvil: ignore[outer-broadcast]           alone on its line: for the next statement
    # cuvil: file-ignore[format-of-tensor]     for the whole file

A comment must name its rules, by code or name; a bare `# noqa` silences nothing of ours.
"""
from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Source, Span

_MARK = re.compile(r"#\s*(?:noqa:\s*(?P<codes>[A-Za-z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)|"
                   r"cuvil:\s*(?P<scope>ignore|file-ignore)\[(?P<names>[^\]]*)\])", re.IGNORECASE)
_LIKELY = re.compile(r"^[^#\n]*#.*(?:noqa|cuvil:)", re.IGNORECASE | re.MULTILINE)      # once for each line, however many # it has


@dataclass
class Suppression:
    """One rule named in one comment. first, last: the lines it covers. used: it silenced something."""

    rule: str
    span: Span
    first: int
    last: int
    whole: Span                                    # the comment's mark, taken out when no rule in it is of use
    alone: bool                                    # the comment names no other rule
    flake8: bool
    used: bool = field(default=False)


def suppressions(source: Source) -> list[Suppression]:
    """All of the file. Costs one search where there are none."""
    if not _LIKELY.search(source.text):
        return []
    return [found for line, column, comment in _comments(source) for found in _read(source, line, column, comment)]


def apply(diagnostics: Iterable[Diagnostic], found: list[Suppression]) -> list[Diagnostic]:
    """The diagnostics that no comment silences; marks the comments that silenced one as used."""
    kept = []
    for diagnostic in diagnostics:
        covering = [s for s in found if s.rule in (diagnostic.code, diagnostic.name)
                    and s.first <= diagnostic.span.end_line and diagnostic.span.line <= s.last]
        for suppression in covering:
            suppression.used = True
        if not covering:
            kept.append(diagnostic)
    return kept


def removal(source: Source, suppression: Suppression) -> Fix:
    """Take the rule, or the whole comment if it names only this one, out of the text."""
    if not suppression.alone:
        return Fix("safe", f"Remove {suppression.rule} from the comment", (Edit(suppression.span, ""),))
    line = source.line(suppression.whole.line)
    before, after = line[:suppression.whole.column], line[suppression.whole.end_column:]
    start = len(before.rstrip()) if not after.strip() else suppression.whole.column
    span = Span(source.path, suppression.whole.line, start, suppression.whole.line, suppression.whole.end_column)
    if not before.strip() and not after.strip():                 # a line of its own goes as a whole
        span = Span(source.path, suppression.whole.line, 0, suppression.whole.line + 1, 0)
    return Fix("safe", "Remove the unused suppression", (Edit(span, ""),))


def _comments(source: Source) -> list[tuple[int, int, str]]:
    """(line, column, text) of each comment that may hold a mark; strings that look like one are told apart by the tokenizer."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT and _LIKELY.search(token.string):
                found.append((*token.start, token.string))
    except (tokenize.TokenError, SyntaxError):
        # Broken code is normal while typing: below the place where the tokenizer gave up, any line with a mark counts.
        last = found[-1][0] if found else 0
        for number in range(last + 1, len(source.index) + 1):
            if mark := _LIKELY.search(source.line(number)):
                found.append((number, mark.start(), source.line(number)[mark.start():]))
    return found


def _read(source: Source, line: int, column: int, comment: str) -> Iterable[Suppression]:
    for mark in _MARK.finditer(comment):
        flake8 = mark["codes"] is not None
        listed, offset = (mark["codes"], mark.start("codes")) if flake8 else (mark["names"], mark.start("names"))
        first, last = _covered(source, line, column, whole_file=mark["scope"] == "file-ignore")
        rules = [(m.group(), m.start()) for m in re.finditer(r"[^\s,]+", listed)]
        if flake8:
            others = len(rules)
            rules = [(rule.upper(), start) for rule, start in rules if rule.upper().startswith("CUV")]
        else:
            others = len(rules)
        whole = Span(source.path, line, column + mark.start(), line, column + mark.end())
        for i, (rule, start) in enumerate(rules):
            end = start + len(rule)
            if others > 1:                                       # the comma goes with its rule
                tail = re.match(r"[\s,]*", listed[end:]).end()
                end += tail
                if tail == 0 and start:
                    start = len(listed[:start].rstrip(", "))
            span = Span(source.path, line, column + offset + start, line, column + offset + end)
            yield Suppression(rule, span, first, last, whole, others == 1, flake8)


def _covered(source: Source, line: int, column: int, whole_file: bool) -> tuple[int, int]:
    if whole_file:
        return 1, len(source.index)
    if source.line(line)[:column].strip():
        return line, line
    following = line + 1
    while following <= len(source.index) and source.line(following).lstrip()[:1] in ("", "#"):
        following += 1
    return following, following
