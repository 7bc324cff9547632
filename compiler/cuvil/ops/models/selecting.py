"""Results whose size the data decide: nonzero, unique, masked_select, bincount. Such a size is a new symbol."""
from __future__ import annotations

from ...ir.dims import product
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import typed
from ..rules import dtype_of, shape_of

INSTEAD = "torch.where with a mask"


@typed("torch.nonzero", "torch.Tensor.nonzero", instead=INSTEAD)
def nonzero(b: Builder, input, *, as_tuple=False):
    count, rank = b.unbacked(), len(shape_of(input))
    return (TensorType((count,), DType.I64),) * max(rank, 1) if as_tuple else TensorType((count, rank), DType.I64)


@typed("torch.argwhere", "torch.Tensor.argwhere", "numpy.argwhere", instead=INSTEAD)
def argwhere(b: Builder, input):
    return TensorType((b.unbacked(), len(shape_of(input))), DType.I64)


@typed("numpy.nonzero", "numpy.ndarray.nonzero", instead=INSTEAD)
def numpy_nonzero(b: Builder, a):
    return (TensorType((b.unbacked(),), DType.I64),) * len(shape_of(a))


@typed("numpy.flatnonzero", instead=INSTEAD)
def flatnonzero(b: Builder, a):
    return TensorType((b.unbacked(),), DType.I64)


@typed("torch.masked_select", "torch.Tensor.masked_select", instead=INSTEAD)
def masked_select(b: Builder, input, mask):
    return TensorType((b.unbacked(),), input.type.dtype)


@typed("numpy.extract", "numpy.compress")
def extract(b: Builder, condition, arr):
    return TensorType((b.unbacked(),), arr.type.dtype)


@typed("torch.unique", "torch.Tensor.unique")
def unique(b: Builder, input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _unique(b, input, dim, return_inverse, return_counts)


@typed("torch.unique_consecutive", "torch.Tensor.unique_consecutive")
def unique_consecutive(b: Builder, input, return_inverse=False, return_counts=False, dim=None):
    return _unique(b, input, dim, return_inverse, return_counts)


def _unique(b: Builder, x, dim, inverse, counts, index=False, flat=False):
    """The elements, or slices along an axis, that differ; and as asked where each came from, where each went, and how often it stands."""
    count, axis = b.unbacked(), None if dim is None else b.axis(dim, x)
    shape = (count,) if axis is None else tuple(count if a == axis else d for a, d in enumerate(shape_of(x)))
    whole = (product(shape_of(x)),) if flat and axis is None else shape_of(x) if axis is None else (shape_of(x)[axis],)
    more = [TensorType(s, DType.I64) for s, asked in (((count,), index), (whole, inverse), ((count,), counts)) if asked]
    values = TensorType(shape, x.type.dtype)
    return (values, *more) if more else values


@typed("numpy.unique")
def numpy_unique(b: Builder, ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True):
    return _unique(b, ar, axis, return_inverse, return_counts, return_index)


@typed("numpy.union1d", "numpy.intersect1d", "numpy.setxor1d")
def union(b: Builder, ar1, ar2):
    return TensorType((b.unbacked(),), b.common_dtype([ar1.type, ar2.type]))


@typed("numpy.setdiff1d")
def setdiff(b: Builder, ar1, ar2, assume_unique=False):
    return TensorType((b.unbacked(),), ar1.type.dtype)


@typed("torch.bincount", "torch.Tensor.bincount")
def bincount(b: Builder, input, weights=None, minlength=0):
    return TensorType((b.unbacked(),), DType.I64 if weights is None else DType.F32 if dtype_of(weights) == DType.F32 else DType.F64)


@typed("numpy.bincount")
def numpy_bincount(b: Builder, x, weights=None, minlength=0):
    return TensorType((b.unbacked(),), DType.I64 if weights is None else DType.F64)


@typed("torch.combinations")
def combinations(b: Builder, input, r=2, with_replacement=False):
    return TensorType((b.unbacked(), r), input.type.dtype)


@typed("torch.cartesian_prod")
def cartesian_prod(b: Builder, *tensors):
    if len(tensors) == 1:
        return tensors[0].type
    return TensorType((product([shape_of(t)[0] for t in tensors]), len(tensors)), b.common_dtype([t.type for t in tensors]))
