"""Folds and differences along axes that are not compiled: nansum, std_mean, cumprod, diff, trapezoid."""
from __future__ import annotations

from collections import namedtuple

from ...ir.dims import maximum, minimum, product
from ...ir.types import DType, TensorType
from ..builder import Builder, as_dtype
from ..definition import typed
from ..rules import shape_of
from .forms import along, folded, like, need_floats

StdMean = namedtuple("StdMean", "std mean")


def _wide(b: Builder, x, dtype) -> DType | None:
    """Sums and products of integers are int64; of NumPy's unsigned ones uint64, which has no name here."""
    kind = x.type.dtype
    if dtype is not None:
        return as_dtype(dtype)
    if kind is None or kind.is_float:
        return kind
    return None if b.library == "numpy" and kind == DType.U8 else DType.I64


@typed("torch.nansum", "torch.Tensor.nansum")
def nansum(b: Builder, input, dim=None, keepdim=False, *, dtype=None):
    return folded(b, input, dim, keepdim, _wide(b, input, dtype))


@typed("torch.nanmean", "torch.Tensor.nanmean")
def nanmean(b: Builder, input, dim=None, keepdim=False, *, dtype=None):
    if dtype is None:
        need_floats("nanmean", input)
    return folded(b, input, dim, keepdim, dtype or input.type.dtype)


@typed("torch.std_mean")
def std_mean(b: Builder, input, dim=None, unbiased=True, keepdim=False, *, correction=1):
    need_floats("std_mean", input)
    result = folded(b, input, None if isinstance(dim, bool) else dim, keepdim, input.type.dtype)
    return StdMean(result, result)


@typed("torch.cumprod", "torch.Tensor.cumprod")
def cumprod(b: Builder, input, dim, *, dtype=None):
    b.axis(dim, input)
    return like(input, _wide(b, input, dtype))


@typed("torch.logcumsumexp", "torch.Tensor.logcumsumexp")
def logcumsumexp(b: Builder, input, dim):
    b.axis(dim, input)
    return like(input, need_floats("logcumsumexp", input))


@typed("torch.diff", "torch.Tensor.diff")
def diff(b: Builder, input, n=1, dim=-1, prepend=None, append=None):
    return _diff(b, input, n, dim, prepend, append)


@typed("numpy.diff")
def numpy_diff(b: Builder, a, n=1, axis=-1, prepend=None, append=None):
    return _diff(b, a, n, axis, prepend, append)


def _diff(b: Builder, x, n, axis, *more):
    own = shape_of(x)
    size = own[b.axis(axis, x)]
    for each in more:
        size = size + (shape_of(each)[axis] if hasattr(each, "type") and each.type.shape else 0 if each is None else 1)
    return along(b, x, axis, max(size - n, 0) if isinstance(size, int) else size - n)


@typed("torch.trapezoid", "torch.trapz")
def trapezoid(b: Builder, y, x=None, *, dx=1, dim=-1):
    return folded(b, y, dim, False, b.common_dtype([y.type, 1.0]))


@typed("torch.gradient")
def gradient(b: Builder, input, *, spacing=1, dim=None, edge_order=1):
    axes = b.axes(dim, input)
    return (input.type,) * len(axes)


# --- NumPy ----------------------------------------------------------------------------------------------------------

@typed("numpy.nansum", "numpy.nanprod")
def numpy_nansum(b: Builder, a, axis=None, dtype=None, *, keepdims=False):
    return folded(b, a, axis, keepdims, _wide(b, a, dtype))


@typed("numpy.nanmean")
def numpy_nanmean(b: Builder, a, axis=None, dtype=None, *, keepdims=False):
    return folded(b, a, axis, keepdims, _mean(a, dtype))


@typed("numpy.nanstd", "numpy.nanvar")
def numpy_nanstd(b: Builder, a, axis=None, dtype=None, *, ddof=0, keepdims=False):
    return folded(b, a, axis, keepdims, _mean(a, dtype))


def _mean(a, dtype) -> DType | None:
    kind = as_dtype(dtype) if dtype else a.type.dtype
    return kind if kind is None or kind.is_float else DType.F64


for _name in ("nanmax", "nanmin"):
    typed(f"numpy.{_name}")(lambda b, a, axis=None, *, keepdims=False: folded(b, a, axis, keepdims, a.type.dtype))


@typed("torch.cumulative_trapezoid")
def cumulative_trapezoid(b: Builder, y, x=None, *, dx=1, dim=-1):
    return along(b, y, dim, shape_of(y)[b.axis(dim, y)] - 1, b.common_dtype([y.type, 1.0]))


@typed("numpy.cumprod", "numpy.nancumsum", "numpy.nancumprod", "numpy.ndarray.cumprod")
def numpy_cumprod(b: Builder, a, axis=None, dtype=None):
    kind = _wide(b, a, dtype)
    return TensorType(a.type.shape if axis is not None else (product(shape_of(a)),), kind)


for _name in ("add", "multiply", "maximum", "minimum"):
    typed(f"numpy.{_name}.reduce")(lambda b, a, axis=0, dtype=None, *, keepdims=False, _name=_name: folded(
        b, a, axis, keepdims, _wide(b, a, dtype) if _name in ("add", "multiply") else a.type.dtype))
    typed(f"numpy.{_name}.accumulate")(lambda b, a, axis=0, dtype=None, *, _name=_name: TensorType(
        a.type.shape, _wide(b, a, dtype) if _name in ("add", "multiply") else a.type.dtype))


@typed("numpy.trapezoid")
def numpy_trapezoid(b: Builder, y, x=None, dx=1.0, axis=-1):
    return folded(b, y, axis, False, _mean(y, None))


@typed("numpy.gradient")
def numpy_gradient(b: Builder, f, *spacing, axis=None, edge_order=1):
    axes = b.axes(axis, f)
    result = TensorType(f.type.shape, _mean(f, None))
    return result if len(axes) == 1 else (result,) * len(axes)


@typed("numpy.interp")
def interp(b: Builder, x, xp, fp, left=None, right=None, period=None):
    return TensorType(x.type.shape if hasattr(x, "type") else (), DType.F64)


@typed("numpy.correlate")
def correlate(b: Builder, a, v, mode="valid"):
    return convolve(b, a, v, mode)


@typed("numpy.convolve")
def convolve(b: Builder, a, v, mode="full"):
    m, n = shape_of(a)[0], shape_of(v)[0]
    dtype = b.common_dtype([a.type, v.type])
    if mode == "same":
        return TensorType((maximum(m, n),), dtype)
    if mode == "valid":
        return TensorType((maximum(m, n) - minimum(m, n) + 1,), dtype)
    return TensorType((m + n - 1,), dtype)
