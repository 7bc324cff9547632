"""Choosing between elements: where, masked_fill, clamp, and what is done about NaN and infinities."""
from __future__ import annotations

import math

from ..ir.types import DType, TensorType
from .arithmetic import fits, is_number
from .builder import Builder, number
from .definition import TypeRuleError, spelled, unsupported
from .rules import dtype_of, shape_of


@spelled("torch.isnan", "torch.Tensor.isnan", "numpy.isnan")
def isnan(b: Builder, x):
    return b.emit("isnan", x) if dtype_of(x).is_float else b.emit("ne", x, x)


@spelled("torch.isinf", "torch.Tensor.isinf", "numpy.isinf")
def isinf(b: Builder, x):
    return b.emit("isinf", x) if dtype_of(x).is_float else b.emit("ne", x, x)


@spelled("torch.isfinite", "torch.Tensor.isfinite", "numpy.isfinite")
def isfinite(b: Builder, x):
    if not dtype_of(x).is_float:
        return b.emit("eq", x, x)
    return b.emit("not", b.emit("or", b.emit("isnan", x), b.emit("isinf", x)))


LARGEST = {DType.F16: 65504.0, DType.BF16: 3.3895313892515355e38, DType.F32: 3.4028234663852886e38, DType.F64: 1.7976931348623157e308}


@spelled("torch.nan_to_num", "torch.Tensor.nan_to_num")
def nan_to_num(b: Builder, input, nan=0.0, posinf=None, neginf=None):
    dtype = dtype_of(input)
    if not dtype.is_float:
        return input
    x = b.emit("select", b.emit("isnan", input), b.constant(0.0 if nan is None else nan, dtype), input)
    for sign, value in ((1, posinf), (-1, neginf)):
        hit = b.emit("eq", x, b.constant(sign * math.inf, dtype))
        x = b.emit("select", hit, b.constant(sign * LARGEST[dtype] if value is None else value, dtype), x)
    return x


@spelled("numpy.nan_to_num")
def numpy_nan_to_num(b: Builder, x, copy=True, nan=0.0, posinf=None, neginf=None):
    return nan_to_num(b, x, nan, posinf, neginf)


@spelled("torch.where")
def where(b: Builder, condition, input=None, other=None):
    if input is None:
        places = (TensorType((b.unbacked(),), DType.I64),) * max(len(shape_of(condition)), 1)
        raise unsupported("torch.where of a condition alone: the size of the result hangs on data", "torch.where(condition, a, b)",
                          places if len(places) > 1 else (places,))
    return b.emit("select", b.cast(condition, DType.BOOL), *b.promote(input, other))


@spelled("torch.Tensor.where")
def tensor_where(b: Builder, self, condition, y):
    return where(b, condition, self, y)


@spelled("numpy.where")
def numpy_where(b: Builder, condition, x=None, y=None):
    return where(b, condition, x, y)


@spelled("torch.masked_fill", "torch.Tensor.masked_fill")
def masked_fill(b: Builder, input, mask, value):
    if mask.type.dtype not in (None, DType.BOOL):
        raise TypeRuleError(f"masked_fill with a mask of {mask.type}", "a bool mask", "dtype-mismatch")
    if input.type.dtype is None:                                     # facts go on without it
        return b.emit("select", mask, b.promote(input, value)[1], input)
    fits(value, dtype_of(input), f"masked_fill of {input.type}")
    value = b.cast(value, dtype_of(input)) if not is_number(value) else b.constant(value, dtype_of(input))
    return b.emit("select", mask, value, input)


@spelled("torch.clamp", "torch.clip", "torch.Tensor.clamp", "torch.Tensor.clip")
def clamp(b: Builder, input, min=None, max=None):
    if min is None and max is None:
        raise TypeRuleError("clamp without bounds", "min, max or both", "argument")
    for bound in (min, max) if b.library != "numpy" else ():
        fits(bound, input.type.dtype, f"clamp of {input.type}")
    values = b.promote(input, *(v for v in (min, max) if v is not None))
    if values[0].type.dtype == DType.BOOL and b.library != "numpy":
        raise TypeRuleError(f"clamp of {input.type}", "numbers", "dtype-mismatch")
    x, bounds = values[0], list(values[1:])
    if min is not None:
        x = b.emit("maximum", x, bounds.pop(0))
    return b.emit("minimum", x, bounds[0]) if max is not None else x


@spelled("numpy.clip")
def numpy_clip(b: Builder, a, a_min=None, a_max=None, min=None, max=None):
    bounds = [a_min if min is None else min, a_max if max is None else max]
    for at, bound in enumerate(bounds):
        if isinstance(bound, int) and a.type.dtype is not None and a.type.dtype.is_int and number(bound, a.type.dtype) != bound:
            if (bound > 0) == (at == 0):
                raise unsupported(f"np.clip of {a.type} with {bound}", "bounds that the element type holds")
            bounds[at] = None                                        # no element lies beyond it
    return a if bounds == [None, None] else clamp(b, a, *bounds)


@spelled("numpy.ndarray.clip")
def array_clip(b: Builder, self, min=None, max=None):
    return numpy_clip(b, self, min, max)


@spelled("torch.clamp_min", "torch.Tensor.clamp_min")
def clamp_min(b: Builder, input, min):
    return clamp(b, input, min)


@spelled("torch.clamp_max", "torch.Tensor.clamp_max")
def clamp_max(b: Builder, input, max):
    return clamp(b, input, None, max)
