"""Text that Python cannot read.

What: a piece of the file does not parse.
Why: nothing of the definition it stands in can be run; its last good text is what everything else here shows.
Example: `def f(x:`
Instead: complete the line.
Fix: none.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = ("def f(x): return x\n", "")
INVALID = (Invalid("x = 1\ny = 1 +»\n«", "invalid syntax"),)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for problem in facts.module.errors:
        yield RULE.finding(problem.what, problem.span)


RULE = Rule("CUV010", "syntax-error", kind="syntax-error", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="text")
