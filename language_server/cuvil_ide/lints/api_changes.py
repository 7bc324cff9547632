"""Uses of names that a library took away or is about to: a table of changes, and where the code still says the old name."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Applicability, Fix
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from .guards import expected_to_fail

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch"}


@dataclass(frozen=True, slots=True)
class Change:
    """since: the version it came with; new: what to write now, {m} being the module as the code calls it; same: it is the same thing."""

    since: tuple[int, ...]
    new: str
    same: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """An old name in the code. library: its name and the version of the change, for messages."""

    span: Span
    name: str
    library: str
    new: str
    same: bool

    def fix(self, applicability: Applicability) -> Fix:
        return Fix(applicability, f"Replace by {self.new}", (Edit(self.span, self.new),)) if self.same else Fix("display", self.new)


def pattern(table: Mapping[str, Change]) -> re.Pattern[str]:
    return re.compile(rf"\.\s*(?:{'|'.join(sorted({name.rpartition('.')[2] for name in table}))})\b")


def uses(facts: FileFacts, table: Mapping[str, Change], where: re.Pattern[str]) -> Iterator[Use]:
    """Every use that the target version no longer has, unless it is guarded: in a `try` that catches it, or under an `if` that asks
    `hasattr` or a version."""
    from cuvil.frontends.python.values import Library
    last = {name.rpartition(".")[2] for name in table}
    for node in nodes(facts, where, cst.Attribute, analysed=True):
        if node.attr.value not in last:
            continue
        span = facts.module.span(node)
        value = value_of(facts, span)
        change = table.get(value.name) if isinstance(value, Library) else None
        if change is None:
            continue
        library = value.name.partition(".")[0]
        if getattr(facts.targets, library) < change.since or expected_to_fail(facts, span) or _asked_for(facts, node):
            continue
        new = change.new.format(m=facts.source.slice(facts.module.span(node.value)))
        yield Use(span, facts.source.slice(span), f"{LIBRARIES[library]} {'.'.join(map(str, change.since))}", new, change.same)


def _asked_for(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Under an `if` or a conditional expression that asks whether the name, or the version, is there."""
    while (node := facts.module.parent(node)) is not None:
        if isinstance(node, (cst.If, cst.IfExp)) and re.search(r"hasattr|version", facts.module.code(node.test)):
            return True
    return False
