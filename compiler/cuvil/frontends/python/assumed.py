"""What callers and documentation say of a function: its expressions in every call that the file itself makes, from its entries down.

A function walked by itself knows its parameters by their annotations alone. Walked once more from the models that use it, with the shapes
that are documented for their inputs, most of it is known. None of this is proof: problems are not kept, and no rule reads it. It fills
what hover, hints and `--explain-unknown` show, marked "brought" and with the call that brings it.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace

import libcst as cst

from ...cst import Definition
from ...ir.dims import TooLong
from ...ir.function import Op
from ...ir.types import TensorType
from ...source import Span
from . import calls, classes, learn
from .capture import walk_function
from .facts import ExpressionFact, FunctionFacts
from .joins import without_differences
from .signatures import inputs_of
from .values import Deferred, Instance, Mapping, Sequence, Tensor, Unknown, Untyped, UserClass, UserFunction, Value, Weight
from .walk import Frame, OutOfBudget, Walk
from .workspace import Namespace, Used, Workspace

ENTRIES = ("forward", "__call__")
MAKERS = 4                                     # functions of a file that make its models: the first few say how
_MAKES = re.compile(r"\bpretrained\b|\bweights: ")
Seen = dict[int, tuple[cst.CSTNode, TensorType, str, Span | None, bool]]      # node, type, library, the call that brought it, whether calls differ


HELD = (Tensor, Weight, Instance, Sequence, Mapping)


@dataclass(frozen=True)
class Object:
    """A value that is no tensor, and may hold some: what a model gives, say."""

    value: Value
    complete: bool = False                     # it says nothing of what else there is to know


@dataclass(frozen=True)
class Brought:
    """What the walk of one entry saw in the functions of its file, and what it hangs on."""

    seen: dict[Definition, Seen]
    used: Used


def brought(workspace: Workspace, namespace: Namespace, entry: Definition, steps: int) -> Brought:
    """steps: that the walk may take."""
    walk = _walk(workspace, namespace, entry, {}, steps)
    types = learn.types_met(walk)
    if types:
        walk = _walk(workspace, namespace, entry, types, steps)
    own = set(namespace.syntax.definitions)
    return Brought({definition: seen for definition, seen in walk.everywhere.items() if definition in own}, walk.used)


def _walk(workspace: Workspace, namespace: Namespace, entry: Definition, types: dict[int, TensorType], steps: int) -> Walk:
    walk = Walk(workspace, steps)
    walk.assume, walk.everywhere, walk.quiet, walk.types = True, {}, 1, types
    outcome = walk_function(walk, namespace, entry, None)
    if isinstance(outcome.result, Instance) and isinstance(outcome.result.of, UserClass) and not entry.owner:
        _forward(walk, outcome.result, outcome.result.of)
    return walk


def _forward(walk: Walk, model: Instance, cls: UserClass) -> None:
    """A function that makes a model: what the model's forward does with its documented inputs."""
    found = classes.find_member(walk, cls, "forward")
    if found is None or not isinstance(found[1].node, cst.FunctionDef):
        return
    owner, definition = found
    function = UserFunction(definition.name, definition.node, owner.module, model, (), owner, definition)
    walk.frame = frame = Frame(owner.module, definition, function=function)
    try:
        frame.names.update(inputs_of(walk, function, None, None))
        calls.run_body(walk, function)
    except (OutOfBudget, RecursionError, TooLong):
        pass


def entries(namespace: Namespace) -> list[Definition]:
    """Functions in the order in which they are asked: models stand at the end of a file, what they call before them."""
    functions = [d for d in reversed(namespace.syntax.definitions) if d.kind == "function" and d.error is None and not d.stale]
    forwards = [d for d in functions if d.owner and d.name.rpartition(".")[2] in ENTRIES]
    makers = [d for d in functions if not d.owner and _MAKES.search(d.text)][-MAKERS:]
    asked = set(forwards)
    others = [d for d in functions if d not in asked and ("Tensor" in d.text or "shape" in d.text) and not d.name.endswith("__init__")
              and not _MAKES.search(d.text)]
    return forwards + makers + others


def makes_a_model(entry: Definition) -> bool:
    return not entry.owner and _MAKES.search(entry.text) is not None


