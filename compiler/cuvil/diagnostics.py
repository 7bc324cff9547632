"""What Cuvil says to people: findings and refusals, each with a place, a reason and something to try.

A *finding* is a remark of a lint rule. A *refusal* is a CuvilError: the compiler or a command could not do what was
asked, and says where, what (with the values), what was expected, and one thing to try.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from .source import Edit, Span

Certainty = Literal["proved", "likely", "hint"]
Severity = Literal["error", "warning", "performance", "info"]
Applicability = Literal["safe", "unsafe", "display"]

DEFECT = "CUV005"                # the code of a refusal that is Cuvil's own fault
PAGES = (Path(__file__).parent / "rules", Path(__file__).parents[2] / "docs/rules")      # in an installed package, and in a checkout


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact of the chain that proves a diagnostic."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the user's text. *safe*: proved not to change any result; *unsafe*: probably meant; *display*: shown only."""

    applicability: Applicability
    title: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    code: str                                # "CUV108"
    name: str                                # "outer-broadcast"
    kind: str                                # neutral class, "silent-broadcast"
    message: str
    span: Span
    certainty: Certainty = "proved"
    severity: Severity = "warning"
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None

    @property
    def url(self) -> str:
        """The rule's page, which comes with the package; "" when there is none: a rule of the user's, a refusal."""
        return page(self.name)

    def to_json(self) -> dict:
        """The finding as `cuvil lint --format json` prints it (design: the words at the doors)."""
        return {
            "code": self.code, "name": self.name, "kind": self.kind, "certainty": self.certainty,
            "severity": self.severity, "message": self.message, "path": self.span.path, "range": self.span.to_json(),
            "evidence": [{"path": e.span.path, "range": e.span.to_json(), "text": e.text} for e in self.evidence],
            "fix": self.fix and {
                "applicability": self.fix.applicability, "title": self.fix.title,
                "edits": [{"path": e.span.path, "range": e.span.to_json(), "text": e.text} for e in self.fix.edits]},
            "url": self.url,
        }


@cache
def page(name: str) -> str:
    """The URI of a rule's page on this machine. Elsewhere `cuvil rule NAME` prints the same."""
    file = next((folder / f"{name}.md" for folder in PAGES if (folder / f"{name}.md").is_file()), None)
    return file.as_uri() if file else ""


@dataclass
class CuvilError(Exception):
    """A refusal. `str()` of it is the whole message a user sees; no traceback goes with it.

    what      what is wrong, with the values that show it
    span      where, if it has a place in a file
    expected  what would have been right
    hint      one thing to try
    """

    what: str
    span: Span | None = None
    expected: str = ""
    hint: str = ""
    code: str = "CUV001"
    evidence: tuple[Evidence, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"{self.span}: {self.what}" if self.span else self.what]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        lines += [f"  {e.span}: {e.text}" for e in self.evidence]
        if self.hint:
            lines.append(f"  try: {self.hint}")
        return "\n".join(lines)

    def to_diagnostic(self, path: str = "") -> Diagnostic:
        span = self.span or Span(path, 1, 0, 1, 0)
        message = ". ".join(part for part in (self.what, self.expected and f"Expected {self.expected}", self.hint) if part)
        return Diagnostic(self.code, "refused", "refused", message, span, "proved", "info", self.evidence)
