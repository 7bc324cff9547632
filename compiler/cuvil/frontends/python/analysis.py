"""Facts of a file: every definition is walked once with its own parameters, and walked again only when it must be.

    facts = analyze(source)                          # FileFacts

A definition's facts are kept while its own text and place, and all definitions that its walk looked at, stay the same.
"""
from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import libcst as cst

from ...cst import Definition, Place
from ...diagnostics import CuvilError
from ...interrupted import Interrupted
from ...ir.function import Function
from ...source import Source, Span
from . import assumed
from .capture import deep_enough, walked
from .context import MODULE_LEVEL
from .devices import host_of
from .facts import ClassFacts, ExpressionFact, FileFacts, FunctionFacts
from .members import class_facts
from .records import settled
from .signatures import MAY_BE_NONE
from .values import Either, Tensor, Unknown, Untyped, Value
from .walk import Frame, OutOfBudget, Walk
from .workspace import Namespace, Used, Workspace

FACT_STEPS = 20_000                            # that a walk of one function may take
FILE_STEPS, PLAIN_STEPS = 120_000, 4_000      # that all functions of a file share: those that mention tensors, and the others
LEAST = 100, 1_500
FILES_OF_CALLERS = 8                           # for which the walks from callers are kept
MANY = 600                                     # definitions of a file beyond which positions are not kept
TENSOR_WORDS = ("torch", "np.", "numpy", "cv2", "nn.", "F.", "jnp", "Tensor", "einops", "cuvil", "cu.", ".shape", "[...,", "[:, ", ".view(", ".reshape(", ".mean(",
                "softmax", "matmul", ".sum(", "tensor", "logits", "def forward", "def __call__", "%", ".format(", 'f"', "f'", "==", "logg", ".run(")


@dataclass(frozen=True)
class Kept:
    """Facts of a definition and what they hang on."""

    facts: FunctionFacts | tuple
    used: Used
    unknown: Counter[str]
    understood: int
    nodes: tuple[cst.CSTNode, ...] = ()           # of the expressions of a function


@dataclass(frozen=True)
class Glance:
    """What can be said of a text at once. fresh: the definitions that were walked for it; the others' facts are those of the text before,
    where they stand now. complete: all that there is was walked."""

    facts: FileFacts
    fresh: tuple[Definition, ...]
    complete: bool


