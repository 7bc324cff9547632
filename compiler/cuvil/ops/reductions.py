"""Reductions: folds along axes, and what is made of them (mean, var, argmax, norm, logsumexp).

attrs  axes      positions from the front, sorted; None when the rank is not known
       keepdims  whether the axes stay, with size 1
f16 and bf16 are summed in f32 and rounded once, as ATen does; the casts stand in the IR.
"""
from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from ..ir.dims import Dim, product
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .builder import Builder, Number
from .composite import composite
from .definition import REDUCTION, TypeRuleError, define, example, spelled, unsupported
from .elementwise import absolute, arithmetic, as_dtype, clamp, float_operand
from .promotion import default_float
from .rules import check_axis, dtype_of, numel, shape_of
from .shape import ravel, reshaped


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


def _reduction(name: str, combine: str, ufunc, identity, summary: str, examples=(), logical=False):
    def infer(operands, attrs):
        if logical and operands[0].dtype not in (None, DType.BOOL):
            raise TypeRuleError(f"{name} of {operands[0]}", "bool elements", "dtype-mismatch")
        return reduced(operands[0], attrs, name, operands[0].dtype)

    def evaluate(arrays, attrs):
        x = arrays[0]
        start = x.dtype.type(identity(DType.parse(x.dtype.name)))
        return ufunc.reduce(x, axis=tuple(attrs["axes"]), keepdims=attrs["keepdims"], dtype=x.dtype, initial=start)

    define(name, REDUCTION, infer=infer, evaluate=evaluate, combine=combine, identity=identity, summary=summary, examples=tuple(examples),
           flops=lambda type, operands, attrs: numel(operands[0]))


_reduction("reduce_sum", "add", np.add, lambda dtype: 0, "the sum along axes",
           [example("x.sum()", x="f32[2, 3]"), example("torch.sum(x, dim=-1, keepdim=True)", x="f32[2, 3]"), example("x.sum((0, 2))", x="i32[2, 3, 2]"),
            example("x.sum()", x="bool[9]"), example("np.sum(x, axis=1)", x="i32[2, 3]"), example("torch.sum(x, 0)", x="u8[200]"),
            example("x.sum(1)", x="f16[3, 40]"), example("x.sum(1)", x="f32[3, 0]"), example("torch.sum(x, dtype=torch.bool)", x="f32[3]"),
            example("x.sum(-1)", x="f32[]"), example("np.sum(x, dtype=np.float64)", x="f32[5]"), example("x.sum(0)", x="bf16[70, 2]"),
            example("torch.count_nonzero(x)", x="i32[9]")])
_reduction("reduce_prod", "mul", np.multiply, lambda dtype: 1, "the product along axes",
           [example("x.prod()", x="f32[4]"), example("torch.prod(x, 1)", x="i32[2, 3]"), example("np.prod(x, axis=0)", x="f64[2, 3]"),
            example("x.prod(1)", x="f32[3, 0]"), example("torch.prod(x, dtype=torch.bool)", x="f32[3]")])
_reduction("reduce_max", "maximum", np.maximum, lowest, "the maximum along axes; NaN if there is one",
           [example("x.amax(1)", x="f32[2, 3]"), example("x.max()", x="i32[4]"), example("torch.max(x, dim=1)[0]", x="f32[2, 3]"),
            example("np.max(x, axis=0)", x="f32[2, 3]"), example("x.max()", x=np.array([1.0, np.nan, 3.0], np.float32))])
_reduction("reduce_min", "minimum", np.minimum, highest, "the minimum along axes; NaN if there is one",
           [example("x.amin((0, 1))", x="f32[2, 3]"), example("x.min(dim=0, keepdim=True)[0]", x="i32[4, 2]"), example("x.min(axis=1)", x="f64[2, 3]")])
_reduction("reduce_any", "or", np.logical_or, lambda dtype: False, "whether any element is true", logical=True,
           examples=[example("(x > 0).any()", x="f32[4]"), example("torch.any(x, dim=1)", x="i32[2, 3]"), example("np.any(x, axis=0)", x="bool[2, 3]")])
_reduction("reduce_all", "and", np.logical_and, lambda dtype: True, "whether all elements are true", logical=True,
           examples=[example("(x > 0).all(dim=0)", x="f32[2, 3]"), example("torch.all(x)", x="u8[3]"), example("x.gt(0).all(1)", x="f32[3, 0]")])


# --- composites -----------------------------------------------------------------------------------------------------

