"""What a lint run found, file by file: the one object that all output formats print."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cuvil.diagnostics import Diagnostic
from cuvil.source import Source

from .files import relative


@dataclass(frozen=True)
class FileResult:
    """One file.

    problem              why it could not be checked (then there is nothing else)
    understood, unknown  tensor expressions
    asked                what the analysis looked at beside the file: see kept.py
    kept                 it is of an earlier run
    """

    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    problem: Diagnostic | None = None
    understood: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    asked: tuple[tuple, ...] = ()
    kept: bool = False


@dataclass(frozen=True)
class Findings:
    """results in the order the files were named; root: what repository-relative paths start from; read: the text of a file."""

    results: tuple[FileResult, ...]
    root: Path
    read: Callable[[str], Source | None]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return [diagnostic for result in self.results for diagnostic in result.diagnostics]

    @property
    def problems(self) -> list[Diagnostic]:
        return [result.problem for result in self.results if result.problem]

    @cached_property
    def understood(self) -> int:
        return sum(result.understood for result in self.results)

    @cached_property
    def unknown(self) -> Counter[str]:
        return sum((result.unknown for result in self.results), Counter())

    def summary(self) -> dict:
        """Counts for machines; `unknown` is by reason, most frequent first."""
        found = self.diagnostics
        return {
            "files": len(self.results), "findings": len(found),
            "certainty": dict(Counter(d.certainty for d in found)),
            "rules": dict(sorted(Counter(d.code for d in found).items())),
            "fixable": sum(1 for d in found if d.fix and d.fix.applicability == "safe"),
            "unreadable": len(self.problems),
            "tensor_expressions": {"understood": self.understood, "unknown": dict(self.unknown.most_common())},
        }

    def relative(self, path: str) -> str:
        return relative(path, self.root)

    @cached_property
    def fingerprints(self) -> dict[Diagnostic, str]:
        """For each finding a name that survives edits elsewhere: of its rule, file, the text of its line, and its turn among equals."""
        turns: Counter[tuple] = Counter()
        names = {}
        for diagnostic in self.diagnostics:
            key = diagnostic.code, self.relative(diagnostic.span.path), self._line(diagnostic)
            names[diagnostic] = self.fingerprint(diagnostic, turns[key])
            turns[key] += 1
        return names

    def fingerprint(self, diagnostic: Diagnostic, turn: int) -> str:
        import hashlib
        parts = diagnostic.code, self.relative(diagnostic.span.path), self._line(diagnostic), str(turn)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _line(self, diagnostic: Diagnostic) -> str:
        source = self.read(diagnostic.span.path)
        return " ".join(source.line(diagnostic.span.line).split()) if source else ""
