"""Facts and CIR of a file: every definition is walked once with its own parameters, and walked again only when it must be.

    facts = analyze(source)                          # FileFacts
    function = capture(source, "f", {"x": TensorType((2, 3), DType.F32)})

A definition's facts are kept while its own text and place, and all definitions that its walk looked at, stay the same.
"""
from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace

import libcst as cst

from ...cst import Definition
from ...diagnostics import CuvilError
from ...ir.function import Function
from ...ir.types import TensorType
from ...lineage import Origin
from ...source import Source, Span
from . import calls, classes, expressions, learn, statements
from .facts import Entry, ExpressionFact, FileFacts, FunctionFacts
from .signatures import MAY_BE_NONE, entry_of, inputs_of
from .values import Instance, Scalar, Sequence, Tensor, Unknown, Untyped, UserClass, UserFunction, Value, describe
from .walk import Frame, OutOfBudget, Walk
from .workspace import Namespace, Workspace

FACT_STEPS, CAPTURE_STEPS = 20_000, 2_000_000
FRAMES = 12_000                                # Python frames the walk may nest: calls of calls, not expressions of one function
TENSOR_WORDS = ("torch", "np.", "numpy", "nn.", "F.", "jnp", "Tensor", "einops", "cuvil", "cu.", ".shape", ".view(", ".reshape(", ".mean(",
                "softmax", "matmul", ".sum(", "tensor", "logits", "%", ".format(", 'f"', "f'", "==", "logg")
assert expressions and statements              # their tables are filled by importing them


@dataclass(frozen=True)
class Kept:
    """Facts of a definition and what they hang on: (path, name) -> the definitions found there."""

    facts: FunctionFacts | tuple
    used: dict[tuple[str, str], tuple[Definition, ...]]
    unknown: Counter[str]
    understood: int


class Analyzer:
    """Keeps the facts of definitions from one version of a file to the next. Not for use by several threads at once."""

    def __init__(self, workspace: Workspace | None = None, files: int = 64) -> None:
        self.workspace = workspace if workspace is not None else Workspace()
        self._kept: OrderedDict[str, dict[Definition, Kept]] = OrderedDict()
        self._files = files

    def analyze(self, source: Source, previous: FileFacts | None = None) -> FileFacts:
        """Everything known of a file. previous: its facts before an edit, for trees to fall back on. Never raises for user code."""
        deep_enough()
        self.workspace.look_again()
        namespace = self.workspace.open(source, previous.module if previous is not None else None)
        module, kept = namespace.syntax, self._kept.get(source.path, {})
        now: dict[Definition, Kept] = {}
        functions, expressions, problems, calls_ = [], [], [], []
        understood, unknown = 0, Counter()
        for definition in module.definitions:
            if definition.kind == "class":
                continue
            entry = kept.get(definition)
            if entry is None or not self._holds(entry):
                entry = self._function(namespace, definition) if definition.kind == "function" else self._statement(namespace, definition)
            now[definition] = entry
            if isinstance(entry.facts, FunctionFacts):
                functions.append(entry.facts)
            else:
                expressions += entry.facts[0]
                problems += entry.facts[1]
                calls_ += entry.facts[2]
            understood += entry.understood
            unknown.update(entry.unknown)
        self._kept[source.path] = now
        self._kept.move_to_end(source.path)
        while len(self._kept) > self._files:
            self._kept.popitem(last=False)
        return FileFacts(source, module, tuple(functions), tuple(expressions), tuple(problems), understood, unknown, module.stale,
                         tuple(calls_))

    def _holds(self, entry: Kept) -> bool:
        for (path, name), definitions in entry.used.items():
            namespace = self.workspace.namespace(path)
            if namespace is None:
                return False
            found = namespace.find(name)
            if len(found) != len(definitions) or any(a is not b for a, b in zip(found, definitions)):
                return False
        return True

    # --- one definition -------------------------------------------------------------------------------------------

    def _function(self, namespace: Namespace, definition: Definition) -> Kept:
        path = namespace.path
        span = Span(path, definition.first, definition.indent, definition.last, len(namespace.source.line(definition.last)))
        header = Span(path, definition.header, definition.indent, definition.header, len(namespace.source.line(definition.header)))
        blank = FunctionFacts(definition.name, span, header, None, None, None, (), ())
        if definition.first == definition.header and not any(word in definition.text for word in TENSOR_WORDS):
            return Kept(blank, {}, Counter(), 0)
        node = definition.node
        if not isinstance(node, cst.FunctionDef):
            what = definition.error or "this is not a function"
            line, column = definition.error_place
            place = Span(path, line, column, line, column + 1)
            return Kept(replace(blank, refusal=CuvilError(f"syntax error: {what}", place)), {}, Counter(), 0)
        walk, outcome = walked(self.workspace, FACT_STEPS, namespace, definition, None)
        if definition.stale or definition.error is not None:
            line, column = definition.error_place
            outcome.refusal = CuvilError(f"syntax error: {definition.error}", Span(path, line, column, line, column + 1))
        made, function = facts_of(walk, path, definition), outcome.function
        if outcome.refusal is not None and any(v == MAY_BE_NONE for v in map(reason_of, outcome.parameters.values())) and not definition.stale:
            _, plain = walked(self.workspace, FACT_STEPS, namespace, definition, {})      # as it is compiled: with its defaults
            function, outcome.refusal = plain.function, plain.refusal
        facts = replace(blank, function=function, refusal=outcome.refusal, entry=outcome.entry, expressions=made,
                        problems=tuple(walk.problems.values()), parameters=tuple(outcome.parameters.items()),
                        calls=tuple(call for _, call in walk.calls.values()), result=outcome.result)
        return Kept(facts, walk.used, *statistics(made))

    def _statement(self, namespace: Namespace, definition: Definition) -> Kept:
        if not any(word in definition.text for word in TENSOR_WORDS) or len(definition.text) > 50_000 or definition.tree is None:
            return Kept(((), (), ()), {}, Counter(), 0)
        walk = Walk(self.workspace, FACT_STEPS)
        walk.frame = walk.recording = Frame(namespace, definition)
        walk.building = 1 if definition.owner else 0
        try:
            for node in definition.tree.nodes:
                walk.execute(node)
        except (OutOfBudget, RecursionError):
            pass
        walk.frame = walk.recording = Frame(namespace, definition)
        made = facts_of(walk, namespace.path, definition)
        return Kept((made, tuple(walk.problems.values()), tuple(call for _, call in walk.calls.values())), walk.used, *statistics(made))


