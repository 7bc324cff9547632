"""The examples of all definitions as runnable programs: tests compare them with the libraries, documentation shows them.

An example is one expression over named inputs. It is captured by evaluating it with stand-ins whose every attribute, call
and operator goes through SPELLINGS, so it needs neither torch nor a front end.
"""
from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from ..ir.function import Function, Op
from ..ir.types import DType, TensorType
from .array import np
from .builder import Builder
from .definition import DEFINITIONS, SPELLING_EXAMPLES, SPELLINGS, Example, Values, call
from .layers import LAYERS, Layer, MadeLayer
from .meaning import round_bf16

METHODS = {"torch": "torch.Tensor.", "numpy": "numpy.ndarray."}
ATTRIBUTES = frozenset(("shape", "T", "mT", "mH", "H", "real", "imag", "ndim", "dtype", "data", "size"))     # of an ndarray; a tensor's `size` is a method


def all_examples() -> Iterator[tuple[str, Example]]:
    """(name of the definition, example); spellings without an op of their own have the name ""."""
    for definition in DEFINITIONS.values():
        yield from ((definition.name, e) for e in definition.examples)
    yield from (("", e) for e in SPELLING_EXAMPLES)


def arrays(example: Example, seed: int = 0) -> dict[str, np.ndarray]:
    """Numbers for an example's inputs: the same for the same seed. Integers are small and not zero, floats about -2 to 2."""
    random, found = np.random.default_rng(seed), {}
    for name, given in example.inputs.items():
        if not isinstance(given, tuple):
            found[name] = np.array(given.items, given.dtype) if isinstance(given, Values) else np.asarray(given)
            continue
        shape, dtype = given[0], DType.parse(given[1])
        if dtype == DType.BOOL:
            found[name] = random.random(shape) < 0.5
        elif dtype.is_int:
            low, high = (1, 250) if dtype == DType.U8 else (1, 9)
            values = random.integers(low, high, shape)
            found[name] = np.asarray(values if dtype == DType.U8 else values * random.choice([-1, 1], shape)).astype(dtype.numpy)
        else:
            values = np.asarray(random.normal(size=shape), np.float64)
            if dtype == DType.BF16:
                found[name] = round_bf16(values.astype(np.float32))
            else:
                found[name] = values.astype(dtype.numpy)
    return found


def types(example: Example) -> dict[str, TensorType]:
    """The type of each input."""
    return {name: _type(given) for name, given in example.inputs.items()}


def _type(given: Any) -> TensorType:
    if isinstance(given, TensorType):
        return given
    if isinstance(given, tuple):
        return TensorType(given[0], DType.parse(given[1]))
    array = np.array(given.items, given.dtype) if isinstance(given, Values) else np.asarray(given)
    return TensorType(array.shape, DType.parse(array.dtype.name))


def capture(example: Example, library: str = "torch") -> Function:
    """The CIR of an example, by the rules of the library."""
    b = Builder(library)
    value = result(b, example)
    values = value if isinstance(value, (tuple, list)) else (value,)
    return b.function("example", [b.tensor(v) for v in values], "tuple" if isinstance(value, (tuple, list)) else "tensor")


def result(b: Builder, example: Example) -> Any:
    """What an example evaluates to: ops, Python values, tuples of them. Inputs may also stand in the code as types: torch.exp(f32[2, 3])."""
    inputs = {name: _Tensor(b, b.input(name, i, type)) for i, (name, type) in enumerate(types(example).items())}
    names = {**inputs, "torch": _Module(b, "torch"), "F": _Module(b, "torch.nn.functional"), "nn": _Module(b, "torch.nn"), "np": _Module(b, "numpy"),
             "einops": _Module(b, "einops"), **{str(dtype): _Literal(b, dtype) for dtype in DType}}
    return _plain(eval(example.code, {"__builtins__": {"float": float, "int": int, "abs": builtins.abs, "len": builtins.len}}, names))


def _plain(value: Any) -> Any:
    """Stand-ins taken off."""
    if isinstance(value, _Tensor):
        return value.op
    if isinstance(value, _Module):                                   # np.float32 is a dtype unless it is called
        return DType.parse(value.name.rpartition(".")[2])
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(_plain(value.start), _plain(value.stop), _plain(value.step))
    if isinstance(value, _Layer):
        return MadeLayer(value.layer, value.constructor)
    if hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    return type(value)(map(_plain, value)) if type(value) in (tuple, list) else value


