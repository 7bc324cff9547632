"""What Python's own functions and methods do to abstract values: len, range, zip, math.sqrt, list.append, isinstance, ...

Each takes (walk, args, keywords, node) and gives a value, or None when it is not its case. What is not in FUNCTIONS nor in
the vocabulary of ops is Unknown, and refused where a tensor hangs on it.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import libcst as cst

from ...ir.dims import Poly, maximum, minimum
from ...ir.types import DType, TensorType
from ...ops import SPELLINGS
from . import classes, operators
from .library import apply
from .values import (NONE, Instance, Library, Mapping, Opaque, Scalar, Sequence, Shape, Tensor, Unknown, Untyped, UserClass, UserFunction,
                     Value, Weight)
from .walk import Walk, contains_tensor

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
    if any(map(contains_tensor, (*args, *keywords.values()))):
        walk.refuse(f"{name} is not in the vocabulary", node, "a function that `cuvil explain --mapping` lists")
    return walk.unknown(f"{name} is not in the vocabulary", node)


def iterate(walk: Walk, value: Value) -> list[Value] | None:
    from .expressions import iterate
    return iterate(walk, value)


# --- builtins -------------------------------------------------------------------------------------------------------

@python("builtins.len")
def len_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Sequence(items=items) | Mapping(items=items)]:
            return Scalar(len(items))
        case [Scalar(value=str() | range() as inner)]:
            return Scalar(len(inner))
        case [Tensor() as tensor] if tensor.type.shape:
            return Scalar(tensor.type.shape[0])
        case [Instance() as instance]:
            inside = classes.items(walk, instance)
            return Scalar(len(inside)) if inside is not None else walk.unknown("the length of an object", node)
        case [value]:
            return walk.unknown(getattr(value, "reason", "a length that is not known"), node)
    return None


@python("builtins.range")
def range_(walk: Walk, args, keywords, node) -> Value | None:
    values = [arg.value if isinstance(arg, Scalar) else None for arg in args]
    if all(isinstance(v, int) for v in values) and 1 <= len(values) <= 3 and not (len(values) == 3 and values[2] == 0):
        return Scalar(range(*values))
    return walk.unknown("a range that hangs on a symbolic size" if any(isinstance(v, Poly) for v in values) else "a range that is not known", node)


@python("builtins.enumerate")
def enumerate_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else None
    start = args[1] if len(args) > 1 else keywords.get("start", Scalar(0))
    if items is None or not isinstance(start, Scalar) or not isinstance(start.value, int):
        return walk.unknown("a sequence that is not known", node)
    return Sequence(tuple(Sequence((Scalar(start.value + i), item)) for i, item in enumerate(items)))


@python("builtins.zip")
def zip_(walk: Walk, args, keywords, node) -> Value | None:
    lists = [iterate(walk, arg) for arg in args]
    if None in lists:
        return walk.unknown("a sequence that is not known", node)
    return Sequence(tuple(Sequence(tuple(group)) for group in zip(*lists)))


@python("builtins.reversed")
def reversed_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else None
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
    answers = [_is_a(walk, args[0], each) for each in wanted]
    known = True if True in answers else None if None in answers else False
    return walk.unknown("an isinstance test", node) if known is None else Scalar(known)


_KINDS = {"builtins.int": (int, Poly), "builtins.float": (float,), "builtins.str": (str,), "builtins.bool": (bool,), "builtins.range": (range,)}


def _is_a(walk: Walk, value: Value, cls: Value) -> bool | None:
    name = cls.name if isinstance(cls, (Library, UserClass)) else None
    match value:
        case Tensor(library=library):
            wanted = {"torch": ("torch.Tensor", "torch.FloatTensor"), "numpy": ("numpy.ndarray",), "python": ("builtins.float",)}[library]
            return None if name is None or name == "torch.nn.Parameter" else name in wanted or name == "builtins.object"
        case Weight():
            return name in ("torch.Tensor", "torch.nn.Parameter")
        case Scalar(value=Opaque()):
            return None
        case Scalar(value=inner):
            if isinstance(cls, UserClass) or name in ("torch.Tensor", "numpy.ndarray", "torch.nn.Module", "builtins.list", "builtins.tuple", "builtins.dict"):
                return False
            return isinstance(inner, _KINDS[name]) if name in _KINDS else None
        case Sequence(kind=kind):
            builtin = isinstance(cls, Library) and name.startswith("builtins.") or isinstance(cls, UserClass)
            return name == f"builtins.{kind}" if builtin or name in ("torch.Tensor", "numpy.ndarray") else None
        case Mapping():
            return name == "builtins.dict" if name and name.startswith(("builtins.", "torch.")) else None
        case Instance(of=Library(name=own)) if isinstance(cls, Library):
            return True if own == name or name == classes.MODULE else None if not own.startswith("torch.nn.") else False
        case Instance(of=UserClass() as own):
            return _derives(walk, own, cls)
        case UserFunction():
            return False if name in ("torch.Tensor", "numpy.ndarray", "builtins.str", "builtins.int") else None
    return None


def _derives(walk: Walk, own: UserClass, cls: Value, depth: int = 0) -> bool | None:
    if isinstance(cls, UserClass) and cls.node is own.node:
        return True
    if isinstance(cls, Library) or depth > 32:
        return classes.derives(walk, own, cls.name) if isinstance(cls, Library) else None
    answers = [_derives(walk, base, cls, depth + 1) if isinstance(base, UserClass) else False if isinstance(base, Library) else None
               for base in classes.bases(walk, own)]
    return True if True in answers else None if None in answers else False


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
    match args:
        case [value, Scalar(value=str() as name)]:
            return get(walk, value, name, node)
        case [Instance() as instance, Scalar(value=str() as name), default]:
            value = get(walk, instance, name, node)
            missing = isinstance(value, Unknown) and instance.complete
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
            return _try(walk, int, [value], node)
        case [Tensor()]:
            return _to_python(walk, "int", args[0], node)
    return walk.unknown(_reason(args, "a number that is not known"), node)


@python("builtins.float")
def float_(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Scalar(value=Poly() as size)]:
            return operators.real(walk, size, node)
        case [Scalar(value=bool() | int() | float() | str() as value)]:
            return _try(walk, float, [value], node)
        case [Tensor(library="python") as tensor]:
            return tensor
        case [Tensor()]:
            return _to_python(walk, "float", args[0], node)
    return walk.unknown(_reason(args, "a number that is not known"), node)


@python("builtins.bool")
def bool_(walk: Walk, args, keywords, node) -> Value | None:
    known = operators.truth(walk, args[0]) if args else False
    return Scalar(known) if known is not None else walk.undecided(args[0], node, "the argument of bool()")


def _to_python(walk: Walk, what: str, value: Tensor, node: cst.CSTNode) -> Unknown:
    return walk.refuse(f"{what}() of a tensor needs its value, which is only known when it runs", node, hint="keep it a tensor")


@python("torch.Tensor.item", "torch.Tensor.tolist", "numpy.ndarray.item", "numpy.ndarray.tolist")
def item_(walk: Walk, args, keywords, node) -> Value | None:
    return _to_python(walk, ".item", args[0], node) if args and isinstance(args[0], Tensor) else None


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
            return _try(walk, on_numbers, [values], node)
        if items and any(isinstance(i, Tensor) for i in items):
            return walk.refuse(f"{name}() compares tensors by value, which is only known when it runs", node, hint=f"torch.{name}imum(a, b)")
        return walk.unknown(_reason(args, "a number that is not known"), node)
    FUNCTIONS[f"builtins.{name}"] = function


_extreme("min", minimum, min)
_extreme("max", maximum, max)


@python("builtins.sum")
def sum_(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[0]) if args else None
    if items is None:
        return walk.unknown(_reason(args, "a sequence that is not known"), node)
    total = args[1] if len(args) > 1 else keywords.get("start", Scalar(0))
    for item in items:
        total = operators.binary(walk, "Add", total, item, node)
    return total


def _test(name: str, stops: bool) -> None:
    def function(walk: Walk, args, keywords, node) -> Value | None:
        items = iterate(walk, args[0]) if args else None
        if items is None:
            return walk.unknown(_reason(args, "a sequence that is not known"), node)
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
        return walk.unknown("a sequence that is not known", node)
    return Sequence(tuple(call(walk, args[0], list(group), {}, node) for group in zip(*lists)))


@python("builtins.filter", "builtins.sorted", "builtins.next", "builtins.iter", "builtins.id", "builtins.hash", "builtins.vars", "builtins.callable")
def not_followed(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 1 and not keywords and all(isinstance(i, Scalar) and isinstance(i.value, (int, float)) for i in iterate(walk, args[0]) or [NONE]):
        return Sequence([Scalar(v) for v in sorted(i.value for i in iterate(walk, args[0]))], "list")
    return walk.unknown("a Python function that is not followed", node)


for _name, _function in (("abs", abs), ("round", round), ("divmod", divmod), ("pow", pow)):
    def _arithmetic(walk: Walk, args, keywords, node, name=_name, function=_function) -> Value | None:
        if any(isinstance(arg, Tensor) for arg in args):
            return apply(walk, f"builtins.{name}", args, keywords, node, name) if f"builtins.{name}" in SPELLINGS else \
                walk.refuse(f"{name}() of a tensor is not compiled", node)
        if all(isinstance(a, Scalar) and isinstance(a.value, (int, float)) for a in args) and not keywords:
            return _try(walk, function, [a.value for a in args], node)
        if name == "abs" and len(args) == 1 and isinstance(args[0], Scalar) and isinstance(args[0].value, Poly):
            return args[0] if operators.truth(walk, args[0]) and operators.decide("GreaterThan", args[0], Scalar(0)) else walk.unknown("a size", node)
        return walk.unknown(_reason(args, "a number that is not known"), node)
    FUNCTIONS[f"builtins.{_name}"] = _arithmetic


# --- math -----------------------------------------------------------------------------------------------------------

_PRIMITIVES = {"sqrt": "sqrt", "exp": "exp", "log": "log", "log2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "erf": "erf"}


def _mathematics(name: str) -> None:
    def function(walk: Walk, args, keywords, node) -> Value | None:
        values = [arg.value if isinstance(arg, Scalar) else arg for arg in args]
        if all(isinstance(v, (int, float)) for v in values):
            return _try(walk, getattr(math, name), values, node)
        symbolic = len(values) == 1 and (isinstance(values[0], Poly) or isinstance(values[0], Tensor) and values[0].library == "python")
        if symbolic and name in _PRIMITIVES:
            x = operators.real(walk, values[0], node)
            walk.builder.origins = (walk.origin(node),)
            return walk.tensor(walk.builder.emit(_PRIMITIVES[name], x.op), "python")
        if any(isinstance(v, Tensor) for v in values):
            return _to_python(walk, f"math.{name}", next(v for v in values if isinstance(v, Tensor)), node)
        return walk.unknown(_reason(args, "a number that is not known"), node)
    FUNCTIONS[f"math.{name}"] = function


for _each in dir(math):
    if not _each.startswith("_") and callable(getattr(math, _each)) and _each not in ("comb", "perm", "factorial"):
        _mathematics(_each)


# --- methods of Python values ---------------------------------------------------------------------------------------

@python("builtins.list.append")
def append(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Sequence) and isinstance(args[0].items, list):
        args[0].items.append(args[1])
    return NONE


@python("builtins.list.extend")
def extend(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Sequence):
        items = iterate(walk, args[1])
        args[0].items.extend(items if items is not None else [walk.unknown("a sequence that is not known", node)])
    return NONE


@python("builtins.list.insert")
def insert(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Sequence(items=list() as items), Scalar(value=int() as at), value]:
            items.insert(at, value)
            return NONE
    return walk.refuse("a list is changed in a way that is not known", node)


@python("builtins.list.pop")
def pop(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Sequence(items=list() as items)] if items:
            return walk.resolve(items.pop())
        case [Sequence(items=list() as items), Scalar(value=int() as at)] if -len(items) <= at < len(items):
            return walk.resolve(items.pop(at))
    return walk.refuse("a list is changed in a way that is not known", node)


@python("builtins.list.reverse")
def reverse(walk: Walk, args, keywords, node) -> Value | None:
    args[0].items.reverse()
    return NONE


@python("builtins.list.copy")
def copy_list(walk: Walk, args, keywords, node) -> Value | None:
    return Sequence(list(args[0].items), "list")


@python("builtins.list.index", "builtins.tuple.index", "builtins.list.count", "builtins.tuple.count")
def index(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Sequence):
        for at, item in enumerate(args[0].items):
            known = operators.decide("Equal", item, args[1])
            if known is None:
                break
            if known:
                return Scalar(at)
    return walk.unknown("the place of an item", node)


@python("builtins.tuple.numel")
def numel(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Sequence):
        total: Value = Scalar(1)
        for item in args[0].items:
            total = operators.binary(walk, "Multiply", total, item, node)
        return total
    return walk.unknown("the shape of a tensor is not known", node)


@python("builtins.dict.get")
def get(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Mapping(items=items), Scalar(value=key), *rest] if not isinstance(key, Poly):
            return walk.resolve(items[key]) if key in items else rest[0] if rest else NONE
    return walk.unknown("a key that is not known", node)


@python("builtins.dict.pop")
def pop_item(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Mapping(items=items), Scalar(value=key), *rest] if not isinstance(key, Poly) and (key in items or rest):
            return walk.resolve(items.pop(key, rest[0] if rest else NONE))
    return walk.unknown("a key that is not known", node)


def _view(name: str, take) -> None:
    FUNCTIONS[f"builtins.dict.{name}"] = lambda walk, args, keywords, node: Sequence(
        tuple(take(Scalar(key), walk.resolve(value)) for key, value in args[0].items.items()))


_view("keys", lambda key, value: key)
_view("values", lambda key, value: value)
_view("items", lambda key, value: Sequence((key, value)))


@python("builtins.dict.update")
def update(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[1], Mapping):
        args[0].items.update(args[1].items)
    elif len(args) == 2:
        return walk.refuse("a dict is changed in a way that is not known", node)
    args[0].items.update(keywords)
    return NONE


for _each in ("lower", "upper", "strip", "startswith", "endswith", "split", "replace", "rstrip", "lstrip", "partition", "isdigit", "removeprefix"):
    def _string(walk: Walk, args, keywords, node, name=_each) -> Value | None:
        if all(isinstance(a, Scalar) and isinstance(a.value, (str, int)) for a in args) and not keywords:
            return _try(walk, getattr(str, name), [a.value for a in args], node)
        return walk.unknown("a string that is not known", node)
    FUNCTIONS[f"builtins.str.{_each}"] = _string


@python("builtins.str.format", "builtins.str.join")
def formatted(walk: Walk, args, keywords, node) -> Value | None:
    return walk.unknown("a formatted string", node)


# --- modules of torch.nn --------------------------------------------------------------------------------------------

@python("torch.nn.Module.__init__", "builtins.object.__init__", "torch.nn.Module.eval", "torch.nn.Module.train", "torch.nn.Module.to",
        "torch.nn.Module.requires_grad_", "torch.nn.Module.cuda", "torch.nn.Module.cpu")
def module_setup(walk: Walk, args, keywords, node) -> Value | None:
    return args[0] if args else NONE


@python("torch.nn.Module.apply", "torch.nn.Module.load_state_dict", "torch.nn.Module.post_init")
def weights_change(walk: Walk, args, keywords, node) -> Value | None:
    return args[0] if args else NONE


@python("torch.nn.Module.half", "torch.nn.Module.float", "torch.nn.Module.double", "torch.nn.Module.bfloat16")
def module_cast(walk: Walk, args, keywords, node) -> Value | None:
    return walk.unknown("a module whose weights are cast", node)


@python("torch.nn.Module.register_buffer", "torch.nn.Module.register_parameter")
def register_buffer(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Instance() as instance, Scalar(value=str() as name), value, *rest]:
            persistent = keywords.get("persistent", rest[0] if rest else Scalar(True))
            kept = isinstance(persistent, Scalar) and persistent.value
            classes.register(instance, name, Weight(value.type) if isinstance(value, Tensor) and kept else value)
        case [Instance() as instance, Scalar(value=str() as name)] if "tensor" in keywords:
            value = keywords["tensor"]
            classes.register(instance, name, Weight(value.type) if isinstance(value, Tensor) else value)
    return NONE


@python("torch.nn.Module.add_module", "torch.nn.Module.register_module")
def add_module(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Instance() as instance, Scalar(value=str() as name), value]:
            classes.register(instance, name, value)
    return NONE


@python("torch.nn.ModuleList.append", "torch.nn.Sequential.append")
def append_module(walk: Walk, args, keywords, node) -> Value | None:
    classes.register(args[0], str(len(args[0].attributes)), args[1])
    return args[0]


@python("torch.nn.ModuleList.extend")
def extend_modules(walk: Walk, args, keywords, node) -> Value | None:
    for value in iterate(walk, args[1]) or []:
        classes.register(args[0], str(len(args[0].attributes)), value)
    return args[0]


for _each, _take in (("items", lambda k, v: Sequence((Scalar(k), v))), ("values", lambda k, v: v), ("keys", lambda k, v: Scalar(k))):
    FUNCTIONS[f"torch.nn.ModuleDict.{_each}"] = lambda walk, args, keywords, node, take=_take: Sequence(
        tuple(take(key, walk.resolve(value)) for key, value in args[0].attributes.items()))


# --- torch and NumPy that is not about values ------------------------------------------------------------------------

@python("torch.Tensor.dim", "torch.Tensor.ndimension")
def dim(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.rank is not None:
        return Scalar(args[0].type.rank)
    return walk.unknown("the shape of a tensor is not known", node)


@python("torch.Tensor.size")
def size(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.shape is None:
        return Shape(args[0]) if len(args) == 1 and not keywords else walk.unknown("the shape of a tensor is not known", node)
    return None


@python("torch.Tensor.numel", "torch.Tensor.nelement")
def numel_of(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.shape is not None:
        return Scalar(args[0].type.numel)
    return walk.unknown("the shape of a tensor is not known", node)


@python("torch.Tensor.is_floating_point", "torch.is_floating_point")
def is_floating_point(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.dtype is not None:
        return Scalar(args[0].type.dtype.is_float)
    return walk.unknown("an element type that is not known", node)


@python("torch.is_tensor")
def is_tensor(walk: Walk, args, keywords, node) -> Value | None:
    known = _is_a(walk, args[0], Library("torch.Tensor")) if args else None
    return walk.unknown("an isinstance test", node) if known is None else Scalar(known)


def _drawn(name: str) -> None:
    FUNCTIONS[name] = lambda walk, args, keywords, node: _draw(walk, name, args, keywords, node)


def _draw(walk: Walk, name: str, args, keywords, node) -> Value | None:
    """Tensors whose values come from elsewhere: for facts they are like a weight of that shape; a function that draws is refused."""
    walk.refuse("random or uninitialised values are drawn, which is not compiled", node, hint="give the values as an input")
    like = next((arg for arg in args if isinstance(arg, Tensor)), None)
    shape = args[0] if len(args) == 1 and isinstance(args[0], Sequence) else Sequence(tuple(args))
    library, callee = name.partition(".")[0], name.rpartition(".")[2]
    if callee == "randint":
        shape = next((arg for arg in (*args, *keywords.values()) if isinstance(arg, Sequence)), None)
    dims = None if shape is None else [item.value if isinstance(item, Scalar) else None for item in shape.items]
    if like is not None:
        type = like.type
    elif dims is not None and all(isinstance(d, (int, Poly)) for d in dims):
        dtype = DType.I64 if callee in ("randint", "randperm") else DType.F64 if library == "numpy" else DType.F32
        given = keywords.get("dtype")
        type = TensorType(tuple(dims), dtype if given is None else given.value if isinstance(given, Scalar) and isinstance(given.value, DType) else None)
    else:
        return walk.unknown("random values of a shape that is not known", node)
    walk.builder.origins = (walk.origin(node),)
    return walk.tensor(walk.builder.append("parameter", (), {"name": f"drawn{len(walk.builder.ops)}"}, type), library)


for _each in ("torch.rand", "torch.randn", "torch.randint", "torch.rand_like", "torch.randn_like", "torch.empty", "torch.empty_like", "torch.randperm",
              "numpy.random.rand", "numpy.random.randn", "numpy.random.random", "numpy.empty"):
    _drawn(_each)


@python("torch.is_grad_enabled", "torch.jit.is_scripting", "torch.jit.is_tracing", "torch.compiler.is_compiling",
        "torch.onnx.is_in_onnx_export", "torch._dynamo.is_compiling")
def never(walk: Walk, args, keywords, node) -> Value | None:
    return Scalar(False)


@python("torch.Tensor.cpu", "torch.Tensor.cuda", "torch.Tensor.pin_memory", "torch.Tensor.requires_grad_", "torch.Tensor.detach_")
def same_values(walk: Walk, args, keywords, node) -> Value | None:
    if args and isinstance(args[0], Tensor):
        walk.shared.add(args[0].storage)
        return Tensor(args[0].op, args[0].library, args[0].storage, view=True)
    return None


@python("torch.finfo", "torch.iinfo", "numpy.finfo", "numpy.iinfo")
def limits(walk: Walk, args, keywords, node) -> Value | None:
    from .library import dtype_named
    dtype = args[0].value if args and isinstance(args[0], Scalar) else dtype_named(args[0].name) if args and isinstance(args[0], Library) else None
    if not isinstance(dtype, DType):
        return walk.unknown("the limits of an element type that is not known", node)
    return Instance(Library("torch.finfo"), {key: Scalar(value) for key, value in dtype_limits(dtype).items()})


def dtype_limits(dtype: DType) -> dict[str, Any]:
    """min, max, and for floats eps, tiny and smallest_normal. Source: IEEE 754, two's complement."""
    if dtype.is_float:
        exponent, mantissa = {DType.F16: (5, 10), DType.BF16: (8, 7), DType.F32: (8, 23), DType.F64: (11, 52)}[dtype]
        bias = 2 ** (exponent - 1) - 1
        largest = (2.0 - 2.0 ** -mantissa) * 2.0 ** bias
        return {"max": largest, "min": -largest, "eps": 2.0 ** -mantissa, "tiny": 2.0 ** (1 - bias), "smallest_normal": 2.0 ** (1 - bias),
                "bits": dtype.size * 8}
    bits = dtype.size * 8
    if dtype == DType.U8:
        return {"min": 0, "max": 255, "bits": 8}
    return {"min": -2 ** (bits - 1), "max": 2 ** (bits - 1) - 1, "bits": bits}


def _reason(args: list[Value], otherwise: str) -> str:
    return next((a.reason for a in args if isinstance(a, (Unknown, Untyped))), otherwise)


def _try(walk: Walk, function: Callable, values: list, node: cst.CSTNode) -> Value:
    """A pure function of Python numbers or strings, called; what it raises is not a finding of ours."""
    try:
        result = function(*values)
    except (TypeError, ValueError, ArithmeticError, MemoryError):
        return walk.unknown("a Python operation that fails", node)
    if isinstance(result, tuple):
        return Sequence(tuple(map(Scalar, result)))
    return Sequence([Scalar(item) for item in result], "list") if isinstance(result, list) else Scalar(result)
