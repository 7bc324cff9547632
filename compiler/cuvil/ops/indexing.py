"""Reading parts of tensors: x[...], slices, gathers, embeddings, windows along an axis, diagonals."""
from __future__ import annotations

from typing import Any

from ..ir.dims import Dim, Poly, at_least, at_most, floordiv, maximum, minimum, product, proved_different
from ..ir.function import Op
from ..ir.types import DType, Shape, TensorType
from .builder import Builder
from .create import tensor
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .rules import broadcast, shape_of
from .shape import expanded, ravel, reshaped, transposed


def window(b: Builder, x: Op, ranges: dict[int, tuple[Dim, Dim, int]]) -> Op:
    """A slice that takes (start, size, step) on some axes and everything on the others."""
    own = shape_of(x)
    if all(start == 0 and size == own[a] and step == 1 for a, (start, size, step) in ranges.items()):
        return x
    full = [ranges.get(a, (0, d, 1)) for a, d in enumerate(own)]
    starts, counts, steps = zip(*full)
    return b.emit("slice", x, starts=starts, sizes=counts, steps=steps)


def _from_end(value: Dim, size: Dim) -> Dim:
    """An index counted from the front; what may be of either sign stays as it is."""
    return value + size if at_most(value, -1) else value


def slice_range(index: slice, size: Dim, backward_refused: bool = False) -> tuple[Dim, Dim, int]:
    """(start, size, step) of a Python slice of an axis, clamped as Python clamps."""
    step = 1 if index.step is None else index.step
    for part in (index.start, index.stop, step):
        if isinstance(part, Op):
            raise not_known("a slice bound that is computed from data")
    if isinstance(step, Poly):
        raise not_known("a slice with a symbolic step")
    if step == 0:
        raise TypeRuleError("a slice with step 0", "a step that is not zero", "argument")
    if step < 0:
        if backward_refused:
            raise TypeRuleError(f"a slice of a torch tensor with step {step}", "a positive step; .flip(dim) to reverse", "argument")
        if isinstance(size, Poly) and not (index.start is None and index.stop is None):
            raise not_known("a backward slice of a symbolic axis")
        if isinstance(size, int):
            if any(isinstance(v, Poly) for v in (index.start, index.stop)):
                raise not_known("a backward slice with symbolic bounds")
            start, stop, _ = index.indices(size)
            return start, max(0, -((start - stop) // step)), step
        return size - 1, floordiv(size - 1, -step) + 1, step
    start = 0 if index.start is None else minimum(maximum(_from_end(index.start, size), 0), size)
    stop = size if index.stop is None else minimum(maximum(_from_end(index.stop, size), 0), size)
    return start, maximum(floordiv(stop - start + step - 1, step), 0), step


@spelled("operator.getitem")
def getitem(b: Builder, x, index):
    """x[...] with integers, slices, None, Ellipsis and index tensors."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [tensor_index(b, item) if isinstance(item, list) else item for item in items]
    if any(isinstance(i, bool) for i in items):
        raise unsupported("indexing by True or False")
    own = shape_of(x)
    for item in items:
        if isinstance(item, Op) and item.type.dtype is not None and item.type.dtype.is_float:
            raise TypeRuleError(f"an index of {item.type} for {x.type}", "integer or bool indices; // divides integers to integers", "dtype-mismatch")
    taken = sum(_axes_taken(b, i) for i in items)
    if taken > len(own):
        raise TypeRuleError(f"{taken} indices for {x.type}, which has {len(own)} axes", f"at most {len(own)} indices", "index-out-of-range")
    if Ellipsis in [i for i in items if not isinstance(i, (Op, Poly))]:
        at = next(n for n, i in enumerate(items) if i is Ellipsis)
        items[at:at + 1] = [slice(None)] * (len(own) - taken)
        if any(i is Ellipsis for i in items):
            raise TypeRuleError("an index with two ellipses", "one ...", "argument")
    else:
        items += [slice(None)] * (len(own) - taken)
    if any(_is_mask(b, i) for i in items):
        raise unsupported("indexing by a bool tensor: the size of the result hangs on data", "torch.where or masked_fill", (_masked_type(b, x, items),))
    if b.library != "numpy" and any(isinstance(i, Op) for i in items) and any(isinstance(i, (int, Poly)) for i in items):
        x = getitem(b, x, tuple(i if isinstance(i, (int, Poly)) else slice(None) for i in items if i is not None))      # torch: integers first
        return getitem(b, x, tuple(i for i in items if not isinstance(i, (int, Poly))))

    ranges: dict[int, tuple[Dim, Dim, int]] = {}
    result: list[Any] = []                                          # of the shape: sizes, and index tensors at their place
    axis = 0
    for item in items:
        if item is None:
            result.append(1)
            continue
        size = own[axis]
        if isinstance(item, slice):
            ranges[axis] = slice_range(item, size, b.library != "numpy")
            result.append(ranges[axis][1])
        elif isinstance(item, Op):
            result.append(item)
        elif isinstance(item, (int, Poly)):
            place = _from_end(item, size)
            if at_least(-1 - place, 0) or at_least(place - size, 0):
                raise TypeRuleError(f"index {item} on axis {axis} of {x.type}, which has size {size}",
                                    f"an index from -{size} to {size - 1}" if isinstance(size, int)
                                    else "an index inside the axis", "index-out-of-range")
            ranges[axis] = (place, 1, 1)
        else:
            raise not_known("an index that Cuvil does not understand")
        axis += 1
    if not any(isinstance(r, Op) for r in result):
        return reshaped(b, window(b, x, ranges), result)
    return _advanced(b, x, items, ranges)


def _is_mask(b: Builder, item: Any) -> bool:
    return isinstance(item, Op) and (item.type.dtype == DType.BOOL or item.type.dtype == DType.U8 and b.library != "numpy")


def _axes_taken(b: Builder, item: Any) -> int:
    return 0 if item is None or item is Ellipsis else len(shape_of(item)) if _is_mask(b, item) else 1


def _masked_type(b: Builder, x: Op, items: list) -> TensorType:
    """What x[mask, ...] gives: a mask of k axes is k index vectors of one length, which the data decide."""
    own, axis, indices = shape_of(x), 0, []
    for item in items:
        if _is_mask(b, item):
            for a, size in enumerate(shape_of(item)):
                if proved_different(size, own[axis + a]):
                    raise TypeRuleError(f"a mask {item.type} on axis {axis + a} of {x.type}", f"a size of {own[axis + a]} on its axis {a}")
            indices += [TensorType((b.unbacked(),), DType.I64)] * len(shape_of(item))
            axis += len(shape_of(item))
        else:
            indices.append(item.type if isinstance(item, Op) else item)
            axis += item is not None
    return TensorType(_indexed(b, own, indices), x.type.dtype)


def _indexed(b: Builder, own: Shape, indices: list) -> Shape:
    """The shape of own[indices]: index tensors broadcast; their axes stand where the first was, or in front when they are not adjacent."""
    advanced = [n for n, i in enumerate(indices) if isinstance(i, TensorType) or b.library == "numpy" and isinstance(i, (int, Poly))]
    common = broadcast([i for i in indices if isinstance(i, TensorType)], "indices") or ()
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    result, axis = [] if adjacent else [*common], 0
    for n, item in enumerate(indices):
        if adjacent and n == advanced[0]:
            result += common
        if isinstance(item, slice):
            result.append(slice_range(item, own[axis], b.library != "numpy")[1])
        elif item is None:
            result.append(1)
        axis += item is not None
    return tuple(result)


def tensor_index(b: Builder, item: list) -> Op:
    return tensor(b, item)


def _advanced(b: Builder, x: Op, items: list, ranges) -> Op:
    """Index tensors: adjacent ones broadcast together and take from their axes merged into one."""
    places = [n for n, i in enumerate(items) if isinstance(i, Op)]
    if any(isinstance(i, (int, Poly)) for i in items):              # an integer beside index tensors is an index tensor itself
        places = [n for n, i in enumerate(items) if isinstance(i, (Op, int, Poly)) and not isinstance(i, bool)]
    if places != list(range(places[0], places[-1] + 1)):
        shape = _indexed(b, shape_of(x), [i.type if isinstance(i, Op) else i for i in items])
        raise unsupported("index tensors on axes that are not adjacent", "indexing in two steps", (TensorType(shape, x.type.dtype),))
    if any(i is None for i in items[places[0]:places[-1]]):
        raise unsupported("None between index tensors")
    indices = [i if isinstance(i, Op) else b.constant(i, DType.I64) for i in (items[p] for p in places)]
    first = sum(1 for i in items[:places[0]] if i is not None)
    ranges = {a: r for a, r in ranges.items() if not first <= a < first + len(places)}
    x = window(b, x, ranges)
    own = shape_of(x)
    sizes_ = own[first:first + len(places)]
    index = indices[0]
    if len(places) > 1:
        x = reshaped(b, x, (*own[:first], product(sizes_), *own[first + len(places):]))
        index = None
        for size, one in zip(sizes_, indices):
            one = b.cast(one, DType.I64)
            zero, count = b.constant(0, DType.I64), b.constant(size, DType.I64)
            one = b.emit("select", b.emit("lt", one, zero), b.emit("add", one, count), one)
            index = one if index is None else b.emit("add", b.emit("mul", index, count), one)
    taken = b.emit("take", x, index, axis=first, negative=len(places) == 1)
    rank = len(shape_of(index))
    own_axes, result, used = iter(shape_of(taken)), [], False
    for item in items:
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            result.append(next(own_axes))
        elif not used:
            used = True
            result += [next(own_axes) for _ in range(rank)]
    return reshaped(b, taken, result)


@spelled("torch.narrow", "torch.Tensor.narrow")
def narrow(b: Builder, input, dim, start, length):
    axis = b.axis(dim, input)
    size = shape_of(input)[axis]
    start = _from_end(start, size)
    if isinstance(start, Op) or isinstance(length, Op):
        raise not_known("a part whose place is computed from data")
    if at_least(start + length - size, 1):
        raise TypeRuleError(f"narrow of axis {dim} of {input.type} to {length} elements from {start}", f"a part of the {size} elements", "index-out-of-range")
    return window(b, input, {axis: (start, length, 1)})


@spelled("torch.select", "torch.Tensor.select")
def select(b: Builder, input, dim, index):
    axis = b.axis(dim, input)
    return getitem(b, input, (slice(None),) * axis + (index,))


# --- index tensors --------------------------------------------------------------------------------------------------

@spelled("torch.index_select", "torch.Tensor.index_select")
def index_select(b: Builder, input, dim, index):
    if index.type.rank is not None and index.type.rank > 1:
        raise TypeRuleError(f"index_select with indices of {index.type}", "indices of one axis")
    return b.emit("take", input, index, axis=b.axis(dim, input), negative=False)


@spelled("numpy.take", "numpy.ndarray.take")
def numpy_take(b: Builder, a, indices, axis=None):
    indices = tensor_index(b, indices) if isinstance(indices, list) else b.tensor(indices, DType.I64)
    return b.emit("take", ravel(b, a) if axis is None else a, indices, axis=0 if axis is None else b.axis(axis, a), negative=True)


@spelled("torch.take", "torch.Tensor.take")
def torch_take(b: Builder, input, index):
    return b.emit("take", ravel(b, input), index, axis=0, negative=True)


@spelled("torch.gather", "torch.Tensor.gather")
def gather(b: Builder, input, dim, index, sparse_grad=False):
    return b.emit("gather", input, index, axis=b.axis(dim, input), negative=False)


@spelled("numpy.take_along_axis")
def take_along_axis(b: Builder, arr, indices, axis=-1):
    axis = b.axis(axis, arr)
    shape = tuple(d if a == axis else o for a, (o, d) in enumerate(zip(shape_of(arr), shape_of(indices))))
    return b.emit("gather", arr, expanded(b, indices, shape), axis=axis, negative=True)


@spelled("torch.take_along_dim", "torch.Tensor.take_along_dim")
def take_along_dim(b: Builder, input, indices, dim=None):
    if dim is None:
        return torch_take(b, input, ravel(b, indices))
    return take_along_axis(b, input, indices, dim)


@spelled("torch.nn.functional.embedding")
def embedding(b: Builder, input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if max_norm is not None:
        raise unsupported("embedding with max_norm, which writes to the weights")
    return b.emit("take", weight, input, axis=0, negative=False)


@spelled("torch.Tensor.unfold", examples=[example("x.unfold(1, 4, 2)", x="f32[1, 10]"), example("x.unfold(0, 2, 3)", x="f32[7, 2]")])
def unfold(b: Builder, self, dimension, size, step):
    """Windows along an axis become a last axis: positions i * step + j."""
    axis, own = b.axis(dimension, self), shape_of(self)
    if at_least(size - own[axis], 1):
        raise TypeRuleError(f"unfold of axis {dimension} of {self.type} into windows of {size}", f"a size of at most {own[axis]}")
    count = floordiv(own[axis] - size, step) + 1
    start = b.emit("mul", b.emit("iota", shape=(count, 1), axis=0, dtype=DType.I64), b.constant(step, DType.I64))
    places = b.emit("add", start, b.emit("iota", shape=(1, size), axis=1, dtype=DType.I64))
    taken = b.emit("take", self, places, axis=axis, negative=False)
    rank = len(own) + 1
    return transposed(b, taken, [a for a in range(rank) if a != axis + 1] + [axis + 1])


@spelled("torch.diagonal", "torch.Tensor.diagonal", examples=[example("torch.diagonal(x)", x="f32[3, 4]"), example("x.diagonal(-1, 1, 2)", x="f32[2, 4, 3]")])
def diagonal(b: Builder, input, offset=0, dim1=0, dim2=1):
    """The matrix read flat: element i of the diagonal is at first + i * (columns + 1)."""
    first, second = b.axis(dim1, input), b.axis(dim2, input)
    x = transposed(b, input, [a for a in range(len(shape_of(input))) if a not in (first, second)] + [first, second])
    *lead, rows, columns = shape_of(x)
    if isinstance(rows, Poly) or isinstance(columns, Poly):
        raise not_known("the length of a diagonal of a symbolic matrix")
    down, across = (0, offset) if offset >= 0 else (-offset, 0)
    count = max(0, min(rows - down, columns - across))
    flat = reshaped(b, x, (*lead, rows * columns))
    return window(b, flat, {len(lead): (down * columns + across if count else 0, count, columns + 1)})


@spelled("numpy.diagonal", "numpy.ndarray.diagonal")
def numpy_diagonal(b: Builder, a, offset=0, axis1=0, axis2=1):
    return diagonal(b, a, offset, axis1, axis2)
