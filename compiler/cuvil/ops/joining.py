"""Putting tensors together and taking them apart along an axis: cat, stack, split, chunk, flip, roll, pad."""
from __future__ import annotations

from ..ir.dims import Dim, Poly, at_most, exact_quotient, maximum, minimum, proved_different
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .builder import Builder, number
from .create import sizes
from .definition import TypeRuleError, not_known, spelled, unsupported
from .indexing import select, slice_range, window
from .promotion import numpy_dtype, promote
from .rules import dtype_of, shape_of
from .shape import atleast_1d, atleast_2d, ravel, reshaped, unsqueeze

PIECES = 4096


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
    known = [v.type.dtype for v in all_values]
    if None in known:
        return list(values)
    dtype = known[0]
    for other in known[1:]:
        dtype = promote(dtype, other) if b.library != "numpy" else _numpy_common(dtype, other)
    return [b.cast(v, dtype) for v in values]


def _numpy_common(a: DType, c: DType) -> DType:
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
        few(count)
        return cut(b, tensor, axis, [split_size_or_sections] * max(count, 1))
    if isinstance(size, Poly) or isinstance(split_size_or_sections, Poly):
        raise not_known("split of a symbolic size into a number of pieces that is not known")
    whole, rest = divmod(size, split_size_or_sections)
    few(whole)
    return cut(b, tensor, axis, [split_size_or_sections] * whole + [rest] * (rest > 0))


def few(count: int) -> None:
    """Each piece is an op: nobody writes code for more, and a tensor of a million rows that is taken apart would fill the memory."""
    if isinstance(count, int) and count > PIECES:
        raise not_known(f"a tensor in more than {PIECES} pieces")


@spelled("torch.chunk", "torch.Tensor.chunk")
def chunk(b: Builder, input, chunks, dim=0):
    axis, size = b.axis(dim, input), shape_of(input)[b.axis(dim, input)]
    piece = exact_quotient(size, chunks)
    if piece is not None:
        few(chunks)
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
        few(parts)
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
    few(shape_of(input)[axis])
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
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise TypeRuleError(f"pad with mode {mode!r}", "'constant', 'reflect', 'replicate' or 'circular'", "argument")
    pairs, rank = sizes((pad,)), len(shape_of(input))
    if len(pairs) % 2 or len(pairs) > 2 * rank:
        raise TypeRuleError(f"pad of {input.type} by {pairs}", f"an even number of sizes, at most {2 * rank}", "argument")
    low, high = [0] * rank, [0] * rank
    for n in range(0, len(pairs), 2):
        low[rank - 1 - n // 2], high[rank - 1 - n // 2] = pairs[n], pairs[n + 1]
    result = padded(b, input, low, high, 0 if value is None else value)
    if mode != "constant":
        raise unsupported(f"pad with mode {mode!r}", "mode 'constant'", (result.type,))
    return result


def padded(b: Builder, x: Op, low, high, value) -> Op:
    """Negative amounts crop, the others fill."""
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
def numpy_pad(b: Builder, array, pad_width, mode="constant", constant_values=0, **options):
    rank = len(shape_of(array))
    if isinstance(pad_width, int):
        pairs = [(pad_width, pad_width)] * rank
    elif all(isinstance(p, int) for p in pad_width):
        pairs = [(pad_width[0], pad_width[-1])] * rank
    else:
        pairs = [(p[0], p[-1]) for p in pad_width] * (rank if len(pad_width) == 1 else 1)
    plain = mode == "constant" and isinstance(constant_values, (int, float))
    result = padded(b, array, [p[0] for p in pairs], [p[1] for p in pairs], constant_values if plain else 0)
    if not plain:
        raise unsupported(f"np.pad with mode {mode!r}", "mode 'constant' with one value", (result.type,))
    return result
