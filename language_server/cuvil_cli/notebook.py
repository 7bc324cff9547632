"""Jupyter notebooks: the code cells are one module, as the kernel runs them from top to bottom; findings are told by cell.

A place in a notebook is a place in a cell: the path "train.ipynb:cell 3", with lines of that cell. Code cells are counted from 1. What only
IPython understands (`%magic`, `!shell`, `help?`) is replaced by a statement of which nothing is known; lines and cells stay where they are.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError, Diagnostic, Evidence, Fix
from cuvil.source import Edit, Source, Span

from .findings import FileResult

if TYPE_CHECKING:
    from .check import Rules

SUFFIX = ".ipynb"
PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3")      # cell magics whose cell is still Python
UNKNOWN = "get_ipython()"                                                      # what IPython itself makes of such lines

_MARK = ":cell "
_LINE = re.compile(r"(?P<indent>\s*)(?:[%!]|\?{1,2}\w|[\w.]+\?{1,2}\s*$)")
_ASSIGNED = re.compile(r"(?P<target>\s*[\w.,\s]+=\s*)[%!]")
_TOKENS = re.compile(r"'''|\"\"\"|#.*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[(\[{]|[)\]}]")


@dataclass(frozen=True)
class Notebook:
    """path: of the file. cells: the text of each code cell. starts: the line of the module on which each begins. masked: its lines that
    stand for others."""

    path: str
    cells: tuple[str, ...]
    starts: tuple[int, ...]
    module: Source
    masked: frozenset[int]

    def place(self, span: Span) -> Span:
        """A span of the module in its cell; what reaches beyond the cell ends with it."""
        if span.path != self.path or not self.cells:
            return span
        from bisect import bisect_right
        cell = max(0, bisect_right(self.starts, span.line) - 1)
        lines = self.cells[cell].split("\n")
        first, last = self.starts[cell], self.starts[cell] + len(lines) - 1
        end_line, end_column = (span.end_line, span.end_column) if span.end_line <= last else (last, len(lines[-1]))
        return Span(f"{self.path}{_MARK}{cell + 1}", span.line - first + 1, span.column, end_line - first + 1, end_column)

    def finding(self, d: Diagnostic) -> Diagnostic:
        return replace(d, span=self.place(d.span), evidence=tuple(Evidence(self.place(e.span), e.text) for e in d.evidence),
                       fix=d.fix and self._fix(d.fix))

    def _fix(self, fix: Fix) -> Fix | None:
        """In cells; None when it would change a line that stands for another."""
        if any(line in self.masked for e in fix.edits for line in range(e.span.line, e.span.end_line + (e.span.end_column > 0))):
            return None
        return replace(fix, edits=tuple(Edit(self.place(e.span), e.text) for e in fix.edits))


def read(source: Source) -> Notebook:
    """The code cells of a notebook's text; CuvilError when it is none. One of another language has no cells."""
    cells = [_text(cell) for cell in _code(_document(source))]
    starts, lines, masked = [], [], set()
    for cell in cells:
        starts.append(len(lines) + 1)
        for written, plain in zip(cell.split("\n"), _plain(cell.split("\n"))):
            lines.append(plain)
            if plain != written:
                masked.add(len(lines))
    return Notebook(source.path, tuple(cells), tuple(starts), Source(source.path, "\n".join(lines) + "\n"), frozenset(masked))


def check(source: Source, rules: Rules) -> FileResult:
    """As check.check_text, of a notebook."""
    from .check import check_text
    notebook = read(source)
    result = check_text(notebook.module, rules)
    return replace(result, diagnostics=tuple(map(notebook.finding, result.diagnostics)))


def repair(source: Source, diagnostics: Iterable[Diagnostic], unsafe: bool) -> tuple[Source, list[Diagnostic]]:
    """As repair.repair: one round of fixes in each cell."""
    from . import repair as texts
    diagnostics, document, taken = list(diagnostics), _document(source), []
    for number, cell in enumerate(_code(document), 1):
        before = Source(f"{source.path}{_MARK}{number}", _text(cell))
        after, fixed = texts.repair(before, diagnostics, unsafe)
        if fixed:
            taken += fixed
            cell["source"] = after.text if isinstance(cell["source"], str) else after.text.splitlines(keepends=True)
    indent = re.match(r"\{\s*\n([ \t]+)", source.text)
    text = json.dumps(document, ensure_ascii=False, indent=len(indent[1]) if indent else None)
    return Source(source.path, text + ("\n" if source.text.endswith("\n") else "")), taken


def split(path: str) -> tuple[str, int]:
    """("train.ipynb", 3) of "train.ipynb:cell 3"; 0 for a path that names no cell."""
    file, mark, number = path.rpartition(_MARK)
    return (file, int(number)) if mark and file.endswith(SUFFIX) and number.isdigit() else (path, 0)


def _document(source: Source) -> dict:
    try:
        document = json.loads(source.text)
        if isinstance(document["cells"], list):
            return document
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise CuvilError("not a notebook", Span(source.path, 1, 0, 1, 0), "JSON of Jupyter's format 4, with a list of cells", code="CUV004")


def _code(document: dict) -> list[dict]:
    about = document.get("metadata")
    about = about if isinstance(about, dict) else {}
    languages = [each.get(key) for each, key in ((about.get("language_info"), "name"), (about.get("kernelspec"), "language")) if isinstance(each, dict)]
    if not all(language in (None, "python", "ipython") for language in languages):
        return []
    return [cell for cell in document["cells"] if isinstance(cell, dict) and cell.get("cell_type") == "code" and "source" in cell]


def _text(cell: dict) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(map(str, source)) if isinstance(source, list) else ""


def _plain(lines: list[str]) -> list[str]:
    """The lines of a cell as Python. Only where a statement may begin is a line a magic: not inside brackets or strings."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and first[2:].split(" ")[0] not in PYTHON_CELLS:
        return ["" for _ in lines]
    plain, depth, quote, joined = [], 0, "", False
    for line in lines:
        if not (depth or quote or joined):
            if match := _LINE.match(line):
                line = match["indent"] + UNKNOWN
            elif match := _ASSIGNED.match(line):
                line = match["target"] + UNKNOWN
        plain.append(line)
        at = 0
        while at < len(line):
            if quote:
                end = line.find(quote, at)
                quote, at = ("", end + 3) if end >= 0 else (quote, len(line))
            elif token := _TOKENS.search(line, at):
                at = token.end()
                if token[0] in ("'''", '"""'):
                    quote = token[0]
                elif len(token[0]) == 1:
                    depth = max(0, depth + (1 if token[0] in "([{" else -1))
            else:
                break
        joined = not quote and line.endswith("\\")
    return plain
