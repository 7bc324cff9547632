"""Reductions: folds along axes, and what is made of them (mean, var, argmax, norm, logsumexp).

attrs  axes      positions from the front, sorted; None when the rank is not known
       keepdims  whether the axes stay, with size 1
f16 and bf16 are summed in f32 and rounded once, as ATen does; the casts stand in the IR.
"""
from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from ..ir.dims import Dim, product
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .arithmetic import arithmetic
from .array import np
from .builder import Builder, Number, as_dtype
from .composite import composite
from .definition import REDUCTION, TypeRuleError, define, example, spelled, unsupported, values
from .rules import check_axis, numel
from .shape import reshaped


def reduced(type: TensorType, attrs: dict[str, Any], what: str, dtype: DType | None) -> TensorType:
    """The type after folding attrs axes."""
    if type.shape is None or attrs["axes"] is None:
        return TensorType(None, dtype)
    for axis in attrs["axes"]:
        check_axis(axis, type, what)
    if attrs["keepdims"]:
        return TensorType(tuple(1 if a in attrs["axes"] else d for a, d in enumerate(type.shape)), dtype)
    return TensorType(tuple(d for a, d in enumerate(type.shape) if a not in attrs["axes"]), dtype)


def lowest(dtype: DType) -> Number:
    return False if dtype == DType.BOOL else -math.inf if dtype.is_float else 0 if dtype == DType.U8 else -(1 << (8 * dtype.size - 1))


def highest(dtype: DType) -> Number:
    return True if dtype == DType.BOOL else math.inf if dtype.is_float else (1 << (8 * dtype.size - (dtype != DType.U8))) - 1


def _reduction(name: str, combine: str, ufunc: str, identity, summary: str, examples=(), logical=False):
    def infer(operands, attrs):
        if logical and operands[0].dtype not in (None, DType.BOOL):
            raise TypeRuleError(f"{name} of {operands[0]}", "bool elements", "dtype-mismatch")
        return reduced(operands[0], attrs, name, operands[0].dtype)

    def evaluate(arrays, attrs):
        x = arrays[0]
        start = x.dtype.type(identity(DType.parse(x.dtype.name)))
        return getattr(np, ufunc).reduce(x, axis=tuple(attrs["axes"]), keepdims=attrs["keepdims"], dtype=x.dtype, initial=start)

    define(name, REDUCTION, infer=infer, evaluate=evaluate, combine=combine, identity=identity, summary=summary, examples=tuple(examples),
           flops=lambda type, operands, attrs: numel(operands[0]))


_reduction("reduce_sum", "add", "add", lambda dtype: 0, "the sum along axes",
           [example("x.sum()", x="f32[2, 3]"), example("torch.sum(x, dim=-1, keepdim=True)", x="f32[2, 3]"), example("x.sum((0, 2))", x="i32[2, 3, 2]"),
            example("x.sum()", x="bool[9]"), example("np.sum(x, axis=1)", x="i32[2, 3]"), example("torch.sum(x, 0)", x="u8[200]"),
            example("x.sum(1)", x="f16[3, 40]"), example("x.sum(1)", x="f32[3, 0]"), example("torch.sum(x, dtype=torch.bool)", x="f32[3]"),
            example("x.sum(-1)", x="f32[]"), example("np.sum(x, dtype=np.float64)", x="f32[5]"), example("x.sum(0)", x="bf16[70, 2]"),
            example("torch.count_nonzero(x)", x="i32[9]")])
_reduction("reduce_prod", "mul", "multiply", lambda dtype: 1, "the product along axes",
           [example("x.prod()", x="f32[4]"), example("torch.prod(x, 1)", x="i32[2, 3]"), example("np.prod(x, axis=0)", x="f64[2, 3]"),
            example("x.prod(1)", x="f32[3, 0]"), example("torch.prod(x, dtype=torch.bool)", x="f32[3]")])
_reduction("reduce_max", "maximum", "maximum", lowest, "the maximum along axes; NaN if there is one",
           [example("x.amax(1)", x="f32[2, 3]"), example("x.max()", x="i32[4]"), example("torch.max(x, dim=1)[0]", x="f32[2, 3]"),
            example("np.max(x, axis=0)", x="f32[2, 3]"), example("x.max()", x=values("f32", [1.0, math.nan, 3.0]))])
_reduction("reduce_min", "minimum", "minimum", highest, "the minimum along axes; NaN if there is one",
           [example("x.amin((0, 1))", x="f32[2, 3]"), example("x.min(dim=0, keepdim=True)[0]", x="i32[4, 2]"), example("x.min(axis=1)", x="f64[2, 3]")])
_reduction("reduce_any", "or", "logical_or", lambda dtype: False, "whether any element is true", logical=True,
           examples=[example("(x > 0).any()", x="f32[4]"), example("torch.any(x, dim=1)", x="i32[2, 3]"), example("np.any(x, axis=0)", x="bool[2, 3]")])
