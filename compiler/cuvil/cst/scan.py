"""Splits a file into definitions without parsing it: functions and methods, class headers, and single statements.

A regular expression skips strings, comments and bracketed text; what is left are logical lines with their indents, and
indents say what belongs together. Broken code is normal input: a bracket or string that is never closed ends at the next
line that can only begin a definition, so one broken function never hides the others. Nothing is understood here beyond
`def`, `class`, `@` and the words that continue a compound statement.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..source import LineIndex

_TOKEN = re.compile(
    r'''(?P<triple>"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|\'\'\'[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*\'\'\')'''
    r'''|(?P<open_triple>"""|\'\'\')'''
    r'''|(?P<string>"[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*"|'[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*')'''
    r'''|(?P<open_string>["'][^\r\n]*)'''
    r'''|(?P<comment>\#[^\r\n]*)'''
    r'''|(?P<open>[(\[{])|(?P<close>[)\]}])'''
    r'''|(?P<joined>\\(?:\r\n|\r|\n))'''
    r'''|(?P<newline>(?:\r\n|\r|\n)[ \t\f]*)''', re.DOTALL)

_BEGINS = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+\w+[ \t]*[(:\[]|import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b")
_SWALLOWED = re.compile(r"[\r\n]([ \t]*)(?:async[ \t]+def|def|class)[ \t]+\w+[ \t]*[(:]")
_WORD = re.compile(r"async[ \t]+def[ \t]+(?P<async_name>\w+)|(?P<word>def|class)[ \t]+(?P<name>\w+)"
                   r"|(?P<clause>else|elif|except|finally)\b|(?P<decorator>@)")


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical line: lines first to last (from 1), the column its text starts at, and its offsets in the text. open: a bracket is not closed."""

    first: int
    last: int
    indent: int
    start: int
    end: int
    open: bool = False


@dataclass(slots=True)
class Piece:
    """Lines first to last of the file that are parsed as one.

    kind    "function" (its whole body), "class" (decorators and header only), "statement" (with its indented blocks)
    name    qualified: "Block.forward"; of a statement, that of the class it stands in, "" at module level
    header  the line of `def` or `class`
    body    class only: the indent of what stands in it, or None when it is written on one line
    open    a bracket is not closed: it ends only because a definition begins below
    """

    kind: str
    name: str
    owner: str
    indent: int
    first: int
    header: int
    last: int
    body: int | None = None
    open: bool = False

    def moved(self, lines: int) -> Piece:
        return replace(self, first=self.first + lines, header=self.header + lines, last=self.last + lines)


def split(text: str, index: LineIndex) -> tuple[list[Piece], bool]:
    """The pieces of a file in order, and whether all strings end. Lines in no piece are blank or comments."""
    lines, left_open, suspects = _scan(text, index, ())
    return _pieces(text, _cut_short(text, index, lines, suspects) if left_open == "string" else lines), left_open != "string"


def alone(text: str, below: str = "def _(") -> Piece | None:
    """The piece that a text is; None when it is several, or may reach into what stands below it. A piece reads the same in its file as alone."""
    lines, left_open, _ = _scan(text, LineIndex(text), ())
    pieces = _pieces(text, lines)
    if len(pieces) != 1 or left_open == "string" or text.endswith("\\") or pieces[0].kind == "statement" and text.lstrip().startswith("@"):
        return None
    return pieces[0] if not left_open or begins(below.lstrip()) else None


def begins(text: str, position: int = 0) -> bool:
    """Whether a line can only begin a definition or an import, so that what is open above it ends."""
    return _BEGINS.match(text, position) is not None


def _pieces(text: str, lines: Sequence[Logical]) -> list[Piece]:
    pieces: list[Piece] = []
    classes: list[Piece] = []
    decorators: Logical | None = None
    for line in lines:
        current = pieces[-1] if pieces else None
        while classes and line.indent <= classes[-1].indent:
            classes.pop()
        word = _WORD.match(text, line.start)
        clause = word is not None and word["clause"] is not None
        if current is not None and decorators is None and current.kind != "class":
            if line.indent > current.indent or (clause and line.indent == current.indent and current.kind == "statement"):
                current.last, current.open = line.last, line.open
                continue
        if word is not None and word["decorator"]:
            decorators = decorators or line
            continue
        owner = classes[-1].name if classes else ""
        first = decorators.first if decorators is not None and decorators.indent == line.indent else line.first
        decorators = None
        if classes and classes[-1].body is None:
            classes[-1].body = line.indent
        name = word and (word["async_name"] or word["name"])
        if name:
            kind = "class" if word["word"] == "class" else "function"
            piece = Piece(kind, f"{owner}.{name}" if owner else name, owner, line.indent, first, line.first, line.last, open=line.open)
            pieces.append(piece)
            if kind == "class":
                classes.append(piece)
        else:
            pieces.append(Piece("statement", owner, owner, line.indent, first, line.first, line.last, open=line.open))
    if decorators is not None:
        owner = classes[-1].name if classes else ""
        pieces.append(Piece("statement", owner, owner, decorators.indent, decorators.first, decorators.first, decorators.last))
    return pieces


def logical_lines(text: str, index: LineIndex) -> list[Logical]:
    """The logical lines of a text. When a string never ends, the string that swallowed definitions is looked for and cut short."""
    lines, left_open, suspects = _scan(text, index, ())
    return _cut_short(text, index, lines, suspects) if left_open == "string" else lines


def _cut_short(text: str, index: LineIndex, lines: list[Logical], suspects: Sequence[int]) -> list[Logical]:
    for suspect in suspects[:8]:
        attempt, left_open, _ = _scan(text, index, (suspect,))
        if left_open != "string":
            return attempt
    return _scan(text, index, suspects)[0] if suspects else lines


def _scan(text: str, index: LineIndex, cut: Sequence[int]) -> tuple[list[Logical], str, list[int]]:
    """(lines, what is left open at some place: a triple-quoted "string", else a "bracket", else "", where those strings start that hold
    what looks like a definition around them). Strings that start at one of `cut` end with their line, and so does one that is left open."""
    suspects: list[int] = []
    lines: list[Logical] = []
    left_open, depth, position = "", 0, 0
    start = _significant(text, re.match(r"[ \t\f]*", text).end())
    indent = max(start, 0)
    search = _TOKEN.search
    while (match := search(text, position)) is not None:
        position, kind = match.end(), match.lastgroup
        if kind == "newline":
            if depth:
                if not begins(text, position):
                    continue
                left_open = left_open or "bracket"
            if start >= 0:
                lines.append(_logical(index, start, match.start(), depth > 0))
            depth, start = 0, _significant(text, position)
            if start >= 0:
                indent = start - match.start() - (2 if text.startswith("\r\n", match.start()) else 1)
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "open_triple":
            left_open, position = "string", _line_end(text, position)
        elif kind == "triple":
            swallowed = _SWALLOWED.search(text, match.start(), position)
            if swallowed is not None and len(swallowed[1]) <= indent:
                suspects.append(match.start())
                if match.start() in cut:
                    position = _line_end(text, match.start())
    if start >= 0:
        lines.append(_logical(index, start, len(text), depth > 0))
    return lines, left_open or ("bracket" if depth else ""), suspects


def _significant(text: str, position: int) -> int:
    """The position if code stands there, -1 before a comment or the end of a line."""
    return -1 if text[position:position + 1] in ("", "#", "\r", "\n") else position


def _line_end(text: str, position: int) -> int:
    found = re.compile(r"[\r\n]|\Z").search(text, position)
    return found.start()


def _logical(index: LineIndex, start: int, end: int, open: bool) -> Logical:
    first, column = index.position(start)
    last, _ = index.position(end)
    prefix = index.text[start - column:start]
    return Logical(first, last, len(prefix.expandtabs()) if "\t" in prefix else column, start, end, open)
