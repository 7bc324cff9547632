"""Ops that only move elements: where each element of the result comes from, as an index expression (`at`) and in NumPy.

Shape arguments are dims, axes count from the front; spellings (shape.py, create.py) do the rest of what Python allows.
A movement computes nothing: 0 FLOPs.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..ir.dims import Dim, at_least, exact_quotient, product, proved_different
from ..ir.scalar import Const, Expr, apply, cast, const
from ..ir.types import DType, TensorType
from .array import np
from .definition import MOVEMENT, SOURCE, TypeRuleError, define, example, values
from .meaning import convert
from .rules import broadcastable, check_axis, common, no_flops, shapes


def movement(name: str, infer, evaluate, at, summary: str, examples=(), arity: int | None = 1, **guard):
    define(name, MOVEMENT, arity=arity, infer=infer, evaluate=evaluate, flops=no_flops, at=at, summary=summary, examples=tuple(examples), **guard)


# --- sources and constants ------------------------------------------------------------------------------------------

def _given(operands, attrs):
    raise ValueError("an input or parameter is made with Builder.input and Builder.parameter, with its type")


define("input", SOURCE, arity=0, infer=_given, evaluate=_given, flops=no_flops, summary="an argument of the function")
define("parameter", SOURCE, arity=0, infer=_given, evaluate=_given, flops=no_flops, summary="a weight of the model")
define("opaque", SOURCE, arity=None, infer=_given, evaluate=_given, flops=no_flops,
       summary="what code outside the vocabulary gives (attr `call`): for facts; a function with one is never compiled")


def literal_shape(value) -> tuple[int, ...]:
    shape = []
    while isinstance(value, tuple):
        shape.append(len(value))
        value = value[0] if value else 0
    return tuple(shape)


def _literal_at(type, operands, attrs, index, read):
    value = attrs["value"]
    if not isinstance(value, tuple):
        return Const(value, type.dtype)
    flat: list = [value]
    for _ in type.shape:
        flat = [item for row in flat for item in row]
    position: Expr = const(0)
    for size, i in zip(type.shape, index):
        position = apply("add", apply("mul", position, const(size)), i)

    def pick(low: int, high: int) -> Expr:                          # a balanced tree of comparisons: depth log2 of the size
        if high - low <= 1:
            return Const(flat[low] if flat else 0, type.dtype)
        middle = (low + high) // 2
        return apply("select", apply("lt", position, const(middle)), pick(low, middle), pick(middle, high))
    return pick(0, len(flat))


def _literal(arrays, attrs):
    dtype = attrs["dtype"]
    return convert(np.array(attrs["value"], np.float64 if dtype.is_float else None), dtype)


movement("constant", lambda operands, attrs: TensorType(literal_shape(attrs["value"]), attrs["dtype"]), _literal, _literal_at,
          "a number, or a small table of numbers", [example("torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * x", x="f32[2]"),
                                                    example("x + torch.tensor(3)", x="i32[2]")], arity=0)

movement("iota", lambda operands, attrs: TensorType(tuple(attrs["shape"]), attrs["dtype"]),
          lambda arrays, attrs: np.broadcast_to(
              np.arange(attrs["shape"][attrs["axis"]]).astype(attrs["dtype"].numpy if attrs["dtype"] != DType.BF16 else "f4").reshape(
              [-1 if a == attrs["axis"] else 1 for a in range(len(attrs["shape"]))]), attrs["shape"]),
          lambda type, operands, attrs, index, read: cast(index[attrs["axis"]], type.dtype),
          "the index along an axis", [example("torch.arange(5)"), example("torch.arange(2, 11, 3)"), example("torch.arange(4.0)"),
                                      example("np.arange(5)"), example("torch.arange(0, 1, 0.1)"), example("np.arange(1, 3, 0.5)"),
                                      example("torch.arange(5, 0, -2, dtype=torch.float32)")], arity=0)


# --- reshape --------------------------------------------------------------------------------------------------------

def _infer_reshape(operands, attrs):
    x, shape = operands[0], tuple(attrs["shape"])
    if x.shape is not None and proved_different(product(x.shape), product(shape)):
        raise TypeRuleError(f"reshape of {x} ({product(x.shape)} elements) to ({', '.join(map(str, shape))}) ({product(shape)} elements)",
                            f"a shape with {product(x.shape)} elements")
    return TensorType(shape, x.dtype)


def groups(a: Sequence[Dim], b: Sequence[Dim]) -> list[tuple[list[int], list[int]]]:
    """Axes of two shapes of equally many elements, in the shortest runs of equal products; axes of size 1 are left out.

    Each run can be re-indexed on its own: (B, T, 8, 64) to (B, T, 512) is [0]->[0], [1]->[1], [2, 3]->[2]."""
    left, right = [i for i, d in enumerate(a) if d != 1], [i for i, d in enumerate(b) if d != 1]
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        p, q, first, second = a[left[i]], b[right[j]], [left[i]], [right[j]]
        i, j = i + 1, j + 1
        while p != q:
            if j < len(right) and (i >= len(left) or exact_quotient(p, q) is not None or isinstance(p, int) and isinstance(q, int) and p > q):
                q = q * b[right[j]]
                second.append(right[j])
                j += 1
            elif i < len(left):
                p = p * a[left[i]]
                first.append(left[i])
                i += 1
            else:
                break                                               # symbolic sizes that are equal only for some values: one run
        found.append((first, second))
    if found:
        found[-1] = found[-1][0] + left[i:], found[-1][1] + right[j:]
    return found


def _reshape_at(type, operands, attrs, index, read):
    source = operands[0].shape
    if product(source) == 0:
        return Const(0, type.dtype)
    result: list[Expr] = [const(0)] * len(source)
    for own, others in groups(source, type.shape):
        flat: Expr = const(0)
        for axis in others:
            flat = apply("add", apply("mul", flat, const(type.shape[axis])), index[axis])
        for axis in reversed(own):
            if axis == own[0]:
                result[axis] = flat
            else:
                result[axis] = apply("mod", flat, const(source[axis]))
                flat = apply("floordiv", flat, const(source[axis]))
    return read(0, tuple(result))


movement("reshape", _infer_reshape, lambda arrays, attrs: arrays[0].reshape(attrs["shape"]), _reshape_at,
          "the same elements in row-major order under another shape",
          [example("x.reshape(3, -1)", x="f32[2, 6]"), example("x.view(2, 3, 4)", x="f32[6, 4]"), example("x.flatten(1)", x="f32[2, 3, 4]"),
           example("x.flatten()", x="f32[2, 3]"), example("x.squeeze()", x="f32[1, 3, 1]"), example("x.squeeze(1)", x="f32[1, 3, 1]"),
           example("x.unsqueeze(-1)", x="f32[2, 3]"), example("np.expand_dims(x, (0, 2))", x="f32[4]"), example("x[:, None]", x="f32[4]"),
           example("x.unflatten(-1, (2, -1))", x="f32[3, 6]"), example("np.squeeze(x, axis=0)", x="f32[1, 3]"), example("np.ravel(x)", x="f32[2, 3]")])


# --- transpose, broadcast, slice, flip ------------------------------------------------------------------------------

def _infer_transpose(operands, attrs):
    x, axes = operands[0], attrs["axes"]
    if x.shape is None:
        return x
    if sorted(axes) != list(range(len(x.shape))):
        raise TypeRuleError(f"transpose of {x} by axes {tuple(axes)}", f"each of the {len(x.shape)} axes once", "index-out-of-range")
    return TensorType(tuple(x.shape[a] for a in axes), x.dtype)


def _transpose_at(type, operands, attrs, index, read):
    source: list[Expr] = [const(0)] * len(index)
    for to, axis in enumerate(attrs["axes"]):
        source[axis] = index[to]
    return read(0, tuple(source))


movement("transpose", _infer_transpose, lambda arrays, attrs: arrays[0].transpose(attrs["axes"]), _transpose_at,
          "the axes in another order: axis i of the result is axis axes[i] of the operand",
          [example("x.transpose(1, 2)", x="f32[2, 3, 4]"), example("x.permute(2, 0, 1)", x="f32[2, 3, 4]"), example("x.T", x="f32[2, 3]"),
           example("x.mT", x="f32[2, 3, 4]"), example("torch.movedim(x, 0, -1)", x="f32[2, 3, 4]"), example("np.transpose(x, (1, 0, 2))", x="f32[2, 3, 4]"),
           example("np.swapaxes(x, 0, 2)", x="f32[2, 3, 4]"), example("x.t()", x="f32[2, 3]"), example("np.moveaxis(x, -1, 0)", x="f32[2, 3, 4]")])


def _infer_broadcast(operands, attrs):
    x, shape = operands[0], tuple(attrs["shape"])
    if x.shape is not None and not broadcastable(x.shape, shape):
        raise TypeRuleError(f"{x} does not expand to ({', '.join(map(str, shape))})", "sizes that are equal or 1, counted from the last axis")
    return TensorType(shape, x.dtype)


def _broadcast_at(type, operands, attrs, index, read):
    source = operands[0].shape
    own = index[len(index) - len(source):]
    return read(0, tuple(const(0) if d == 1 else i for d, i in zip(source, own)))


movement("broadcast", _infer_broadcast, lambda arrays, attrs: np.broadcast_to(arrays[0], attrs["shape"]), _broadcast_at,
          "axes of size 1 and missing leading axes repeated",
          [example("x.expand(4, 3)", x="f32[1, 3]"), example("x.expand(2, -1, -1)", x="f32[3, 1]"), example("np.broadcast_to(x, (4, 3))", x="f32[3]"),
           example("torch.zeros(2, 3) + x", x="f32[3]"), example("torch.full((2, 2), 0.5)"), example("torch.ones_like(x)", x="i32[3]"),
           example("np.ones((2, 3), dtype=np.float32)"), example("torch.full((5,), 2)"), example("x.repeat(2, 3)", x="f32[2, 2]"),
           example("np.tile(x, (2, 1))", x="f32[2, 3]"), example("x.repeat_interleave(2, dim=1)", x="f32[2, 3]"), example("x.new_zeros(3, 2)", x="f16[1]")])


def _infer_slice(operands, attrs):
    x, starts, sizes, steps = operands[0], attrs["starts"], attrs["sizes"], attrs["steps"]
    if x.shape is None:
        return TensorType(tuple(sizes), x.dtype)
    if not len(starts) == len(sizes) == len(steps) == len(x.shape):
        raise TypeRuleError(f"slice of {x} with {len(starts)} ranges", f"{len(x.shape)} ranges")
    for axis, (start, size, step, dim) in enumerate(zip(starts, sizes, steps, x.shape)):
        last = start + (size - 1) * step
        if size != 0 and (at_least(-1 - start, 0) or at_least(last - dim, 0) or at_least(start - dim, 0)):
            raise TypeRuleError(f"elements {start} to {last} of axis {axis} of {x}", f"positions from 0 to {dim - 1}", "index-out-of-range")
    return TensorType(tuple(sizes), x.dtype)


def _slice(arrays, attrs):
    cut = []
    for start, size, step in zip(attrs["starts"], attrs["sizes"], attrs["steps"]):
        stop = start + size * step
        cut.append(slice(start, stop if stop >= 0 else None, step) if size else slice(0, 0))
    return arrays[0][tuple(cut)]


def _slice_at(type, operands, attrs, index, read):
    return read(0, tuple(apply("add", const(start), apply("mul", i, const(step)))
                         for start, step, i in zip(attrs["starts"], attrs["steps"], index)))


movement("slice", _infer_slice, _slice, _slice_at, "elements start, start + step, ... of each axis, `size` of them",
          [example("x[1:3]", x="f32[4, 3]"), example("x[..., -1]", x="f32[2, 3]"), example("x[0]", x="f32[2, 3]"), example("x[:, ::2]", x="f32[2, 5]"),
           example("x[::-1]", x=values("f32", [0, 1, 2, 3])), example("x[-2:, None, 1]", x="f32[4, 3]"), example("x.narrow(1, 1, 2)", x="f32[2, 4]"),
           example("x[5:]", x="f32[3]"), example("x.select(0, 1)", x="f32[2, 3]"), example("torch.split(x, 2)[1]", x="f32[5, 2]"),
           example("torch.chunk(x, 3, dim=1)[2]", x="f32[2, 7]"), example("x.unbind(1)[1]", x="f32[2, 3]"), example("np.split(x, 2)[0]", x="f32[4]"),
           example("torch.split(x, [1, 3], dim=-1)[1]", x="f32[2, 4]"), example("np.array_split(x, 3)[0]", x="f32[5]")])


def _infer_flip(operands, attrs):
    for axis in attrs["axes"]:
        check_axis(axis, operands[0], "flip")
    return operands[0]


def _flip_at(type, operands, attrs, index, read):
    return read(0, tuple(apply("sub", const(d - 1), i) if a in attrs["axes"] else i for a, (d, i) in enumerate(zip(type.shape, index))))


movement("flip", _infer_flip, lambda arrays, attrs: np.flip(arrays[0], attrs["axes"]), _flip_at, "the elements of axes in reverse order",
          [example("x.flip(0, 1)", x="f32[2, 3]"), example("torch.flip(x, (1,))", x="f32[2, 3]"), example("np.flip(x)", x="f32[2, 3]"),
           example("torch.fliplr(x)", x="f32[2, 3]"), example("x.sum().flip(0)", x="f32[2]")])


# --- concat, pad ----------------------------------------------------------------------------------------------------

def _infer_concat(operands, attrs):
    axis, dtype = attrs["axis"], common(operands, "concatenation")
    if any(t.shape is None for t in operands):
        return TensorType(None, dtype)
    first = operands[0].shape
    check_axis(axis, operands[0], "concatenation")
    total: Dim = 0
    for type in operands:
        if len(type.shape) != len(first):
            raise TypeRuleError(f"concatenation of {shapes([operands[0], type])}: {len(first)} and {len(type.shape)} axes", "tensors of one rank")
        for a, (d, e) in enumerate(zip(first, type.shape)):
            if a != axis and proved_different(d, e):
                raise TypeRuleError(f"concatenation over axis {axis} of {shapes([operands[0], type])}: sizes {d} and {e} of axis {a} differ",
                                    f"equal sizes except on axis {axis}")
        total = total + type.shape[axis]
    return TensorType(tuple(total if a == axis else d for a, d in enumerate(first)), dtype)


def _concat_at(type, operands, attrs, index, read):
    """Nested choices by position; each read is clamped into its operand, since a select computes both sides."""
    axis, start = attrs["axis"], type.shape[attrs["axis"]]
    result: Expr | None = None
    for number in reversed(range(len(operands))):
        size = operands[number].shape[axis]
        start = start - size
        if size == 0:
            continue
        local = clamped(apply("sub", index[axis], const(start)), size) if len(operands) > 1 else index[axis]
        value = read(number, (*index[:axis], local, *index[axis + 1:]))
        result = value if result is None else apply("select", apply("lt", index[axis], const(start + size)), value, result)
    return Const(0, type.dtype) if result is None else result


def clamped(position: Expr, size: Dim) -> Expr:
    return apply("minimum", apply("maximum", position, const(0)), const(size - 1))


movement("concat", _infer_concat, lambda arrays, attrs: np.concatenate(arrays, attrs["axis"]), _concat_at, "operands one after the other along an axis",
          [example("torch.cat([x, y], dim=1)", x="f32[2, 3]", y="f32[2, 1]"), example("torch.stack([x, x], -1)", x="f32[2, 3]"),
           example("np.concatenate((x, y))", x="f32[2, 3]", y="f64[1, 3]"), example("np.stack([x, x, x], axis=1)", x="f32[2, 3]"),
           example("torch.roll(x, 2, 0)", x="f32[5, 2]"), example("torch.hstack([x, x])", x="f32[2, 3]"), example("np.vstack([x, x])", x="f32[3]"),
           example("torch.cat([x, y])", x="i32[2]", y="f32[0]")], arity=None)


def _infer_pad(operands, attrs):
    x = operands[0]
    if x.shape is None:
        return x
    if not len(attrs["low"]) == len(attrs["high"]) == len(x.shape):
        raise TypeRuleError(f"pad of {x} with {len(attrs['low'])} pairs", f"{len(x.shape)} pairs")
    return TensorType(tuple(l + d + h for l, d, h in zip(attrs["low"], x.shape, attrs["high"])), x.dtype)


def _pad_at(type, operands, attrs, index, read):
    source, value = operands[0].shape, Const(attrs["value"], type.dtype)
    if product(source) == 0:
        return value
    inside, place = None, []
    for low, high, size, i in zip(attrs["low"], attrs["high"], source, index):
        if low == 0 and high == 0:
            place.append(i)
            continue
        position = apply("sub", i, const(low))
        for test in ([apply("ge", position, const(0))] if low != 0 else []) + ([apply("lt", position, const(size))] if high != 0 else []):
            inside = test if inside is None else apply("and", inside, test)
        place.append(clamped(position, size))
    element = read(0, tuple(place))
    return element if inside is None else apply("select", inside, element, value)


def _pad(arrays, attrs):
    return np.pad(arrays[0], list(zip(attrs["low"], attrs["high"])), constant_values=attrs["value"])


movement("pad", _infer_pad, _pad, _pad_at, "a constant before and after each axis",
          [example("F.pad(x, (1, 2))", x="f32[2, 3]"), example("F.pad(x, (1, 2, -1, 1), value=0.5)", x="f32[3, 4]"),
           example("np.pad(x, ((1, 0), (0, 2)))", x="i32[2, 3]"), example("np.pad(x, 1, constant_values=7)", x="f32[2, 2]"),
           example("F.pad(x, (1, 0), value=1)", x="i64[3]")])