def note(walk: Walk, node: cst.CSTNode, value: Value) -> None:
    """The value of an expression in one of the calls that reach it."""
    if isinstance(value, Deferred):
        value = value.tensor
    if walk.frame.definition is None or not isinstance(value, HELD) or isinstance(value, Tensor) and value.library == "python":
        return
    if not isinstance(value, (Tensor, Weight)):                 # no tensor: an object, or a tuple of some
        walk.everywhere.setdefault(walk.frame.definition, {}).setdefault(id(node), (node, Object(value), "", None, False))
        return
    seen = walk.everywhere.setdefault(walk.frame.definition, {})
    known = seen.get(id(node))
    if known is not None and known[2]:
        seen[id(node)] = node, without_differences(known[1], value.type), known[2], known[3], known[4] or _differ(known[1], value.type)
        return
    library, callers = value.library if isinstance(value, Tensor) else "torch", walk.frame.callers
    seen[id(node)] = node, value.type, library, callers[0] if callers else None, False


def merged(facts: FunctionFacts, definition: Definition, nodes: tuple[cst.CSTNode, ...], found: list[Seen], path: str) -> FunctionFacts:
    """The facts of a function with what its callers bring where it knows less by itself. nodes: those of its expressions."""
    types: Seen = {}
    for seen in found:
        for at, each in seen.items():
            known = types.get(at)
            if known is not None and not each[2]:
                continue                                   # an object tells nothing of the tensors that other calls bring
            if known is None or not known[2]:
                types[at] = each
                continue
            differ = known[4] or each[4] or _differ(known[1], each[1])
            both = without_differences if differ else _of_both
            types[at] = known[0], both(known[1], each[1]), known[2], known[3] or each[3], differ
    expressions = []
    for node, fact in zip(nodes, facts.expressions):
        more = types.pop(id(node), None)
        value = fact.value if more is None else _better(fact.value, more[1], more[2], more[4])
        expressions.append(fact if value is fact.value else replace(fact, value=value, caller=more[3]))
    expressions += [ExpressionFact(definition.span(node, path), type(node).__name__, _better(None, new, library), caller)
                    for node, new, library, caller, _ in types.values() if node in definition.tree]
    return replace(facts, expressions=tuple(expressions))


def _of_both(a: TensorType, b: TensorType) -> TensorType:
    """What two callers bring. One that does not know does not say otherwise."""
    shape = without_differences(a, b).shape if a.shape is not None and b.shape is not None else a.shape if a.shape is not None else b.shape
    return TensorType(shape, a.dtype if a.dtype == b.dtype or b.dtype is None else b.dtype if a.dtype is None else None)


def _differ(a: TensorType, b: TensorType) -> bool:
    """Both cannot be the type of one tensor, whatever its sizes are."""
    return a.shape is not None and b.shape is not None and len(a.shape) != len(b.shape) or a.dtype is not None and b.dtype not in (None, a.dtype)


def _better(value: Value | None, brought: TensorType | Object, library: str, differing: bool = False) -> Value | None:
    """The value, or what callers bring when that says more of its rank and element type. Where callers differ, as a model with its defaults and
    one that is made otherwise, the value alone is not all there is."""
    if isinstance(brought, Object):
        return brought.value if value is None or isinstance(value, (Unknown, Untyped)) else value
    if isinstance(value, Tensor) and (differing or _differ(value.type, brought)):
        own = value.type
        found = TensorType(brought.shape if differing or own.shape is None or len(own.shape) == len(brought.shape or own.shape) else None,
                           brought.dtype if differing or own.dtype == brought.dtype else None)
        return replace(value, op=replace(value.op, type=found), marks=value.marks | {"brought"})
    if isinstance(value, Tensor):
        own = value.type
        shape = own.shape if own.shape is not None else brought.shape
        found = TensorType(shape, own.dtype if own.dtype is not None else brought.dtype)
        return value if found == own else replace(value, op=replace(value.op, type=found), marks=value.marks | {"brought"})
    if value is None or getattr(value, "reason", None) is not None:
        return Tensor(Op(-1, "opaque", (), (("call", "brought"),), brought), library, marks=frozenset(("brought",)))
    return value
