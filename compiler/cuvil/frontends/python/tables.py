"""What each kind of node means: the tables that the walk reads, filled by the files that hold the meanings. Nothing is evaluated here."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .values import Value
    from .walk import Walk


@dataclass(frozen=True)
class Rule:
    """What a node kind means: the method that evaluates it, and the IR form it takes, for the mapping table."""

    meaning: Callable[[Walk, Any], Any]
    form: str


EXPRESSIONS: dict[type, Rule] = {}
STATEMENTS: dict[type, Rule] = {}


def expression(*kinds: type, form: str) -> Callable:
    """Register the meaning of expression nodes."""
    def register(meaning: Callable[[Walk, Any], Value]) -> Callable[[Walk, Any], Value]:
        for kind in kinds:
            EXPRESSIONS[kind] = Rule(meaning, form)
        return meaning
    return register


def statement(*kinds: type, form: str) -> Callable:
    """Register the meaning of statement nodes."""
    def register(meaning: Callable[[Walk, Any], str | None]) -> Callable[[Walk, Any], str | None]:
        for kind in kinds:
            STATEMENTS[kind] = Rule(meaning, form)
        return meaning
    return register
