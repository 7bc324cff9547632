"""Pooling over windows of images (N, C, H, W) and signals (N, C, L).

max_pool2d  the maximum of windows, NaN if there is one; padding counts as -inf
sum_pool2d  the sum of windows; padding counts as 0; avg_pool2d divides it by what torch counts
attrs: kernel, stride and dilation for each axis, padding as ((low, high), (low, high)).
"""
from __future__ import annotations

from ..ir.dims import Poly, exact_quotient
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .array import np
from .builder import Builder
from .composite import composite
from .conv import as_image, as_signal, pair, single, spatial, views
from .definition import WINDOW, TypeRuleError, define, example, spelled, unsupported
from .reductions import lowest, wide
from .rules import numel, shape_of
from .shape import reshaped


def _infer_window(name: str):
    def infer(operands, attrs):
        x = operands[0]
        if x.shape is None:
            return x
        if len(x.shape) != 4:
            raise TypeRuleError(f"{name} of {x}", "an input (N, C, H, W)")
        return TensorType((*x.shape[:2], *spatial(x, attrs["kernel"], attrs, name)), x.dtype)
    return infer


def _pool(ufunc: str, identity):
    def evaluate(arrays, attrs):
        x = arrays[0]
        seen = views(x, attrs["kernel"], attrs, identity(DType.parse(x.dtype.name)))
        return getattr(np, ufunc).reduce(seen, axis=(4, 5), dtype=x.dtype)
    return evaluate


def _pool_flops(type, operands, attrs):
    return numel(type) * attrs["kernel"][0] * attrs["kernel"][1]


define("max_pool2d", WINDOW, infer=_infer_window("max_pool2d"), evaluate=_pool("maximum", lowest), flops=_pool_flops,
       combine="maximum", identity=lowest, summary="the maximum of windows of an image",
       examples=(example("F.max_pool2d(x, 2)", x="f32[1, 2, 6, 5]"), example("F.max_pool2d(x, 3, stride=2, padding=1)", x="f32[1, 2, 7, 7]"),
                 example("F.max_pool2d(x, 2, stride=3, padding=1, ceil_mode=True)", x="f32[2, 3, 6, 5]"),
                 example("F.max_pool2d(x, (2, 1), dilation=2)", x="f32[2, 7, 5]"),
                 example("F.max_pool1d(x, 2)", x="f32[1, 2, 7]")))
define("sum_pool2d", WINDOW, infer=_infer_window("sum_pool2d"), evaluate=_pool("add", lambda dtype: 0), flops=_pool_flops,
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
           example("F.avg_pool2d(x, 3, stride=2, padding=1, divisor_override=5)", x="f32[1, 1, 4, 4]"),
           example("F.adaptive_avg_pool2d(x, 1)", x="f32[2, 3, 5, 4]"),
           example("F.adaptive_avg_pool2d(x, (2, None))", x="f32[2, 3, 6, 4]"),
           example("F.avg_pool1d(x, 2)", x="f32[1, 2, 7]"), example("F.avg_pool2d(x, 2)", x="f16[1, 2, 4, 4]")])


# --- spellings ------------------------------------------------------------------------------------------------------

