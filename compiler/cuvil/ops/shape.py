"""How user code reshapes, cuts and joins tensors: views, permutations, indexing, cat and split, and questions about shapes.

Every spelling here becomes a few of the movements of movement.py. Views are values: writing through one is the front end's matter.
"""
from __future__ import annotations

from ..ir.dims import Dim, Poly, exact_quotient, floordiv, product, proved_different
from ..ir.function import Op
from ..ir.types import DType
from .builder import Builder
from .create import sizes
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .rules import dtype_of, shape_of

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
    axes = b.axes(dim, input)
    if any(isinstance(dims[a], Poly) and not proved_different(dims[a], 1) for a in axes):
        raise not_known(f"squeeze of axis {dim} of {input.type}: whether it goes hangs on its size")
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


@spelled("torch.Tensor.H")
def hermitian(b: Builder, x):
    """Of real matrices the transpose."""
    if len(shape_of(x)) not in (0, 2):
        raise TypeRuleError(f".H of {x.type}", "a matrix; for batches of matrices .mH")
    return reversed_axes(b, x)


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


@spelled("torch.Tensor.repeat")
def repeat(b: Builder, self, *repeats):
    if len(sizes(repeats)) < len(shape_of(self)):
        raise TypeRuleError(f"repeat of {self.type} by {sizes(repeats)}", f"a count for each of the {len(shape_of(self))} axes", "argument")
    return tile(b, self, *repeats)


@spelled("torch.tile", "torch.Tensor.tile", "numpy.tile")
def tile(b: Builder, self, *repeats):
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
         "torch.Tensor.data")
def same_value(b: Builder, x, *options, **more):
    return x
