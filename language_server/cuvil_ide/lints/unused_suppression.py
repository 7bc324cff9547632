"""A suppression comment that silences nothing.

What: a `# noqa: CUV108` or `# cuvil: ignore[outer-broadcast]` on a line where that rule reports nothing, or that names a
rule which does not exist.
Why: the comment outlives the code it was written for, and would hide the next real finding on that line.
Example: `y = x + 1  # cuvil: ignore[outer-broadcast]`
Instead: `y = x + 1`
Fix: safe; only the comment changes.

Silent about codes of other tools, and about rules that did not run.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from ..suppressions import Suppression, removal
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = (
    "same = None == None  # cuvil: ignore[constant-comparison] kept for the example\n",
    "import os  # noqa: F401\n",
    "text = '# noqa: CUV108'\n",
)
INVALID = (
    Invalid("y = 1  »# noqa: CUV108«\n", "CUV108 reports nothing here", "y = 1\n"),
    Invalid("y = 1  »# cuvil: ignore[outer-brodcast]«\n", "no rule is called outer-brodcast", "y = 1\n"),
    Invalid("y = 1 + 1  # noqa: »CUV108, «E501\n", "CUV108 reports nothing", "y = 1 + 1  # noqa: E501\n"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    """Nothing by itself: what is unused is known only after all other rules ran. See `unused`."""
    return iter(())


def unused(facts: FileFacts, found: Sequence[Suppression], ran: Sequence[Rule], known: Sequence[Rule]) -> list[Diagnostic]:
    names = {key for rule in ran for key in (rule.code, rule.name)}
    all_names = {key for rule in known for key in (rule.code, rule.name)}
    findings = []
    for mark in found:
        if mark.used or mark.rule in all_names - names:
            continue
        message = (f"{mark.rule} reports nothing here; the suppression can go" if mark.rule in names
                   else f"no rule is called {mark.rule}; the suppression has no effect")
        findings.append(RULE.finding(message, mark.whole if mark.alone else mark.span, fix=removal(facts.source, mark)))
    return findings


RULE = Rule("CUV990", "unused-suppression", kind="unused-suppression", severity="info", certainty="hint", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
