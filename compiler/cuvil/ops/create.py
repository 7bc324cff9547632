"""Tensors out of nothing: arange, zeros, ones, full, eye, linspace and their *_like and new_* forms."""
from __future__ import annotations

from ..ir.dims import Dim, Poly, floordiv, maximum
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .builder import Builder, as_dtype, number
from .composite import composite
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .promotion import default_float
from .rules import dtype_of, shape_of


def sizes(arguments) -> tuple[Dim, ...]:
    """Sizes given as `f(2, 3)` or `f((2, 3))`."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        arguments = arguments[0]
    for size in arguments:
        if isinstance(size, Op):
            raise not_known("a size that is computed from data")
        if not isinstance(size, (int, Poly)) or isinstance(size, bool):
            raise TypeRuleError(f"{size!r} as a size", "integers", "argument")
    return tuple(arguments)


def filled(b: Builder, shape, value, dtype: DType) -> Op:
    value = b.cast(value, dtype) if isinstance(value, Op) else b.constant(value, dtype)
    for size in shape:
        if isinstance(size, int) and size < 0:
            raise TypeRuleError(f"a tensor of shape {tuple(shape)}", "sizes that are not negative", "argument")
    return b.emit("broadcast", value, shape=tuple(shape)) if shape else value


for _name, _value in (("zeros", 0), ("ones", 1)):
    spelled(f"torch.{_name}")(lambda b, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, _value=_value:
                              filled(b, sizes(size), _value, dtype or DType.F32))
    spelled(f"numpy.{_name}")(lambda b, shape, dtype=None, order="C", *, _value=_value:
                              filled(b, sizes((shape,) if isinstance(shape, (tuple, list)) else (shape,)), _value, as_dtype(dtype) if dtype else DType.F64))
    spelled(f"torch.{_name}_like")(lambda b, input, dtype=None, device=None, requires_grad=False, memory_format=None, layout=None, *, _value=_value:
                                   filled(b, shape_of(input), _value, dtype or dtype_of(input)))
    spelled(f"numpy.{_name}_like")(
        lambda b, a, dtype=None, order="K", *, _value=_value: filled(b, shape_of(a), _value, as_dtype(dtype) if dtype else dtype_of(a)))
    spelled(f"torch.Tensor.new_{_name}")(lambda b, self, *size, dtype=None, device=None, requires_grad=False, _value=_value:
                                         filled(b, sizes(size), _value, dtype or dtype_of(self)))


def _number_dtype(b: Builder, value) -> DType:
    return dtype_of(value) if isinstance(value, Op) else b.common_dtype([value])


@spelled("torch.full")
def full(b: Builder, size, fill_value, dtype=None, device=None, requires_grad=False):
    return filled(b, sizes((size,)), fill_value, dtype or _number_dtype(b, fill_value))


@spelled("torch.full_like")
def full_like(b: Builder, input, fill_value, dtype=None, device=None, memory_format=None, requires_grad=False):
    return filled(b, shape_of(input), fill_value, dtype or dtype_of(input))


@spelled("torch.Tensor.new_full")
def new_full(b: Builder, self, size, fill_value, dtype=None, device=None):
    return filled(b, sizes((size,)), fill_value, dtype or dtype_of(self))


@spelled("numpy.full")
def numpy_full(b: Builder, shape, fill_value, dtype=None, order="C"):
    return filled(b, sizes((shape,)), fill_value, as_dtype(dtype) if dtype else _number_dtype(b, fill_value))


@spelled("numpy.full_like")
def numpy_full_like(b: Builder, a, fill_value, dtype=None, order="K"):
    return filled(b, shape_of(a), fill_value, as_dtype(dtype) if dtype else dtype_of(a))


def _arange(b: Builder, start, end, step, dtype):
    values = [start, end, step]
    if any(isinstance(v, Op) for v in values):
        raise not_known("the length of an arange hangs on data")
    dtype = as_dtype(dtype) if dtype else (default_float(b.library) if any(isinstance(v, float) for v in values) else DType.I64)
    if step == 0:
        raise TypeRuleError("arange with step 0", "a step that is not zero", "argument")
    if any(isinstance(v, float) for v in values):
        if any(isinstance(v, Poly) for v in values):
            raise not_known("the length of an arange with a float bound")
        length: Dim = max(0, -int(-((end - start) / step) // 1))
    elif isinstance(step, Poly):
        raise not_known("the length of an arange with a symbolic step")
    else:
        length = maximum(floordiv(end - start + step - (1 if step > 0 else -1), step), 0)
    exact = not any(isinstance(v, float) and v != int(v) for v in (start, step))
    inner = dtype if exact else DType.F64                            # ATen adds in double and rounds once
    x = b.emit("iota", shape=(length,), axis=0, dtype=inner)
    if step != 1:
        x = b.emit("mul", x, b.constant(step, inner))
    if start != 0:
        x = b.emit("add", x, b.constant(start, inner))
    return b.cast(x, dtype)


@spelled("torch.arange")
def arange(b: Builder, start, end=None, step=1, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    return _arange(b, *((0, start) if end is None else (start, end)), step, dtype)


@spelled("numpy.arange")
def numpy_arange(b: Builder, start, stop=None, step=1, dtype=None):
    return _arange(b, *((0, start) if stop is None else (start, stop)), step, dtype)


@spelled("torch.eye", examples=[example("torch.eye(3)"), example("torch.eye(2, 4)"), example("np.eye(3)")])
def eye(b: Builder, n, m=None, dtype=None, device=None, requires_grad=False):
    m = n if m is None else m
    hit = b.emit("eq", b.emit("iota", shape=(n, 1), axis=0, dtype=DType.I64), b.emit("iota", shape=(1, m), axis=1, dtype=DType.I64))
    return b.cast(hit, dtype or default_float(b.library))


@spelled("numpy.eye", "numpy.identity")
def numpy_eye(b: Builder, N, M=None, dtype=None):
    return eye(b, N, M, as_dtype(dtype) if dtype else None)


@spelled("torch.linspace", examples=[example("torch.linspace(-2, 2, 33)"), example("torch.linspace(0.5, 1.5, 1)")])
def linspace(b: Builder, start, end, steps, dtype=None, device=None, requires_grad=False):
    """Counted from both ends, as ATen does, so that the last element is `end`."""
    if any(isinstance(v, (Op, Poly)) for v in (start, end, steps)):
        raise not_known("linspace with sizes or bounds that are not numbers")
    dtype = dtype or DType.F32
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    i = b.emit("iota", shape=(steps,), axis=0, dtype=DType.F64)
    up = b.emit("add", b.emit("mul", i, b.constant(step, DType.F64)), b.constant(start, DType.F64))
    left = b.emit("sub", b.constant(steps - 1, DType.F64), i)
    down = b.emit("sub", b.constant(end, DType.F64), b.emit("mul", left, b.constant(step, DType.F64)))
    return b.cast(b.emit("select", b.emit("lt", i, b.constant(steps / 2, DType.F64)), up, down), dtype)


@spelled("numpy.linspace", examples=[example("np.linspace(0, 1, 7)"), example("np.linspace(0, 1, 4, endpoint=False)")])
def numpy_linspace(b: Builder, start, stop, num=50, endpoint=True, dtype=None, axis=0):
    if any(isinstance(v, (Op, Poly)) for v in (start, stop, num)):
        raise not_known("linspace with sizes or bounds that are not numbers")
    parts = num - 1 if endpoint else num
    i = b.emit("iota", shape=(num,), axis=0, dtype=DType.F64)
    x = b.emit("add", b.emit("mul", i, b.constant((stop - start) / parts if parts > 0 else 0.0, DType.F64)), b.constant(start, DType.F64))
    if endpoint and num > 1:
        x = b.emit("select", b.emit("eq", i, b.constant(num - 1, DType.F64)), b.constant(stop, DType.F64), x)
    return b.cast(x, as_dtype(dtype) if dtype else DType.F64)


def _nested(value, dtype: DType):
    return tuple(_nested(v, dtype) for v in value) if isinstance(value, (list, tuple)) else number(value, dtype)


def _literal_types(b: Builder, data, leaves: list, dtype) -> tuple[TensorType, ...]:
    """The type of a literal with tensors in it: of torch they must have one element, of NumPy they are stacked."""
    shape: list[Dim] = []
    while isinstance(data, (list, tuple)):
        shape.append(len(data))
        data = data[0] if data else 0
    tensors = [leaf for leaf in leaves if isinstance(leaf, Op)]
    if not all(isinstance(leaf, (bool, int, float, Op, Poly)) for leaf in leaves) or any(t.type.shape is None for t in tensors):
        return ()
    inner = () if b.library != "numpy" or not isinstance(data, Op) else data.type.shape
    numbers = [1 if isinstance(leaf, Poly) else leaf for leaf in leaves if not isinstance(leaf, Op)]
    kinds = [t.type for t in tensors]
    if b.library == "numpy" and numbers:                             # NumPy reads Python numbers in a list as arrays of their own
        kinds.append(TensorType((), b.common_dtype(numbers)))
    found = as_dtype(dtype) if dtype else b.common_dtype(kinds if b.library == "numpy" else [*kinds, *numbers])
    return (TensorType((*shape, *inner), found),)


def _leaves(value) -> list:
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, (list, tuple)) else [value]


@spelled("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray", "numpy.ascontiguousarray")
def tensor(b: Builder, data, dtype=None, device=None, requires_grad=False, copy=None):
    if isinstance(data, Op):
        return b.cast(data, as_dtype(dtype)) if dtype else data
    leaves = _leaves(data)
    if any(not isinstance(v, (bool, int, float)) for v in leaves):
        raise unsupported("a tensor literal whose elements are not constants", "torch.stack of the elements", _literal_types(b, data, leaves, dtype))
    if len(leaves) > 4096:
        raise unsupported(f"a tensor literal of {len(leaves)} elements", "at most 4096, or a parameter")
    dtype = as_dtype(dtype) if dtype else (b.common_dtype(leaves) if leaves else default_float(b.library))
    return b.emit("constant", value=_nested(data, dtype), dtype=dtype)


# --- triangles ------------------------------------------------------------------------------------------------------

def _triangle(kept: str):
    def decompose(b: Builder, operands, attrs):
        """Column - row against the diagonal."""
        x = operands[0]
        rows, columns = x.type.shape[-2:]
        row = b.emit("iota", shape=(rows, 1), axis=0, dtype=DType.I64)
        column = b.emit("iota", shape=(1, columns), axis=1, dtype=DType.I64)
        if attrs["diagonal"]:
            row = b.emit("add", row, b.constant(attrs["diagonal"], DType.I64))
        return b.emit("select", b.emit(kept, column, row), x, b.constant(0, x.type.dtype))
    return decompose


def _infer_triangle(name: str):
    def infer(operands, attrs):
        if operands[0].shape is not None and len(operands[0].shape) < 2:
            raise TypeRuleError(f"{name} of {operands[0]}", "a tensor of at least 2 axes")
        return operands[0]
    return infer


for _name, _kept, _side in (("tril", "le", "above"), ("triu", "ge", "below")):
    composite(_name, _infer_triangle(_name), _triangle(_kept), f"matrices with zeros {_side} a diagonal",
              [example(f"torch.{_name}(x)", x="f32[3, 4]"), example(f"x.{_name}(diagonal=-1)", x="i64[2, 4, 3]"), example(f"np.{_name}(x, 1)", x="f32[3, 3]"),
               example(f"torch.{_name}(torch.ones(3, 3, dtype=torch.bool), diagonal=1)")])
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(lambda b, input, diagonal=0, *, _name=_name: b.emit(_name, input, diagonal=diagonal))
    spelled(f"numpy.{_name}")(lambda b, m, k=0, *, _name=_name: b.emit(_name, m, diagonal=k))
