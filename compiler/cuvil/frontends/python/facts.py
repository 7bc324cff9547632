"""What one walk over a file leaves behind: values, problems and the IR of each function. Lints, views and assists query it."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...diagnostics import CuvilError, Evidence
from ...ir.function import Function
from ...source import Source, Span
from .targets import DEFAULT_TARGETS, Targets
from .values import Value

if TYPE_CHECKING:
    from ...cst.module import Module


@dataclass(frozen=True, slots=True)
class ExpressionFact:
    """The value of one expression, as last computed. node: the CST node's kind ("BinaryOperation"). caller: of a value marked "brought",
    the call that brings it, None where documentation does."""

    span: Span
    node: str
    value: Value
    caller: Span | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around a place. rounds: how often it runs, None when not known. comprehension: it is written in an expression."""

    span: Span
    rounds: int | None = None
    comprehension: bool = False


@dataclass(frozen=True, slots=True)
class Region:
    """Code that a compiler or tracer reads. how: "compile", "trace", "export", "script", "cudagraph"; span: the decorator or call."""

    how: str
    span: Span


@dataclass(frozen=True, slots=True)
class Context:
    """What is around a place of the code when it runs.

    callers    the calls through which the walk came here, innermost first; () in the walk of the function by itself
    loops      the loops around it, innermost first, those of the callers included
    grad       "grad", "no_grad", "inference"; None when it hangs on the caller
    regions    what compiles or traces this code
    tests      conditions that hold here, as (span, outcome), innermost first
    caught     names of the exceptions that a `try` around it catches
    autocast   inside torch.autocast
    """

    callers: tuple[Span, ...] = ()
    loops: tuple[Loop, ...] = ()
    grad: str | None = None
    regions: tuple[Region, ...] = ()
    tests: tuple[tuple[Span, bool], ...] = ()
    caught: tuple[str, ...] = ()
    autocast: bool = False


HERE = Context()


@dataclass(frozen=True, slots=True)
class CallFact:
    """A call, with what is called by its full dotted name ("torch.softmax", "str.format", "logging.info"; "" if not known).

    A method's receiver is the first of args. span.path is the file the call stands in, which through context.callers may be another one.

    receiver   the object whose method it is, or the module object that is called
    discarded  the call is a statement of its own
    training   of a call of a module: its mode at that moment
    """

    span: Span
    name: str
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    result: Value
    receiver: Value | None = None
    discarded: bool = False
    training: bool | None = None
    context: Context = HERE

    def argument(self, position: int, name: str) -> Value | None:
        """An argument by its place (the receiver of a method is place 0) or its keyword; None when it is not given."""
        given = dict(self.keywords).get(name)
        return given if given is not None else self.args[position] if position < len(self.args) else None


@dataclass(frozen=True, slots=True)
class WriteFact:
    """A change of memory in place.

    target     the tensor as it was before
    operation  as the source says it: "+=", "[]=", "relu_", "out="
    name       the target as it is written ("x", "self.table"), "" when it is an expression
    """

    span: Span
    target: Value
    operation: str
    value: Value
    name: str = ""
    context: Context = HERE


@dataclass(frozen=True, slots=True)
class BranchFact:
    """A place where Python asks for a truth value or a number of rounds. kind: "if", "while", "assert", "and", "or", "not", "for", "ternary"."""

    span: Span
    kind: str
    test: Value
    context: Context = HERE


@dataclass(frozen=True, slots=True)
class AssignFact:
    """A name or attribute bound to a value. name: as written ("weights", "self.table")."""

    span: Span
    name: str
    value: Value
    context: Context = HERE


@dataclass(frozen=True, slots=True)
class AttributeFact:
    """An attribute that a class's methods set on self. registered: as a parameter, buffer or submodule."""

    name: str
    span: Span
    value: Value
    method: str
    registered: bool = False


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """A class of the file. bases: full dotted names, those of library bases last. module: it is a torch.nn.Module.

    attributes  what its methods set, in order of the text
    reads       attribute -> spans where its methods (not `__init__`) read it"""

    name: str
    span: Span
    bases: tuple[str, ...]
    module: bool
    attributes: tuple[AttributeFact, ...] = ()
    reads: tuple[tuple[str, Span], ...] = ()


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
    writes: tuple[WriteFact, ...] = ()
    branches: tuple[BranchFact, ...] = ()
    assigns: tuple[AssignFact, ...] = ()
    reads: tuple[tuple[str, Span], ...] = ()      # attributes of self that a method reads, and where
    plainly: Callable[[], Function | None] | None = field(default=None, compare=False, repr=False)      # walked with its defaults: `compiled`

    @cached_property
    def compiled(self) -> FunctionFacts:
        """The function as it is compiled. One that is refused because a parameter may be None is walked again with its defaults."""
        function = self.plainly() if self.plainly is not None else None
        return replace(self, function=function, refusal=None, plainly=None) if function is not None else self

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
    writes: tuple[WriteFact, ...] = ()            # of module level, as the next two
    branches: tuple[BranchFact, ...] = ()
    assigns: tuple[AssignFact, ...] = ()
    classes: tuple[ClassFacts, ...] = ()
    targets: Targets = DEFAULT_TARGETS

    def function(self, name: str) -> FunctionFacts | None:
        return next((f for f in self.functions if f.name == name), None)
