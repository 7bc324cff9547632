"""Shapes and parts of arrays: rot90, the stacks and splits, unfolding by strides, appending, comparing whole arrays."""
from __future__ import annotations

from ...ir.dims import floordiv, product
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..create import sizes
from ..definition import TypeRuleError, not_known, typed
from ..rules import broadcast, shape_of
from .forms import along


def _turned(b: Builder, x, k, axes):
    i, j = (b.axis(a, x) for a in axes)
    if i == j:
        raise TypeRuleError(f"rot90 of {x.type} in the axes {tuple(axes)}", "two different axes", "argument")
    own = list(shape_of(x))
    if k % 2:
        own[i], own[j] = own[j], own[i]
    return TensorType(tuple(own), x.type.dtype)


@typed("torch.rot90", "torch.Tensor.rot90")
def rot90(b: Builder, input, k=1, dims=(0, 1)):
    return _turned(b, input, k, dims)


@typed("numpy.rot90")
def numpy_rot90(b: Builder, m, k=1, axes=(0, 1)):
    return _turned(b, m, k, axes)


def _joined(b: Builder, tensors, axis: int, least: int) -> TensorType:
    """Tensors of at least `least` axes joined along one; a shorter one gets axes of 1 at its end (dstack) or front."""
    shapes = [tuple(shape_of(t)) for t in tensors]
    if any(len(s) != len(shapes[0]) for s in shapes):
        raise TypeRuleError(f"a stack of {' with '.join(str(t.type) for t in tensors)}", "tensors of one rank")
    full = [_padded(s, least) for s in shapes]
    total = sum((s[axis] for s in full), 0)
    broadcast([TensorType(tuple(d for a, d in enumerate(s) if a != axis), None) for s in full], "a stack")
    shape = tuple(total if a == axis else d for a, d in enumerate(full[0]))
    return TensorType(shape, b.common_dtype([t.type for t in tensors]))


def _padded(shape: tuple, least: int) -> tuple:
    if least == 2:                                                       # column_stack: (n,) is a column
        return (*shape, 1) if len(shape) == 1 else shape
    return (1, 1, 1) if not shape else (1, shape[0], 1) if len(shape) == 1 else (*shape, 1) if len(shape) == 2 else shape


@typed("torch.dstack", "numpy.dstack")
def dstack(b: Builder, tensors):
    return _joined(b, tensors, 2, 3)


@typed("torch.column_stack", "numpy.column_stack")
def column_stack(b: Builder, tensors):
    return _joined(b, tensors, 1, 2)


@typed("torch.atleast_2d")
def atleast_2d(b: Builder, *tensors):
    return _at_least(tensors, lambda own: (1,) * (2 - len(own)) + own)


@typed("torch.atleast_3d", "numpy.atleast_3d")
def atleast_3d(b: Builder, *tensors):
    return _at_least(tensors, lambda own: _padded(own, 3))


def _at_least(tensors, shape):
    made = tuple(TensorType(shape(tuple(shape_of(t))), t.type.dtype) for t in tensors)
    return made[0] if len(made) == 1 else made


