"""Convolution over images (N, C, H, W) and signals (N, C, L), and its transpose.

conv2d   x (N, C, H, W), weight (O, C / groups, KH, KW): stride, dilation and groups as in torch; padding as ((low, high), (low, high))
Signals are images of height 1. A transposed convolution spreads its input with zeros and convolves with the turned kernel.
Cost of conv2d: 2 * outputs * C / groups * KH * KW.
"""
from __future__ import annotations

from ..ir.dims import Dim, Poly, at_most, exact_quotient, floordiv, product, proved_different
from ..ir.function import Op
from ..ir.types import TensorType
from .array import np
from .builder import Builder
from .composite import composite
from .definition import CONVOLUTION, TypeRuleError, define, example, spelled, unsupported
from .indexing import window
from .joining import padded
from .rules import common, numel, shape_of, shapes
from .shape import reshaped, transposed

Pairs = tuple[tuple[Dim, Dim], tuple[Dim, Dim]]


def windows(size: Dim, kernel: int, stride: int, padding: tuple[Dim, Dim], dilation: int) -> Dim:
    """How many windows fit: floor((size + padding - dilation * (kernel - 1) - 1) / stride) + 1."""
    return floordiv(size + padding[0] + padding[1] - dilation * (kernel - 1) - 1, stride) + 1


def spatial(x: TensorType, kernel, attrs, what: str) -> tuple[Dim, Dim]:
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
        raise TypeRuleError(f"conv2d with weight {weight} in {groups} groups: {weight.shape[0]} outputs do not divide",
                            "a number of groups that divides the outputs")
    return TensorType((x.shape[0], weight.shape[0], *spatial(x, weight.shape[2:], attrs, "conv2d")), dtype)


def views(x: np.ndarray, kernel, attrs, fill) -> np.ndarray:
    """(N, C, OH, OW, KH, KW): every window of the padded image."""
    x = np.pad(x, ((0, 0), (0, 0), *attrs["padding"]), constant_values=fill)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, attrs["dilation"])]
    (sh, sw), (dh, dw) = attrs["stride"], attrs["dilation"]
    return np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))[:, :, ::sh, ::sw, ::dh, ::dw]