def _pooled(b: Builder, x: Op, kernel, stride, padding, dilation, ceil_mode, name: str):
    """The images, the attributes of their windows, and the padding that torch counts as part of them.

    In ceil_mode a last window may reach beyond the padding, but not start there; the padding after the axis says how far."""
    own = shape_of(x)
    if len(own) not in (3, 4):
        raise TypeRuleError(f"{name} of {x.type}", "an input (N, C, H, W) or (C, H, W)")
    images = reshaped(b, x, (1, *own)) if len(own) == 3 else x
    kernel = pair(kernel)
    stride, padding, dilation = pair(kernel if stride in (None, (), []) else stride), pair(padding), pair(dilation)
    pairs = []
    for axis, size in enumerate(own[-2:]):
        amount, reach = padding[axis], dilation[axis] * (kernel[axis] - 1) + 1
        if isinstance(amount, int) and 2 * amount > kernel[axis]:
            raise TypeRuleError(f"{name} with padding {amount} and kernel {kernel[axis]}", "padding of at most half the kernel", "argument")
        after = amount
        if ceil_mode:
            if isinstance(size, Poly):
                raise unsupported(f"{name} with ceil_mode of a symbolic size")
            count = -(-(size + 2 * amount - reach) // stride[axis]) + 1
            if (count - 1) * stride[axis] >= size + amount:
                count -= 1
            after = max(0, (count - 1) * stride[axis] + reach - size - amount)
        pairs.append((amount, after))
    attrs = {"kernel": kernel, "stride": stride, "padding": tuple(pairs)}
    return images, attrs, dilation, tuple((p, min(p, after)) if isinstance(p, int) else (p, p) for p, after in pairs)


def _back(b: Builder, result: Op, x: Op) -> Op:
    return reshaped(b, result, shape_of(result)[1:]) if len(shape_of(x)) == 3 else result


@spelled("torch.nn.functional.max_pool2d", "torch.max_pool2d")
def max_pool2d(b: Builder, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    images, attrs, dilation, _ = _pooled(b, input, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    return _indexed(_back(b, b.emit("max_pool2d", images, dilation=dilation, **attrs), input), return_indices)


def _indexed(result: Op, return_indices: bool) -> Op:
    if return_indices:
        raise unsupported("max pooling with return_indices", "", (result.type, TensorType(result.type.shape, DType.I64)))
    return result


@spelled("torch.nn.functional.avg_pool2d")
def avg_pool2d(b: Builder, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    images, attrs, _, own = _pooled(b, input, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    counted = own if count_include_pad else ((0, 0), (0, 0))
    return _back(b, b.emit("avg_pool2d", images, counted=counted, divisor=divisor_override, **attrs), input)


@spelled("torch.nn.functional.max_pool1d", "torch.max_pool1d")
def max_pool1d(b: Builder, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    stride = kernel_size if stride in (None, (), []) else stride
    return _indexed(as_signal(b, max_pool2d(b, as_image(b, input), (1, single(kernel_size)), (1, single(stride)), (0, single(padding)),
                                            (1, single(dilation)), ceil_mode)), return_indices)


@spelled("torch.nn.functional.avg_pool1d", "torch.avg_pool1d")
def avg_pool1d(b: Builder, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    stride = kernel_size if stride in (None, (), []) else stride
    return as_signal(b, avg_pool2d(b, as_image(b, input), (1, single(kernel_size)), (1, single(stride)), (0, single(padding)), ceil_mode, count_include_pad))


@spelled("torch.nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(b: Builder, input, output_size):
    """Windows of one size when the sizes divide; the whole image for an output of 1."""
    if len(shape_of(input)) not in (3, 4):
        raise TypeRuleError(f"adaptive_avg_pool2d of {input.type}", "an input (N, C, H, W) or (C, H, W)")
    own, wanted, kernel = shape_of(input)[-2:], pair(output_size), []
    result = TensorType((*shape_of(input)[:-2], *(d if out is None else out for d, out in zip(own, wanted))), input.type.dtype)
    for size, out in zip(own, wanted):
        width = 1 if out is None else exact_quotient(size, out)
        if width is None:
            raise unsupported(f"adaptive_avg_pool2d of {input.type} to {wanted}, whose windows have unequal sizes", "an output size that divides the input's",
                              (result,))
        kernel.append(width)
    if wanted == (1, 1):
        return b.emit("mean", input, axes=(len(shape_of(input)) - 2, len(shape_of(input)) - 1), keepdims=True)
    if any(isinstance(k, Poly) for k in kernel):
        raise unsupported("adaptive_avg_pool2d with symbolic sizes", "an output size of 1", (result,))
    return avg_pool2d(b, input, tuple(kernel))
