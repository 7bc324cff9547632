"""Convolution and pooling over images (N, C, H, W).

conv2d      x (N, C, H, W), weight (O, C / groups, KH, KW): stride, dilation and groups as in torch; padding as ((low, high), (low, high))
max_pool2d  the maximum of windows, NaN if there is one; padding counts as -inf
sum_pool2d  the sum of windows; padding counts as 0
Signals (N, C, L) are images of height 1. Cost of conv2d: 2 * outputs * C / groups * KH * KW.
"""
from __future__ import annotations

import numpy as np

from ..ir.dims import Dim, Poly, at_most, exact_quotient, floordiv, product, proved_different
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .builder import Builder
from .composite import composite
from .definition import CONVOLUTION, WINDOW, TypeRuleError, define, example, spelled, unsupported
from .reductions import wide
from .rules import common, dtype_of, numel, shape_of, shapes
from .shape import reshaped

Pairs = tuple[tuple[Dim, Dim], tuple[Dim, Dim]]


def windows(size: Dim, kernel: int, stride: int, padding: tuple[Dim, Dim], dilation: int) -> Dim:
    """How many windows fit: floor((size + padding - dilation * (kernel - 1) - 1) / stride) + 1."""
    return floordiv(size + padding[0] + padding[1] - dilation * (kernel - 1) - 1, stride) + 1


def _spatial(x: TensorType, kernel, attrs, what: str) -> tuple[Dim, Dim]:
    sizes = []
    for axis in (0, 1):
        size = windows(x.shape[2 + axis], kernel[axis], attrs["stride"][axis], attrs["padding"][axis], attrs["dilation"][axis])
        if at_most(size, 0):
            raise TypeRuleError(f"{what} of {x} with a kernel of {tuple(kernel)}: no window fits axis {2 + axis}, padded by {attrs['padding'][axis]}",
                                f"a size of at least {attrs['dilation'][axis] * (kernel[axis] - 1) + 1} on axis {2 + axis} with padding")
        sizes.append(size)
    return tuple(sizes)


def _infer_conv2d(operands, attrs):
    x, weight = operands
    dtype = common(operands, "conv2d")
    if x.shape is None or weight.shape is None:
        return TensorType(None, dtype)
    if len(x.shape) != 4 or len(weight.shape) != 4:
        raise TypeRuleError(f"conv2d of {shapes(operands)}", "an input (N, C, H, W) and a weight (O, C / groups, KH, KW)")
    groups = attrs["groups"]
    if proved_different(x.shape[1], weight.shape[1] * groups):
        raise TypeRuleError(f"conv2d of {x} with weight {weight}: the input has {x.shape[1]} channels, the weight takes {weight.shape[1] * groups}"
                            + (f" in {groups} groups" if groups != 1 else ""), f"an input of {weight.shape[1] * groups} channels on axis 1")
    if isinstance(weight.shape[0], int) and weight.shape[0] % groups:
        raise TypeRuleError(f"conv2d with weight {weight} in {groups} groups: {weight.shape[0]} outputs do not divide", "a number of groups that divides the outputs")
    return TensorType((x.shape[0], weight.shape[0], *_spatial(x, weight.shape[2:], attrs, "conv2d")), dtype)


def _views(x: np.ndarray, kernel, attrs, fill) -> np.ndarray:
    """(N, C, OH, OW, KH, KW): every window of the padded image."""
    x = np.pad(x, ((0, 0), (0, 0), *attrs["padding"]), constant_values=fill)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, attrs["dilation"])]
    (sh, sw), (dh, dw) = attrs["stride"], attrs["dilation"]
    return np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))[:, :, ::sh, ::sw, ::dh, ::dw]