def _dressed(b: Builder, value: Any) -> Any:
    if isinstance(value, Op):
        return _Tensor(b, value)
    return type(value)(*(_dressed(b, v) for v in value)) if hasattr(value, "_fields") else \
        type(value)(_dressed(b, v) for v in value) if isinstance(value, (tuple, list)) else value


class _Literal:
    """A dtype as it stands in front of sizes: `f32[2, 3]` is an input."""

    def __init__(self, b: Builder, dtype: DType) -> None:
        self.b, self.dtype = b, dtype

    def __getitem__(self, shape: Any) -> _Tensor:
        shape = shape if isinstance(shape, tuple) else (shape,)
        count = sum(op.name == "input" for op in self.b.ops)
        return _Tensor(self.b, self.b.input(f"x{count}", count, TensorType(shape, self.dtype)))


class _Layer:
    """A layer of torch.nn: calling it is its forward."""

    def __init__(self, b: Builder, layer: Layer, args: list[Any], keywords: dict[str, Any]) -> None:
        self.b, self.layer, self.constructor = b, layer, layer.arguments(args, keywords)

    def eval(self) -> _Layer:
        return self

    def __call__(self, *args, **keywords):
        weights = {name: self.b.parameter(name, type) for name, type in self.layer.parameters(**self.constructor).items()}
        return _dressed(self.b, self.layer.forward(self.b, weights, self.constructor, *_plain(list(args)), **_plain(keywords)))


class _Module:
    """A library, whose names are looked up when they are used."""

    def __init__(self, b: Builder, name: str) -> None:
        self.b, self.name = b, name

    def __getattr__(self, name: str) -> Any:
        return _Module(self.b, f"{self.name}.{name}")

    def __call__(self, *args, **keywords):
        args, keywords = _plain(list(args)), _plain(keywords)
        if self.name in LAYERS:
            return _Layer(self.b, LAYERS[self.name], args, keywords)
        return _dressed(self.b, call(self.b, self.name, args, keywords))


class _Tensor:
    """A value whose methods and operators are spellings."""

    def __init__(self, b: Builder, op: Op) -> None:
        self.b, self.op = b, op

    def __getattr__(self, name: str) -> Any:
        full = METHODS[self.b.library] + name
        if name.endswith("_") and not name.endswith("__") and full not in SPELLINGS:           # in place: the result has the type of the value
            return getattr(self, name[:-1])
        if full not in SPELLINGS:
            raise AttributeError(full)
        if name in ATTRIBUTES and not (name == "size" and self.b.library == "torch"):
            return _dressed(self.b, call(self.b, full, [self.op], {}))
        return lambda *args, **keywords: _Module(self.b, full)(self, *args, **keywords)

    def __getitem__(self, index):
        return _Module(self.b, "operator.getitem")(self, index)


def _operators() -> None:
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift"):
        setattr(_Tensor, f"__{name}__", lambda self, other, name=name: _Module(self.b, f"operator.{name}")(self, other))
        setattr(_Tensor, f"__r{name}__", lambda self, other, name=name: _Module(self.b, f"operator.{name}")(other, self))
    for name in ("and", "or", "xor"):
        full = "operator.xor" if name == "xor" else f"operator.{name}_"
        setattr(_Tensor, f"__{name}__", lambda self, other, full=full: _Module(self.b, full)(self, other))
        setattr(_Tensor, f"__r{name}__", lambda self, other, full=full: _Module(self.b, full)(other, self))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(_Tensor, f"__{name}__", lambda self, other, name=name: _Module(self.b, f"operator.{name}")(self, other))
    for name in ("neg", "invert", "pos"):
        setattr(_Tensor, f"__{name}__", lambda self, name=name: _Module(self.b, f"operator.{name}")(self))
    _Tensor.__abs__ = lambda self: _Module(self.b, "operator.abs")(self)
    _Tensor.__len__ = lambda self: call(self.b, "builtins.len", [self.op], {})


_operators()
