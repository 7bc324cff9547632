"""Sorting and searching: sort, topk, median, quantile, unique, searchsorted."""
from __future__ import annotations

from collections import namedtuple

from ...ir.dims import at_least, product
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import TypeRuleError, not_known, typed
from ..reductions import Pair
from ..rules import dtype_of, shape_of
from .forms import along, folded, like, need_floats

MinMax = namedtuple("MinMax", "min max")


def _with_indices(values: TensorType) -> Pair:
    return Pair(values, TensorType(values.shape, DType.I64))


@typed("torch.sort", "torch.Tensor.sort")
def sort(b: Builder, input, dim=-1, descending=False, stable=False):
    b.axis(dim, input)
    return _with_indices(input.type)


@typed("torch.msort", "torch.Tensor.msort")
def msort(b: Builder, input):
    return input.type


@typed("torch.argsort", "torch.Tensor.argsort")
def argsort(b: Builder, input, dim=-1, descending=False, stable=False):
    b.axis(dim, input)
    return like(input, DType.I64)


@typed("torch.topk", "torch.Tensor.topk", instead="argmax for k = 1")
def topk(b: Builder, input, k, dim=-1, largest=True, sorted=True):
    size = shape_of(input)[b.axis(dim, input)] if shape_of(input) else 1
    if isinstance(k, bool) or not isinstance(k, int) and not hasattr(k, "terms"):
        raise not_known("a number of elements that is computed from data")
    if at_least(k - size, 1):
        raise TypeRuleError(f"topk of {k} elements on axis {dim} of {input.type}, which has {size}", f"at most {size} elements", "index-out-of-range")
    return _with_indices(along(b, input, dim, k))


@typed("torch.kthvalue", "torch.Tensor.kthvalue")
def kthvalue(b: Builder, input, k, dim=-1, keepdim=False):
    return _with_indices(folded(b, input, dim, keepdim, input.type.dtype))


@typed("torch.mode", "torch.Tensor.mode")
def mode(b: Builder, input, dim=-1, keepdim=False):
    return _with_indices(folded(b, input, dim, keepdim, input.type.dtype))


@typed("torch.median", "torch.nanmedian", "torch.Tensor.median", "torch.Tensor.nanmedian")
def median(b: Builder, input, dim=None, keepdim=False):
    values = folded(b, input, dim, keepdim, input.type.dtype)
    return values if dim is None else _with_indices(values)


@typed("torch.aminmax", "torch.Tensor.aminmax")
def aminmax(b: Builder, input, *, dim=None, keepdim=False):
    values = folded(b, input, dim, keepdim, input.type.dtype)
    return MinMax(values, values)


@typed("torch.cummax", "torch.cummin", "torch.Tensor.cummax", "torch.Tensor.cummin")
def cummax(b: Builder, input, dim):
    b.axis(dim, input)
    return _with_indices(input.type)


@typed("torch.quantile", "torch.nanquantile", "torch.Tensor.quantile", "torch.Tensor.nanquantile")
def quantile(b: Builder, input, q, dim=None, keepdim=False, *, interpolation="linear"):
    if input.type.dtype not in (None, DType.F32, DType.F64):
        raise TypeRuleError(f"quantile of {input.type}", "float32 or float64 elements", "dtype-mismatch")
    if hasattr(q, "type"):
        need_floats("quantile", input, q)
    result = folded(b, input, dim, keepdim, input.type.dtype)
    lead = shape_of(q) if hasattr(q, "type") else ()
    return TensorType(None if result.shape is None else (*lead, *result.shape), result.dtype)


@typed("torch.bucketize")
def bucketize(b: Builder, input, boundaries, *, out_int32=False, right=False):
    return _places(input, out_int32)


