"""Movements whose source position comes from an index tensor: take (whole rows of an axis) and gather (element by element).

A position outside the axis is an error: the interpreter raises, `guard` is the check for native code, and `at` reads inside.
attr `negative`: whether positions below zero count from the end (x[i], np.take) or are errors (embedding, gather).
"""
from __future__ import annotations

from ..diagnostics import CuvilError
from ..ir.dims import Dim, at_least
from ..ir.scalar import Const, Expr, apply, cast, const
from ..ir.types import DType, TensorType
from .array import np
from .definition import TypeRuleError, example, values
from .movement import clamped, movement
from .rules import check_axis


def _whole(index: TensorType, what: str) -> None:
    if index.dtype is not None and not index.dtype.is_int:
        raise TypeRuleError(f"{what} with indices of {index}", "integer indices", "dtype-mismatch")


def _position(index: Expr, size: Dim, negative: bool) -> Expr:
    index = cast(index, DType.I64)
    return apply("select", apply("lt", index, const(0)), apply("add", index, const(size)), index) if negative else index


def _check(indices: np.ndarray, size: int, negative: bool) -> np.ndarray:
    low = -size if negative else 0
    wrong = (indices < low) | (indices >= size)
    if wrong.any():
        raise CuvilError(f"index {indices[wrong].flat[0]} is outside an axis of {size} elements", expected=f"indices from {low} to {size - 1}")
    return np.where(indices < 0, indices.astype(np.int64) + size, indices)


def _infer_take(operands, attrs):
    x, index = operands
    _whole(index, "take")
    check_axis(attrs["axis"], x, "take")
    if x.shape is None or index.shape is None:
        return TensorType(None, x.dtype)
    axis = attrs["axis"]
    return TensorType((*x.shape[:axis], *index.shape, *x.shape[axis + 1:]), x.dtype)


def _take_index(type, operands, attrs, index, read) -> Expr:
    rank = len(operands[1].shape)
    return _position(read(1, tuple(index[attrs["axis"]:attrs["axis"] + rank])), operands[0].shape[attrs["axis"]], attrs["negative"])


def _inside(position: Expr, size: Dim) -> Expr:
    return apply("and", apply("ge", position, const(0)), apply("lt", position, const(size)))


def _take_at(type, operands, attrs, index, read):
    axis, rank = attrs["axis"], len(operands[1].shape)
    size = operands[0].shape[axis]
    if size == 0:
        return Const(0, type.dtype)
    position = clamped(_take_index(type, operands, attrs, index, read), size)
    return read(0, (*index[:axis], position, *index[axis + rank:]))


movement("take", _infer_take,
          lambda arrays, attrs: np.take(arrays[0], _check(arrays[1], arrays[0].shape[attrs["axis"]], attrs["negative"]), attrs["axis"]),
          _take_at, "rows of an axis picked by an index tensor",
          [example("x[i]", x="f32[5, 3]", i=values("i64", [-1, 0, 2])), example("x[:, i]", x="f32[2, 5]", i=values("i64", [[4, 0], [1, 1]])),
           example("F.embedding(i, w)", i=values("i64", [[0, 3], [2, 2]]), w="f32[5, 4]"),
           example("torch.index_select(x, 1, i)", x="f32[2, 5]", i=values("i64", [4, 0])),
           example("np.take(x, i, axis=0)", x="f32[5, 3]", i=values("i64", [3, 0])),
           example("x[i, j]", x="f32[5, 4]", i=values("i64", [-1, 0]), j=values("i64", [2, 3])),
           example("x[i]", x="f32[5]", i=values("i64", 2))],
          arity=2, guard=lambda type, operands, attrs, index, read: _inside(_take_index(type, operands, attrs, index, read), operands[0].shape[attrs["axis"]]))


def _infer_gather(operands, attrs):
    x, index = operands
    axis = attrs["axis"]
    _whole(index, "gather")
    check_axis(axis, x, "gather")
    if x.shape is not None and index.shape is not None:
        if len(x.shape) != len(index.shape):
            raise TypeRuleError(f"gather from {x} with indices {index}: {len(x.shape)} and {len(index.shape)} axes", "indices of the same rank")
        for a, (d, e) in enumerate(zip(x.shape, index.shape)):
            if a != axis and at_least(e - d, 1):
                raise TypeRuleError(f"gather over axis {axis} from {x} with indices {index}: size {e} of axis {a} exceeds {d}",
                                    f"at most {d} on axis {a}")
    return TensorType(index.shape, x.dtype)


def _gather(arrays, attrs):
    x, index = arrays
    if x.ndim == 0:
        return x
    axis = attrs["axis"]
    index = _check(index, x.shape[axis], attrs["negative"])
    x = x[tuple(slice(None) if a == axis else slice(0, n) for a, n in enumerate(index.shape))]
    return np.take_along_axis(x, index.astype(np.int64), axis)


def _gather_at(type, operands, attrs, index, read):
    axis = attrs["axis"]
    if not type.shape:
        return read(0, ())
    size = operands[0].shape[axis]
    if size == 0:
        return Const(0, type.dtype)
    position = clamped(_position(read(1, tuple(index)), size, attrs["negative"]), size)
    return read(0, (*index[:axis], position, *index[axis + 1:]))


movement("gather", _infer_gather, _gather, _gather_at, "along an axis, the element at the position that the index tensor gives",
          [example("torch.gather(x, 1, i)", x="f32[2, 5]", i=values("i64", [[4, 0, 1]])),
           example("x.gather(0, i)", x="f32[3, 2]", i=values("i64", [[2, 0], [1, 1]])),
           example("np.take_along_axis(x, i, axis=1)", x="f32[2, 5]", i=values("i64", [[-1], [0]]))],
          arity=2, guard=lambda type, operands, attrs, index, read: _inside(
              _position(read(1, tuple(index)), operands[0].shape[attrs["axis"]], attrs["negative"]), operands[0].shape[attrs["axis"]]))