class Analyzer:
    """Keeps the facts of definitions from one version of a file to the next. Not for use by several threads at once."""

    def __init__(self, workspace: Workspace | None = None, files: int = 64) -> None:
        self.workspace = workspace if workspace is not None else Workspace()
        self._kept: OrderedDict[str, dict[Definition, Kept]] = OrderedDict()
        self._files = files
        self._glanced: dict[str, dict[Definition, Kept]] = {}                # walked since the last whole analysis
        self._shifted: dict[str, dict[Definition, Kept]] = {}                # those that only moved since then
        self._classes: dict[str, tuple[ClassFacts, ...]] = {}
        self._brought: OrderedDict[str, tuple[int, dict[Definition, assumed.Brought]]] = OrderedDict()

    def analyze(self, source: Source, stop: Callable[[], bool] = bool) -> FileFacts:
        """Everything known of a file. Never raises for user code; Interrupted when `stop`, asked at each definition and statement, says so."""
        deep_enough()
        self.workspace.look_again()
        namespace = self.workspace.open(source)
        kept = self._kept.pop(source.path, {}) | self._glanced.pop(source.path, {})
        self._shifted.pop(source.path, None)
        now = self._kept[source.path] = {}
        self.workspace.stop = stop
        try:
            for definition in namespace.syntax.definitions:
                if definition.kind == "class":
                    continue
                entry = kept.get(definition)
                if entry is None or not self.workspace.unchanged(entry.used):
                    if stop():
                        raise Interrupted
                    entry = self._walked(namespace, definition)
                now[definition] = entry
        except BaseException:
            self._kept[source.path] = kept | now
            raise
        finally:
            self.workspace.stop = bool
        while len(self._kept) > self._files:
            self.forget(next(iter(self._kept)))
        functions = [entry.facts for entry in now.values() if isinstance(entry.facts, FunctionFacts)]
        classes = self._classes[source.path] = class_facts(self.workspace, namespace, functions)
        return self._together(namespace, now, classes)

    def forget(self, path: str) -> None:
        """The facts of a file go."""
        for known in (self._kept, self._glanced, self._shifted, self._classes, self._brought):
            known.pop(path, None)

    def glance(self, source: Source, enough: Callable[[], bool]) -> Glance:
        """The facts of a text that was edited a moment ago, in the time that one definition takes: those that were written or changed are
        walked until it is `enough`, one at least; what hangs on them keeps its facts until the next `analyze`."""
        deep_enough()
        path, namespace = source.path, self.workspace.open(source)
        kept = self._kept.get(path, {}) | self._glanced.get(path, {})
        definitions = [d for d in namespace.syntax.definitions if d.kind != "class"]
        shifted = self._shifted.get(path, {})
        entries = {d: entry for d in definitions if (entry := kept.get(d) or shifted.get(d)) is not None}
        fresh: list[Definition] = []
        if len(entries) < len(definitions):
            twins = {(d.name, d.text): (d, entry) for d, entry in kept.items() if d not in entries}
            trees = {id(d.tree): (d, entry) for d, entry in kept.items() if d.parsed and d.tree is not None and d not in entries}
            for definition in definitions:
                if definition in entries:
                    continue
                if (twin := twins.get((definition.name, definition.text))) is not None:
                    entries[definition] = shifted[definition] = _moved(twin[1], definition.first - twin[0].first)
                elif not fresh or not enough():
                    last = trees.get(id(definition.tree)) if definition.tree is not None and definition.stale else None
                    entry = _broken(namespace.path, definition, last[1]) if last is not None and last[0].first == definition.first else None
                    entries[definition] = entry or self._walked(namespace, definition)
                    fresh.append(definition)
        self._shifted[path] = {d: entry for d, entry in shifted.items() if d in entries}
        self._glanced[path] = {d: entry for d, entry in self._glanced.get(path, {}).items() if d in entries} | {d: entries[d] for d in fresh}
        known = {d: entries.get(d) or Kept(_blank(namespace, d) if d.kind == "function" else (), {}, Counter(), 0) for d in definitions}
        return Glance(self._together(namespace, known, self._classes.get(path, ())), tuple(fresh), len(fresh) == len(definitions))

    def _together(self, namespace: Namespace, entries: dict[Definition, Kept], classes: tuple[ClassFacts, ...]) -> FileFacts:
        functions: list[FunctionFacts] = []
        top: tuple[list, ...] = ([], [], [], [], [], [])   # of module level: expressions, problems, calls, writes, branches, assigns
        understood, unknown = 0, Counter()
        for entry in entries.values():
            if isinstance(entry.facts, FunctionFacts):
                functions.append(entry.facts)
            else:
                for so_far, more in zip(top, entry.facts):
                    so_far += more
            understood += entry.understood
            unknown.update(entry.unknown)
        expressions, problems, calls, writes, branches, assigns = map(tuple, top)
        module = namespace.syntax
        return FileFacts(module.source, module, tuple(functions), expressions, problems, understood, unknown, module.stale, calls, writes, branches,
                         assigns, classes, self.workspace.targets)

    def brought(self, facts: FileFacts, stop: Callable[[], bool] = bool) -> FileFacts:
        """The facts, with what callers in the file and documentation bring to its functions: assumed.py. For what is shown, not for rules.
        Interrupted when `stop`, asked between the walks that this takes, says so; asked again it goes on."""
        namespace, path = self.workspace.namespace(facts.source.path), facts.source.path
        kept, (looks, before), now = self._kept.get(path, {}), self._brought.pop(path, (-1, {})), {}
        if namespace is None or namespace.source.text != facts.source.text:
            return facts
        deep_enough()
        seen: dict[Definition, list[assumed.Seen]] = {}
        for entry in assumed.entries(namespace):
            if any(found.complete for each in seen.get(entry, ()) for _, found, *_ in each.values()):
                continue                                   # a caller brought what there is to know
            known = before.get(entry)
            if known is None or looks != self.workspace.looks and not self.workspace.unchanged(known.used):
                if stop():
                    self._brought[path] = self.workspace.looks, now
                    raise Interrupted
                steps = FACT_STEPS if assumed.makes_a_model(entry) or entry.owner else budget(namespace, entry)
                known = assumed.brought(self.workspace, namespace, entry, steps)
            now[entry] = known
            for definition, values in known.seen.items():
                seen.setdefault(definition, []).append(values)
        self._brought[path] = self.workspace.looks, now
        while len(self._brought) > FILES_OF_CALLERS:
            self._brought.popitem(last=False)
        functions, understood, unknown = [], 0, Counter()
        for definition, entry in kept.items():
            if definition.kind == "function":
                more = seen.get(definition)
                functions.append(entry.facts if not more else assumed.merged(entry.facts, definition, entry.nodes, more, path))
                reasons, count = statistics(functions[-1].expressions)
            else:
                reasons, count = entry.unknown, entry.understood
            understood += count
            unknown.update(reasons)
        return replace(facts, functions=tuple(functions), understood=understood, unknown=unknown)

    # --- one definition -------------------------------------------------------------------------------------------

    def _walked(self, namespace: Namespace, definition: Definition) -> Kept:
        return self._function(namespace, definition) if definition.kind == "function" else self._statement(namespace, definition)

    def _function(self, namespace: Namespace, definition: Definition) -> Kept:
        path, blank = namespace.path, _blank(namespace, definition)
        if definition.first == definition.header and not _about_tensors(namespace, definition):
            return Kept(blank, {}, Counter(), 0)
        node = definition.node
        if not isinstance(node, cst.FunctionDef):
            return Kept(replace(blank, refusal=_unreadable(path, definition)), {}, Counter(), 0)
        steps = budget(namespace, definition)
        walk, outcome = walked(self.workspace, steps, namespace, definition, None)
        if definition.stale or definition.error is not None:
            outcome.refusal = _unreadable(path, definition)
        made, plainly = facts_of(walk, path, definition), None
        if outcome.refusal is not None and any(map(may_be_none, outcome.parameters.values())) and not definition.stale:
            plainly = partial(_plainly, self.workspace, steps, namespace, definition)
        facts = replace(blank, function=outcome.function, refusal=outcome.refusal, entry=outcome.entry, expressions=made,
                        problems=tuple(walk.problems.values()), parameters=tuple(outcome.parameters.items()),
                        result=outcome.result, reads=tuple(walk.reads.values()), plainly=plainly, **_records(walk))
        if len(namespace.syntax.definitions) > MANY:
            definition.tree.forget()
        return Kept(facts, walk.used, *statistics(made), tuple(node for node, _ in walk.seen.values()))

    def _statement(self, namespace: Namespace, definition: Definition) -> Kept:
        if not any(word in definition.text for word in TENSOR_WORDS) or len(definition.text) > 50_000 or definition.tree is None:
            return Kept((), {}, Counter(), 0)
        walk = Walk(self.workspace, FACT_STEPS if mentions_tensors(definition) else PLAIN_STEPS)
        walk.frame = walk.recording = Frame(namespace, definition)
        walk.building = 1 if definition.owner else 0
        walk.context, walk.host = MODULE_LEVEL, host_of(namespace.source.text)
        try:
            for node in definition.tree.nodes:
                walk.execute(node)
        except (OutOfBudget, RecursionError):
            pass
        except Exception:                     # a defect of ours: it costs the facts of this statement alone
            return Kept((), walk.used, Counter(), 0)
        walk.frame = walk.recording = Frame(namespace, definition)
        made = facts_of(walk, namespace.path, definition)
        return Kept((made, tuple(walk.problems.values()), *_records(walk).values()), walk.used, *statistics(made))