def wide(b: Builder, x: Op) -> Op:
    """x in the type that sums are held in: f32 for f16 and bf16."""
    return b.cast(x, DType.F32) if x.type.dtype in (DType.F16, DType.BF16) else x


def count(x: Op | TensorType, axes) -> Dim:
    """How many elements are folded into one."""
    shape = x.shape if isinstance(x, TensorType) else x.type.shape
    return product([shape[a] for a in axes])


def _infer_float(name: str):
    def infer(operands, attrs):
        x = operands[0]
        if x.dtype is not None and not x.dtype.is_float:
            raise TypeRuleError(f"{name} of {x}", "floating-point elements; cast with .float() first", "dtype-mismatch")
        return reduced(x, attrs, name, x.dtype)
    return infer


def _mean(b: Builder, operands, attrs):
    x = wide(b, operands[0])
    total = b.emit("reduce_sum", x, axes=attrs["axes"], keepdims=attrs["keepdims"])
    return b.cast(b.emit("div", total, b.constant(count(x, attrs["axes"]), x.type.dtype)), operands[0].type.dtype)


composite("mean", _infer_float("mean"), _mean, "the arithmetic mean along axes",
          [example("x.mean()", x="f32[2, 3]"), example("x.mean(dim=(1, 2), keepdim=True)", x="f32[2, 3, 4]"), example("np.mean(x, axis=0)", x="i32[2, 3]"),
           example("x.mean(-1)", x="f16[2, 30]"), example("x.mean(0)", x="f32[]"), example("x.mean(1)", x="f32[3, 0]"), example("np.average(x)", x="f32[4]")])


def _var(b: Builder, operands, attrs):
    """Two passes: the mean, then the mean square distance from it; `correction` is taken off the count (Bessel's is 1)."""
    x = wide(b, operands[0])
    axes, n = attrs["axes"], count(x, attrs["axes"])
    distance = b.emit("sub", x, b.emit("mean", x, axes=axes, keepdims=True))
    total = b.emit("reduce_sum", b.emit("mul", distance, distance), axes=axes, keepdims=attrs["keepdims"])
    freedom = n - attrs["correction"]
    freedom = max(freedom, 0) if isinstance(freedom, (int, float)) else freedom
    return b.cast(b.emit("div", total, b.constant(freedom, x.type.dtype)), operands[0].type.dtype)


composite("var", _infer_float("var"), _var, "the variance along axes, over count - correction",
          [example("x.var()", x="f32[9]"), example("torch.var(x, dim=1, unbiased=False)", x="f32[2, 5]"), example("np.var(x, axis=0)", x="f64[4, 3]"),
           example("x.var(dim=-1, keepdim=True, correction=0)", x="f32[2, 5]"), example("np.var(x, ddof=1)", x="i32[5]")])
composite("std", _infer_float("std"),
          lambda b, operands, attrs: b.cast(b.emit("sqrt", b.emit("var", wide(b, operands[0]), **attrs)), operands[0].type.dtype),
          "the standard deviation along axes",
          [example("x.std()", x="f32[9]"), example("torch.std(x, 0, True)", x="f32[5, 2]"), example("x.std(axis=1)", x="f32[2, 5]"), example("x.std(1, keepdims=True)", x="f64[2, 5]")])


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
           example("x.argmax()", x=np.array([1.0, np.nan, 5.0, np.nan], np.float32)), example("x.max(dim=1)[1]", x="f32[2, 3]"), example("x.argmax(0)", x="f32[]")])
composite("argmin", _infer_index, _index_of("reduce_min"), "the first position of the minimum; NaN counts as the minimum",
          [example("x.argmin(dim=1)", x="f32[2, 3]"), example("np.argmin(x)", x="i32[3, 2]")])


def _logsumexp(b: Builder, operands, attrs):
    """m + log(sum(exp(x - m))), with m = 0 where the maximum is infinite, so that inf - inf does not arise."""
    x = wide(b, operands[0])
    top = b.emit("reduce_max", x, axes=attrs["axes"], keepdims=True)
    top = b.emit("select", b.emit("isinf", top), b.constant(0.0, x.type.dtype), top)
    total = b.emit("reduce_sum", b.emit("exp", b.emit("sub", x, top)), axes=attrs["axes"], keepdims=attrs["keepdims"])
    if not attrs["keepdims"]:
        top = reshaped(b, top, total.type.shape)
    return b.cast(b.emit("add", b.emit("log", total), top), operands[0].type.dtype)


