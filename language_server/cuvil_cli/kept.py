"""Results of earlier runs, kept in the user's cache folder: a file is checked again only when something its findings hang on changed.

That is its content, the settings, Cuvil itself, and the *questions* its analysis asked of the workspace: what another file holds, which
file a module is. A kept result stands while every question has the same answer. All results of a folder are one store, read at the
start and written at the end of a run; the cache it lies in is bounded, and `cuvil cache clear` empties it.
"""
from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cuvil.artifact import cache
from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.places import Places
from cuvil.source import Edit, Span

from . import files
from .findings import FileResult

Question = tuple[str, ...] | tuple[str, str, int]        # (path,) or (dotted name, folder, level)

VERSION = 1
LIMIT = 64 << 20                             # bytes of one store; above it, only what this run used is kept
MOMENT = 0.1                                 # seconds that the times of files may be behind the clock


class Store:
    """rules: what the command line says of them, a part of the key. root: of the workspace."""

    def __init__(self, root: Path, rules: object) -> None:
        import cuvil_ide
        self._key = cache.key("lint", str(VERSION), cache.stamps(Path(cuvil_ide.__file__).parent), os.getcwd(), str(root), repr(rules))
        self._started = time.time()
        self._answers: dict[Question, str] = {}
        self._places = Places(root)
        self._questions: list[Question] = []
        self._ids: dict[Question, int] = {}
        self._entries: dict[str, list] = {}
        self._used: set[str] = set()
        self._changed = False
        self._read()

    def find(self, path: str, settings: str) -> FileResult | None:
        """The kept result of a file; None when there is none that still stands."""
        entry = self._entries.get(path)
        if entry is None or entry[0] != settings or entry[1] != self._answer((path,)):
            return None
        if entry[3] != self._digest(self._questions[i] for i in entry[2]):
            return None
        self._used.add(path)
        return FileResult(path, tuple(map(_diagnostic, entry[4])), None, entry[5], Counter(entry[6]), kept=True)

    def keep(self, result: FileResult, settings: str) -> None:
        """A fresh result. One that hangs on files which changed while this run went on is not kept."""
        questions = [tuple(question) for question in result.asked]
        content = self._answer((result.path,))
        if result.problem or not content or not all(self._settled(q[0]) for q in [(result.path,), *questions] if len(q) == 1):
            return
        self._entries[result.path] = [settings, content, [self._id(q) for q in questions], self._digest(questions),
                                      [_plain(d) for d in result.diagnostics], result.understood, dict(result.unknown)]
        self._used.add(result.path)
        self._changed = True

    def save(self) -> None:
        if not self._changed:
            return
        entries = {path: entry for path, entry in self._entries.items() if path in self._used or os.path.exists(path)}
        content = self._written(entries)
        if len(content) > LIMIT:
            content = self._written({path: entry for path, entry in entries.items() if path in self._used})
        if len(content) <= 2 * LIMIT:
            cache.keep(self._key, ".lint", content)

    def _written(self, entries: dict[str, list]) -> bytes:
        """The entries, and of the questions those that they ask."""
        asked = {i: n for n, i in enumerate(dict.fromkeys(i for entry in entries.values() for i in entry[2]))}
        renumbered = {path: [*entry[:2], [asked[i] for i in entry[2]], *entry[3:]] for path, entry in entries.items()}
        return json.dumps({"version": VERSION, "questions": [self._questions[i] for i in asked], "entries": renumbered},
                          separators=(",", ":")).encode("utf-8", "surrogatepass")

    def _read(self) -> None:
        file = cache.find(self._key, ".lint")
        try:
            document = json.loads(file.read_bytes()) if file else {}
            if document.get("version") == VERSION:
                self._questions = [tuple(question) for question in document["questions"]]
                self._ids = {question: i for i, question in enumerate(self._questions)}
                self._entries = document["entries"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):      # as if it were not there
            self._questions, self._ids, self._entries = [], {}, {}

    def _id(self, question: Question) -> int:
        if question not in self._ids:
            self._ids[question] = len(self._questions)
            self._questions.append(question)
        return self._ids[question]

    def _digest(self, questions: Iterable[Question]) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for question in questions:
            digest.update(f"{question}\0{self._answer(question)}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def _answer(self, question: Question) -> str:
        known = self._answers.get(question)
        if known is None:
            known = self._answers[question] = (self._places.place(*question) or "-") if len(question) == 3 else _content(question[0])
        return known

    def _settled(self, path: str) -> bool:
        try:
            return os.stat(path).st_mtime < self._started - MOMENT
        except OSError:
            return True


def _content(path: str) -> str:
    """The hash of a file; "" when it cannot be read, or is more than a file."""
    try:
        if os.path.isfile(path):
            with open(path, "rb") as stream:
                return hashlib.blake2b(stream.read(files.LIMIT + 1), digest_size=16).hexdigest()
    except (OSError, ValueError):
        pass
    return ""


def _plain(d: Diagnostic) -> list:
    fix = d.fix and [d.fix.applicability, d.fix.title, [[_place(e.span), e.text] for e in d.fix.edits]]
    return [d.code, d.name, d.kind, d.message, _place(d.span), d.certainty, d.severity, [[_place(e.span), e.text] for e in d.evidence], fix]


def _place(span: Span) -> list:
    return [span.path, span.line, span.column, span.end_line, span.end_column]


def _diagnostic(plain: list) -> Diagnostic:
    code, name, kind, message, span, certainty, severity, evidence, fix = plain
    return Diagnostic(code, name, kind, message, Span(*span), certainty, severity, tuple(Evidence(Span(*s), text) for s, text in evidence),
                      fix and Fix(fix[0], fix[1], tuple(Edit(Span(*s), text) for s, text in fix[2])))
