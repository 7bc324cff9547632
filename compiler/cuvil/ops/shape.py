"""How user code reshapes, cuts and joins tensors: views, permutations, indexing, cat and split, and questions about shapes.

Every spelling here becomes a few of the movements of movement.py. Views are values: writing through one is the front end's matter.
"""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from ..ir.dims import Dim, Poly, at_least, at_most, exact_quotient, floordiv, maximum, minimum, product, proved_different, substitute, symbols
from ..ir.function import Op
from ..ir.types import DType
from .builder import Builder
from .create import sizes
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .rules import dtype_of, numel, shape_of

# --- questions ------------------------------------------------------------------------------------------------------


@spelled("torch.Tensor.shape", "numpy.ndarray.shape", "numpy.shape")
def shape(b: Builder, x):
    return tuple(shape_of(x))


@spelled("torch.Tensor.size")
def size(b: Builder, self, dim=None):
    return tuple(shape_of(self)) if dim is None else shape_of(self)[_checked(b, dim, self)]


@spelled("torch.Tensor.dim", "torch.Tensor.ndim", "torch.Tensor.ndimension", "numpy.ndarray.ndim", "numpy.ndim")
def rank(b: Builder, x):
    return len(shape_of(x))


@spelled("torch.Tensor.numel", "torch.numel", "torch.Tensor.nelement", "numpy.ndarray.size", "numpy.size")
def number_of_elements(b: Builder, x):
    return product(shape_of(x))


@spelled("torch.Tensor.dtype", "numpy.ndarray.dtype")
def dtype(b: Builder, x):
    return dtype_of(x)


@spelled("builtins.len")
def length(b: Builder, x):
    if not shape_of(x):
        raise TypeRuleError(f"len of {x.type}, which has no axes", "a tensor of at least one axis", "argument")
    return shape_of(x)[0]


@spelled("torch.is_floating_point", "torch.Tensor.is_floating_point")
def is_floating_point(b: Builder, x):
    return dtype_of(x).is_float


def _checked(b: Builder, dim: int, x: Op) -> int:
    if isinstance(dim, Op):
        raise not_known("an axis that is computed from data")
    return b.axis(dim, x)


# --- reshape family -------------------------------------------------------------------------------------------------

def reshaped(b: Builder, x: Op, shape) -> Op:
    """reshape, nothing when the shape is the same already."""
    return x if x.type.shape == tuple(shape) else b.emit("reshape", x, shape=tuple(shape))


