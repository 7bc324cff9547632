"""Functions of torch.nn.functional over signals, images and volumes (N, C, ...): windows in 3 dimensions, adaptive pools, grids, fold."""
from __future__ import annotations

from ...ir.dims import Dim, at_most, exact_quotient, floordiv, product, proved_different
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..conv import windows
from ..definition import TypeRuleError, not_known, typed
from ..rules import shape_of
from .forms import need_floats, need_rank, need_same


def each(value, rank: int) -> tuple[Dim, ...]:
    """An argument for each spatial axis."""
    if isinstance(value, (tuple, list)):
        return tuple(value) * rank if len(value) == 1 else tuple(value)
    return (value,) * rank


def split(x: Op, what: str, rank: int) -> tuple[tuple[Dim, ...], Dim, tuple[Dim, ...]]:
    """(batch, channels, spatial sizes) of a batch or of one item."""
    need_rank(x, what, rank + 1, rank + 2)
    own = shape_of(x)
    return tuple(own[:-rank - 1]), own[-rank - 1], tuple(own[-rank:])


def _fit(what: str, x: Op, size: Dim, axis: int) -> Dim:
    if at_most(size, 0):
        raise TypeRuleError(f"{what} of {x.type}: no window fits spatial axis {axis}", "a larger input or a smaller kernel")
    return size


# --- convolutions ---------------------------------------------------------------------------------------------------

def convolved(b: Builder, input: Op, weight: Op, bias, stride, padding, dilation, groups, rank: int) -> TensorType:
    what = f"conv{rank}d"
    dtype = need_floats(what, *(v for v in (input, weight, bias) if isinstance(v, Op))) if input.type.dtype is None or input.type.dtype.is_float else \
        input.type.dtype
    need_rank(weight, what, rank + 2)
    batch, channels, spatial = split(input, what, rank)
    outer, inner, *kernel = shape_of(weight)
    if proved_different(channels, inner * groups):
        raise TypeRuleError(f"{what} of {input.type} with weight {weight.type}: the input has {channels} channels, the weight takes {inner * groups}",
                            f"an input of {inner * groups} channels on axis {len(batch)}")
    stride, dilation = each(stride, rank), each(dilation, rank)
    if padding == "same":
        return TensorType((*batch, outer, *spatial), dtype)
    pads = each(0 if padding == "valid" else padding, rank)
    sizes = [_fit(what, input, windows(d, k, s, (p, p), e), a) for a, (d, k, s, p, e) in enumerate(zip(spatial, kernel, stride, pads, dilation))]
    return TensorType((*batch, outer, *sizes), dtype)