@dataclass
class Outcome:
    """What the walk of one function gave."""

    function: Function | None
    refusal: CuvilError | None
    entry: Entry | None
    parameters: dict[str, Value]
    result: Value | None


def walked(workspace: Workspace, steps: int, namespace: Namespace, definition: Definition, inputs: dict[str, TensorType] | None,
           cls: UserClass | None = None) -> tuple[Walk, Outcome]:
    """The walk of a function; a second one, when the first found out the element type of an input that was declared without."""
    walk = Walk(workspace, steps)
    outcome = walk_function(walk, namespace, definition, inputs, cls)
    dtypes = learn.dtypes_met(walk)
    if dtypes:
        again = Walk(workspace, steps)
        again.dtypes = dtypes
        return again, walk_function(again, namespace, definition, inputs, cls)
    return walk, outcome


def walk_function(walk: Walk, namespace: Namespace, definition: Definition, inputs: dict[str, TensorType] | None,
                  cls: UserClass | Instance | None = None) -> Outcome:
    """Walk a function or method with its own parameters (or the given types) as inputs. cls: of `self`, if a method is inherited;
    an Instance is `self` as it is (a live module, see live.py)."""
    node = definition.node
    outcome = Outcome(None, None, None, {}, None)
    frame = Frame(namespace, definition)
    walk.frame = frame
    try:
        outcome.entry = entry_of(walk, frame, node)
        owner = owner_class(walk, namespace, definition)
        receiver = _receiver(walk, namespace, definition, owner, cls)
        function = UserFunction(definition.name, node, namespace, receiver, (), owner, definition)
        frame.function = function
        walk.frame = walk.recording = frame
        if definition.name.endswith(".__init__"):
            walk.building = 1
        frame.names.update(inputs_of(walk, function, outcome.entry, inputs))
        outcome.parameters = {name: value for name, value in frame.names.items() if value is not receiver}
        walk.active.append(node)
        outcome.result = calls.run_body(walk, function)
        outcome.parameters = {name: walk.resolve(value) for name, value in outcome.parameters.items()}
        outcome.function = finish(walk, definition, namespace, outcome.result)
    except OutOfBudget:
        walk.frame = frame
        walk.refuse("this function is too large to follow", node.name, "fewer unrolled rounds and calls")
    except RecursionError:
        walk.frame = frame
        walk.refuse("this function is nested too deep to follow", node.name, "expressions and calls that are less deep")
    except CuvilError as error:
        walk.refusal = walk.refusal or error
    walk.frame = frame
    outcome.refusal = walk.refusal
    return outcome


