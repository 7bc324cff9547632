"""One function walked as an entry: its parameters become inputs, its result the results of a CIR function.

    function = capture(source, "f", {"x": TensorType((2, 3), DType.F32)})
"""
from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import libcst as cst

from ...cst import Definition, Place
from ...diagnostics import DEFECT, CuvilError
from ...ir.dims import Poly, TooLong, symbols
from ...ir.function import Function, Op
from ...ir.types import DType, TensorType
from ...lineage import Origin
from ...source import Source, Span
from . import calls, classes, expressions, learn, records, scope, statements
from .devices import host_of
from .facts import HERE, Entry
from .prototypes import prototype
from .signatures import entry_of, inputs_of
from .values import Instance, Sequence, Tensor, Unknown, Untyped, UserClass, UserFunction, Value, describe
from .walk import Frame, OutOfBudget, Walk
from .workspace import Namespace, Workspace

CAPTURE_STEPS = 2_000_000
ANEW = 4                                       # times that a walk may begin anew with an element type it has met
FRAMES = 12_000                                # Python frames the walk may nest: calls of calls, not expressions of one function
assert expressions and statements              # their tables are filled by importing them


def capture(source: Source, name: str, inputs: dict[str, TensorType] | None = None, workspace: Workspace | None = None,
            library: str | None = None) -> Function:
    """The CIR of a function or method ("Block.forward") for a call; CuvilError, with the place, when it cannot be compiled.

    inputs   by parameter, the type of a tensor, or the value of anything else; the others take their defaults or declared types
    library  "torch" or "numpy": what the tensors of the call are, hence whose promotion rules hold; None: as the code suggests"""
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
    _, outcome = walked(workspace, CAPTURE_STEPS, home, definition, inputs or {}, cls, library)
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


@dataclass
class Outcome:
    """What the walk of one function gave."""

    function: Function | None
    refusal: CuvilError | None
    entry: Entry | None
    parameters: dict[str, Value]
    result: Value | None


def walked(workspace: Workspace, steps: int, namespace: Namespace, definition: Definition, inputs: dict[str, TensorType] | None,
           cls: UserClass | None = None, library: str | None = None, strict: bool = False) -> tuple[Walk, Outcome]:
    """The walk of a function; begun anew when it finds out the element type of an input that was declared without.
    strict: only whether it is refused counts, so the walk ends where it is."""
    dtypes: dict[int, DType] = {}
    for last in (False,) * ANEW + (True,):
        walk = Walk(workspace, steps)
        walk.given, walk.strict, walk.dtypes, walk.listen = library, strict, dtypes, None if last else learn.listener()
        try:
            return walk, walk_function(walk, namespace, definition, inputs, cls)
        except learn.DtypesMet as met:
            dtypes = dtypes | met.dtypes
    raise AssertionError("the last walk listens to nothing")


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
        walk.facts_only = inputs is None
        receiver = _receiver(walk, namespace, definition, owner, cls)
        function = UserFunction(definition.name, node, namespace, receiver, (), owner, definition)
        frame.function = function
        walk.frame = walk.recording = frame
        walk.context, walk.host = calls.inside(walk, function, HERE), host_of(namespace.source.text)
        if definition.name.endswith(".__init__"):
            walk.building = 1
        frame.names.update(inputs_of(walk, function, outcome.entry, inputs))
        outcome.parameters = {name: value for name, value in frame.names.items() if value is not receiver}
        walk.active.append(node)
        outcome.result = calls.run_body(walk, function)
        outcome.parameters = {name: records.as_it_was(walk, value) for name, value in outcome.parameters.items()}
        outcome.function = finish(walk, definition, namespace, outcome.result)
    except OutOfBudget:
        walk.frame, walk.strict = frame, False             # the walk has ended: the refusal is only kept
        walk.refuse("this function is too large to follow", node.name, "fewer unrolled rounds and calls")
    except TooLong as error:
        walk.frame, walk.strict = frame, False
        walk.refuse(f"{error} cannot be followed", node.name)
    except RecursionError:
        walk.frame, walk.strict = frame, False
        walk.refuse("this function is nested too deep to follow", node.name, "expressions and calls that are less deep")
    except CuvilError as error:
        walk.refusal = walk.refusal or error
    except Exception as error:                # a defect of ours: it costs this function alone, and says so
        walk.refusal = CuvilError(f"Cuvil failed here: {type(error).__name__}: {error}", frame.definition.span(node.name, namespace.path),
                                  hint="please report this with the function's code", code=DEFECT)
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
    names = scope.decorators(walk, namespace, definition.node)
    if "builtins.staticmethod" in names:
        return None
    if "builtins.classmethod" in names:
        return owner
    if definition.name.endswith(".__init__"):
        return Instance(owner)
    return cls if isinstance(cls, Instance) else prototype(walk, cls or owner)


def finish(walk: Walk, definition: Definition, namespace: Namespace, result: Value) -> Function | None:
    """The CIR of what was walked: inputs first, then weights, then the ops in the order of the code."""
    name, origin = definition.name, Origin(Place(namespace.path, definition, definition.node.name), "FunctionDef")
    values, returns = _results(walk, result, definition.node)
    ops = walk.builder.ops = _whole(walk.builder.ops)
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
    for op in ops:
        if op.name == "opaque":                           # refused where it was made, unless that was code that may not run
            walk.refuse(f"{op.attr('call')} is not compiled", op.origins[0].span if op.origins else definition.node.name)
    _refuse_open_sizes(walk, definition.node)
    return _function(walk, name, tuple(value.op.id for value in values), returns, origin)


def _whole(ops: list[Op]) -> list[Op]:
    """The ops, those that hang on one that was taken back as what is not known."""
    made: set[int] = set()
    found: list[Op] = []
    for op in ops:
        if not made.issuperset(op.operands):
            op = replace(op, name="opaque", operands=tuple(i for i in op.operands if i in made), attrs=(("call", op.name),))
        made.add(op.id)
        found.append(op)
    return found


def _function(walk: Walk, name: str, results: tuple[int, ...], returns: str, origin: Origin) -> Function:
    ops = walk.builder.ops
    inputs = sorted((op for op in ops if op.name == "input"), key=lambda op: op.attr("index"))
    return Function(name, (*inputs, *(op for op in ops if op.name == "parameter"), *(op for op in ops if op.name not in ("input", "parameter"))),
                    results, returns, origin)


def _refuse_open_sizes(walk: Walk, node: cst.FunctionDef) -> None:
    """A size that no input and no weight has cannot be worked out when the function runs."""
    bound: set[str] = set()
    for op in walk.builder.ops:
        if op.name in ("input", "parameter"):
            bound |= op.type.symbols
    for op in walk.builder.ops:
        used = op.type.symbols | (symbols(op.attr("value")) if op.name == "constant" and isinstance(op.attr("value"), Poly) else set())
        if not used <= bound:
            size = min(used - bound)
            walk.refuse(f"the size `{size}` is of no input and no weight", op.origins[0].span if op.origins else node.name, "sizes that the inputs have",
                        f"give the constructor's `{size}` a default")
            return


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


def deep_enough() -> None:
    """Following calls nests Python frames; the interpreter's own default would stop at some twenty nested calls."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)