def _parts(b: Builder, x, count, axis: int):
    size = shape_of(x)[axis]
    if isinstance(count, int):
        if not isinstance(size, int):
            return tuple(along(b, x, axis, floordiv(size, count)) for _ in range(count))
        if size % count:
            raise TypeRuleError(f"a split of axis {axis} of {x.type} into {count} equal parts", f"a number of parts that divides {size}")
        return tuple(along(b, x, axis, size // count) for _ in range(count))
    bounds = [0, *count, size]
    if not all(isinstance(p, int) and p >= 0 for p in bounds):
        raise not_known("the places of a split")
    bounds = [min(p, size) for p in bounds]
    return tuple(along(b, x, axis, max(high - low, 0)) for low, high in zip(bounds, bounds[1:]))


@typed("torch.hsplit", "torch.Tensor.hsplit", "numpy.hsplit")
def hsplit(b: Builder, input, indices):
    return _parts(b, input, indices, 0 if len(shape_of(input)) == 1 else 1)


@typed("torch.vsplit", "torch.Tensor.vsplit", "numpy.vsplit")
def vsplit(b: Builder, input, indices):
    return _parts(b, input, indices, 0)


@typed("torch.dsplit", "torch.Tensor.dsplit", "numpy.dsplit")
def dsplit(b: Builder, input, indices):
    return _parts(b, input, indices, 2)


@typed("torch.split_with_sizes", "torch.Tensor.split_with_sizes")
def split_with_sizes(b: Builder, input, split_sizes, dim=0):
    axis = b.axis(dim, input)
    return tuple(along(b, input, axis, size) for size in split_sizes)


@typed("torch.as_strided", "torch.Tensor.as_strided")
def as_strided(b: Builder, input, size, stride, storage_offset=None):
    return TensorType(sizes((size,)), input.type.dtype)


@typed("torch.unravel_index")
def unravel_index(b: Builder, indices, shape):
    return (TensorType(indices.type.shape, DType.I64),) * len(sizes((shape,)))


@typed("numpy.unravel_index")
def numpy_unravel_index(b: Builder, indices, shape, order="C"):
    return (TensorType(indices.type.shape if isinstance(indices, Op) else (), DType.I64),) * len(sizes((shape,)))


@typed("numpy.ravel_multi_index")
def ravel_multi_index(b: Builder, multi_index, dims, mode="raise", order="C"):
    return TensorType(broadcast([i.type for i in multi_index if isinstance(i, Op)], "ravel_multi_index"), DType.I64)


@typed("numpy.append")
def append(b: Builder, arr, values, axis=None):
    if axis is None:
        more = product(shape_of(values)) if isinstance(values, Op) else len(values) if isinstance(values, (list, tuple)) else 1
        return TensorType((product(shape_of(arr)) + more,), b.common_dtype([arr.type, values.type]) if isinstance(values, Op) else None)
    axis = b.axis(axis, arr)
    return along(b, arr, axis, shape_of(arr)[axis] + shape_of(values)[axis], b.common_dtype([arr.type, values.type]))


@typed("numpy.delete", "numpy.insert")
def delete(b: Builder, arr, obj, values=None, axis=None):
    axis = None if axis is None else b.axis(axis, arr)
    return TensorType((b.unbacked(),), arr.type.dtype) if axis is None else along(b, arr, axis, b.unbacked())


@typed("numpy.resize")
def resize(b: Builder, a, new_shape):
    return TensorType(sizes((new_shape,)), a.type.dtype)


@typed("numpy.rollaxis")
def rollaxis(b: Builder, a, axis, start=0):
    own = list(shape_of(a))
    axis = b.axis(axis, a)
    start = start + len(own) if start < 0 else start
    own.insert(start - (start > axis), own.pop(axis))
    return TensorType(tuple(own), a.type.dtype)


@typed("numpy.broadcast_arrays", "torch.broadcast_tensors")
def broadcast_tensors(b: Builder, *tensors):
    shape = broadcast([t.type for t in tensors], "broadcast_tensors")
    return tuple(TensorType(shape, t.type.dtype) for t in tensors)


@typed("numpy.select")
def select(b: Builder, condlist, choicelist, default=0):
    operands = [v for v in (*condlist, *choicelist, default) if isinstance(v, Op)]
    return TensorType(broadcast([v.type for v in operands], "np.select"),
                      b.common_dtype([v.type if isinstance(v, Op) else v for v in (*choicelist, default)]))


@typed("numpy.choose")
def choose(b: Builder, a, choices):
    operands = [a, *(choices if isinstance(choices, (list, tuple)) else [])]
    return TensorType(broadcast([v.type for v in operands if isinstance(v, Op)], "np.choose"), b.common_dtype([v.type for v in operands[1:]]))