_reduction("reduce_all", "and", "logical_and", lambda dtype: True, "whether all elements are true", logical=True,
           examples=[example("(x > 0).all(dim=0)", x="f32[2, 3]"), example("torch.all(x)", x="u8[3]"), example("x.gt(0).all(1)", x="f32[3, 0]")])


# --- composites -----------------------------------------------------------------------------------------------------

def wide(b: Builder, x: Op) -> Op:
    """x in the type that sums are held in: f32 for f16 and bf16."""
    return b.cast(x, DType.F32) if x.type.dtype in (DType.F16, DType.BF16) else x


def count(x: Op | TensorType, axes) -> Dim:
    """How many elements are folded into one."""
    shape = x.shape if isinstance(x, TensorType) else x.type.shape
    return product([shape[a] for a in axes])


def _infer_index(operands, attrs):
    axes = None if attrs["axis"] is None and operands[0].shape is None else \
        tuple(range(len(operands[0].shape))) if attrs["axis"] is None else (attrs["axis"],) if operands[0].shape != () else ()
    return reduced(operands[0], {"axes": axes, "keepdims": attrs["keepdims"]}, "argmax", DType.I64)


def _index_of(extreme: str):
    def decompose(b: Builder, operands, attrs):
        """The first position that holds the extreme, or the first NaN."""
        x, axis = operands[0], attrs["axis"]
        if axis is None or not x.type.shape:
            flat, shape = reshaped(b, x, (product(x.type.shape),)), (1,) * len(x.type.shape) if attrs["keepdims"] else ()
            return reshaped(b, decompose(b, [flat], {"axis": 0, "keepdims": False}), shape)
        size = x.type.shape[axis]
        hit = b.emit("eq", x, b.emit(extreme, x, axes=(axis,), keepdims=True))
        if x.type.dtype.is_float:
            hit = b.emit("or", hit, b.emit("isnan", x))
        places = b.emit("iota", shape=tuple(size if a == axis else 1 for a in range(len(x.type.shape))), axis=axis, dtype=DType.I64)
        return b.emit("reduce_min", b.emit("select", hit, places, b.constant(size, DType.I64)), axes=(axis,), keepdims=attrs["keepdims"])
    return decompose


composite("argmax", _infer_index, _index_of("reduce_max"), "the first position of the maximum; NaN counts as the maximum",
          [example("x.argmax()", x="f32[2, 3]"), example("torch.argmax(x, dim=1, keepdim=True)", x="f32[2, 3]"), example("np.argmax(x, axis=0)", x="i32[3, 2]"),
           example("x.argmax()", x=values("f32", [1.0, math.nan, 5.0, math.nan])), example("x.max(dim=1)[1]", x="f32[2, 3]"),
           example("x.argmax(0)", x="f32[]")])
composite("argmin", _infer_index, _index_of("reduce_min"), "the first position of the minimum; NaN counts as the minimum",
          [example("x.argmin(dim=1)", x="f32[2, 3]"), example("np.argmin(x)", x="i32[3, 2]")])


# --- spellings ------------------------------------------------------------------------------------------------------

def fold(b: Builder, name: str, x: Op, dim, keepdims, **more) -> Op:
    axes = b.axes(dim, x)
    if x.type.shape == ():
        axes = ()
    return b.emit(name, x, axes=axes, keepdims=bool(keepdims), **more)


def total(b: Builder, name: str, x: Op, dim, keepdims, dtype) -> Op:
    """sum and prod: integers widen to i64 (NumPy: u8 to u64, which is refused); f16 is summed in f32."""
    if dtype == DType.BOOL:
        return fold(b, "reduce_any" if name == "reduce_sum" else "reduce_all", b.cast(x, DType.BOOL), dim, keepdims)
    if dtype is None and x.type.dtype is not None and not x.type.dtype.is_float:
        if b.library == "numpy" and x.type.dtype == DType.U8:
            raise unsupported(f"the NumPy sum or product of {x.type}, which is uint64", "dtype=np.int64",
                              (TensorType(fold(b, name, x, dim, keepdims).type.shape, None),))
        dtype = DType.I64
    if dtype is not None:
        x = b.cast(x, dtype)
    return narrowed(b, fold(b, name, wide(b, x), dim, keepdims), x.type.dtype)


def narrowed(b: Builder, result: Op, dtype: DType | None) -> Op:
    return result if dtype is None else b.cast(result, dtype)


@spelled("torch.sum", "torch.Tensor.sum")
def torch_sum(b: Builder, input, dim=None, keepdim=False, dtype=None, axis=None, keepdims=False):
    return total(b, "reduce_sum", input, axis if dim is None else dim, keepdim or keepdims, dtype)


