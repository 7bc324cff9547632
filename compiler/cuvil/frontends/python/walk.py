"""The abstract interpreter: one walk over the syntax of a function gives its facts and its CIR.

    walk = Walk(workspace)
    value = walk.evaluate(node)              # by the table EXPRESSIONS (expressions.py)
    walk.execute(node)                       # by the table STATEMENTS (statements.py)

The walk holds what all rules share: the frame of names, the Builder, facts and problems found so far, what has been learnt
about sizes, and which memory was changed. It runs nothing of the user's, and never raises for user code: what is not
understood is Unknown with a reason, and the first thing that cannot be compiled is kept as the refusal.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst

from ...cst import Definition, Place
from ...diagnostics import CuvilError, Evidence
from ...interrupted import Interrupted
from ...ir.dims import Dim, Poly, substitute, symbol, symbols
from ...ir.function import Function, Op
from ...ir.types import DType, TensorType
from ...lineage import Origin
from ...ops.builder import Builder
from ...source import Span
from . import joins
from .facts import HERE, AssignFact, BranchFact, CallFact, Context, Problem, WriteFact
from .libraries import guessed_library
from .tables import EXPRESSIONS, STATEMENTS
from .values import (
    CPU,
    HOST,
    Deferred,
    Device,
    Either,
    Instance,
    Library,
    Many,
    Mapping,
    Partial,
    Scalar,
    Sequence,
    Shape,
    Tensor,
    Unknown,
    Untyped,
    UserClass,
    UserFunction,
    UserModule,
    Value,
    Weight,
    describe,
    shape_value,
)
from .workspace import Namespace, Used, Workspace

STEPS, DEPTH, SAME_FUNCTION, UNROLL = 200_000, 60, 4, 256
FOR_GOOD = frozenset((Unknown, Instance, Library, UserFunction, UserClass, UserModule, Mapping, Partial))      # they mean the same at any time
VIEWS = frozenset(("reshape", "transpose", "broadcast", "slice", "squeeze", "unsqueeze", "flip"))


class OutOfBudget(Exception):
    """The walk took too many steps."""


@dataclass(eq=False)
class Frame:
    """The names of one call. returns: what each `return` reached gives."""

    namespace: Namespace
    definition: Definition | None
    names: dict[str, Value] = field(default_factory=dict)
    closure: tuple[Frame, ...] = ()
    callers: tuple[Span, ...] = ()
    function: UserFunction | None = None
    returns: list[tuple[Value, Span]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)        # names declared global or nonlocal
    chain: int = 0                                        # tells the chains of calls apart that lead to one function


class Walk:
    def __init__(self, workspace: Workspace, steps: int = STEPS) -> None:
        self.workspace, self.steps = workspace, steps
        self.builder = Builder(numpy=workspace.targets.numpy)
        self.frame: Frame | None = None
        self.recording: Frame | None = None                # facts are kept for expressions of this frame
        self.seen: dict[int, tuple[cst.CSTNode, Value]] = {}
        self.calls: dict[tuple[int, int], tuple[cst.CSTNode, CallFact]] = {}          # filled by records.py, as the next three
        self.branches: dict[tuple[int, int], tuple[cst.CSTNode, BranchFact]] = {}
        self.assigns: dict[tuple[int, int], tuple[cst.CSTNode, AssignFact]] = {}
        self.writes: dict[tuple[int, int], tuple[cst.CSTNode, WriteFact]] = {}
        self.spans: dict[int, Span] = {}
        self.reads: dict[int, tuple[str, Span]] = {}       # attributes of self read by the function itself
        self.context: Context = HERE                       # what is around the code that is walked: context.py
        self.statement: cst.CSTNode | None = None          # the expression that is a statement of its own
        self.host: Device | None = HOST                    # where tensors are made without device=; None: a default device was set
        self.bases: dict[int, Tensor] = {}                 # storage -> the tensor that is the whole of it
        self.stamps: dict[int, int] = {}                   # storage -> the op that last wrote into it: views made before it are stale
        self.fresh: dict[tuple[int, int], Tensor] = {}     # (op of a stale view, op that wrote) -> what it shows now
        self.asked: cst.CSTNode | None = None              # the expression whose truth decides the way
        self.problems: dict[tuple[Span, str], Problem] = {}
        self.refusal: CuvilError | None = None
        self.learned: dict[int, Tensor] = {}               # Untyped parameters that turned out to be tensors
        self.dtypes: dict[int, DType] = {}                 # element types of inputs, found by an earlier walk
        self.given: str | None = None                      # of which library the arguments of this call are, if it is a call
        self.listen: Callable[[Walk], None] | None = None  # told after each statement of the function itself: learn.listener
        self.sizes: dict[str, Dim] = {}                    # symbols whose size was learnt
        self.changed: dict[int, Value] = {}                # storage -> what is in it after an in-place change
        self.shared: set[int] = set()                      # storages that some view looks into
        self.fixed: dict[int, str] = {}                    # storages that belong to the caller, and why
        self.constants: dict[tuple[str, str], Value] = {}
        self.used: Used = {}
        self.weights: dict[str, tuple[Instance | None, Tensor]] = {}
        self.replayed: dict[int, tuple[Deferred, Tensor]] = {}
        self.symbols: set[str] = set()
        self.open_sizes: set[Dim] = set()                  # symbols for sizes of which nothing is known: joins.py
        self._numbers: dict[str, int] = {}                 # the last number a word of theirs was given
        self.members: dict[tuple[str, Span | None], Scalar] = {}      # sizes of unknown configurations: size_of
        self.strict = False                                # walked only to see whether it compiles: the first refusal ends the walk
        self.weak = 0                                      # > 0 inside code that may not run: nothing is refused or learnt for it
        self.quiet = 0                                     # > 0 inside code that is walked by itself too: no problems are kept
        self.leaving: list[dict[str, Value]] | None = None # in a loop of unknown length: the names at each `break` and `continue`
        self.building = 0                                  # > 0 while an `__init__` is walked
        self.created: list[Instance] = []                  # objects made by the `__init__` being walked
        self.naming: str | None = None                     # the name for which a statement of a module is walked: its effects are left out
        self.facts_only = False                            # walked for facts, with nothing given: no call of it is compiled
        self.assume = False                                # take documented shapes and defaults as true: assumed.py
        self.everywhere: dict[Definition, dict[int, tuple[cst.CSTNode, TensorType, str, Span | None]]] | None = None      # by assumed.note
        self.types: dict[int, TensorType] = {}             # types of inputs, found by an earlier walk under `assume`
        self.learned_shapes: set[int] = set()              # inputs whose shape the code said
        self.summaries: dict[Any, Value] = {}              # results of calls that took long, and the forms of what they were given: summaries.py
        self.constructing: list[Instance] = []             # objects whose `__init__` is being walked
        self.forms: dict[int, tuple[Instance, Any]] = {}
        self.numbers: dict[Any, int] = {}
        self.cuts = 0                                      # how often something was not followed because it is already being followed
        self.answering = 0                                 # > 0 while an answer is worked out that may be kept: answers.py
        self._storage = 0
        self.active: list[Any] = []

    # --- places ---------------------------------------------------------------------------------------------------

    def span(self, node: cst.CSTNode) -> Span:
        found = self.spans.get(id(node))
        if found is None:                                  # trees outlive a walk, so the id stays the node's own
            found = self.spans[id(node)] = Place(self.frame.namespace.path, self.frame.definition, node)
        return found

    def origin(self, node: cst.CSTNode) -> Origin:
        return Origin(self.span(node), type(node).__name__, self.frame.callers)

    def parameter_origin(self, name: str) -> Origin:
        """Where a parameter of the function being walked is declared."""
        node = self.frame.function.node if self.frame.function is not None else None
        if node is not None:
            for parameter in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params):
                if parameter.name.value == name:
                    return Origin(self.span(parameter.name), "Param", self.frame.callers)
        return self.builder.origins[0] if self.builder.origins else Origin(Span(self.frame.namespace.path, 1, 0, 1, 0), "Param")

    # --- evaluation -----------------------------------------------------------------------------------------------

    def evaluate(self, node: cst.BaseExpression) -> Value:
        self.steps -= 1
        if self.steps < 0:
            raise OutOfBudget
        rule = EXPRESSIONS.get(type(node))
        value = rule.meaning(self, node) if rule is not None else self.unknown(f"{type(node).__name__} is not understood", node)
        if self.frame is self.recording:
            self.seen[id(node)] = node, value
        if self.everywhere is not None:
            note(self, node, value)
        return value

    def execute(self, node: cst.CSTNode) -> str | None:
        """Returns how the statement left: None (at its end), "return", "raise", "break" or "continue"."""
        self.steps -= 1
        if self.steps < 0:
            raise OutOfBudget
        if self.workspace.stop():
            raise Interrupted
        rule = STATEMENTS.get(type(node))
        if rule is None:
            self.refuse(f"{type(node).__name__} is not understood", node)
            return None
        left = rule.meaning(self, node)
        if self.listen is not None and self.frame is self.recording and not self.building:
            self.listen(self)
        return left

    def record(self, node: cst.CSTNode, value: Value) -> None:
        """Keep the value of an expression that was not evaluated by itself."""
        if self.frame is self.recording:
            self.seen[id(node)] = node, value
        if self.everywhere is not None:
            note(self, node, value)

    @contextmanager
    def unsure(self):
        """Inside is code that may not run: it is no reason to refuse, and what it needs is not learnt. Problems are kept."""
        self.weak += 1
        try:
            yield
        finally:
            self.weak -= 1

    def undecided(self, test: Value, node: cst.CSTNode, what: str) -> Unknown:
        """A condition that is not known while compiling."""
        match test:
            case Tensor() | Weight():
                return self.refuse(f"{what} is a tensor ({describe(test)}): its value is only known when it runs", node,
                                   "a condition on sizes or Python values", "torch.where(condition, a, b) keeps both on the device")
            case Unknown(reason="a condition on symbolic sizes"):
                return self.refuse(f"{what} hangs on sizes that are symbolic", node, "a condition that holds for all sizes, or for none",
                                   "give the size as a number in input_shapes")
        return self.refuse(f"{what} is not known: {getattr(test, 'reason', describe(test))}", node, "a condition known while compiling",
                           "give the parameter a default or an annotation")

    def join(self, a: Value, b: Value) -> Value:
        """What is known of a value that is one of two: joins.py."""
        return joins.join(self, a, b)

    # --- what went wrong ------------------------------------------------------------------------------------------

    def unknown(self, reason: str, node: cst.CSTNode | None = None) -> Unknown:
        return Unknown(reason, self.span(node) if node is not None else None)

    def refuse(self, what: str, node: cst.CSTNode | Span | None, expected: str = "", hint: str = "",
               evidence: tuple[Evidence, ...] = ()) -> Unknown:
        """Keep the first reason why this cannot be compiled."""
        span = node if isinstance(node, Span) or node is None else self.span(node)
        if self.refusal is None and not self.weak:
            chain = tuple(Evidence(caller, "called from here") for caller in self.frame.callers) if self.frame else ()
            self.refusal = CuvilError(what, span, expected, hint, evidence=(*evidence, *chain))
            if self.strict:
                raise self.refusal
        return Unknown(what if len(what) < 80 else "a refused operation", span)

    def problem(self, kind: str, what: str, expected: str, node: cst.CSTNode, operation: str = "",
                evidence: tuple[Evidence, ...] = ()) -> Unknown:
        span = self.span(node)
        if not self.quiet and not (self.frame.callers and self._in_a_branch_of_a_callee()):
            self.problems.setdefault((span, what), Problem(kind, what, expected, span, operation, evidence, self.frame.callers))
            self.refuse(what, node, expected, evidence=evidence)
        return Unknown("an operation that fails", span)

    def _in_a_branch_of_a_callee(self) -> bool:
        """Here the arguments of one call meet a test that is not decided: the two may exclude each other, so nothing is certain."""
        root = self.recording.definition if self.recording is not None else None
        return root is None or not all(root.first <= span.line <= root.last and span.path == self.recording.namespace.path for span, _ in self.context.tests)

    # --- tensors --------------------------------------------------------------------------------------------------

    def new_storage(self) -> int:
        self._storage += 1
        return self._storage

    def tensor(self, op: Op, library: str) -> Tensor:
        """A tensor with memory of its own, made here and now."""
        made = Tensor(op, library, self.new_storage(), False, self.host if library == "torch" else CPU if library == "numpy" else None, False,
                      self.context.grad == "inference")
        self.bases[made.storage] = made
        return made

    def own(self, made: Tensor) -> Tensor:
        """A tensor that is the whole of its memory: what is written through its views changes it."""
        self.bases[made.storage] = made
        return made

    def fresh_symbol(self, name: str) -> Poly:
        """A symbol by the user's own word; a second use of the word is another size, so it gets a number."""
        name = name if name.isidentifier() else "n"
        chosen, count = name, self._numbers.get(name, 1)
        while chosen in self.symbols:
            count += 1
            chosen = f"{name}{count}"
        self._numbers[name] = count
        self.symbols.add(chosen)
        return symbol(chosen)

    def size_of(self, value: Value) -> Value:
        """A constructor's argument, or a member of an unknown configuration, where only a size can stand: a symbol by its own name, the
        same for the same argument."""
        if isinstance(value, Untyped) and self.building:
            key = value.name, value.span
            if key not in self.members:
                self.members[key] = Scalar(self.fresh_symbol(value.name.rpartition(".")[2]))
            return self.members[key]
        return value

    def resolve(self, value: Value) -> Value:
        """A value as it is now: after in-place changes, and with what was learnt of sizes and of untyped parameters."""
        if type(value) in FOR_GOOD:
            return value
        match value:
            case Tensor():
                if self.changed and value.storage in self.changed:
                    if value.view:
                        value = self.seen_again(value)
                    else:
                        value = self.changed[value.storage]
                    if not isinstance(value, Tensor):
                        return value
                if self.sizes:
                    op = self.op(value.op.id)
                    if op is not None and op is not value.op:
                        value = replace(value, op=op)
                return value
            case Untyped():
                return self.learned.get(value.index, value)
            case Scalar():
                if self.sizes and isinstance(value.value, Poly):
                    return Scalar(substitute(value.value, self.sizes))
                return value
            case Either(options=options):
                if self.sizes or self.learned or self.changed:
                    return Either(tuple(map(self.resolve, options)))
                return value
            case Many():
                value.item = self.resolve(value.item)
                return value
            case Sequence(items=tuple()):
                if self.sizes or self.learned or self.changed:
                    return Sequence(tuple(self.resolve(item) for item in value.items), value.kind)
                return value
            case Sequence():
                if self.sizes or self.learned or self.changed:
                    value.items[:] = [self.resolve(item) for item in value.items]
                return value
            case Shape():
                of = self.resolve(value.of)
                return shape_value(of)
            case Weight():
                return self.weight(value)
            case Deferred():
                return self.replay(value)
        return value

    def seen_again(self, view: Tensor) -> Value:
        """A view whose memory was written to after it was made: of its type, with elements that hang on the write."""
        stamp = self.stamps.get(view.storage)
        if stamp is None or view.op.id >= stamp or isinstance(self.changed[view.storage], Unknown):
            return view
        key = view.op.id, stamp
        if key not in self.fresh:
            origins, self.builder.origins = self.builder.origins, view.op.origins
            op = self.builder.append("opaque", (view.op.id, self.changed[view.storage].op.id), {"call": "a view of changed memory"}, view.type,
                                     view.op.label)
            self.builder.origins = origins
            self.fresh[key] = replace(view, op=op)
        return self.fresh[key]

    def op(self, id: int) -> Op | None:
        """The op with an id, as it is now (labels and learnt sizes change it)."""
        first = self.builder.ops[0].id if self.builder.ops else 0
        at = id - first
        return self.builder.ops[at] if 0 <= at < len(self.builder.ops) and self.builder.ops[at].id == id else None

    def replace_op(self, op: Op) -> None:
        self.builder.ops[op.id - self.builder.ops[0].id] = op

    def learn_size(self, name: str, size: Dim) -> None:
        """From here on a symbol has a size: types made so far are rewritten."""
        self.sizes = {key: substitute(value, {name: size}) for key, value in self.sizes.items()}
        self.sizes[name] = size
        ops = self.builder.ops
        touched = [at for at, op in enumerate(ops) if _mentions(op, name)]
        for at, op in zip(touched, Function("", tuple(ops[at] for at in touched), ()).substitute({name: size}).ops):
            ops[at] = op

    def learn_type(self, tensor: Tensor | Untyped, shape: tuple[Dim, ...] | None) -> Tensor:
        """An input turns out to have a shape, or to be a tensor at all (shape None)."""
        if shape is not None:
            self.learned_shapes.add(tensor.index if isinstance(tensor, Untyped) else tensor.op.attr("index"))
        if isinstance(tensor, Untyped):
            library = guessed_library(self.frame)
            self.builder.origins = (Origin(tensor.span, "Param"),) if tensor.span else self.builder.origins
            op = self.builder.input(tensor.name, tensor.index, TensorType(shape, self.dtypes.get(tensor.index)))
            found = self.own(replace(self.tensor(op, library), device=Device(like=tensor.name) if library == "torch" else CPU, grad=None, inference=False))
            self.fixed[found.storage] = f"`{tensor.name}` is a parameter"
            self.learned[tensor.index] = found
            return found
        op = replace(self.op(tensor.op.id), type=TensorType(shape, tensor.type.dtype))
        self.replace_op(op)
        found = replace(tensor, op=op)
        if not tensor.view:
            self.changed[tensor.storage] = found
        return found

    def fix(self, value: Value, why: str) -> None:
        """What a value holds belongs to someone else."""
        todo = [value]
        while todo:
            match todo.pop():
                case Tensor(storage=storage):
                    self.fixed.setdefault(storage, why)
                case Sequence(items=items):
                    todo += items
                case Mapping(items=items):
                    todo += items.values()

    def weight(self, weight: Weight) -> Tensor:
        """The parameter of the function that holds a weight. Layers made in the function itself have no path of their own: numbers tell them apart."""
        path, number = weight.path, 1
        while path in self.weights and self.weights[path][0] is not weight.owner:
            number += 1
            path = f"{weight.path}_{number}"
        if path not in self.weights:
            op = self.builder.parameter(path, weight.type)
            trainable = weight.trainable and (weight.type.dtype is None or weight.type.dtype.is_float) and not any(m.frozen for m in weight.owners)
            made = replace(self.tensor(op, "torch"), device=next((m.device for m in weight.owners if m.device is not None), self.host),
                           grad=trainable, inference=False, mask=weight.mask, marks=frozenset(("parameter",)) if weight.trainable else frozenset())
            self.weights[path] = weight.owner, self.own(made)
            self.fixed[self.weights[path][1].storage] = f"`{path}` is a parameter of the module"
        return self.resolve(self.weights[path][1])

    def replay(self, deferred: Deferred) -> Tensor:
        """The ops of a tensor that was computed in `__init__`, once more in this function."""
        if id(deferred) in self.replayed:
            return self.resolve(self.replayed[id(deferred)][1])
        made: dict[int, Op] = {}
        for op in deferred.ops:
            self.builder.origins = op.origins
            made[op.id] = self.builder.append(op.name, tuple(made[i].id if i in made else i for i in op.operands), dict(op.attrs), op.type, op.label)
        old = deferred.tensor
        tensor = self.own(replace(self.tensor(made[old.op.id], old.library), device=old.device, grad=old.grad, inference=old.inference, mask=old.mask,
                                  marks=old.marks))
        self.fixed[tensor.storage] = "it is kept by the module"
        self.replayed[id(deferred)] = deferred, tensor     # with the key's object, so that its id stays its own
        return tensor

    def place(self, name: str, value: Value) -> Value:
        """Bind a name; a tensor that has no name yet takes it as the label of its op."""
        if isinstance(value, Tensor) and not value.op.label:
            op = self.op(value.op.id)
            if op is not None and not op.label and op.name not in ("input", "parameter"):
                op = replace(op, label=name)
                self.replace_op(op)
                value = replace(value, op=op)
        self.frame.names[name] = value
        return value


def _mentions(op: Op, name: str) -> bool:
    """A size of the op has the symbol in it."""
    return any(isinstance(dim, Poly) and name in symbols(dim) for dim in op.type.shape or ()) or any(
        isinstance(value, (Poly, tuple)) and name in str(value) for _, value in op.attrs)


def note(walk: Walk, node: cst.CSTNode, value: Value) -> None:
    from .assumed import note
    note(walk, node, value)