def _conv2d(arrays, attrs):
    x, weight = arrays
    seen, groups = views(x, weight.shape[2:], attrs, 0), attrs["groups"]
    n, c, oh, ow, kh, kw = seen.shape
    held = np.float32 if x.dtype == np.float16 else x.dtype
    a = seen.transpose(0, 2, 3, 1, 4, 5).reshape(n * oh * ow, groups, c // groups * kh * kw).transpose(1, 0, 2).astype(held)
    w = weight.reshape(groups, weight.shape[0] // groups, c // groups * kh * kw).transpose(0, 2, 1).astype(held)
    result = (a @ w).transpose(1, 0, 2).reshape(n, oh, ow, weight.shape[0])
    return np.ascontiguousarray(result.transpose(0, 3, 1, 2)).astype(x.dtype)


define("conv2d", CONVOLUTION, arity=2, infer=_infer_conv2d, evaluate=_conv2d, summary="sums of products of windows of an image with a kernel",
       flops=lambda type, operands, attrs: 2 * numel(type) * product(operands[1].shape[1:]) if operands[1].shape else 0,
       examples=(example("F.conv2d(x, w)", x="f32[2, 3, 6, 5]", w="f32[4, 3, 3, 2]"),
                 example("F.conv2d(x, w, c, stride=2, padding=1)", x="f32[1, 2, 7, 8]", w="f32[3, 2, 3, 3]", c="f32[3]"),
                 example("F.conv2d(x, w, padding='same', dilation=(1, 3))", x="f32[1, 4, 7, 9]", w="f32[3, 4, 2, 4]"),
                 example("F.conv2d(x, w, c, groups=2, stride=(2, 1), padding=(1, 2))", x="f32[1, 4, 7, 9]", w="f32[6, 2, 3, 3]", c="f32[6]"),
                 example("F.conv1d(x, w, c, padding=1)", x="f32[2, 3, 8]", w="f32[4, 3, 3]", c="f32[4]"),
                 example("F.conv1d(x, w, groups=3)", x="f32[3, 8]", w="f32[3, 1, 2]"),
                 example("F.conv2d(x, w)", x="f32[3, 6, 5]", w="f32[4, 3, 3, 3]"), example("F.conv2d(x, w)", x="f16[1, 8, 6, 5]", w="f16[4, 8, 3, 3]")))


# --- spellings ------------------------------------------------------------------------------------------------------

def pair(value) -> tuple[Dim, Dim]:
    if isinstance(value, (tuple, list)):
        return (value[0], value[0]) if len(value) == 1 else tuple(value)
    return (value, value)


def single(value) -> Dim:
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


def as_image(b: Builder, x: Op) -> Op:
    """(..., C, L) as (..., C, 1, L)."""
    return reshaped(b, x, (*shape_of(x)[:-1], 1, shape_of(x)[-1]))


def as_signal(b: Builder, x: Op) -> Op:
    return reshaped(b, x, (*shape_of(x)[:-2], shape_of(x)[-1]))


@spelled("torch.nn.functional.conv1d", "torch.conv1d")
def conv1d(b: Builder, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if len(shape_of(input)) not in (2, 3) or len(shape_of(weight)) != 3:
        raise TypeRuleError(f"conv1d of {input.type} with weight {weight.type}", "an input (N, C, L) or (C, L) and a weight (O, C / groups, K)")
    padding = padding if isinstance(padding, str) else (0, single(padding))
    return as_signal(b, convolved(b, as_image(b, input), as_image(b, weight), bias, (1, single(stride)), padding, (1, single(dilation)), groups))


# --- transposed -----------------------------------------------------------------------------------------------------

def _infer_transposed(operands, attrs):
    x, weight = operands
    dtype = common(operands, "conv_transpose2d")
    if x.shape is None or weight.shape is None:
        return TensorType(None, dtype)
    if len(x.shape) != 4 or len(weight.shape) != 4:
        raise TypeRuleError(f"conv_transpose2d of {shapes(operands)}", "an input (N, C, H, W) and a weight (C, O / groups, KH, KW)")
    if proved_different(x.shape[1], weight.shape[0]):
        raise TypeRuleError(f"conv_transpose2d of {x} with weight {weight}: the input has {x.shape[1]} channels, the weight takes {weight.shape[0]}",
                            f"an input of {weight.shape[0]} channels on axis 1")
    sizes = [(x.shape[2 + a] - 1) * attrs["stride"][a] - 2 * attrs["padding"][a] + attrs["dilation"][a] * (weight.shape[2 + a] - 1) + attrs["extra"][a] + 1
             for a in (0, 1)]
    return TensorType((x.shape[0], weight.shape[1] * attrs["groups"], *sizes), dtype)


def _transposed(b: Builder, operands, attrs):
    """stride - 1 zeros after each element but the last, then a convolution with the kernel turned by half a circle."""
    x, weight = operands
    n, c, *image = x.type.shape
    for axis, stride in enumerate(attrs["stride"], 2):
        if stride != 1:
            own = x.type.shape
            spread = padded(b, reshaped(b, x, (*own[:axis + 1], 1, *own[axis + 1:])), [0] * 5, [stride - 1 if a == axis + 1 else 0 for a in range(5)], 0)
            x = window(b, reshaped(b, spread, (*own[:axis], own[axis] * stride, *own[axis + 1:])), {axis: (0, (own[axis] - 1) * stride + 1, 1)})
    groups, kernel = attrs["groups"], weight.type.shape[2:]
    turned = b.emit("flip", weight, axes=(2, 3))
    inner, outer = exact_quotient(c, groups), weight.type.shape[1]
    turned = reshaped(b, transposed(b, reshaped(b, turned, (groups, inner, outer, *kernel)), (0, 2, 1, 3, 4)), (groups * outer, inner, *kernel))
    reach = [d * (k - 1) - p for d, k, p in zip(attrs["dilation"], kernel, attrs["padding"])]
    low, high = [0, 0, *reach], [0, 0, *(r + e for r, e in zip(reach, attrs["extra"]))]
    return b.emit("conv2d", padded(b, x, low, high, 0), turned, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=attrs["dilation"], groups=groups)


composite("conv_transpose2d", _infer_transposed, _transposed, "the transpose of a convolution: each element adds the kernel to the image",
          [example("F.conv_transpose2d(x, w)", x="f32[2, 3, 4, 3]", w="f32[3, 2, 3, 2]"),
           example("F.conv_transpose2d(x, w, c, stride=2, padding=1, output_padding=1)", x="f32[1, 3, 5, 4]", w="f32[3, 2, 3, 3]", c="f32[2]"),
           example("F.conv_transpose2d(x, w, stride=(3, 2), padding=(0, 1), output_padding=(2, 0))", x="f32[1, 3, 4, 4]", w="f32[3, 2, 3, 3]"),
           example("F.conv_transpose2d(x, w, groups=2, dilation=2, padding=3)", x="f32[1, 4, 5, 5]", w="f32[4, 3, 2, 2]"),
           example("F.conv_transpose1d(x, w, stride=2)", x="f32[2, 3, 5]", w="f32[3, 4, 3]")], arity=2)


@spelled("torch.nn.functional.conv_transpose2d", "torch.conv_transpose2d")
def conv_transpose2d(b: Builder, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    alone = len(shape_of(input)) == 3
    images = reshaped(b, input, (1, *shape_of(input))) if alone else input
    stride, dilation, extra = pair(stride), pair(dilation), pair(output_padding)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation) if e):
        raise TypeRuleError(f"conv_transpose2d with output_padding {extra} and stride {stride}",
                            "an output_padding smaller than the stride or the dilation", "argument")
    result = b.emit("conv_transpose2d", images, weight, stride=stride, padding=pair(padding), dilation=dilation, extra=extra, groups=groups)
    if bias is not None:
        result = b.emit("add", result, reshaped(b, bias, (shape_of(bias)[0], 1, 1)))
    return reshaped(b, result, shape_of(result)[1:]) if alone else result


@spelled("torch.nn.functional.conv_transpose1d", "torch.conv_transpose1d")
def conv_transpose1d(b: Builder, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return as_signal(b, conv_transpose2d(b, as_image(b, input), as_image(b, weight), bias, (1, single(stride)), (0, single(padding)),
                                         (0, single(output_padding)), groups, (1, single(dilation))))