def _plainly(workspace: Workspace, steps: int, namespace: Namespace, definition: Definition) -> Function | None:
    """The function for a call that leaves out what has a default; None when that does not compile either."""
    _, outcome = walked(workspace, steps, namespace, definition, {}, strict=True)
    return outcome.function if outcome.refusal is None else None


def budget(namespace: Namespace, definition: Definition) -> int:
    """The steps that the walk of a function may take: all, unless the file has many functions. Hundreds of functions that only choose
    the sizes of a model do not build it hundreds of times."""
    if namespace.shares is None:
        functions = [d for d in namespace.syntax.definitions if d.kind == "function"]
        of_tensors = sum(mentions_tensors(d) for d in functions)
        counts = len(functions) - of_tensors, of_tensors
        namespace.shares = tuple(min(FACT_STEPS, max(least, total >> max(count // 2, 0).bit_length()))
                                 for total, count, least in zip((PLAIN_STEPS, FILE_STEPS), counts, LEAST))
    return namespace.shares[mentions_tensors(definition)]


def mentions_tensors(definition: Definition) -> bool:
    return _OF_TENSORS.search(definition.text) is not None


_OF_TENSORS = re.compile(r"\b(?:torch|np|numpy|nn|F|jnp|einops|cu)\.|Tensor|\.(?:shape|view|reshape|mean|sum|size)\b|softmax|matmul|logits|def (?:forward|__call__)\b")


def _about_tensors(namespace: Namespace, definition: Definition) -> bool:
    """Whether a function may work with tensors, by its text; a method, also by what its class holds."""
    if any(word in definition.text for word in TENSOR_WORDS):
        return True
    made = namespace.syntax.by_name.get(f"{definition.owner}.__init__") if definition.owner and "self." in definition.text else None
    return made is not None and any(word in made.text for word in ("nn.", "torch", ".eval("))


def _blank(namespace: Namespace, definition: Definition) -> FunctionFacts:
    """The facts of a function of which only the place is known."""
    path, text = namespace.path, namespace.source
    span = Span(path, definition.first, definition.indent, definition.last, len(text.line(definition.last)))
    header = Span(path, definition.header, definition.indent, definition.header, len(text.line(definition.header)))
    return FunctionFacts(definition.name, span, header, None, None, None, (), ())


def _unreadable(path: str, definition: Definition) -> CuvilError:
    line, column = definition.error_place
    return CuvilError(f"syntax error: {definition.error or 'this is not a function'}", Span(path, line, column, line, column + 1))


def _broken(path: str, definition: Definition, last: Kept) -> Kept | None:
    """What is known of a definition that does not parse, from the walk of the same tree."""
    return replace(last, facts=replace(last.facts, refusal=_unreadable(path, definition))) if isinstance(last.facts, FunctionFacts) else None


def _moved(entry: Kept, lines: int) -> Kept:
    """The facts of a definition that now stands so many lines lower, as far as hovers and hints need them."""
    if not lines:
        return entry
    if not isinstance(entry.facts, FunctionFacts):
        expressions = entry.facts[0] if entry.facts else ()
        return replace(entry, facts=(_lower(expressions, lines),))
    facts = entry.facts
    return replace(entry, facts=FunctionFacts(facts.name, facts.span.lower(lines), facts.header.lower(lines), facts.function, facts.refusal, facts.entry,
                                              _lower(facts.expressions, lines), (), facts.parameters, result=facts.result, plainly=facts.plainly))


def _lower(expressions: tuple[ExpressionFact, ...], lines: int) -> tuple[ExpressionFact, ...]:
    return tuple(replace(fact, span=fact.span.lower(lines)) for fact in expressions)


def _records(walk: Walk) -> dict[str, tuple]:
    return {"calls": settled(walk, walk.calls), "writes": settled(walk, walk.writes), "branches": settled(walk, walk.branches),
            "assigns": settled(walk, walk.assigns)}


def facts_of(walk: Walk, path: str, definition: Definition) -> tuple[ExpressionFact, ...]:
    return tuple(ExpressionFact(Place(path, definition, node), type(node).__name__, walk.resolve(value)) for node, value in walk.seen.values())


COUNTED = frozenset(("Call", "BinaryOperation", "UnaryOperation", "Subscript", "Attribute", "Comparison"))


def statistics(expressions: tuple[ExpressionFact, ...]) -> tuple[Counter[str], int]:
    """How many expressions are tensors of known type, and why the others are not. Names and Python values are not counted."""
    unknown: Counter[str] = Counter()
    understood = 0
    for fact in expressions:
        if fact.node in COUNTED:
            if isinstance(fact.value, Tensor):
                understood += fact.value.type.shape is not None or fact.value.type.dtype is not None      # else a tensor, and no more
            elif isinstance(fact.value, (Unknown, Untyped)):
                unknown[fact.value.reason] += 1
    return unknown, understood


# --- the doors ------------------------------------------------------------------------------------------------------

_here = Workspace()


def analyze(source: Source, workspace: Workspace | None = None, stop: Callable[[], bool] = bool) -> FileFacts:
    """All facts of a file. Calls with the same workspace share what has not changed."""
    return analyzer(workspace).analyze(source, stop)


def glance(source: Source, workspace: Workspace, enough: Callable[[], bool]) -> Glance:
    return analyzer(workspace).glance(source, enough)


def analyzer(workspace: Workspace | None = None) -> Analyzer:
    workspace = workspace if workspace is not None else _here
    if workspace.analyzer is None:
        workspace.analyzer = Analyzer(workspace)
    return workspace.analyzer


def understood(source: Source, workspace: Workspace | None = None) -> FileFacts:
    """All facts of a file, and what its own calls and documentation bring to its functions."""
    return brought(analyze(source, workspace), workspace)


def brought(facts: FileFacts, workspace: Workspace | None = None, stop: Callable[[], bool] = bool) -> FileFacts:
    """The facts that `analyze` gave for a workspace, and what calls and documentation bring; Interrupted between walks when `stop` says so."""
    return analyzer(workspace).brought(facts, stop)


def may_be_none(value: Value) -> bool:
    return isinstance(value, Either) or isinstance(value, Unknown) and value.reason == MAY_BE_NONE