@typed("torch.searchsorted")
def searchsorted(b: Builder, sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    return _places(input, out_int32)


def _places(values, out_int32: bool) -> TensorType:
    return TensorType(values.type.shape if hasattr(values, "type") else (), DType.I32 if out_int32 else DType.I64)


@typed("torch.isin")
def isin(b: Builder, elements, test_elements, *, assume_unique=False, invert=False):
    return TensorType(elements.type.shape if hasattr(elements, "type") else (), DType.BOOL)


@typed("torch.histc", "torch.Tensor.histc")
def histc(b: Builder, input, bins=100, min=0, max=0):
    return TensorType((bins,), need_floats("histc", input))


@typed("torch.histogram", "torch.Tensor.histogram")
def histogram(b: Builder, input, bins, *, range=None, weight=None, density=False):
    need_floats("histogram", input)
    count = shape_of(bins)[0] - 1 if hasattr(bins, "type") else bins
    return TensorType((count,), input.type.dtype), TensorType((count + 1,), input.type.dtype)


# --- NumPy ----------------------------------------------------------------------------------------------------------

@typed("numpy.sort")
def numpy_sort(b: Builder, a, axis=-1, kind=None, order=None, *, stable=None):
    return a.type if axis is not None else TensorType((product(shape_of(a)),), a.type.dtype)


@typed("numpy.argsort", "numpy.ndarray.argsort")
def numpy_argsort(b: Builder, a, axis=-1, kind=None, order=None, *, stable=None):
    if axis is None:
        return TensorType((product(shape_of(a)),), DType.I64)
    b.axis(axis, a)
    return like(a, DType.I64)


def _partition(dtype: DType | None):
    def rule(b: Builder, a, kth, axis=-1, kind="introselect", order=None):
        return TensorType((product(shape_of(a)),) if axis is None else a.type.shape, dtype or a.type.dtype)
    return rule


typed("numpy.partition")(_partition(None))
typed("numpy.argpartition", "numpy.ndarray.argpartition")(_partition(DType.I64))


@typed("numpy.lexsort")
def lexsort(b: Builder, keys, axis=-1):
    return TensorType(shape_of(keys[0] if isinstance(keys, (tuple, list)) else keys)[0 if isinstance(keys, (tuple, list)) else 1:], DType.I64)


@typed("numpy.searchsorted")
def numpy_searchsorted(b: Builder, a, v, side="left", sorter=None):
    return _places(v, False)


@typed("numpy.digitize")
def digitize(b: Builder, x, bins, right=False):
    return _places(x, False)


@typed("numpy.isin")
def numpy_isin(b: Builder, element, test_elements, assume_unique=False, invert=False, *, kind=None):
    return TensorType(element.type.shape if hasattr(element, "type") else (), DType.BOOL)


@typed("numpy.median", "numpy.nanmedian")
def numpy_median(b: Builder, a, axis=None, *, keepdims=False):
    return folded(b, a, axis, keepdims, _mean_type(a))


@typed("numpy.percentile", "numpy.quantile", "numpy.nanpercentile", "numpy.nanquantile")
def percentile(b: Builder, a, q, axis=None, *, method="linear", keepdims=False, weights=None):
    result = folded(b, a, axis, keepdims, _mean_type(a))
    lead = shape_of(q) if hasattr(q, "type") else (len(q),) if isinstance(q, (list, tuple)) else ()
    return TensorType(None if result.shape is None else (*lead, *result.shape), result.dtype)


def _mean_type(a) -> DType | None:
    dtype = a.type.dtype
    return dtype if dtype is None or dtype.is_float else DType.F64


@typed("numpy.histogram")
def numpy_histogram(b: Builder, a, bins=10, range=None, *, density=None, weights=None):
    if not isinstance(bins, int):
        raise not_known("the bins of a histogram")
    counts = DType.I64 if not density and weights is None else None
    return TensorType((bins,), counts if not density else DType.F64), TensorType((bins + 1,), dtype_of(a) if dtype_of(a).is_float else DType.F64)


@typed("numpy.ptp")
def ptp(b: Builder, a, axis=None, *, keepdims=False):
    return folded(b, a, axis, keepdims, a.type.dtype)


for _name in ("nanargmax", "nanargmin"):
    typed(f"numpy.{_name}")(lambda b, a, axis=None, *, keepdims=False: folded(b, a, axis, keepdims, DType.I64))
