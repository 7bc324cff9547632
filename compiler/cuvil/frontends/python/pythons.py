"""What Python's own functions and methods do to abstract values: len, range, zip, math.sqrt, list.append, isinstance, ...

Each takes (walk, args, keywords, node) and gives a value, or None when it is not its case. What is not in FUNCTIONS nor in
the vocabulary of ops is Unknown, and refused where a tensor hangs on it.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import libcst as cst

from ...ir.dims import Poly, at_least, maximum, minimum
from ...ir.types import TensorType
from ...ops import SPELLINGS
from . import classes, layers, modules, operators, partial
from .library import apply
from .modules import given_away
from .partial import SOME_NUMBER
from .values import (
    NONE,
    OPEN,
    Either,
    Instance,
    Library,
    Many,
    Mapping,
    Opaque,
    Partial,
    Scalar,
    Sequence,
    Shape,
    Tensor,
    Unknown,
    Untyped,
    UserClass,
    UserFunction,
    Value,
    Weight,
    contains_tensor,
)
from .walk import Walk

Function = Callable[[Walk, list[Value], dict[str, Value], cst.CSTNode], "Value | None"]
FUNCTIONS: dict[str, Function] = {}

# What prints, logs, warns or times has no part in values, and a compiled function leaves it out.
EFFECT_FREE = ("builtins.print", "logging.", "warnings.", "time.", "torch.cuda.synchronize", "torch.manual_seed", "numpy.random.seed",
               "torch._assert", "torch._check", "torch.set_num_threads", "torch.set_printoptions", "torch.set_float32_matmul_precision")
CONTEXTS = ("torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.set_grad_enabled", "torch.device", "torch.profiler.",
            "contextlib.nullcontext", "torch.cuda.device", "numpy.errstate")


def python(*names: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for name in names:
            FUNCTIONS[name] = function
        return function
    return register


def fallback(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    """A library function that is neither here nor in the vocabulary."""
    if name.startswith(EFFECT_FREE):
        return NONE
    if name.startswith(CONTEXTS):
        return Scalar(Opaque("context" if not name.endswith("device") else "device"))
    if not name.startswith(("builtins.", "torch.")):
        given_away((*args, *keywords.values()))
    if any(map(contains_tensor, (*args, *keywords.values()))):
        walk.refuse(f"{name} is not in the vocabulary", node, "a function that `cuvil explain --mapping` lists")
    return walk.unknown(f"{name} is not in the vocabulary", node)


def iterate(walk: Walk, value: Value) -> list[Value] | None:
    from .expressions import iterate
    return iterate(walk, value)


def one_of(walk: Walk, value: Value) -> Value | None:
    from .expressions import one_of
    return one_of(walk, value)


@python("functools.partial")
def partial_(walk: Walk, args, keywords, node) -> Value | None:
    return Partial(args[0], tuple(args[1:]), tuple(keywords.items())) if args and not isinstance(args[0], (Unknown, Untyped)) else None


@python("itertools.repeat")
def repeat(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [value, Scalar(value=int() as times)] if 0 <= times <= 256:
            return Sequence((value,) * times)
        case [value, *_]:
            return Many(value, "tuple")
    return None


# --- builtins -------------------------------------------------------------------------------------------------------

@python("builtins.len")
def len_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Mapping(kind=kind)] if kind == OPEN:
            return walk.unknown("the length of a dict with unknown keys", node)
        case [Sequence(items=items) | Mapping(items=items)]:
            return Scalar(len(items))
        case [Scalar(value=str() | range() as inner)]:
            return Scalar(len(inner))
        case [Many()]:
            return Scalar(walk.fresh_symbol("n") - 1)      # symbols are at least 1, a length is at least 0
        case [Tensor() as tensor] if tensor.type.shape:
            return Scalar(tensor.type.shape[0])
        case [Instance() as instance]:
            inside = layers.items(walk, instance)
            return Scalar(len(inside)) if inside is not None else walk.unknown("the length of an object", node)
        case [value]:
            return walk.unknown(getattr(value, "reason", "a length that is not known"), node)
    return None


@python("builtins.range")
def range_(walk: Walk, args, keywords, node) -> Value | None:
    values = [arg.value if isinstance(arg, Scalar) else None for arg in args]
    if all(isinstance(v, int) for v in values) and 1 <= len(values) <= 3 and not (len(values) == 3 and values[2] == 0):
        return Scalar(range(*values))
    if len(args) == 3 and not (isinstance(values[2], int) and values[2] > 0):
        return walk.unknown("a range that is not known", node)
    start = values[0] if len(args) > 1 else 0
    if isinstance(start, (int, Poly)) and at_least(start, 0):      # symbols are at least 1, an index is at least 0
        return Many(Scalar(walk.fresh_symbol("i") - 1), "range")
    return Many(walk.unknown("an index of a range that is not known", node), "range")


@python("builtins.slice")
def slice_(walk: Walk, args, keywords, node) -> Value | None:
    parts = [None if operators.is_none(arg) else arg for arg in args]
    return next((p for p in parts if isinstance(p, (Unknown, Untyped))), None) or Scalar(slice(*parts)) if 1 <= len(parts) <= 3 else None


@python("builtins.enumerate")
def enumerate_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else None
    start = args[1] if len(args) > 1 else keywords.get("start", Scalar(0))
    if items is None or not isinstance(start, Scalar) or not isinstance(start.value, int):
        like = one_of(walk, args[0]) if args else None
        return walk.unknown("a sequence that is not known", node) if like is None else \
            Many(Sequence((Scalar(walk.fresh_symbol("i") - 1) if start == Scalar(0) else walk.unknown("a counter", node), like)), "tuple")
    return Sequence(tuple(Sequence((Scalar(start.value + i), item)) for i, item in enumerate(items)))


@python("builtins.zip")
def zip_(walk: Walk, args, keywords, node) -> Value | None:
    lists = [iterate(walk, arg) for arg in args]
    if None in lists:
        like = [one_of(walk, arg) for arg in args]
        return walk.unknown("a sequence that is not known", node) if None in like else Many(Sequence(tuple(like)), "tuple")
    return Sequence(tuple(Sequence(tuple(group)) for group in zip(*lists)))


@python("builtins.reversed")
def reversed_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else None
    if items is None and args and one_of(walk, args[0]) is not None:
        return Many(one_of(walk, args[0]), "tuple")
    return Sequence(tuple(reversed(items))) if items is not None else walk.unknown("a sequence that is not known", node)


@python("builtins.list")
def list_(walk: Walk, args, keywords, node) -> Value | None:
    return _collect(walk, args, node, "list")


@python("builtins.tuple", "torch.Size")
def tuple_(walk: Walk, args, keywords, node) -> Value | None:
    return _collect(walk, args, node, "tuple")


def _collect(walk: Walk, args, node, kind: str) -> Value:
    if args and isinstance(args[0], Shape):
        return args[0]
    items = iterate(walk, args[0]) if args else []
    if items is None and one_of(walk, args[0]) is not None:
        return Many(one_of(walk, args[0]), kind)
    if items is None:
        return walk.unknown(getattr(args[0], "reason", "a sequence that is not known"), node)
    return Sequence(items, "list") if kind == "list" else Sequence(tuple(items))


@python("builtins.set", "builtins.frozenset")
def set_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else []
    return Sequence(tuple(items), "set") if items is not None else walk.unknown("a sequence that is not known", node)


@python("builtins.dict", "collections.OrderedDict")
def dict_(walk: Walk, args, keywords, node) -> Value | None:
    if not args:
        return Mapping(dict(keywords))
    if isinstance(args[0], Mapping):
        return Mapping({**args[0].items, **keywords})
    pairs = [iterate(walk, pair) for pair in iterate(walk, args[0]) or [Unknown("")]]
    if all(pair is not None and len(pair) == 2 and isinstance(pair[0], Scalar) for pair in pairs):
        return Mapping({**{pair[0].value: pair[1] for pair in pairs}, **keywords})
    return walk.unknown("a dict that is not known", node)


@python("builtins.isinstance")
def isinstance_(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) != 2:
        return None
    wanted = args[1].items if isinstance(args[1], Sequence) else (args[1],)
    options = args[0].options if isinstance(args[0], Either) else (args[0],)
    found = {_is_one(walk, option, wanted) for option in options}
    known = found.pop() if len(found) == 1 else None
    return walk.unknown("an isinstance test", node) if known is None else Scalar(known)


def _is_one(walk: Walk, value: Value, classes: Iterable[Value]) -> bool | None:
    answers = [is_a(walk, value, each) for each in classes]
    return True if True in answers else None if None in answers else False


ITERABLE = frozenset(("collections.abc.Iterable", "collections.abc.Sequence", "typing.Iterable", "typing.Sequence"))
PLAIN = frozenset(f"builtins.{kind}" for kind in ("tuple", "list", "dict", "str", "int", "float", "bool", "set"))
CALLABLES = frozenset(("functools.partial", "types.FunctionType", "types.MethodType", "builtins.type"))
_KINDS = {"builtins.int": (int, Poly), "builtins.float": (float,), "builtins.str": (str,), "builtins.bool": (bool,), "builtins.range": (range,)}


def is_a(walk: Walk, value: Value, cls: Value) -> bool | None:
    name = cls.name if isinstance(cls, (Library, UserClass)) else None
    match value:
        case Tensor(library=library):
            wanted = {"torch": ("torch.Tensor", "torch.FloatTensor"), "numpy": ("numpy.ndarray",), "python": ("builtins.float",)}[library]
            return None if name is None or name == "torch.nn.Parameter" else name in wanted or name == "builtins.object"
        case Weight():
            return name in ("torch.Tensor", "torch.nn.Parameter")
        case Scalar(value=Opaque()):
            return None
        case Scalar(value=inner) if name in ITERABLE:
            return isinstance(inner, (str, bytes, range))
        case Sequence() | Mapping() if name in ITERABLE:
            return True if name != "collections.abc.Sequence" or isinstance(value, Sequence) and value.kind != "set" else None
        case Scalar(value=inner):
            if isinstance(cls, UserClass) or name in ("torch.Tensor", "numpy.ndarray", "torch.nn.Module", "builtins.list", "builtins.tuple", "builtins.dict"):
                return False
            return isinstance(inner, _KINDS[name]) if name in _KINDS else None
        case Sequence(kind=kind):
            builtin = isinstance(cls, Library) and name.startswith("builtins.") or isinstance(cls, UserClass)
            return name == f"builtins.{kind}" if builtin or name in ("torch.Tensor", "numpy.ndarray") else None
        case Many(kind=kind):
            return name == f"builtins.{kind}" if name and name.startswith(("builtins.", "torch.Tensor", "numpy.ndarray")) else None
        case Mapping():
            return name == "builtins.dict" if name and name.startswith(("builtins.", "torch.")) else None
        case Instance(of=Library(name=own)) if isinstance(cls, Library):
            return True if own == name or name == classes.MODULE else None if not own.startswith("torch.nn.") else False
        case Instance(of=UserClass() as own):
            return _derives(walk, own, cls)
        case UserClass() | UserFunction() | Partial() | Library(receiver=None) if name in CALLABLES:
            return _kind_of_callable(value, name)
        case UserClass() | UserFunction() if name in PLAIN:
            return False
        case Library(name=own, receiver=None) if name in PLAIN and own.rpartition(".")[2][:1].isupper():      # a class
            return False
        case UserFunction():
            return False if name in ("torch.Tensor", "numpy.ndarray", "builtins.str", "builtins.int") else None
    return None


def _kind_of_callable(value: Value, name: str) -> bool | None:
    """Classes, functions and partials, as code that takes any of them tells them apart."""
    kind = "functools.partial" if isinstance(value, Partial) else "builtins.type" if isinstance(value, UserClass) else \
        ("types.FunctionType" if value.receiver is None else "types.MethodType") if isinstance(value, UserFunction) else \
        "builtins.type" if value.name.rpartition(".")[2][:1].isupper() else ""
    return kind == name if kind else None


@python("builtins.issubclass")
def issubclass_(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) != 2:
        return None
    wanted = args[1].items if isinstance(args[1], Sequence) else (args[1],)
    answers = [_derives(walk, args[0], each) if isinstance(args[0], UserClass) else
               (args[0].name == each.name if isinstance(each, Library) else False) or (None if isinstance(each, Library) else False)
               if isinstance(args[0], Library) and isinstance(each, (Library, UserClass)) else None for each in wanted]
    known = True if True in answers else None if None in answers else False
    return walk.unknown("an isinstance test", node) if known is None else Scalar(known)


def _derives(walk: Walk, own: UserClass, cls: Value) -> bool | None:
    if isinstance(cls, Library):
        return classes.derives(walk, own, cls.name)
    return classes.descends(walk, own, lambda each: isinstance(cls, UserClass) and isinstance(each, UserClass) and each.node is cls.node)


@python("builtins.hasattr")
def hasattr_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Instance() as instance, Scalar(value=str() as name)] if instance.complete:
            if name in instance.attributes:
                return Scalar(True)
            value = classes.attribute(walk, instance, name, node)
            return walk.unknown("hasattr of a module", node) if isinstance(value, Library) else Scalar(not isinstance(value, Unknown))
    return walk.unknown("hasattr of something that is not known", node)


@python("builtins.getattr")
def getattr_(walk: Walk, args, keywords, node) -> Value | None:
    from .attributes import get
    match node:
        case cst.Call(args=[cst.Arg(value=cst.Name(value="self")), *_]) if walk.frame is walk.recording and len(args) > 1 and isinstance(args[1], Scalar):
            walk.reads[id(node)] = str(args[1].value), walk.span(node)
    match args:
        case [value, Scalar(value=str() as name)]:
            return get(walk, value, name, node)
        case [Instance() as instance, Scalar(value=str() as name), default]:
            value = get(walk, instance, name, node)
            missing = isinstance(value, Unknown) and (instance.complete or value.reason == classes.NO_ATTRIBUTE and isinstance(instance.of, UserClass)
                                                      and classes.of_config(walk, instance.of))
            return default if missing else value
        case [Mapping() | Library() as value, Scalar(value=str() as name), _]:
            return get(walk, value, name, node)
    return walk.unknown("getattr with a name that is not known", node)


@python("builtins.setattr")
def setattr_(walk: Walk, args, keywords, node) -> Value | None:
    from .attributes import set
    if len(args) == 3 and isinstance(args[1], Scalar) and isinstance(args[1].value, str):
        set(walk, args[0], args[1].value, args[2], node)
    return NONE


@python("builtins.super")
def super_(walk: Walk, args, keywords, node) -> Value | None:
    function = walk.frame.function
    at = next((f for f in (walk.frame, *walk.frame.closure) if f.function is not None and f.function.receiver is not None), None)
    receiver = args[1] if len(args) == 2 else at.function.receiver if at is not None else None
    return Library("builtins.super", receiver) if function is not None and receiver is not None else walk.unknown("super() outside a method", node)


@python("builtins.type")
def type_(walk: Walk, args, keywords, node) -> Value | None:
    return args[0].of if len(args) == 1 and isinstance(args[0], Instance) else walk.unknown("the type of a value", node)


@python("builtins.int")
def int_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Scalar(value=Poly())]:
            return args[0]
        case [Scalar(value=bool() | int() | float() | str() as value)] if not keywords:
            return worked_out(walk, int, [value], node)
        case [Tensor(library="python")]:                      # computed from sizes: where a layer is built it is one, elsewhere it may be 0
            walk.refuse("a number that is computed from sizes", node)
            return Scalar(walk.fresh_symbol("n") if walk.building else walk.fresh_symbol("n") - 1)
        case [Tensor()]:
            return to_python(walk, "int", args[0], node)
    return walk.unknown(SOME_NUMBER, node)


@python("builtins.float")
def float_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Scalar(value=Poly() as size)]:
            return operators.real(walk, size, node)
        case [Scalar(value=bool() | int() | float() | str() as value)]:
            return worked_out(walk, float, [value], node)
        case [Tensor(library="python") as tensor]:
            return tensor
        case [Tensor()]:
            return to_python(walk, "float", args[0], node)
    return walk.unknown(SOME_NUMBER, node)


@python("builtins.bool")
def bool_(walk: Walk, args, keywords, node) -> Value | None:
    known = operators.truth(walk, args[0]) if args else False
    return Scalar(known) if known is not None else walk.undecided(args[0], node, "the argument of bool()")


def to_python(walk: Walk, what: str, value: Tensor, node: cst.CSTNode) -> Unknown:
    walk.refuse(f"{what}() of a tensor needs its value, which is only known when it runs", node, hint="keep it a tensor")
    return walk.unknown(SOME_NUMBER, node)


@python("torch.Tensor.item", "numpy.ndarray.item")
def item_(walk: Walk, args, keywords, node) -> Value | None:
    return to_python(walk, ".item", args[0], node) if args and isinstance(args[0], Tensor) else None


@python("torch.Tensor.tolist", "numpy.ndarray.tolist")
def tolist(walk: Walk, args, keywords, node) -> Value | None:
    """Numbers in as many lists as the tensor has axes."""
    if not args or not isinstance(args[0], Tensor):
        return None
    found: Value = to_python(walk, ".tolist", args[0], node)
    if args[0].type.shape is None:
        return walk.unknown("a list of numbers that is not known", node)
    for _ in args[0].type.shape:
        found = Many(found, "list")
    return found


@python("torch.nn.Module.parameters")
def parameters(walk: Walk, args, keywords, node) -> Value | None:
    """Tensors of the element type that all weights have."""
    dtype = modules.dtype_of_weights(args[0]) if args and isinstance(args[0], Instance) else None
    return Many(partial.opaque(walk, "torch.nn.Module.parameters", [], TensorType(None, dtype), node), "generator") if dtype is not None else None


@python("builtins.iter")
def iter_(walk: Walk, args, keywords, node) -> Value | None:
    return args[0] if len(args) == 1 and isinstance(args[0], Many) else not_followed(walk, args, keywords, node)


@python("builtins.next")
def next_(walk: Walk, args, keywords, node) -> Value | None:
    return walk.resolve(args[0].item) if len(args) == 1 and isinstance(args[0], Many) else not_followed(walk, args, keywords, node)


@python("builtins.str", "builtins.repr", "builtins.format", "builtins.ascii")
def str_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Scalar(value=bool() | int() | str() | None as value)] if not isinstance(value, Poly):
            return Scalar(str(value))
    return walk.unknown("a formatted string", node)


def _extreme(name: str, on_sizes, on_numbers) -> None:
    def function(walk: Walk, args, keywords, node) -> Value | None:
        items = iterate(walk, args[0]) if len(args) == 1 else args
        if items and not keywords and all(isinstance(i, Scalar) for i in items):
            values = [i.value for i in items]
            if all(isinstance(v, (int, Poly)) for v in values):
                result = values[0]
                for value in values[1:]:
                    result = on_sizes(result, value)
                return Scalar(result)
            return worked_out(walk, on_numbers, [values], node)
        if items and any(isinstance(i, Tensor) for i in items):
            return walk.refuse(f"{name}() compares tensors by value, which is only known when it runs", node, hint=f"torch.{name}imum(a, b)")
        return walk.unknown(reason_of(args, "a number that is not known"), node)
    FUNCTIONS[f"builtins.{name}"] = function


_extreme("min", minimum, min)
_extreme("max", maximum, max)


@python("builtins.sum")
def sum_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else None
    if items is None:
        return walk.unknown(reason_of(args, "a sequence that is not known"), node)
    total = args[1] if len(args) > 1 else keywords.get("start", Scalar(0))
    for item in items:
        total = operators.binary(walk, "Add", total, item, node)
    return total


def _test(name: str, stops: bool) -> None:
    def function(walk: Walk, args, keywords, node) -> Value | None:
        items = iterate(walk, args[0]) if args else None
        if items is None:
            return walk.unknown(reason_of(args, "a sequence that is not known"), node)
        answers = [operators.truth(walk, item) for item in items]
        known = stops if stops in answers else None if None in answers else not stops
        return walk.unknown("a test that is not known", node) if known is None else Scalar(known)
    FUNCTIONS[f"builtins.{name}"] = function


_test("any", True)
_test("all", False)


@python("builtins.map")
def map_(walk: Walk, args, keywords, node) -> Value | None:
    from .calls import call
    lists = [iterate(walk, arg) for arg in args[1:]]
    if not lists or None in lists:
        like = [one_of(walk, arg) for arg in args[1:]]
        return walk.unknown("a sequence that is not known", node) if None in like or not like else Many(call(walk, args[0], like, {}, node), "tuple")
    return Sequence(tuple(call(walk, args[0], list(group), {}, node) for group in zip(*lists)))


@python("builtins.filter", "builtins.sorted", "builtins.id", "builtins.hash", "builtins.vars", "builtins.callable")
def not_followed(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 1 and not keywords and all(isinstance(i, Scalar) and isinstance(i.value, (int, float)) for i in iterate(walk, args[0]) or [NONE]):
        return Sequence([Scalar(v) for v in sorted(i.value for i in iterate(walk, args[0]))], "list")
    return walk.unknown("a Python function that is not followed", node)


def _power(base, exponent, modulus=None):
    if modulus is None and operators.large("Power", base, exponent):
        raise ValueError("a number that is too large")
    return pow(base, exponent, modulus)


for _name, _function in (("abs", abs), ("round", round), ("divmod", divmod), ("pow", _power)):
    def _arithmetic(walk: Walk, args, keywords, node, name=_name, function=_function) -> Value | None:
        if any(isinstance(arg, Tensor) for arg in args):
            return apply(walk, f"builtins.{name}", args, keywords, node, name) if f"builtins.{name}" in SPELLINGS else \
                walk.refuse(f"{name}() of a tensor is not compiled", node)
        if all(isinstance(a, Scalar) and isinstance(a.value, (int, float)) for a in args) and not keywords:
            return worked_out(walk, function, [a.value for a in args], node)
        if name == "abs" and len(args) == 1 and isinstance(args[0], Scalar) and isinstance(args[0].value, Poly):
            return args[0] if operators.decide("GreaterThan", args[0], Scalar(0)) else walk.unknown("a size that may be negative", node)
        return walk.unknown(reason_of(args, "a number that is not known"), node)
    FUNCTIONS[f"builtins.{_name}"] = _arithmetic


# --- math -----------------------------------------------------------------------------------------------------------

_PRIMITIVES = {"sqrt": "sqrt", "exp": "exp", "log": "log", "log2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "erf": "erf"}


def _mathematics(name: str) -> None:
    def function(walk: Walk, args, keywords, node) -> Value | None:
        values = [arg.value if isinstance(arg, Scalar) else arg for arg in args]
        if all(isinstance(v, (int, float)) for v in values):
            return worked_out(walk, getattr(math, name), values, node)
        symbolic = len(values) == 1 and (isinstance(values[0], Poly) or isinstance(values[0], Tensor) and values[0].library == "python")
        if symbolic and name in _PRIMITIVES:
            x = operators.real(walk, values[0], node)
            walk.builder.origins = (walk.origin(node),)
            return walk.tensor(walk.builder.emit(_PRIMITIVES[name], x.op), "python")
        if any(isinstance(v, Tensor) for v in values):
            return to_python(walk, f"math.{name}", next(v for v in values if isinstance(v, Tensor)), node)
        return walk.unknown(reason_of(args, "a number that is not known"), node)
    FUNCTIONS[f"math.{name}"] = function


for _each in dir(math):
    if not _each.startswith("_") and callable(getattr(math, _each)) and _each not in ("comb", "perm", "factorial"):
        _mathematics(_each)


def reason_of(args: list[Value], otherwise: str) -> str:
    return next((a.reason for a in args if isinstance(a, (Unknown, Untyped))), otherwise)


def worked_out(walk: Walk, function: Callable, values: list, node: cst.CSTNode) -> Value:
    """A pure function of Python numbers or strings, called; what it raises is not a finding of ours."""
    try:
        result = function(*values)
    except (TypeError, ValueError, ArithmeticError, MemoryError):
        return walk.unknown("a Python operation that fails", node)
    if isinstance(result, tuple):
        return Sequence(tuple(map(Scalar, result)))
    return Sequence([Scalar(item) for item in result], "list") if isinstance(result, list) else Scalar(result)
