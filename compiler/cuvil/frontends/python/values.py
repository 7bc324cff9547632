"""Abstract values: what the interpreter knows of a Python object without running anything.

Unknown carries a reason and is silent: an operation on Unknown is Unknown, and no rule reports on it.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from ...ir.dims import Dim
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ...source import Span

if TYPE_CHECKING:
    import libcst as cst


@dataclass(frozen=True, slots=True)
class Unknown:
    """reason   short and countable, without names of the user's: "call of an unknown function", "parameter without annotation"."""

    reason: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Untyped:
    """A parameter without a type, or an attribute of one (`config.width`). As silent as Unknown, until the code says what it is:
    `rows, columns = x.shape`, `nn.Linear(config.width, 4)`."""

    name: str
    index: int
    span: Span | None = None

    @property
    def reason(self) -> str:
        return "parameter without a type"


@dataclass(frozen=True, slots=True)
class Device:
    """Where a tensor lives.

    kind     "cpu", "cuda", "mps", ...; "" when it is only known to be the same as another's
    like     whose device it is, by the user's word: the parameter "x", or "self" for the weights of the module
    default  made by a factory call without device=: the host, unless a default device was set
    """

    kind: str = ""
    like: str = ""
    default: bool = False


CPU = Device("cpu")
HOST = Device("cpu", default=True)


@dataclass(frozen=True, slots=True)
class Mask:
    """What the elements of a mask say.

    keep     True: 1 or True marks positions that take part; False: positions that are left out; None: not known
    form     "bool", "01" (numbers 0 and 1) or "additive" (0 to keep, a very negative number to leave out)
    origin   "tokenizer", "pad" (a comparison with the pad id), "length" (positions < lengths), "causal", "fill"
    span     where it was born
    """

    keep: bool | None
    form: str
    origin: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A torch tensor or NumPy array. `op` makes it and holds its (maybe partial) type.

    library    "torch" or "numpy"; "python" for a float that is computed from symbolic sizes (a 0-d f64)
    storage    which memory it lives in: two tensors with one storage change together
    view       it is a part or another shape of its storage
    device     None when nothing is known
    grad       it requires grad, or hangs on something that does and was not made under no_grad; None when not known. Where the mode hangs
               on the caller (Context.grad is None), as if gradients were on
    inference  it was made under torch.inference_mode()
    mask       what it says as a mask, when that is known
    marks      what else is known of where it comes from: see MARKS
    """

    op: Op
    library: str = "torch"
    storage: int = -1
    view: bool = False
    device: Device | None = None
    grad: bool | None = None
    inference: bool = False
    mask: Mask | None = None
    marks: frozenset[str] = frozenset()

    @property
    def type(self) -> TensorType:
        return self.op.type


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a tensor whose rank is not known (yet)."""

    of: Tensor | Untyped


@dataclass(frozen=True, slots=True)
class Opaque:
    """A Python object of which only the kind matters: a device (and which), a generator, a logger."""

    kind: str
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A Python int, float, bool, str, None, DType, slice or Opaque. Sizes may be symbolic (a Poly)."""

    value: int | float | bool | str | None | Dim | DType | slice | Opaque | Any


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list or tuple whose items are known one by one. The items of a list are a Python list, changed by append and the like."""

    items: tuple[Value, ...] | list[Value]
    kind: str = "tuple"


@dataclass
class Mapping:
    """A dict with known string or number keys; changed in place, as dicts are. kind: a library's class of dicts may have other keys too.
    One that is not known stands for itself as a tuple."""

    items: dict[Any, Value]
    kind: str = "builtins.dict"


OPEN = "a dict with keys that are not known"             # a Mapping's kind


@dataclass(frozen=True, eq=False)
class UserFunction:
    """A function of the workspace, with the values its free names have.

    module     the file's namespace, frontends.python.workspace.Namespace
    receiver   the object of a bound method
    closure    the frames around it, innermost first
    owner      of a method: the class it stands in, for super()
    """

    name: str
    node: cst.FunctionDef | cst.Lambda
    module: Any
    receiver: Value | None = None
    closure: tuple[Any, ...] = ()
    owner: UserClass | None = None
    definition: Any = None
    regions: tuple[Any, ...] = ()                         # it went through torch.compile or the like: facts.Region


@dataclass(frozen=True, eq=False)
class UserClass:
    name: str
    node: cst.ClassDef
    module: Any


@dataclass(frozen=True, eq=False)
class UserModule:
    """A file of the workspace, as a name bound by `import`."""

    namespace: Any