composite("logsumexp", _infer_float("logsumexp"), _logsumexp, "log(sum(exp(x))) along axes, without overflow",
          [example("torch.logsumexp(x, dim=1)", x="f32[2, 5]"), example("x.logsumexp(0, keepdim=True)", x="f32[3, 2]"), example("torch.logsumexp(x, 1)", x="f32[3, 0]"),
           example("torch.logsumexp(x, 0)", x=np.array([-np.inf, -np.inf], np.float32)), example("torch.logsumexp(x, 0)", x="f32[]")])


def _norm(b: Builder, operands, attrs):
    x, p = wide(b, operands[0]), attrs["p"]
    fold = {"axes": attrs["axes"], "keepdims": attrs["keepdims"]}
    if p == 2:
        result = b.emit("sqrt", b.emit("reduce_sum", b.emit("mul", x, x), **fold))
    elif p == 1:
        result = b.emit("reduce_sum", b.emit("abs", x), **fold)
    elif math.isinf(p):
        result = b.emit("reduce_max" if p > 0 else "reduce_min", b.emit("abs", x), **fold)
    else:
        power = b.emit("pow", b.emit("abs", x), b.constant(p, x.type.dtype))
        result = b.emit("pow", b.emit("reduce_sum", power, **fold), b.constant(1 / p, x.type.dtype))
    return b.cast(result, operands[0].type.dtype)


composite("norm", _infer_float("norm"), _norm, "the p-norm of vectors along axes",
          [example("x.norm(dim=-1, keepdim=True)", x="f32[2, 3]"), example("torch.norm(x)", x="f32[2, 3]"), example("torch.linalg.vector_norm(x, 1, 0)", x="f32[2, 3]"),
           example("np.linalg.norm(x, axis=1)", x="f64[2, 3]"), example("torch.linalg.norm(x, dim=0, ord=float('inf'))", x="f32[2, 3]"),
           example("np.linalg.norm(x)", x="f32[2, 3]")])


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
            raise unsupported(f"the NumPy sum or product of {x.type}, which is uint64", "dtype=np.int64")
        dtype = DType.I64
    if dtype is not None:
        x = b.cast(x, dtype)
    return _narrowed(b, fold(b, name, wide(b, x), dim, keepdims), x.type.dtype)


def _narrowed(b: Builder, result: Op, dtype: DType | None) -> Op:
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


@spelled("torch.count_nonzero", "torch.Tensor.count_nonzero", "numpy.count_nonzero")
def count_nonzero(b: Builder, input, dim=None):
    return fold(b, "reduce_sum", b.cast(b.cast(input, DType.BOOL), DType.I64), dim, False)


@spelled("torch.mean", "torch.Tensor.mean")
def torch_mean(b: Builder, input, dim=None, keepdim=False, dtype=None, axis=None, keepdims=False):
    if dtype is not None:
        input = b.cast(input, dtype)
    return fold(b, "mean", input, axis if dim is None else dim, keepdim or keepdims)


@spelled("numpy.mean", "numpy.ndarray.mean", "numpy.average")
def numpy_mean(b: Builder, a, axis=None, dtype=None, keepdims=False):
    dtype = as_dtype(dtype) if dtype else a.type.dtype if a.type.dtype is None or a.type.dtype.is_float else DType.F64
    return fold(b, "mean", _narrowed(b, a, dtype), axis, keepdims)


def _extreme(b: Builder, name: str, x: Op, dim, keepdims) -> Op:
    axes = b.axes(dim, x)
    if x.type.shape and any(x.type.shape[a] == 0 for a in axes):
        raise TypeRuleError(f"the {'maximum' if name == 'reduce_max' else 'minimum'} of {x.type} over an axis without elements", "at least one element", "argument")
    if x.type.dtype == DType.BOOL:
        return fold(b, "reduce_any" if name == "reduce_max" else "reduce_all", x, dim, keepdims)
    return fold(b, name, x, dim, keepdims)


for _name, _numpy, _reduce in (("amax", "max", "reduce_max"), ("amin", "min", "reduce_min")):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(
        lambda b, input, dim=(), keepdim=False, *, _name=_reduce: _extreme(b, _name, input, dim, keepdim))
    spelled(f"numpy.{_name}", f"numpy.{_numpy}", f"numpy.ndarray.{_numpy}")(
        lambda b, a, axis=None, keepdims=False, *, _name=_reduce: _extreme(b, _name, a, axis, keepdims))