def _conv2d(arrays, attrs):
    x, weight = arrays
    views, groups = _views(x, weight.shape[2:], attrs, 0), attrs["groups"]
    n, c, oh, ow, kh, kw = views.shape
    held = np.float32 if x.dtype == np.float16 else x.dtype
    a = views.transpose(0, 2, 3, 1, 4, 5).reshape(n * oh * ow, groups, c // groups * kh * kw).transpose(1, 0, 2).astype(held)
    w = weight.reshape(groups, weight.shape[0] // groups, c // groups * kh * kw).transpose(0, 2, 1).astype(held)
    result = (a @ w).transpose(1, 0, 2).reshape(n, oh, ow, weight.shape[0])
    return np.ascontiguousarray(result.transpose(0, 3, 1, 2)).astype(x.dtype)


define("conv2d", CONVOLUTION, arity=2, infer=_infer_conv2d, evaluate=_conv2d, summary="sums of products of windows of an image with a kernel",
       flops=lambda type, operands, attrs: 2 * numel(type) * product(operands[1].shape[1:]) if operands[1].shape else 0,
       examples=(example("F.conv2d(x, w)", x="f32[2, 3, 6, 5]", w="f32[4, 3, 3, 2]"), example("F.conv2d(x, w, c, stride=2, padding=1)", x="f32[1, 2, 7, 8]", w="f32[3, 2, 3, 3]", c="f32[3]"),
                 example("F.conv2d(x, w, padding='same', dilation=(1, 3))", x="f32[1, 4, 7, 9]", w="f32[3, 4, 2, 4]"),
                 example("F.conv2d(x, w, c, groups=2, stride=(2, 1), padding=(1, 2))", x="f32[1, 4, 7, 9]", w="f32[6, 2, 3, 3]", c="f32[6]"),
                 example("F.conv1d(x, w, c, padding=1)", x="f32[2, 3, 8]", w="f32[4, 3, 3]", c="f32[4]"), example("F.conv1d(x, w, groups=3)", x="f32[3, 8]", w="f32[3, 1, 2]"),
                 example("F.conv2d(x, w)", x="f32[3, 6, 5]", w="f32[4, 3, 3, 3]"), example("F.conv2d(x, w)", x="f16[1, 8, 6, 5]", w="f16[4, 8, 3, 3]")))


# --- pooling --------------------------------------------------------------------------------------------------------

def _infer_window(name: str):
    def infer(operands, attrs):
        x = operands[0]
        if x.shape is None:
            return x
        if len(x.shape) != 4:
            raise TypeRuleError(f"{name} of {x}", "an input (N, C, H, W)")
        return TensorType((*x.shape[:2], *_spatial(x, attrs["kernel"], attrs, name)), x.dtype)
    return infer


def _lowest(dtype: DType):
    from .reductions import lowest
    return lowest(dtype)


def _pool(ufunc, identity):
    def evaluate(arrays, attrs):
        x = arrays[0]
        views = _views(x, attrs["kernel"], attrs, identity(DType.parse(x.dtype.name)))
        return ufunc.reduce(views, axis=(4, 5), dtype=x.dtype)
    return evaluate


def _pool_flops(type, operands, attrs):
    return numel(type) * attrs["kernel"][0] * attrs["kernel"][1]


define("max_pool2d", WINDOW, infer=_infer_window("max_pool2d"), evaluate=_pool(np.maximum, _lowest), flops=_pool_flops,
       combine="maximum", identity=_lowest, summary="the maximum of windows of an image",
       examples=(example("F.max_pool2d(x, 2)", x="f32[1, 2, 6, 5]"), example("F.max_pool2d(x, 3, stride=2, padding=1)", x="f32[1, 2, 7, 7]"),
                 example("F.max_pool2d(x, 2, stride=3, padding=1, ceil_mode=True)", x="f32[2, 3, 6, 5]"), example("F.max_pool2d(x, (2, 1), dilation=2)", x="f32[2, 7, 5]"),
                 example("F.max_pool1d(x, 2)", x="f32[1, 2, 7]")))
define("sum_pool2d", WINDOW, infer=_infer_window("sum_pool2d"), evaluate=_pool(np.add, lambda dtype: 0), flops=_pool_flops,
       combine="add", identity=lambda dtype: 0, summary="the sum of windows of an image",
       examples=(example("F.avg_pool2d(x, 2, divisor_override=1)", x="f32[1, 2, 6, 5]"),))


def _infer_avg(operands, attrs):
    return _infer_window("avg_pool2d")(operands, {**attrs, "dilation": (1, 1)})


def _avg_pool2d(b: Builder, operands, attrs):
    """Sums of windows over their counts. The count of a window is what of it lies in the image padded by `counted` (torch's
    count_include_pad), or a given divisor; windows of ceil_mode that reach beyond hold fewer."""
    x = wide(b, operands[0])
    shared = {"kernel": attrs["kernel"], "stride": attrs["stride"], "dilation": (1, 1)}
    total = b.emit("sum_pool2d", x, padding=attrs["padding"], **shared)
    if attrs["divisor"] is not None:
        return b.cast(b.emit("div", total, b.constant(attrs["divisor"], x.type.dtype)), operands[0].type.dtype)
    if attrs["counted"] == attrs["padding"]:
        area = b.constant(attrs["kernel"][0] * attrs["kernel"][1], x.type.dtype)
        return b.cast(b.emit("div", total, area), operands[0].type.dtype)
    inside = [s + l + h for s, (l, h) in zip(x.type.shape[2:], attrs["counted"])]
    ones = b.emit("broadcast", b.constant(1.0, x.type.dtype), shape=(1, 1, *inside))
    rest = tuple((p[0] - c[0], p[1] - c[1]) for p, c in zip(attrs["padding"], attrs["counted"]))
    count = b.emit("sum_pool2d", ones, padding=rest, **shared)
    return b.cast(b.emit("div", total, count), operands[0].type.dtype)


composite("avg_pool2d", _infer_avg, _avg_pool2d, "the mean of windows of an image",
          [example("F.avg_pool2d(x, 2)", x="f32[1, 2, 6, 5]"), example("F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)", x="f32[1, 1, 4, 4]"),
           example("F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)", x="f32[1, 1, 4, 4]"),
           example("F.avg_pool2d(x, 3, stride=2, padding=1, divisor_override=5)", x="f32[1, 1, 4, 4]"), example("F.adaptive_avg_pool2d(x, 1)", x="f32[2, 3, 5, 4]"),
           example("F.adaptive_avg_pool2d(x, (2, None))", x="f32[2, 3, 6, 4]"), example("F.avg_pool1d(x, 2)", x="f32[1, 2, 7]"), example("F.avg_pool2d(x, 2)", x="f16[1, 2, 4, 4]")])


# --- spellings ------------------------------------------------------------------------------------------------------

def pair(value) -> tuple[Dim, Dim]:
    if isinstance(value, (tuple, list)):
        return (value[0], value[0]) if len(value) == 1 else tuple(value)
    return (value, value)


def _single(value) -> Dim:
    return value[0] if isinstance(value, (tuple, list)) else value


def _padding(padding, kernel, stride, dilation) -> Pairs:
    """torch's padding: a number, one for each axis, "valid" or "same" (the odd element goes after)."""
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        if any(s != 1 for s in stride):
            raise TypeRuleError(f"padding 'same' with stride {stride}", "stride 1", "argument")
        total = [d * (k - 1) for k, d in zip(kernel, dilation)]
        return tuple((t // 2, t - t // 2) for t in total)
    if isinstance(padding, str):
        raise TypeRuleError(f"padding {padding!r}", "'valid', 'same' or numbers", "argument")
    return tuple((p, p) for p in pair(padding))


def convolved(b: Builder, x: Op, weight: Op, bias, stride, padding, dilation, groups) -> Op:
    """conv2d of images or of one image without its batch axis, with bias."""
    if x.type.dtype is not None and weight.type.dtype is not None and x.type.dtype != weight.type.dtype:
        raise TypeRuleError(f"conv of {x.type} with weight {weight.type}: the element types differ", "operands of one element type", "dtype-mismatch")
    alone = len(shape_of(x)) == 3
    images = reshaped(b, x, (1, *shape_of(x))) if alone else x
    kernel = shape_of(weight)[2:]
    if any(isinstance(k, Poly) for k in kernel):
        raise unsupported("a convolution whose kernel size is symbolic")
    stride, dilation = pair(stride), pair(dilation)
    result = b.emit("conv2d", images, weight, stride=stride, padding=_padding(padding, kernel, stride, dilation), dilation=dilation, groups=groups)
    if bias is not None:
        result = b.emit("add", result, reshaped(b, bias, (shape_of(bias)[0], 1, 1)))
    return reshaped(b, result, shape_of(result)[1:]) if alone else result


@spelled("torch.nn.functional.conv2d", "torch.conv2d")
def conv2d(b: Builder, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if len(shape_of(input)) not in (3, 4) or len(shape_of(weight)) != 4:
        raise TypeRuleError(f"conv2d of {input.type} with weight {weight.type}", "an input (N, C, H, W) or (C, H, W) and a weight (O, C / groups, KH, KW)")
    return convolved(b, input, weight, bias, stride, padding, dilation, groups)


def _as_image(b: Builder, x: Op) -> Op:
    """(..., C, L) as (..., C, 1, L)."""
    return reshaped(b, x, (*shape_of(x)[:-1], 1, shape_of(x)[-1]))


def _as_signal(b: Builder, x: Op) -> Op:
    return reshaped(b, x, (*shape_of(x)[:-2], shape_of(x)[-1]))


@spelled("torch.nn.functional.conv1d", "torch.conv1d")
def conv1d(b: Builder, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if len(shape_of(input)) not in (2, 3) or len(shape_of(weight)) != 3:
        raise TypeRuleError(f"conv1d of {input.type} with weight {weight.type}", "an input (N, C, L) or (C, L) and a weight (O, C / groups, K)")
    padding = padding if isinstance(padding, str) else (0, _single(padding))
    return _as_signal(b, convolved(b, _as_image(b, input), _as_image(b, weight), bias, (1, _single(stride)), padding, (1, _single(dilation)), groups))


def _pooled(b: Builder, x: Op, kernel, stride, padding, dilation, ceil_mode, name: str):
    """The images, and the attributes of their windows; ceil_mode lengthens the padding after each axis, windows that would
    start in it are dropped. Also the padding that torch itself counts."""
    own = shape_of(x)
    if len(own) not in (3, 4):
        raise TypeRuleError(f"{name} of {x.type}", "an input (N, C, H, W) or (C, H, W)")
    images = reshaped(b, x, (1, *own)) if len(own) == 3 else x
    kernel = pair(kernel)
    stride, padding, dilation = pair(kernel if stride in (None, (), []) else stride), pair(padding), pair(dilation)
    pairs = []
    for axis, size in enumerate(shape_of(images)[2:]):
        if isinstance(padding[axis], int) and 2 * padding[axis] > kernel[axis]:
            raise TypeRuleError(f"{name} with padding {padding[axis]} and kernel {kernel[axis]}", "padding of at most half the kernel", "argument")
        low = high = padding[axis]
        if ceil_mode:
            if isinstance(size, Poly):
                raise unsupported(f"{name} with ceil_mode of a symbolic size")
            reach = dilation[axis] * (kernel[axis] - 1) + 1
            count = -(-(size + 2 * low - reach) // stride[axis]) + 1
            if (count - 1) * stride[axis] >= size + low:
                count -= 1
            high = max(high, (count - 1) * stride[axis] + reach - size - low)
            if (count - 1) * stride[axis] + reach < size + low + padding[axis] - stride[axis] + 1:
                high = padding[axis]
        pairs.append((low, high))
    attrs = {"kernel": kernel, "stride": stride, "padding": tuple(pairs)}
    return images, attrs, dilation, tuple((p, p) for p in padding)


def _back(b: Builder, result: Op, x: Op) -> Op:
    return reshaped(b, result, shape_of(result)[1:]) if len(shape_of(x)) == 3 else result


@spelled("torch.nn.functional.max_pool2d", "torch.max_pool2d")
def max_pool2d(b: Builder, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if return_indices:
        raise unsupported("max_pool2d with return_indices")
    images, attrs, dilation, _ = _pooled(b, input, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    return _back(b, b.emit("max_pool2d", images, dilation=dilation, **attrs), input)


@spelled("torch.nn.functional.avg_pool2d")
def avg_pool2d(b: Builder, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    images, attrs, _, own = _pooled(b, input, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    counted = own if count_include_pad else ((0, 0), (0, 0))
    return _back(b, b.emit("avg_pool2d", images, counted=counted, divisor=divisor_override, **attrs), input)


@spelled("torch.nn.functional.max_pool1d", "torch.max_pool1d")
def max_pool1d(b: Builder, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    stride = kernel_size if stride in (None, (), []) else stride
    return _as_signal(b, max_pool2d(b, _as_image(b, input), (1, _single(kernel_size)), (1, _single(stride)), (0, _single(padding)),
                                    (1, _single(dilation)), ceil_mode, return_indices))


@spelled("torch.nn.functional.avg_pool1d", "torch.avg_pool1d")
def avg_pool1d(b: Builder, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    stride = kernel_size if stride in (None, (), []) else stride
    return _as_signal(b, avg_pool2d(b, _as_image(b, input), (1, _single(kernel_size)), (1, _single(stride)), (0, _single(padding)), ceil_mode, count_include_pad))


@spelled("torch.nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(b: Builder, input, output_size):
    """Windows of one size when the sizes divide; the whole image for an output of 1."""
    own, wanted, kernel = shape_of(input)[-2:], pair(output_size), []
    for size, out in zip(own, wanted):
        width = 1 if out is None else exact_quotient(size, out)
        if width is None:
            raise unsupported(f"adaptive_avg_pool2d of {input.type} to {wanted}, whose windows have unequal sizes", "an output size that divides the input's")
        kernel.append(width)
    if wanted == (1, 1):
        return b.emit("mean", input, axes=(len(shape_of(input)) - 2, len(shape_of(input)) - 1), keepdims=True)
    if any(isinstance(k, Poly) for k in kernel):
        raise unsupported("adaptive_avg_pool2d with symbolic sizes", "an output size of 1")
    return avg_pool2d(b, input, tuple(kernel))


@spelled("torch.nn.functional.interpolate", "torch.nn.functional.upsample",
         examples=[example("F.interpolate(x, size=(1, 64))", x="f32[1, 1, 1, 26]"), example("F.interpolate(x, scale_factor=2, mode='nearest')", x="f32[1, 2, 3, 4]"),
                   example("F.interpolate(x, scale_factor=(1.0, 0.6), mode='nearest')", x="f32[1, 1, 1, 26]"), example("F.interpolate(x, size=5)", x="f32[1, 2, 3]")])
def interpolate(b: Builder, input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """Legacy nearest: source pixel floor(i * scale), the scale in f32 as ATen has it (input / output, or 1 / scale_factor)."""
    if mode != "nearest" or antialias:
        raise unsupported(f"interpolate with mode {mode!r}", "mode 'nearest'")
    own = shape_of(input)[2:]
    many = lambda v: list(v) if isinstance(v, (tuple, list)) else [v] * len(own)
    if any(isinstance(d, Poly) for d in own):
        raise unsupported("interpolate of symbolic sizes")
    wanted = many(size) if size is not None else [int(np.floor(float(d) * f)) for d, f in zip(own, many(scale_factor))]
    factors = [None] * len(own) if size is not None or recompute_scale_factor else many(scale_factor)
    for axis, (old, new, factor) in enumerate(zip(own, wanted, factors), 2):
        if old == new and factor in (None, 1, 1.0):
            continue
        scale = np.float32(old / new) if factor is None else np.float32(1.0 / factor)
        scale = np.float32(old) / np.float32(new) if factor is None else scale
        rows = np.minimum(np.floor(np.arange(new, dtype=np.float32) * scale).astype(np.int64), old - 1)
        index = b.emit("constant", value=tuple(int(r) for r in rows), dtype=DType.I64)
        input = b.emit("take", input, index, axis=axis, negative=False)
    return input