@spelled("numpy.sum", "numpy.ndarray.sum")
def numpy_sum(b: Builder, a, axis=None, dtype=None, keepdims=False):
    return total(b, "reduce_sum", b.tensor(a), axis, keepdims, as_dtype(dtype) if dtype else None)


@spelled("torch.prod", "torch.Tensor.prod")
def torch_prod(b: Builder, input, dim=None, keepdim=False, dtype=None):
    return total(b, "reduce_prod", input, dim, keepdim, dtype)


@spelled("numpy.prod", "numpy.ndarray.prod")
def numpy_prod(b: Builder, a, axis=None, dtype=None, keepdims=False):
    return total(b, "reduce_prod", a, axis, keepdims, as_dtype(dtype) if dtype else None)


@spelled("torch.count_nonzero", "torch.Tensor.count_nonzero")
def count_nonzero(b: Builder, input, dim=None):
    return fold(b, "reduce_sum", b.cast(b.cast(input, DType.BOOL), DType.I64), dim, False)


@spelled("numpy.count_nonzero")
def numpy_count_nonzero(b: Builder, a, axis=None, *, keepdims=False):
    return fold(b, "reduce_sum", b.cast(b.cast(a, DType.BOOL), DType.I64), axis, keepdims)


def extreme(b: Builder, name: str, x: Op, dim, keepdims) -> Op:
    axes = b.axes(dim, x)
    if x.type.shape and any(x.type.shape[a] == 0 for a in axes):
        raise TypeRuleError(f"the {'maximum' if name == 'reduce_max' else 'minimum'} of {x.type} over an axis without elements",
                            "at least one element", "argument")
    if x.type.dtype == DType.BOOL:
        return fold(b, "reduce_any" if name == "reduce_max" else "reduce_all", x, dim, keepdims)
    return fold(b, name, x, dim, keepdims)


for _name, _numpy, _reduce in (("amax", "max", "reduce_max"), ("amin", "min", "reduce_min")):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(
        lambda b, input, dim=(), keepdim=False, *, _name=_reduce: extreme(b, _name, input, dim, keepdim))
    spelled(f"numpy.{_name}", f"numpy.{_numpy}", f"numpy.ndarray.{_numpy}")(
        lambda b, a, axis=None, keepdims=False, *, _name=_reduce: extreme(b, _name, a, axis, keepdims))

Pair = namedtuple("Pair", "values indices")                          # what torch.max(x, dim) returns


def _first(*values):
    return next((v for v in values if v is not None), None)


def _torch_extreme(b: Builder, reduce: str, index: str, pairwise: str, input, dim, keepdim):
    if isinstance(dim, Op):
        return arithmetic(b, pairwise, input, dim)
    if dim is None:
        return extreme(b, reduce, input, None, False)
    axis = b.axis(dim, input)
    if input.type.dtype == DType.BOOL:
        raise unsupported("max or min with indices of bool elements")
    return Pair(extreme(b, reduce, input, axis, keepdim), b.emit(index, input, axis=axis, keepdims=bool(keepdim)))


@spelled("torch.max", "torch.Tensor.max")
def torch_max(b: Builder, input, dim=None, keepdim=False, other=None, axis=None, keepdims=False):
    return _torch_extreme(b, "reduce_max", "argmax", "maximum", input, _first(dim, other, axis), keepdim or keepdims)


@spelled("torch.min", "torch.Tensor.min")
def torch_min(b: Builder, input, dim=None, keepdim=False, other=None, axis=None, keepdims=False):
    return _torch_extreme(b, "reduce_min", "argmin", "minimum", input, _first(dim, other, axis), keepdim or keepdims)


for _name in ("argmax", "argmin"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(
        lambda b, input, dim=None, keepdim=False, *, _name=_name:
            b.emit(_name, input, axis=None if dim is None else b.axis(dim, input), keepdims=bool(keepdim)))
    spelled(f"numpy.{_name}", f"numpy.ndarray.{_name}")(
        lambda b, a, axis=None, keepdims=False, *, _name=_name: b.emit(_name, a, axis=None if axis is None else b.axis(axis, a), keepdims=bool(keepdims)))

for _name in ("any", "all"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(
        lambda b, input, dim=None, keepdim=False, *, _name=_name: _truth(b, _name, input, dim, keepdim))
    spelled(f"numpy.{_name}", f"numpy.ndarray.{_name}")(
        lambda b, a, axis=None, keepdims=False, *, _name=_name: _truth(b, _name, a, axis, keepdims))


def _truth(b: Builder, name: str, x: Op, dim, keepdims) -> Op:
    result = fold(b, f"reduce_{name}", b.cast(x, DType.BOOL), dim, keepdims)
    return b.cast(result, DType.U8) if b.library != "numpy" and x.type.dtype == DType.U8 else result     # torch keeps uint8