def owner_class(walk: Walk, namespace: Namespace, definition: Definition) -> UserClass | None:
    owner = namespace.syntax.by_name.get(definition.owner) if definition.owner else None
    return UserClass(owner.name, owner.node, namespace) if owner is not None and isinstance(owner.node, cst.ClassDef) else None


def _receiver(walk: Walk, namespace: Namespace, definition: Definition, owner: UserClass | None,
              cls: UserClass | Instance | None) -> Value | None:
    """`self`: an object of the class, made with the defaults of its `__init__`."""
    if owner is None:
        return None
    names = calls.decorators(walk, namespace, definition.node)
    if "builtins.staticmethod" in names:
        return None
    if "builtins.classmethod" in names:
        return owner
    if definition.name.endswith(".__init__"):
        return Instance(owner)
    return cls if isinstance(cls, Instance) else prototype(walk, cls or owner)


def prototype(walk: Walk, owner: UserClass) -> Instance:
    """An object of a class with its constructor's defaults. A size without one (`width: int`) is a symbol, and a parameter of a class
    of the workspace (`config: Config`) is an object of that class, with its defaults."""
    found = classes.find_member(walk, owner, "__init__")
    if found is None or not isinstance(found[1].node, cst.FunctionDef):
        made = classes.instantiate(walk, owner, [], {}, None)
        if isinstance(made, Instance):
            made.complete = False
            return made
        return Instance(owner, complete=False)
    cls, definition = found
    instance = Instance(owner)
    function = UserFunction(definition.name, definition.node, cls.module, instance, (), cls, definition)
    frame = Frame(cls.module, definition, function=function, callers=())
    outer = walk.frame

    def work() -> None:
        walk.frame = frame
        frame.names.update(inputs_of(walk, function, None, None))
        for parameter in (*definition.node.params.params, *definition.node.params.kwonly_params):
            name, annotation = parameter.name.value, parameter.annotation
            if isinstance(frame.names.get(name), (Unknown, Untyped)) and annotation is not None and parameter.default is None:
                if isinstance(annotation.annotation, cst.Name) and annotation.annotation.value == "int":
                    frame.names[name] = Scalar(walk.fresh_symbol(name))
                elif isinstance(annotation.annotation, (cst.Name, cst.Attribute)) and len(walk.active) < 8:
                    kind = walk.evaluate(annotation.annotation)
                    if isinstance(kind, UserClass) and classes.derives(walk, kind, classes.MODULE) is not True:
                        frame.names[name] = prototype(walk, kind)
        calls.run_body(walk, function)

    recording, walk.recording = walk.recording, None
    walk.active.append(definition.node)
    try:
        classes.apart(walk, instance, owner, work)
    finally:
        walk.active.pop()
        walk.frame, walk.recording = outer, recording
    return instance


def finish(walk: Walk, definition: Definition, namespace: Namespace, result: Value) -> Function | None:
    """The CIR of what was walked: inputs first, then weights, then the ops in the order of the code."""
    name, origin = definition.name, Origin(definition.span(definition.node.name, namespace.path), "FunctionDef")
    values, returns = _results(walk, result, definition.node)
    ops = walk.builder.ops
    if values is None:
        return None if not any(op.name not in ("input", "parameter", "constant") for op in ops) else _function(walk, name, (), "tuple", origin)
    for value in values:
        if not value.type.complete:
            walk.refuse(f"the type of the result is only partly known: {value.type}", definition.node.name, "a known shape and element type",
                        "annotate the parameters, or give input_shapes")
    for op in ops:
        if op.name == "input" and not op.type.complete:
            walk.refuse(f"the type of `{op.label}` is only partly known: {op.type}", definition.node.name, "a known shape and element type",
                        f'input_shapes={{"{op.label}": (...)}}')
    return _function(walk, name, tuple(value.op.id for value in values), returns, origin)


def _function(walk: Walk, name: str, results: tuple[int, ...], returns: str, origin: Origin) -> Function:
    ops = walk.builder.ops
    inputs = sorted((op for op in ops if op.name == "input"), key=lambda op: op.attr("index"))
    return Function(name, (*inputs, *(op for op in ops if op.name == "parameter"), *(op for op in ops if op.name not in ("input", "parameter"))),
                    results, returns, origin)


