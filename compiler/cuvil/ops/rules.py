"""Typing rules that many ops share: broadcasting, equal dtypes, sizes of slices and windows.

A rule raises only what is proved: symbolic sizes that may be equal pass, and unknown parts give unknown parts.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.dims import Dim, at_least, maximum, product, proved_different
from ..ir.types import DType, Shape, TensorType
from .definition import TypeRuleError, not_known


def shapes(types: Sequence[TensorType]) -> str:
    """`f32[2, 784] with f32[576, 10]`, for messages."""
    return " with ".join(map(str, types))


def broadcast_dim(a: Dim, b: Dim) -> Dim | None:
    """The size two sizes broadcast to; None when they provably do not. Of two different symbols it is the larger."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        return None
    if proved_different(a, b) and _not_one(a) and _not_one(b):
        return None
    if isinstance(a, int):
        return a
    return b if isinstance(b, int) else maximum(a, b)


def broadcast(types: Sequence[TensorType], what: str) -> Shape | None:
    """The common shape of operands, as NumPy broadcasts; None when a rank is unknown."""
    if any(t.shape is None for t in types):
        return None
    first = types[0].shape
    if all(t.shape == first for t in types):
        return first
    rank = max(len(t.shape) for t in types)
    result: list[Dim] = [1] * rank
    for type in types:
        for axis, dim in enumerate(type.shape, rank - len(type.shape)):
            common = broadcast_dim(result[axis], dim)
            if common is None:
                raise TypeRuleError(f"{what} of {shapes(types)}: sizes {result[axis]} and {dim} of axis {axis - rank} do not broadcast",
                                    "sizes that are equal or 1, counted from the last axis")
            result[axis] = common
    return tuple(result)


def broadcastable(source: Shape, target: Shape) -> bool:
    """False when `source` provably does not expand to `target`."""
    if len(source) > len(target):
        return False
    return not any(s != 1 and s != t and proved_different(s, t) and _not_one(s)
                   for s, t in zip(source, target[len(target) - len(source):]))


def common(types: Sequence[TensorType], what: str) -> DType | None:
    """The one dtype of operands; None when one is unknown."""
    known = [t.dtype for t in types if t.dtype is not None]
    if any(d != known[0] for d in known):
        raise TypeRuleError(f"{what} of {shapes(types)}: the element types differ", "operands of one element type", "dtype-mismatch")
    return known[0] if len(known) == len(types) else None


def same(operands: Sequence[TensorType], attrs: dict[str, Any]) -> TensorType:
    """The result is like the first operand."""
    return operands[0]


def float_only(name: str):
    """The typing rule of a function of floats: the result is like the operand."""
    def infer(operands: Sequence[TensorType], attrs: dict[str, Any]) -> TensorType:
        x = operands[0]
        if x.dtype is not None and not x.dtype.is_float:
            raise TypeRuleError(f"{name} of {x}", "floating-point elements; cast with .float() first", "dtype-mismatch")
        return x
    return infer


def check_axis(axis: int, type: TensorType, what: str) -> None:
    if type.shape is not None and not 0 <= axis < max(len(type.shape), 1):
        raise TypeRuleError(f"{what} over axis {axis} of {type}, which has {len(type.shape)} axes", "an axis of the tensor",
                            "index-out-of-range")


def shape_of(x: Any) -> Shape:
    """The shape of an op where a spelling needs it; raises a silent refusal when the rank is unknown."""
    if x.type.shape is None:
        raise not_known("the shape of a tensor is not known")
    return x.type.shape


def dtype_of(x: Any) -> DType:
    if x.type.dtype is None:
        raise not_known("the element type of a tensor is not known")
    return x.type.dtype


def numel(type: TensorType) -> Dim:
    """Number of elements, 0 for an unknown shape: costs of what is not known are not counted."""
    return 0 if type.shape is None else product(type.shape)


def no_flops(type: TensorType, operands: Sequence[TensorType], attrs: dict[str, Any]) -> Dim:
    return 0


def _not_one(dim: Dim) -> bool:
    return dim == 0 or at_least(dim, 2)