@dataclass(eq=False)
class Instance:
    """An object of a user's class or of a library layer (nn.Linear): its attributes, and where it is registered.

    of        a UserClass, or the Library name of the layer
    owner     the module that holds it and under what name; this gives parameter paths like "layers.0.attn.weight"
    """

    of: Any
    attributes: dict[str, Value] = field(default_factory=dict)
    owner: tuple[Instance, str] | None = None
    complete: bool = True                    # False: it may have attributes that are not known
    training: bool | None = None             # its mode now: True after construction or .train(), False after .eval() and from_pretrained
    constructor: dict[str, Any] | None = None             # of a library layer: its constructor's arguments as plain Python
    weights: tuple[str, ...] = ()                         # of a library layer: the attributes that are its weights
    device: Device | None = None                          # where its weights are, if it was moved
    frozen: bool = False                                  # requires_grad_(False)
    regions: tuple[Any, ...] = ()                         # it was handed to torch.compile or the like: facts.Region
    assumed: str = ""                                     # of a library layer: the argument that is not known and taken as its default

    def __getattr__(self, name: str) -> Any:
        """The attributes of a copy, which are copied when somebody looks at them: prototypes.copy."""
        original = self.__dict__.pop("original", None) if name == "attributes" else None
        if original is None:
            raise AttributeError(name)
        source, of, _ = original
        self.attributes = {}
        self.attributes.update({name: of(value) for name, value in source.attributes.items()})
        return self.attributes

    @property
    def looked_at(self) -> bool:
        """It is no copy, or one that is made."""
        return "original" not in self.__dict__

    @property
    def path(self) -> str:
        names, at, seen = [], self, set()
        while at.owner is not None and id(at) not in seen:
            seen.add(id(at))
            at, name = at.owner
            names.append(name)
        return ".".join(reversed(names))


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter or buffer of a module: it becomes a `parameter` op where it is used."""

    type: TensorType
    owner: Instance | None = None
    name: str = ""
    trainable: bool = True                                # False: a buffer, or requires_grad=False
    mask: Mask | None = None                              # of a buffer: what it says as a mask

    @property
    def owners(self) -> list[Instance]:
        """The modules it hangs in, innermost first."""
        found, at = [], self.owner
        while at is not None and len(found) < 60:
            found.append(at)
            at = at.owner[0] if at.owner is not None else None
        return found

    @property
    def path(self) -> str:
        base = self.owner.path if self.owner is not None else ""
        return f"{base}.{self.name}" if base else self.name


@dataclass(frozen=True, slots=True)
class Deferred:
    """A tensor computed in `__init__` and kept as a plain attribute: its ops are repeated where it is used."""

    ops: tuple[Op, ...]
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Library:
    """Something of torch, NumPy or the standard library, by its full dotted name: "torch.nn.functional.softmax"."""

    name: str
    receiver: Value | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """One of a few values: what two branches bind to one name. Two tensors are one partly known tensor instead: joins.py."""

    options: tuple[Value, ...]


@dataclass(slots=True)
class Many:
    """A list or tuple of an unknown number of items that are all like `item`; appending to a list widens it."""

    item: Value
    kind: str = "list"


@dataclass(frozen=True, slots=True)
class Partial:
    """functools.partial: a function with some arguments given."""

    function: Value
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


MARKS = {
    "bgr": "an image as OpenCV decodes it", "rgb": "an image as PIL decodes it, or converted", "hwc": "an image with its channels last",
    "expanded": "many indices share one element (expand, broadcast_to)", "shared": "its memory is also a NumPy array's",
    "pending": "an asynchronous copy to the host that nothing has waited for", "pinned": "page-locked host memory",
    "negative-stride": "a flipped NumPy view", "padded-left": "token ids of a batch padded on the left", "padded-right": "the same, on the right",
    "parameter": "a weight of a module",
    "brought": "known from calls of this file and from what is documented alone: no ground for a finding",
}

Value = Union[Unknown, Untyped, Tensor, Shape, Scalar, Sequence, Mapping, UserFunction, UserClass, UserModule, Instance, Weight, Deferred,
              Library, Either, Many, Partial]
NONE = Scalar(None)
RAISES = Unknown("a function that always raises")


def describe(value: Value) -> str:
    """A value in a few words, for hover, hints and messages: "f32[B, T, 64]", "4", "(2, 'bt')"."""
    match value:
        case Tensor():
            return str(value.type)
        case Weight():
            return str(value.type)
        case Scalar(value=DType() as dtype):
            return f"dtype {dtype}"
        case Scalar(value=Opaque(kind=kind)):
            return kind
        case Scalar():
            return repr(value.value)
        case Sequence():
            inner = ", ".join(describe(item) for item in value.items[:8]) + (", ..." if len(value.items) > 8 else "")
            return f"[{inner}]" if value.kind == "list" else f"({inner},)" if len(value.items) == 1 else f"({inner})"
        case Mapping():
            return "{" + ", ".join(f"{'?' if value.kind == OPEN and isinstance(key, tuple) else repr(key)}: {describe(item)}"
                                   for key, item in list(value.items.items())[:8]) + "}"
        case Either(options=options):
            return " or ".join(dict.fromkeys(map(describe, options)))
        case Many(item=item, kind=kind):
            return f"[{describe(item)}, ...]" if kind == "list" else f"({describe(item)}, ...)"
        case UserFunction():
            return f"function {value.name}"
        case UserClass():
            return f"class {value.name}"
        case Instance():
            return f"{getattr(value.of, 'name', value.of).rpartition('.')[2]} object"
        case Library():
            return value.name
    return "unknown"


def shape_value(of: Value) -> Value:
    """`x.shape`: the sizes, or a Shape that waits for them."""
    if isinstance(of, Tensor) and of.type.shape is not None:
        return Sequence(tuple(Scalar(dim) for dim in of.type.shape))
    if isinstance(of, (Tensor, Untyped)):
        return Shape(of)
    return Unknown("shape of an unknown value")


def contains_tensor(value: Value) -> bool:
    match value:
        case Tensor() | Weight() | Deferred():
            return True
        case Sequence():
            return any(map(contains_tensor, value.items))
        case Either(options=options):
            return any(map(contains_tensor, options))
        case Many(item=item):
            return contains_tensor(item)
        case Mapping():
            return any(map(contains_tensor, value.items.values()))
        case Instance():
            return True
    return False