def _results(walk: Walk, result: Value, node: cst.FunctionDef) -> tuple[list[Tensor] | None, str]:
    result = walk.resolve(result)
    if isinstance(result, Tensor) and result.library != "python":
        return [result], "tensor"
    if isinstance(result, Sequence) and result.items and all(isinstance(walk.resolve(item), Tensor) for item in result.items):
        return [walk.resolve(item) for item in result.items], "tuple"
    if isinstance(result, (Unknown, Untyped)):
        place = result.span if result.span is not None and result.span.path == walk.frame.namespace.path else node.name
        walk.refuse(f"the result is not known: {result.reason}", place, "a tensor, or a tuple of tensors",
                    "annotate the parameters, or give input_shapes")
    elif isinstance(result, Sequence) and result.items:
        odd = next(item for item in map(walk.resolve, result.items) if not isinstance(item, Tensor))
        if isinstance(odd, (Unknown, Untyped)):
            walk.refuse(f"a part of the result is not known: {odd.reason}", odd.span or node.name, "a tuple of tensors")
        else:
            walk.refuse(f"a part of the result is {describe(odd)}", node.name, "a tensor, or a tuple of tensors")
    else:
        walk.refuse(f"the result is {describe(result)}", node.name, "a tensor, or a tuple of tensors")
    return None, "tuple"


def facts_of(walk: Walk, path: str, definition: Definition) -> tuple[ExpressionFact, ...]:
    return tuple(ExpressionFact(definition.span(node, path), type(node).__name__, walk.resolve(value)) for node, value in walk.seen.values())


COUNTED = frozenset(("Call", "BinaryOperation", "UnaryOperation", "Subscript", "Attribute", "Comparison"))


def statistics(expressions: tuple[ExpressionFact, ...]) -> tuple[Counter[str], int]:
    """How many expressions are tensors of known type, and why the others are not. Names and Python values are not counted."""
    unknown: Counter[str] = Counter()
    understood = 0
    for fact in expressions:
        if fact.node in COUNTED:
            if isinstance(fact.value, Tensor):
                understood += 1
            elif isinstance(fact.value, (Unknown, Untyped)):
                unknown[fact.value.reason] += 1
    return unknown, understood


# --- the doors ------------------------------------------------------------------------------------------------------

_shared: dict[str, Analyzer] = {}


def analyze(source: Source, workspace: Workspace | None = None) -> FileFacts:
    """All facts of a file. Calls with the same workspace share what has not changed."""
    if workspace is None:
        analyzer = _shared.setdefault("", Analyzer())
    else:
        analyzer = getattr(workspace, "analyzer", None) or Analyzer(workspace)
        workspace.analyzer = analyzer
    return analyzer.analyze(source)


def capture(source: Source, name: str, inputs: dict[str, TensorType] | None = None, workspace: Workspace | None = None) -> Function:
    """The CIR of a function or method ("Block.forward") for a call; CuvilError, with the place, when it cannot be compiled.

    inputs: by parameter, the type of a tensor, or the value of anything else; the others take their defaults or declared types."""
    deep_enough()
    workspace = workspace if workspace is not None else Workspace()
    workspace.look_again()
    namespace = workspace.open(source)
    module = namespace.syntax
    definition, home, cls = module.by_name.get(name), namespace, None
    if definition is None:
        definition, home, cls = _inherited(workspace, namespace, name)
    if definition is None or definition.kind != "function":
        near = ", ".join(d.name for d in module.definitions if d.kind == "function") or "none"
        raise CuvilError(f"there is no function `{name}` in {source.path}", Span(source.path, 1, 0, 1, 0), f"one of its functions: {near}")
    if definition.error is not None or not isinstance(definition.node, cst.FunctionDef):
        line, column = definition.error_place
        raise CuvilError(f"syntax error: {definition.error}", Span(source.path, line, column, line, column + 1))
    _, outcome = walked(workspace, CAPTURE_STEPS, home, definition, inputs or {}, cls)
    if outcome.refusal is not None:
        raise outcome.refusal
    if outcome.function is None or not outcome.function.results:
        raise CuvilError(f"`{name}` computes no tensor", definition.span(definition.node.name, home.path), "a function that returns tensors")
    return outcome.function


def _inherited(workspace: Workspace, namespace: Namespace, name: str) -> tuple[Definition | None, Namespace, UserClass | None]:
    """A method that a class has from another one: its definition, where that stands, and the class it is asked for."""
    owner, _, method = name.rpartition(".")
    found = namespace.syntax.by_name.get(owner)
    if found is not None and isinstance(found.node, cst.ClassDef):
        walk, cls = Walk(workspace), UserClass(owner, found.node, namespace)
        walk.frame = Frame(namespace, found)
        member = classes.find_member(walk, cls, method)
        if member is not None:
            return member[1], member[0].module, cls
    return None, namespace, None


def reason_of(value: Value) -> str:
    return value.reason if isinstance(value, Unknown) else ""


def deep_enough() -> None:
    """Following calls nests Python frames; the interpreter's own default would stop at some twenty nested calls."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)
