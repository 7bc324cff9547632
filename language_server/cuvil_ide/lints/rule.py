"""What a lint rule is: a manual page (its file's docstring) that happens to run.

A rule file holds, in this order: the manual, VALID and INVALID examples that a test runs, `check`, and RULE. A rule reads
facts and yields diagnostics; it keeps no state, never looks at other files, and is silent about what is unknown.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cuvil.diagnostics import Certainty, Diagnostic, Evidence, Fix, Severity
from cuvil.source import Span

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts


@dataclass(frozen=True, slots=True)
class Invalid:
    """An example that must be reported.

    code     the file; the reported text stands between » and «, which the test takes out again
    words    a part of the message that must be there
    fixed    the file after the fix, if the rule offers one
    """

    code: str
    words: str
    fixed: str = ""


@dataclass(frozen=True)
class Rule:
    """One rule. code and name are equal in rank in settings and suppressions; kind is the neutral class of the finding.

    needs    what it has to see to say nothing wrong: the facts of a "function", those of the whole "file", or its "text" alone
    """

    code: str                                           # "CUV108"
    name: str                                           # "outer-broadcast"
    kind: str                                           # "silent-broadcast"
    severity: Severity
    certainty: Certainty
    check: Callable[[FileFacts], Iterator[Diagnostic]]
    manual: str
    valid: tuple[str, ...] = ()
    invalid: tuple[Invalid, ...] = ()
    needs: Literal["function", "file", "text"] = "function"

    @property
    def summary(self) -> str:
        return self.manual.strip().partition("\n")[0]

    @property
    def fix(self) -> str:
        """How safe its fixes are, from the manual's "Fix" line: "safe", "unsafe", "display", or "" for none."""
        _, found, rest = self.manual.partition("\nFix: ")
        word = rest.split()[0].strip(".,:;") if found else ""
        return word if word in ("safe", "unsafe", "display") else ""

    def finding(self, message: str, span: Span, evidence: tuple[Evidence, ...] = (), fix: Fix | None = None) -> Diagnostic:
        return Diagnostic(self.code, self.name, self.kind, message, span, self.certainty, self.severity, evidence, fix)