@typed("torch.nn.functional.conv3d", "torch.conv3d")
def conv3d(b: Builder, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return convolved(b, input, weight, bias, stride, padding, dilation, groups, 3)


def transposed(b: Builder, input: Op, weight: Op, bias, stride, padding, output_padding, groups, dilation, rank: int) -> TensorType:
    what = f"conv_transpose{rank}d"
    dtype = need_floats(what, *(v for v in (input, weight, bias) if isinstance(v, Op)))
    batch, channels, spatial = split(input, what, rank)
    inner, outer, *kernel = shape_of(weight)
    if proved_different(channels, inner):
        raise TypeRuleError(f"{what} of {input.type} with weight {weight.type}: the input has {channels} channels, the weight takes {inner}",
                            f"an input of {inner} channels on axis {len(batch)}")
    stride, padding, extra, dilation = (each(v, rank) for v in (stride, padding, output_padding, dilation))
    sizes = [(d - 1) * s - 2 * p + e * (k - 1) + x + 1 for d, k, s, p, x, e in zip(spatial, kernel, stride, padding, extra, dilation)]
    return TensorType((*batch, outer * groups, *sizes), dtype)


@typed("torch.nn.functional.conv_transpose3d", "torch.conv_transpose3d")
def conv_transpose3d(b: Builder, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return transposed(b, input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


# --- pools ----------------------------------------------------------------------------------------------------------

def pooled(input: Op, what: str, rank: int, kernel, stride, padding, dilation, ceil_mode) -> tuple[Dim, ...]:
    batch, channels, spatial = split(input, what, rank)
    kernel = each(kernel, rank)
    stride = kernel if stride is None or stride == [] else each(stride, rank)
    sizes = []
    for a, (d, k, s, p, e) in enumerate(zip(spatial, kernel, stride, each(padding, rank), each(dilation, rank))):
        size = windows(d, k, s, (p, p), e)
        if ceil_mode:
            if not isinstance(d, int):
                raise not_known("pooling with ceil_mode of a symbolic size")
            size = -(-(d + 2 * p - e * (k - 1) - 1) // s) + 1
            size -= (size - 1) * s >= d + p                             # the last window must start inside the input or its left padding
        sizes.append(_fit(what, input, size, a))
    return (*batch, channels, *sizes)


@typed("torch.nn.functional.max_pool3d", "torch.max_pool3d")
def max_pool3d(b: Builder, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    shape = pooled(input, "max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode)
    values = TensorType(shape, input.type.dtype)
    return (values, TensorType(shape, DType.I64)) if return_indices else values


@typed("torch.nn.functional.avg_pool3d")
def avg_pool3d(b: Builder, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return TensorType(pooled(input, "avg_pool3d", 3, kernel_size, stride, padding, 1, ceil_mode), input.type.dtype)


for _rank in (1, 2):
    @typed(f"torch.nn.functional.lp_pool{_rank}d")
    def lp_pool(b: Builder, input, norm_type, kernel_size, stride=None, ceil_mode=False, *, _rank=_rank):
        return TensorType(pooled(input, "lp_pool", _rank, kernel_size, stride, 0, 1, ceil_mode), input.type.dtype)


def adaptive(input: Op, output_size, what: str, rank: int) -> TensorType:
    batch, channels, spatial = split(input, what, rank)
    need_floats(what, input)
    sizes = tuple(own if size is None else size for own, size in zip(spatial, each(output_size, rank)))
    return TensorType((*batch, channels, *sizes), input.type.dtype)


for _rank in (1, 3):
    @typed(f"torch.nn.functional.adaptive_avg_pool{_rank}d", *(("torch.adaptive_avg_pool1d",) if _rank == 1 else ()))
    def adaptive_avg_pool(b: Builder, input, output_size, *, _rank=_rank):
        return adaptive(input, output_size, f"adaptive_avg_pool{_rank}d", _rank)

for _rank in (1, 2, 3):
    @typed(f"torch.nn.functional.adaptive_max_pool{_rank}d")
    def adaptive_max_pool(b: Builder, input, output_size, return_indices=False, *, _rank=_rank):
        result = adaptive(input, output_size, f"adaptive_max_pool{_rank}d", _rank)
        indices = TensorType(result.shape, DType.I64)
        return (result, indices) if return_indices else result

@typed("torch.adaptive_max_pool1d")
def torch_adaptive_max_pool1d(b: Builder, input, output_size):
    result = adaptive(input, output_size, "adaptive_max_pool1d", 1)
    return result, TensorType(result.shape, DType.I64)


def unpooled(input: Op, kernel_size, stride, padding, output_size, rank: int) -> TensorType:
    batch, channels, spatial = split(input, "max_unpool", rank)
    if output_size is not None:
        return TensorType((*batch, channels, *output_size[-rank:]), input.type.dtype)
    kernel = each(kernel_size, rank)
    stride = kernel if stride is None else each(stride, rank)
    sizes = [(d - 1) * s + k - 2 * p for d, k, s, p in zip(spatial, kernel, stride, each(padding, rank))]
    return TensorType((*batch, channels, *sizes), input.type.dtype)


for _rank in (1, 2, 3):
    @typed(f"torch.nn.functional.max_unpool{_rank}d")
    def max_unpool(b: Builder, input, indices, kernel_size, stride=None, padding=0, output_size=None, *, _rank=_rank):
        return unpooled(input, kernel_size, stride, padding, output_size, _rank)


# --- fold and unfold ------------------------------------------------------------------------------------------------

@typed("torch.nn.functional.unfold")
def unfold(b: Builder, input, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C kh kw, windows)"""
    need_rank(input, "unfold", 3, 4)
    batch, channels, spatial = split(input, "unfold", 2)
    kernel = each(kernel_size, 2)
    counts = [_fit("unfold", input, windows(d, k, s, (p, p), e), a)
              for a, (d, k, s, p, e) in enumerate(zip(spatial, kernel, each(stride, 2), each(padding, 2), each(dilation, 2)))]
    return TensorType((*batch, channels * product(kernel), product(counts)), input.type.dtype)


@typed("torch.nn.functional.fold")
def fold(b: Builder, input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    need_rank(input, "fold", 2, 3)
    *batch, columns, count = shape_of(input)
    kernel, sizes = each(kernel_size, 2), each(output_size, 2)
    channels = exact_quotient(columns, product(kernel))
    if channels is None:
        if isinstance(columns, int):
            raise TypeRuleError(f"fold of {input.type}: {columns} is not a multiple of a kernel of {kernel}", f"columns that {product(kernel)} divides")
        channels = floordiv(columns, product(kernel))
    wanted = product([windows(d, k, s, (p, p), e) for d, k, s, p, e in zip(sizes, kernel, each(stride, 2), each(padding, 2), each(dilation, 2))])
    if proved_different(wanted, count):
        raise TypeRuleError(f"fold of {input.type} to {sizes}: {count} windows, {wanted} fit", f"{wanted} windows on the last axis")
    return TensorType((*batch, channels, *sizes), input.type.dtype)


@typed("torch.nn.functional.pixel_unshuffle", "torch.pixel_unshuffle")
def pixel_unshuffle(b: Builder, input, downscale_factor):
    need_rank(input, "pixel_unshuffle", -3)
    *lead, c, h, w = shape_of(input)
    r = downscale_factor
    for size in (h, w):
        if isinstance(size, int) and isinstance(r, int) and size % r:
            raise TypeRuleError(f"pixel_unshuffle of {input.type} by {r}", f"a height and width that {r} divides")
    return TensorType((*lead, c * r * r, floordiv(h, r), floordiv(w, r)), input.type.dtype)


@typed("torch.nn.functional.channel_shuffle", "torch.channel_shuffle")
def channel_shuffle(b: Builder, input, groups):
    need_rank(input, "channel_shuffle", -3)
    return input.type


# --- grids ----------------------------------------------------------------------------------------------------------

@typed("torch.nn.functional.grid_sample")
def grid_sample(b: Builder, input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """(N, C, H, W) at (N, h, w, 2), or with one axis more at (N, d, h, w, 3)."""
    need_floats("grid_sample", input, grid)
    need_rank(input, "grid_sample", 4, 5)
    own, places = shape_of(input), shape_of(grid)
    if len(own) != len(places) or proved_different(places[-1], len(own) - 2):
        raise TypeRuleError(f"grid_sample of {input.type} at {grid.type}", f"a grid of {len(own)} axes whose last has size {len(own) - 2}")
    need_same("grid_sample", input, grid, own[0], places[0], "the batches")
    return TensorType((*own[:2], *places[1:-1]), input.type.dtype)


@typed("torch.nn.functional.affine_grid")
def affine_grid(b: Builder, theta, size, align_corners=None):
    need_rank(theta, "affine_grid", 3)
    return TensorType((size[0], *size[2:], len(size) - 2), need_floats("affine_grid", theta))


@typed("torch.nn.functional.local_response_norm")
def local_response_norm(b: Builder, input, size, alpha=0.0001, beta=0.75, k=1.0):
    need_rank(input, "local_response_norm", -3)
    return input.type


@typed("torch.nn.functional.bilinear", "torch.bilinear")
def bilinear(b: Builder, input1, input2, weight, bias=None):
    dtype = need_floats("bilinear", input1, input2, weight)
    need_rank(weight, "bilinear's weight", 3)
    outer, left, right = shape_of(weight)
    need_same("bilinear", input1, weight, shape_of(input1)[-1], left, "the features")
    need_same("bilinear", input2, weight, shape_of(input2)[-1], right, "the features")
    return TensorType((*shape_of(input1)[:-1], outer), dtype)


@typed("torch.nn.functional.embedding_bag", instead="embedding and a sum over its axis")
def embedding_bag(b: Builder, input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    need_rank(input, "embedding_bag", 1, 2)
    if len(shape_of(input)) == 2:
        bags = shape_of(input)[0]
    elif offsets is None:
        raise TypeRuleError(f"embedding_bag of {input.type} without offsets", "offsets where each bag begins, or an input of 2 axes", "argument")
    else:
        bags = shape_of(offsets)[0] - (1 if include_last_offset else 0)
    return TensorType((bags, shape_of(weight)[1]), weight.type.dtype)