def resolve(x: Op, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """A shape with its one -1 worked out."""
    unknown = [i for i, s in enumerate(shape) if s == -1]
    if not unknown:
        return shape
    if len(unknown) > 1:
        raise TypeRuleError(f"reshape of {x.type} to {shape}: {len(unknown)} sizes are -1", "one -1 at most", "argument")
    total, rest = product(shape_of(x)), product([s for s in shape if s != -1])
    missing = exact_quotient(total, rest) if rest != 0 else None
    if missing is None:
        if isinstance(total, int) and isinstance(rest, int):
            raise TypeRuleError(f"reshape of {x.type} ({total} elements) to {shape}: {total} is not a multiple of {rest}",
                                f"sizes whose product divides {total}")
        missing = floordiv(total, rest)
    return tuple(missing if s == -1 else s for s in shape)


@spelled("torch.Tensor.reshape", "torch.Tensor.view")
def reshape_method(b: Builder, self, *shape):
    if len(shape) == 1 and isinstance(shape[0], DType):
        raise unsupported(f"view({shape[0]}), which reads the bits as another type", ".to(dtype)")
    return reshaped(b, self, resolve(self, sizes(shape)))


@spelled("torch.reshape")
def reshape(b: Builder, input, shape):
    return reshaped(b, input, resolve(input, sizes((shape,))))


@spelled("numpy.reshape")
def numpy_reshape(b: Builder, a, shape, order="C"):
    return array_reshape(b, a, shape, order=order)


@spelled("numpy.ndarray.reshape")
def array_reshape(b: Builder, self, *shape, order="C"):
    if order not in ("C", "A"):
        raise unsupported(f"reshape with order {order!r}", "order 'C'")
    return reshaped(b, self, resolve(self, sizes(shape)))


@spelled("torch.Tensor.view_as", "torch.Tensor.reshape_as")
def view_as(b: Builder, self, other):
    return reshaped(b, self, shape_of(other))


@spelled("torch.flatten", "torch.Tensor.flatten")
def flatten(b: Builder, input, start_dim=0, end_dim=-1):
    dims = shape_of(input)
    if not dims:
        return reshaped(b, input, (1,))
    start, end = b.axis(start_dim, input), b.axis(end_dim, input)
    if start > end:
        raise TypeRuleError(f"flatten of {input.type} from axis {start_dim} to {end_dim}", "start_dim before end_dim", "argument")
    return reshaped(b, input, (*dims[:start], product(dims[start:end + 1]), *dims[end + 1:]))


@spelled("numpy.ravel", "numpy.ndarray.ravel", "numpy.ndarray.flatten", "torch.ravel", "torch.Tensor.ravel")
def ravel(b: Builder, x):
    return reshaped(b, x, (product(shape_of(x)),))


@spelled("torch.unflatten", "torch.Tensor.unflatten")
def unflatten(b: Builder, input, dim, sizes):
    dims, axis = shape_of(input), b.axis(dim, input)
    inner = tuple(sizes)
    if -1 in inner:
        rest = product([s for s in inner if s != -1])
        quotient = exact_quotient(dims[axis], rest)
        if quotient is None and isinstance(dims[axis], int) and isinstance(rest, int):
            raise TypeRuleError(f"unflatten of axis {dim} of {input.type} into {inner}", f"sizes whose product divides {dims[axis]}")
        inner = tuple((floordiv(dims[axis], rest) if quotient is None else quotient) if s == -1 else s for s in inner)
    return reshaped(b, input, (*dims[:axis], *inner, *dims[axis + 1:]))


@spelled("torch.squeeze", "torch.Tensor.squeeze")
def squeeze(b: Builder, input, dim=None):
    dims = shape_of(input)
    if dim is None:
        if any(isinstance(d, Poly) for d in dims):
            raise not_known("squeeze without an axis of a tensor with symbolic sizes")
        return reshaped(b, input, [d for d in dims if d != 1])
    axes = {b.axis(a, input) for a in ([dim] if isinstance(dim, int) else dim)}
    return reshaped(b, input, [d for a, d in enumerate(dims) if a not in axes or d != 1])


@spelled("numpy.squeeze", "numpy.ndarray.squeeze")
def numpy_squeeze(b: Builder, a, axis=None):
    for one in () if axis is None else [axis] if isinstance(axis, int) else axis:
        size = shape_of(a)[b.axis(one, a)]
        if proved_different(size, 1):
            raise TypeRuleError(f"squeeze of axis {one} of {a.type}, which has size {size}", "an axis of size 1")
    return squeeze(b, a, axis)


@spelled("torch.unsqueeze", "torch.Tensor.unsqueeze")
def unsqueeze(b: Builder, input, dim):
    dims = shape_of(input)
    axis = b.axis(dim, len(dims) + 1)
    return reshaped(b, input, (*dims[:axis], 1, *dims[axis:]))


@spelled("numpy.expand_dims")
def expand_dims(b: Builder, a, axis):
    new = [axis] if isinstance(axis, int) else list(axis)
    rank = len(shape_of(a)) + len(new)
    places, rest = {b.axis(n, rank) for n in new}, iter(shape_of(a))
    return reshaped(b, a, [1 if i in places else next(rest) for i in range(rank)])


@spelled("numpy.atleast_2d")
def atleast_2d(b: Builder, x):
    return reshaped(b, x, (1,) * (2 - len(shape_of(x))) + tuple(shape_of(x)))


@spelled("torch.atleast_1d", "numpy.atleast_1d")
def atleast_1d(b: Builder, x):
    return x if shape_of(x) else reshaped(b, x, (1,))


# --- permutations ---------------------------------------------------------------------------------------------------

def transposed(b: Builder, x: Op, axes) -> Op:
    return x if tuple(axes) == tuple(range(len(axes))) else b.emit("transpose", x, axes=tuple(axes))


@spelled("torch.transpose", "torch.swapaxes", "torch.swapdims", "torch.Tensor.transpose", "torch.Tensor.swapaxes", "torch.Tensor.swapdims")
def transpose(b: Builder, input, dim0, dim1):
    axes = list(range(len(shape_of(input))))
    if not axes:
        return input
    i, j = b.axis(dim0, input), b.axis(dim1, input)
    axes[i], axes[j] = axes[j], axes[i]
    return transposed(b, input, axes)


@spelled("numpy.swapaxes", "numpy.ndarray.swapaxes")
def swapaxes(b: Builder, a, axis1, axis2):
    return transpose(b, a, axis1, axis2)


def _permuted(b: Builder, x: Op, order) -> Op:
    axes = [b.axis(a, x) for a in order]
    if x.type.shape is not None and sorted(axes) != list(range(len(x.type.shape))):
        raise TypeRuleError(f"permute of {x.type} by {tuple(order)}", f"each of the {len(x.type.shape)} axes once", "index-out-of-range")
    return transposed(b, x, axes)


@spelled("torch.permute")
def permute(b: Builder, input, dims):
    return _permuted(b, input, dims)


@spelled("torch.Tensor.permute")
def permute_method(b: Builder, self, *dims):
    return _permuted(b, self, sizes(dims))


@spelled("numpy.transpose", "numpy.permute_dims")
def numpy_transpose(b: Builder, a, axes=None):
    return reversed_axes(b, a) if axes is None else _permuted(b, a, axes)


@spelled("numpy.ndarray.transpose")
def array_transpose(b: Builder, self, *axes):
    return reversed_axes(b, self) if not axes or axes == (None,) else _permuted(b, self, sizes(axes))


@spelled("torch.Tensor.T", "numpy.ndarray.T")
def reversed_axes(b: Builder, x):
    return transposed(b, x, range(len(shape_of(x)))[::-1])


@spelled("torch.Tensor.mT", "numpy.ndarray.mT", "torch.Tensor.mH", "numpy.matrix_transpose", "torch.adjoint")
def matrix_transpose(b: Builder, x):
    if len(shape_of(x)) < 2:
        raise TypeRuleError(f"the matrix transpose of {x.type}", "a tensor of at least 2 axes")
    return transpose(b, x, -1, -2)


@spelled("torch.t", "torch.Tensor.t")
def t(b: Builder, input):
    if len(shape_of(input)) > 2:
        raise TypeRuleError(f"t() of {input.type}", "a tensor of at most 2 axes; for more .transpose(0, 1) or .mT")
    return reversed_axes(b, input)


@spelled("torch.movedim", "torch.moveaxis", "torch.Tensor.movedim", "torch.Tensor.moveaxis", "numpy.moveaxis")
def movedim(b: Builder, input, source, destination):
    sources, places = ([a] if isinstance(a, int) else list(a) for a in (source, destination))
    sources, places = [b.axis(a, input) for a in sources], [b.axis(a, input) for a in places]
    rest = iter(a for a in range(len(shape_of(input))) if a not in sources)
    fixed = dict(zip(places, sources))
    return transposed(b, input, [fixed[i] if i in fixed else next(rest) for i in range(len(shape_of(input)))])


# --- broadcast and repeat -------------------------------------------------------------------------------------------

def expanded(b: Builder, x: Op, shape) -> Op:
    return x if x.type.shape == tuple(shape) else b.emit("broadcast", x, shape=tuple(shape))


@spelled("torch.Tensor.expand")
def expand(b: Builder, self, *size, implicit=False):
    target, own = sizes(size), shape_of(self)
    extra = len(target) - len(own)
    if extra < 0:
        raise TypeRuleError(f"expand of {self.type} to {target}", f"at least {len(own)} sizes")
    if -1 in target[:extra]:
        raise TypeRuleError(f"expand of {self.type} to {target}: -1 for an axis that is not there", "a size for a new axis", "argument")
    return expanded(b, self, (*target[:extra], *(d if t == -1 else t for t, d in zip(target[extra:], own))))


@spelled("torch.Tensor.expand_as")
def expand_as(b: Builder, self, other):
    return expanded(b, self, shape_of(other))


@spelled("torch.broadcast_to", "torch.Tensor.broadcast_to", "numpy.broadcast_to")
def broadcast_to(b: Builder, input, shape):
    return expand(b, input, *sizes((shape,)))


@spelled("torch.Tensor.repeat", "torch.tile", "torch.Tensor.tile", "numpy.tile")
def repeat(b: Builder, self, *repeats):
    """[a, b] tiled r times: (a, b) -> (r, a, s, b) -> (r*a, s*b)."""
    counts, own = sizes(repeats), shape_of(self)
    counts, own = (1,) * (len(own) - len(counts)) + counts, (1,) * (len(counts) - len(own)) + tuple(own)
    paired = reshaped(b, self, [size for d in own for size in (1, d)])
    full = expanded(b, paired, [size for r, d in zip(counts, own) for size in (r, d)])
    return reshaped(b, full, [r * d for r, d in zip(counts, own)])


@spelled("torch.repeat_interleave", "torch.Tensor.repeat_interleave")
def repeat_interleave(b: Builder, input, repeats, dim=None, output_size=None):
    if isinstance(repeats, Op):
        raise unsupported("repeat_interleave with counts from a tensor, whose size hangs on data")
    x = ravel(b, input) if dim is None else input
    axis, own = b.axis(0 if dim is None else dim, x), shape_of(x)
    paired = reshaped(b, x, (*own[:axis + 1], 1, *own[axis + 1:]))
    full = expanded(b, paired, (*own[:axis + 1], repeats, *own[axis + 1:]))
    return reshaped(b, full, (*own[:axis], own[axis] * repeats, *own[axis + 1:]))


@spelled("numpy.repeat", "numpy.ndarray.repeat")
def numpy_repeat(b: Builder, a, repeats, axis=None):
    return repeat_interleave(b, a, repeats, axis)


@spelled("torch.meshgrid", "numpy.meshgrid", examples=[example("torch.meshgrid(x, y, indexing='ij')[1]", x="f32[3]", y="f32[2]"),
                                                       example("np.meshgrid(x, y)[0]", x="f32[3]", y="f32[2]")])
def meshgrid(b: Builder, *tensors, indexing=None):
    values = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    swapped = (indexing or ("xy" if b.library == "numpy" else "ij")) == "xy" and len(values) > 1
    order = [1, 0, *range(2, len(values))] if swapped else list(range(len(values)))
    full = tuple(product(shape_of(values[i])) for i in order)
    return tuple(expanded(b, reshaped(b, v, [product(shape_of(v)) if order[a] == i else 1 for a in range(len(values))]), full)
                 for i, v in enumerate(values))


# --- what a compiler sees through -----------------------------------------------------------------------------------

@spelled("torch.Tensor.contiguous", "torch.Tensor.detach", "torch.Tensor.cpu", "torch.Tensor.cuda", "torch.Tensor.clone", "torch.clone",
         "torch.Tensor.numpy", "torch.from_numpy", "torch.detach", "numpy.ndarray.copy", "numpy.copy", "torch.Tensor.requires_grad_",
         "torch.Tensor.data", "torch.nn.Identity.forward")
def same_value(b: Builder, x, *options, **more):
    return x


# --- cut and join ---------------------------------------------------------------------------------------------------

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
    if any(isinstance(i, Op) and i.type.dtype == DType.BOOL for i in items):
        raise unsupported("indexing by a bool tensor: the size of the result hangs on data", "torch.where or masked_fill")
    if any(isinstance(i, bool) for i in items):
        raise unsupported("indexing by True or False")
    own = shape_of(x)
    taken = sum(1 for i in items if i is not None and i is not Ellipsis)
    if taken > len(own):
        raise TypeRuleError(f"{taken} indices for {x.type}, which has {len(own)} axes", f"at most {len(own)} indices", "index-out-of-range")
    if Ellipsis in [i for i in items if not isinstance(i, (Op, Poly))]:
        at = next(n for n, i in enumerate(items) if i is Ellipsis)
        items[at:at + 1] = [slice(None)] * (len(own) - taken)
        if any(i is Ellipsis for i in items):
            raise TypeRuleError("an index with two ellipses", "one ...", "argument")
    else:
        items += [slice(None)] * (len(own) - taken)

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
                raise TypeRuleError(f"index {item} on axis {axis} of {x.type}, which has size {size}", f"an index from -{size} to {size - 1}" if isinstance(size, int)
                                    else "an index inside the axis", "index-out-of-range")
            ranges[axis] = (place, 1, 1)
        else:
            raise not_known("an index that Cuvil does not understand")
        axis += 1
    if not any(isinstance(r, Op) for r in result):
        return reshaped(b, window(b, x, ranges), result)
    return _advanced(b, x, items, ranges)


def tensor_index(b: Builder, item: list) -> Op:
    from .create import tensor
    return tensor(b, item)


def _advanced(b: Builder, x: Op, items: list, ranges) -> Op:
    """Index tensors: adjacent ones broadcast together and take from their axes merged into one."""
    places = [n for n, i in enumerate(items) if isinstance(i, Op)]
    if any(isinstance(i, (int, Poly)) for i in items):              # an integer beside index tensors is an index tensor itself
        places = [n for n, i in enumerate(items) if isinstance(i, (Op, int, Poly)) and not isinstance(i, bool)]
    if places != list(range(places[0], places[-1] + 1)):
        raise unsupported("index tensors on axes that are not adjacent", "indexing in two steps")
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
    shape, own_axes, result, used = [], iter(shape_of(taken)), [], False
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
    return window(b, input, {axis: (_from_end(start, shape_of(input)[axis]), length, 1)})


@spelled("torch.select", "torch.Tensor.select")
def select(b: Builder, input, dim, index):
    axis = b.axis(dim, input)
    return getitem(b, input, (slice(None),) * axis + (index,))


@spelled("torch.cat", "torch.concat", "torch.concatenate")
def cat(b: Builder, tensors, dim=0):
    values = [v for v in tensors if v.type.shape != (0,)] or list(tensors)[:1]      # ATen skips the old empty tensor
    return concatenated(b, values, dim, tensors)


def concatenated(b: Builder, values, dim, all_values=None) -> Op:
    if not values:
        raise TypeRuleError("concatenation of no tensors", "at least one tensor", "argument")
    values = _promoted(b, values, all_values or values)
    return values[0] if len(values) == 1 else b.emit("concat", *values, axis=b.axis(dim, values[0]))


def _promoted(b: Builder, values, all_values) -> list[Op]:
    from .promotion import promote
    known = [v.type.dtype for v in all_values]
    if None in known:
        return list(values)
    dtype = known[0]
    for other in known[1:]:
        dtype = promote(dtype, other) if b.library != "numpy" else _numpy_common(dtype, other)
    return [b.cast(v, dtype) for v in values]


def _numpy_common(a: DType, c: DType) -> DType:
    from ..ir.types import TensorType
    from .promotion import numpy_dtype
    return numpy_dtype([TensorType((), a), TensorType((), c)])


@spelled("numpy.concatenate", "numpy.concat")
def concatenate(b: Builder, arrays, axis=0):
    if axis is None:
        return concatenated(b, [ravel(b, a) for a in arrays], 0)
    return concatenated(b, list(arrays), axis)


@spelled("torch.stack")
def stack(b: Builder, tensors, dim=0):
    for other in tensors[1:]:
        if other.type.shape is not None and tensors[0].type.shape is not None and (
                len(other.type.shape) != len(tensors[0].type.shape) or any(map(proved_different, other.type.shape, tensors[0].type.shape))):
            raise TypeRuleError(f"stack of {tensors[0].type} with {other.type}", "tensors of one shape")
    return concatenated(b, [unsqueeze(b, t, dim) for t in tensors], dim)


@spelled("numpy.stack")
def numpy_stack(b: Builder, arrays, axis=0):
    return stack(b, arrays, axis)


@spelled("torch.hstack", "numpy.hstack")
def hstack(b: Builder, tensors):
    values = [atleast_1d(b, t) for t in tensors]
    return concatenated(b, values, 0 if len(shape_of(values[0])) == 1 else 1)


@spelled("torch.vstack", "numpy.vstack")
def vstack(b: Builder, tensors):
    return concatenated(b, [atleast_2d(b, t) for t in tensors], 0)


def cut(b: Builder, x: Op, axis: int, lengths) -> tuple[Op, ...]:
    start: Dim = 0
    pieces = []
    for length in lengths:
        pieces.append(window(b, x, {axis: (start, length, 1)}))
        start = start + length
    return tuple(pieces)


@spelled("torch.split", "torch.Tensor.split")
def split(b: Builder, tensor, split_size_or_sections, dim=0):
    axis, size = b.axis(dim, tensor), shape_of(tensor)[b.axis(dim, tensor)]
    if isinstance(split_size_or_sections, (list, tuple)):
        total = sum(split_size_or_sections, 0)
        if proved_different(total, size):
            raise TypeRuleError(f"split of axis {dim} of {tensor.type} into {list(split_size_or_sections)}, which sum to {total}", f"sizes that sum to {size}")
        return cut(b, tensor, axis, split_size_or_sections)
    count = exact_quotient(size, split_size_or_sections)
    if isinstance(count, int):
        return cut(b, tensor, axis, [split_size_or_sections] * max(count, 1))
    if isinstance(size, Poly) or isinstance(split_size_or_sections, Poly):
        raise not_known("split of a symbolic size into a number of pieces that is not known")
    whole, rest = divmod(size, split_size_or_sections)
    return cut(b, tensor, axis, [split_size_or_sections] * whole + [rest] * (rest > 0))


@spelled("torch.chunk", "torch.Tensor.chunk")
def chunk(b: Builder, input, chunks, dim=0):
    axis, size = b.axis(dim, input), shape_of(input)[b.axis(dim, input)]
    piece = exact_quotient(size, chunks)
    if piece is not None:
        return cut(b, input, axis, [piece] * chunks)
    if isinstance(size, Poly):
        raise not_known("chunk of a symbolic size into pieces that may be unequal")
    return split(b, input, -(-size // chunks), dim)


@spelled("torch.tensor_split", "torch.Tensor.tensor_split")
def tensor_split(b: Builder, input, indices_or_sections, dim=0):
    return _array_split(b, input, indices_or_sections, dim)


def _array_split(b: Builder, x, parts, dim):
    axis, size = b.axis(dim, x), shape_of(x)[b.axis(dim, x)]
    if isinstance(parts, int):
        if not isinstance(size, int):
            piece = exact_quotient(size, parts)
            if piece is None:
                raise not_known("a symbolic size split into pieces that may be unequal")
            return cut(b, x, axis, [piece] * parts)
        return cut(b, x, axis, [size // parts + (i < size % parts) for i in range(parts)])
    ranges = [slice_range(slice(start, stop), size) for start, stop in zip([0, *parts], [*parts, None])]
    return tuple(window(b, x, {axis: r}) for r in ranges)


@spelled("numpy.array_split")
def array_split(b: Builder, ary, indices_or_sections, axis=0):
    return _array_split(b, ary, indices_or_sections, axis)


@spelled("numpy.split")
def numpy_split(b: Builder, ary, indices_or_sections, axis=0):
    size = shape_of(ary)[b.axis(axis, ary)]
    if isinstance(indices_or_sections, int) and isinstance(size, int) and size % indices_or_sections:
        raise TypeRuleError(f"np.split of axis {axis} of {ary.type} into {indices_or_sections} equal parts", f"a number that divides {size}")
    return _array_split(b, ary, indices_or_sections, axis)


@spelled("torch.unbind", "torch.Tensor.unbind")
def unbind(b: Builder, input, dim=0):
    axis = b.axis(dim, input)
    if not isinstance(shape_of(input)[axis], int):
        raise not_known("unbind of a symbolic size")
    return tuple(select(b, input, axis, i) for i in range(shape_of(input)[axis]))


@spelled("torch.flip")
def flip(b: Builder, input, dims):
    return _flipped(b, input, dims)


@spelled("torch.Tensor.flip")
def flip_method(b: Builder, self, *dims):
    return _flipped(b, self, sizes(dims))


@spelled("numpy.flip")
def numpy_flip(b: Builder, m, axis=None):
    return _flipped(b, m, range(len(shape_of(m))) if axis is None else axis)


def _flipped(b: Builder, x: Op, axes) -> Op:
    axes = sorted({b.axis(a, x) for a in ([axes] if isinstance(axes, int) else axes)})
    return b.emit("flip", x, axes=tuple(axes)) if axes and shape_of(x) else x


@spelled("torch.fliplr", "torch.Tensor.fliplr", "numpy.fliplr")
def fliplr(b: Builder, x):
    return _flipped(b, x, 1)


@spelled("torch.flipud", "torch.Tensor.flipud", "numpy.flipud")
def flipud(b: Builder, x):
    return _flipped(b, x, 0)


@spelled("torch.roll", "torch.Tensor.roll")
def roll(b: Builder, input, shifts, dims=None):
    if dims is None or dims == ():
        return reshaped(b, _rolled(b, ravel(b, input), shifts, 0), shape_of(input))
    for shift, dim in [(shifts, dims)] if isinstance(dims, int) else zip([shifts] if isinstance(shifts, int) else shifts, dims):
        input = _rolled(b, input, shift, b.axis(dim, input))
    return input


def _rolled(b: Builder, x: Op, shift, axis: int) -> Op:
    size = shape_of(x)[axis]
    if not isinstance(size, int) or not isinstance(shift, int):
        raise not_known("roll of a symbolic size")
    shift = shift % size if size else 0
    if not shift:
        return x
    return b.emit("concat", window(b, x, {axis: (size - shift, shift, 1)}), window(b, x, {axis: (0, size - shift, 1)}), axis=axis)


@spelled("numpy.roll")
def numpy_roll(b: Builder, a, shift, axis=None):
    return roll(b, a, shift, axis)


@spelled("torch.nn.functional.pad")
def pad(b: Builder, input, pad, mode="constant", value=None):
    if mode != "constant":
        raise unsupported(f"pad with mode {mode!r}", "mode 'constant'")
    pairs, rank = sizes((pad,)), len(shape_of(input))
    if len(pairs) % 2 or len(pairs) > 2 * rank:
        raise TypeRuleError(f"pad of {input.type} by {pairs}", f"an even number of sizes, at most {2 * rank}", "argument")
    low, high = [0] * rank, [0] * rank
    for n in range(0, len(pairs), 2):
        low[rank - 1 - n // 2], high[rank - 1 - n // 2] = pairs[n], pairs[n + 1]
    return padded(b, input, low, high, 0 if value is None else value)


def padded(b: Builder, x: Op, low, high, value) -> Op:
    """Negative amounts crop, the others fill."""
    from .builder import number
    own = shape_of(x)
    for a, (l, d, h) in enumerate(zip(low, own, high)):
        if at_most(l + d + h, -1):
            raise TypeRuleError(f"pad of axis {a} of {x.type} by ({l}, {h}), which leaves {l + d + h} elements", "a size that is not negative")
    cropped = {a: (maximum(-l, 0), d + minimum(l, 0) + minimum(h, 0), 1) for a, (l, d, h) in enumerate(zip(low, own, high))
               if at_most(l, -1) or at_most(h, -1)}
    x = window(b, x, cropped)
    low, high = [maximum(l, 0) for l in low], [maximum(h, 0) for h in high]
    if all(l == 0 and h == 0 for l, h in zip(low, high)):
        return x
    return b.emit("pad", x, low=tuple(low), high=tuple(high), value=number(value, dtype_of(x)))


@spelled("numpy.pad")
def numpy_pad(b: Builder, array, pad_width, mode="constant", constant_values=0):
    if mode != "constant" or not isinstance(constant_values, (int, float)):
        raise unsupported(f"np.pad with mode {mode!r}", "mode 'constant' with one value")
    rank = len(shape_of(array))
    if isinstance(pad_width, int):
        pairs = [(pad_width, pad_width)] * rank
    elif all(isinstance(p, int) for p in pad_width):
        pairs = [(pad_width[0], pad_width[-1])] * rank
    else:
        pairs = [(p[0], p[-1]) for p in pad_width] * (rank if len(pad_width) == 1 else 1)
    return padded(b, array, [p[0] for p in pairs], [p[1] for p in pairs], constant_values)


# --- indexed reads --------------------------------------------------------------------------------------------------

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
