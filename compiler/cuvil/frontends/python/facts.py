"""What one walk over a file leaves behind: values, problems and the IR of each function. Lints, views and assists query it."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ...diagnostics import CuvilError, Evidence
from ...ir.function import Function
from ...source import Source, Span
from .values import Value

if TYPE_CHECKING:
    from ...cst.module import Module


@dataclass(frozen=True, slots=True)
class ExpressionFact:
    """The value of one expression, as last computed. node: the CST node's kind ("BinaryOperation")."""

    span: Span
    node: str
    value: Value


@dataclass(frozen=True, slots=True)
class CallFact:
    """A call, with what is called by its full dotted name ("torch.softmax", "str.format", "logging.info"; "" if not known)."""

    span: Span
    name: str
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    result: Value


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that types or rules of the library forbid, found while walking: the raw material of proved findings.

    kind       a neutral class, "shape-mismatch"
    operation  the dotted name or operator in the source: "torch.matmul", "+"
    callers    the calls through which the walk came here, innermost first
    """

    kind: str
    what: str
    expected: str
    span: Span
    operation: str = ""
    evidence: tuple[Evidence, ...] = ()
    callers: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry point: a function that is to be compiled. span: of the decorator; options: the decorator's keyword arguments."""

    span: Span
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class FunctionFacts:
    """One function or method, walked with its own parameters as inputs.

    name         qualified: "Block.forward"
    span         the whole def; header: its `def name(...)` line
    function     its CIR (types may be partial), None when nothing tensor-like came out
    refusal      why it cannot be compiled, with the place; None when it can
    entry        set for @cu.compile functions
    """

    name: str
    span: Span
    header: Span
    function: Function | None
    refusal: CuvilError | None
    entry: Entry | None
    expressions: tuple[ExpressionFact, ...]
    problems: tuple[Problem, ...]
    parameters: tuple[tuple[str, Value], ...] = ()
    calls: tuple[CallFact, ...] = ()
    result: Value | None = None

    @cached_property
    def by_span(self) -> dict[Span, ExpressionFact]:
        return {fact.span: fact for fact in self.expressions}


@dataclass(frozen=True)
class FileFacts:
    """All that is known of one file. module: its syntax (cst/module.py). stale: definitions shown from their last good text."""

    source: Source
    module: Module
    functions: tuple[FunctionFacts, ...]
    expressions: tuple[ExpressionFact, ...]       # of module level
    problems: tuple[Problem, ...]                 # of module level
    understood: int = 0                           # tensor expressions with a known value
    unknown: Counter[str] = field(default_factory=Counter)   # the others, by reason
    stale: frozenset[str] = frozenset()
    calls: tuple[CallFact, ...] = ()              # of module level
    pending: int = 0                              # definitions not walked yet: Analyzer.analyze with a limit

    def function(self, name: str) -> FunctionFacts | None:
        return next((f for f in self.functions if f.name == name), None)
