"""Running sums. Each element sums its own prefix: n^2 additions for an axis of n, but no step waits for another."""
from __future__ import annotations

from ..ir.types import DType, TensorType
from .builder import Builder, as_dtype
from .composite import composite
from .definition import example, spelled, unsupported
from .reductions import wide
from .rules import check_axis
from .shape import ravel, reshaped


def _infer(operands, attrs):
    check_axis(attrs["axis"], operands[0], "cumsum")
    return operands[0]


def _cumsum(b: Builder, operands, attrs):
    """(.., n, ..) against its prefixes: sum over j of (j <= i ? x[j] : 0)."""
    x, axis = wide(b, operands[0]), attrs["axis"]
    if not x.type.shape:
        return operands[0]
    own, n = x.type.shape, x.type.shape[axis]
    pairs = reshaped(b, x, (*own[:axis], 1, *own[axis:]))
    shape = lambda a: tuple(n if d == a else 1 for d in range(len(own) + 1))
    seen = b.emit("le", b.emit("iota", shape=shape(axis + 1), axis=axis + 1, dtype=DType.I64), b.emit("iota", shape=shape(axis), axis=axis, dtype=DType.I64))
    chosen = b.emit("select", seen, pairs, b.constant(0, x.type.dtype))
    return b.cast(b.emit("reduce_sum", chosen, axes=(axis + 1,), keepdims=False), operands[0].type.dtype)


composite("cumsum", _infer, _cumsum, "sums of all elements up to each one along an axis",
          [example("x.cumsum(1)", x="f32[2, 5]"), example("torch.cumsum(x, dim=0)", x="i32[4, 2]"), example("np.cumsum(x, axis=-1)", x="f64[2, 3]"),
           example("np.cumsum(x)", x="i16[2, 3]"), example("torch.cumsum(x, 0, dtype=torch.float32)", x="i64[5]"), example("x.cumsum(0)", x="bool[6]"),
           example("torch.cumsum(x, 0, dtype=torch.bfloat16)", x="f32[40]")])


@spelled("torch.cumsum", "torch.Tensor.cumsum")
def cumsum(b: Builder, input, dim, dtype=None):
    kind = input.type.dtype
    dtype = dtype or (DType.I64 if kind is not None and not kind.is_float else None)
    x = input if dtype is None else b.cast(input, dtype)
    return b.emit("cumsum", x, axis=b.axis(dim, x))


@spelled("numpy.cumsum", "numpy.ndarray.cumsum")
def numpy_cumsum(b: Builder, a, axis=None, dtype=None):
    x = ravel(b, a) if axis is None else a
    if dtype is None and x.type.dtype == DType.U8:
        raise unsupported(f"the NumPy cumsum of {a.type}, which is uint64", "dtype=np.int64", (TensorType(x.type.shape, None),))
    return cumsum(b, x, 0 if axis is None else axis, as_dtype(dtype) if dtype else None)
