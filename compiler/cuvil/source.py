"""Text and places in it: what every other layer points back to.

Lines are counted from 1 and columns from 0 in code points, as Python's own parsers do. The other conventions
(1-based columns in JSON, UTF-16 or UTF-8 units in LSP) exist only at the doors, and are converted here.
This module knows nothing of syntax.
"""
from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """A piece of a file, from (line, column) up to but not including (end_line, end_column)."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Span) and self.line == other.line and self.path == other.path and self._end == other._end \
            and self.column == other.column

    def __hash__(self) -> int:
        return hash((self.path, self.line, self.column, self.end_line, self.end_column))

    def __lt__(self, other: Span) -> bool:
        return (self.path, self.line, self.column, self._end) < (other.path, other.line, other.column, other._end)

    @property
    def _end(self) -> tuple[int, int]:
        return self.end_line, self.end_column

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column + 1}"

    def touches(self, line: int) -> bool:
        return self.line <= line <= self.end_line

    def contains(self, line: int, column: int) -> bool:
        return (self.line, self.column) <= (line, column) <= (self.end_line, self.end_column)

    def encloses(self, other: Span) -> bool:
        return (self.path == other.path
                and (self.line, self.column) <= (other.line, other.column)
                and (other.end_line, other.end_column) <= (self.end_line, self.end_column))

    def lower(self, lines: int) -> Span:
        """The same place after so many lines were put above it."""
        return Span(self.path, self.line + lines, self.column, self.end_line + lines, self.end_column)

    def of(self, path: str) -> Span:
        """The same lines of a file that is called so."""
        return Span(path, self.line, self.column, self.end_line, self.end_column)

    def to_json(self) -> dict:
        """The range as people count: lines and columns from 1."""
        return {"start": {"line": self.line, "column": self.column + 1},
                "end": {"line": self.end_line, "column": self.end_column + 1}}


@dataclass(frozen=True)
class Source:
    """One file's text as it is now, in an editor or on disk."""

    path: str
    text: str

    @cached_property
    def index(self) -> LineIndex:
        return LineIndex(self.text)

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets (code points from the start of the text)."""
        line, column = self.index.position(start)
        end_line, end_column = self.index.position(end)
        return Span(self.path, line, column, end_line, end_column)

    def slice(self, span: Span) -> str:
        return self.text[self.index.offset(span.line, span.column):self.index.offset(span.end_line, span.end_column)]

    def line(self, number: int) -> str:
        return self.index.line(number)


class LineIndex:
    """Offsets to lines and back. A line ends at LF, CR LF or CR, as in Python source."""

    def __init__(self, text: str) -> None:
        self.text = text
        starts, i, n = [0], 0, len(text)
        if "\r" not in text:                       # nearly every file; str.find is far quicker than a loop
            while (i := text.find("\n", i) + 1) > 0:
                starts.append(i)
        else:
            while i < n:
                if text[i] == "\r":
                    i += 2 if text[i + 1:i + 2] == "\n" else 1
                    starts.append(i)
                elif text[i] == "\n":
                    i += 1
                    starts.append(i)
                else:
                    i += 1
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts)

    def position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1]

    def offset(self, line: int, column: int) -> int:
        """The offset of a place; a place beyond the end of its line or the text is clamped."""
        if line > len(self.starts):
            return len(self.text)
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return min(self.starts[max(line, 1) - 1] + max(column, 0), end)

    def line(self, number: int) -> str:
        """The text of a line, without its line end."""
        if not 1 <= number <= len(self.starts):
            return ""
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1]:end].rstrip("\r\n")

    def to_units(self, line: int, column: int, encoding: str) -> int:
        """A column in code points as a count of UTF-8 or UTF-16 units."""
        prefix = self.line(line)[:column]
        return _units(prefix, encoding) + (column - len(prefix))

    def from_units(self, line: int, units: int, encoding: str) -> int:
        """The inverse of to_units; units inside one character are taken as its start."""
        text, count = self.line(line), 0
        if text.isascii() or encoding == "utf-32":
            return min(units, len(text))
        for column, character in enumerate(text):
            if count >= units:
                return column
            count += _units(character, encoding)
            if count > units:
                return column
        return len(text)


def _units(text: str, encoding: str) -> int:
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class Edit:
    span: Span
    text: str


def apply_edits(source: Source, edits: tuple[Edit, ...] | list[Edit]) -> str:
    """The text after the edits, which must not overlap; ValueError if they do."""
    pieces, position = [], 0
    for edit in sorted(edits, key=lambda e: e.span):
        start = source.index.offset(edit.span.line, edit.span.column)
        if start < position:
            raise ValueError(f"edits overlap at {edit.span}")
        pieces += source.text[position:start], edit.text
        position = source.index.offset(edit.span.end_line, edit.span.end_column)
    return "".join(pieces) + source.text[position:]