Pair = namedtuple("Pair", "values indices")                          # what torch.max(x, dim) returns


def _first(*values):
    return next((v for v in values if v is not None), None)


def _torch_extreme(b: Builder, reduce: str, index: str, pairwise: str, input, dim, keepdim):
    if isinstance(dim, Op):
        return arithmetic(b, pairwise, input, dim)
    if dim is None:
        return _extreme(b, reduce, input, None, False)
    axis = b.axis(dim, input)
    if input.type.dtype == DType.BOOL:
        raise unsupported("max or min with indices of bool elements")
    return Pair(_extreme(b, reduce, input, axis, keepdim), b.emit(index, input, axis=axis, keepdims=bool(keepdim)))


@spelled("torch.max", "torch.Tensor.max")
def torch_max(b: Builder, input, dim=None, keepdim=False, other=None, axis=None, keepdims=False):
    return _torch_extreme(b, "reduce_max", "argmax", "maximum", input, _first(dim, other, axis), keepdim or keepdims)


@spelled("torch.min", "torch.Tensor.min")
def torch_min(b: Builder, input, dim=None, keepdim=False, other=None, axis=None, keepdims=False):
    return _torch_extreme(b, "reduce_min", "argmin", "minimum", input, _first(dim, other, axis), keepdim or keepdims)


for _name in ("argmax", "argmin"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(
        lambda b, input, dim=None, keepdim=False, *, _name=_name: b.emit(_name, input, axis=None if dim is None else b.axis(dim, input), keepdims=bool(keepdim)))
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


def _spread(name: str):
    def spell(b: Builder, input, dim=None, unbiased=None, keepdim=False, correction=None, axis=None, keepdims=False):
        if isinstance(dim, bool):                                    # x.var(False): the first argument is `unbiased`
            dim, unbiased = None, dim
        correction = (1 if unbiased is None else int(unbiased)) if correction is None else correction
        return fold(b, name, input, axis if dim is None else dim, keepdim or keepdims, correction=correction)
    return spell


for _name in ("var", "std"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(_spread(_name))
    spelled(f"numpy.{_name}", f"numpy.ndarray.{_name}")(
        lambda b, a, axis=None, dtype=None, ddof=0, keepdims=False, *, _name=_name: fold(
            b, _name, b.cast(a, as_dtype(dtype) if dtype else dtype_of(a) if dtype_of(a).is_float else DType.F64), axis, keepdims, correction=ddof))


@spelled("torch.var_mean")
def var_mean(b: Builder, input, dim=None, unbiased=None, keepdim=False, correction=None):
    return _spread("var")(b, input, dim, unbiased, keepdim, correction), fold(b, "mean", input, dim, keepdim)


@spelled("torch.logsumexp", "torch.Tensor.logsumexp", "torch.special.logsumexp")
def logsumexp(b: Builder, input, dim, keepdim=False):
    return fold(b, "logsumexp", float_operand(b, input), dim, keepdim)


def _norm_order(p, default=2):
    if p in (None, "fro"):
        return float(default)
    if isinstance(p, (int, float)) and p != 0:
        return float(p)
    raise unsupported(f"the norm of order {p!r}", "a number other than 0")


@spelled("torch.norm", "torch.Tensor.norm")
def norm(b: Builder, input, p="fro", dim=None, keepdim=False, dtype=None):
    return fold(b, "norm", input if dtype is None else b.cast(input, dtype), dim, keepdim, p=_norm_order(p))


@spelled("torch.linalg.vector_norm")
def vector_norm(b: Builder, x, ord=2, dim=None, keepdim=False, dtype=None):
    return norm(b, x, ord, dim, keepdim, dtype)


@spelled("torch.linalg.norm")
def linalg_norm(b: Builder, A, ord=None, dim=None, keepdim=False, dtype=None):
    return _linalg_norm(b, A, ord, dim, keepdim)


@spelled("numpy.linalg.norm")
def numpy_norm(b: Builder, x, ord=None, axis=None, keepdims=False):
    return _linalg_norm(b, float_operand(b, x), ord, axis, keepdims)


def _linalg_norm(b: Builder, x, ord, dim, keepdim):
    many = len(shape_of(x)) if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord is not None and many != 1 and ord != "fro":
        raise unsupported(f"the matrix norm of order {ord!r}", "vector norms: one axis, or the Frobenius norm")
    return fold(b, "norm", x, dim, keepdim, p=_norm_order(ord))
