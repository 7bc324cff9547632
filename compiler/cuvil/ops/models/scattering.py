"""Writing to positions given by index tensors, out of place: the result is like the tensor that is written to."""
from __future__ import annotations

from ...ir.function import Op
from ...ir.types import DType
from ..builder import Builder
from ..definition import TypeRuleError, typed

INSTEAD = "gather, or torch.where with a mask"


def _whole(index, what: str) -> None:
    if isinstance(index, Op) and index.type.dtype not in (None, DType.I64, DType.I32):
        raise TypeRuleError(f"{what} with indices of {index.type}", "int64 indices", "dtype-mismatch")


def _written(b: Builder, what: str, input, dim, index, src):
    """Indices of the rank of the tensor, values of its element type and at least as large."""
    b.axis(dim, input)
    _whole(index, what)
    values = [v for v in (index, src) if isinstance(v, Op)]
    for value in values:
        if value.type.rank is not None and input.type.rank is not None and max(value.type.rank, 1) != max(input.type.rank, 1):
            raise TypeRuleError(f"{what} on {input.type} with {value.type}: {input.type.rank} and {value.type.rank} axes", "tensors of one rank")
    if isinstance(src, Op) and None not in (src.type.dtype, input.type.dtype) and src.type.dtype != input.type.dtype:
        raise TypeRuleError(f"{what} on {input.type} with values {src.type}: the element types differ", "values of the tensor's element type",
                            "dtype-mismatch")
    return input.type


@typed("torch.scatter", "torch.Tensor.scatter", instead=INSTEAD)
def scatter(b: Builder, input, dim, index, src=None, *, value=None, reduce=None):
    return _written(b, "scatter", input, dim, index, src)


@typed("torch.scatter_add", "torch.Tensor.scatter_add", instead=INSTEAD)
def scatter_add(b: Builder, input, dim, index, src):
    return _written(b, "scatter_add", input, dim, index, src)


@typed("torch.scatter_reduce", "torch.Tensor.scatter_reduce", instead=INSTEAD)
def scatter_reduce(b: Builder, input, dim, index, src, reduce, *, include_self=True):
    return _written(b, "scatter_reduce", input, dim, index, src)


@typed("torch.index_add", "torch.index_copy", "torch.Tensor.index_add", "torch.Tensor.index_copy", instead=INSTEAD)
def index_add(b: Builder, input, dim, index, source, *, alpha=1):
    b.axis(dim, input)
    _whole(index, "index_add")
    return input.type


@typed("torch.index_reduce", "torch.Tensor.index_reduce", instead=INSTEAD)
def index_reduce(b: Builder, input, dim, index, source, reduce, *, include_self=True):
    b.axis(dim, input)
    _whole(index, "index_reduce")
    return input.type


@typed("torch.index_fill", "torch.Tensor.index_fill", instead=INSTEAD)
def index_fill(b: Builder, input, dim, index, value):
    b.axis(dim, input)
    _whole(index, "index_fill")
    return input.type


@typed("torch.index_put", "torch.Tensor.index_put", instead=INSTEAD)
def index_put(b: Builder, input, indices, values, accumulate=False):
    return input.type


@typed("torch.masked_scatter", "torch.Tensor.masked_scatter", instead=INSTEAD)
def masked_scatter(b: Builder, input, mask, source):
    if mask.type.dtype not in (None, DType.BOOL):
        raise TypeRuleError(f"masked_scatter with a mask {mask.type}", "a bool mask", "dtype-mismatch")
    if None not in (input.type.dtype, source.type.dtype) and source.type.dtype != input.type.dtype:
        raise TypeRuleError(f"masked_scatter of {source.type} into {input.type}", "a source of the tensor's element type", "dtype-mismatch")
    return input.type


@typed("torch.Tensor.put", instead=INSTEAD)
def put(b: Builder, input, index, source, accumulate=False):
    _whole(index, "put")
    return input.type


@typed("torch.select_scatter", "torch.Tensor.select_scatter", instead=INSTEAD)
def select_scatter(b: Builder, input, src, dim, index):
    b.axis(dim, input)
    return input.type


@typed("torch.slice_scatter", "torch.Tensor.slice_scatter", instead=INSTEAD)
def slice_scatter(b: Builder, input, src, dim=0, start=None, end=None, step=1):
    b.axis(dim, input)
    return input.type


@typed("torch.diagonal_scatter", "torch.Tensor.diagonal_scatter", instead=INSTEAD)
def diagonal_scatter(b: Builder, input, src, offset=0, dim1=0, dim2=1):
    return input.type
