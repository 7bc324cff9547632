"""Normalisations: layer, RMS, group and batch norm as composites, with or without scale and shift.

Operands after x are scale and shift, as attrs `scale` and `shift` say. Half-precision inputs are normalised in f32 and
rounded once, as ATen does it. Batch norm only with given statistics: while training it would write to them.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..ir.dims import Dim, exact_quotient, product, proved_different
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .builder import Builder
from .composite import composite
from .definition import TypeRuleError, example, spelled, unsupported
from .reductions import wide
from .rules import dtype_of, float_only, shape_of
from .shape import reshaped

EPSILON = {DType.F16: 0.0009765625, DType.BF16: 0.0078125, DType.F32: 1.1920928955078125e-07, DType.F64: 2.220446049250313e-16}


def _normalised_axes(x: TensorType, attrs) -> tuple[int, ...]:
    return tuple(range(len(x.shape) - attrs["rank"], len(x.shape)))


def _not_mixed(name: str, operands: Sequence[TensorType]) -> None:
    """Halves with scales of float32 are taken, doubles with them are not."""
    known = {part.dtype for part in operands if part.dtype is not None}
    if DType.F64 in known and len(known) > 1:
        raise TypeRuleError(f"{name} of {operands[0]} with a parameter of {next(p for p in operands[1:] if p.dtype != operands[0].dtype)}: the element types differ",
                            "operands of one element type", "dtype-mismatch")


def _infer_trailing(name: str):
    """layer_norm and rms_norm: scale and shift have the shape of the last `rank` axes."""
    def infer(operands, attrs):
        x, *more = operands
        float_only(name)([x], attrs)
        if name == "layer_norm":
            _not_mixed(name, operands)
        if x.shape is None:
            return x
        tail = x.shape[len(x.shape) - attrs["rank"]:] if attrs["rank"] <= len(x.shape) else None
        for part in more:
            if tail is None or part.shape is not None and (len(part.shape) != len(tail) or any(map(proved_different, part.shape, tail))):
                raise TypeRuleError(f"{name} of {x} with a scale or shift of {part}", f"the shape of the last {attrs['rank']} axes of the input")
        return x
    return infer


def _affine(b: Builder, x: Op, operands, attrs, shape=None) -> Op:
    """x * scale + shift, each if present; the parameters are widened to x's type."""
    parts = list(operands[1:])
    for name, present in (("mul", attrs["scale"]), ("add", attrs["shift"])):
        if present:
            part = b.cast(parts.pop(0), x.type.dtype)
            x = b.emit(name, x, part if shape is None else reshaped(b, part, shape))
    return x


def _standardised(b: Builder, x: Op, axes: tuple[int, ...], eps: float) -> Op:
    """(x - mean) / sqrt(var + eps), var over the count, in two passes: centring first keeps rows whose mean dwarfs their spread."""
    fold = {"axes": axes, "keepdims": True}
    centred = b.emit("sub", x, b.emit("mean", x, **fold))
    spread = b.emit("mean", b.emit("mul", centred, centred), **fold)
    return b.emit("mul", centred, b.emit("rsqrt", b.emit("add", spread, b.constant(eps, x.type.dtype))))


def _layer_norm(b: Builder, operands, attrs):
    """(x - mean) / sqrt(var + eps) * scale + shift. Source: Ba, Kiros and Hinton, 2016."""
    x = wide(b, operands[0])
    scaled = _standardised(b, x, _normalised_axes(x.type, attrs), attrs["eps"])
    return b.cast(_affine(b, scaled, operands, attrs), operands[0].type.dtype)


def _rms_norm(b: Builder, operands, attrs):
    """x / sqrt(mean(x^2) + eps) * scale. Source: Zhang and Sennrich, 2019."""
    x = wide(b, operands[0])
    square = b.emit("mean", b.emit("mul", x, x), axes=_normalised_axes(x.type, attrs), keepdims=True)
    scaled = b.emit("mul", x, b.emit("rsqrt", b.emit("add", square, b.constant(attrs["eps"], x.type.dtype))))
    return b.cast(_affine(b, scaled, operands, attrs), operands[0].type.dtype)


composite("layer_norm", _infer_trailing("layer_norm"), _layer_norm, "centred and scaled to unit variance over the last axes",
          [example("F.layer_norm(x, (5,), w, c, 1e-5)", x="f32[2, 5]", w="f32[5]", c="f32[5]"), example("F.layer_norm(x, (3, 4), eps=1e-3)", x="f32[2, 3, 4]"),
           example("F.layer_norm(x, [4], w)", x="f16[3, 4]", w="f16[4]")], arity=None)
composite("rms_norm", _infer_trailing("rms_norm"), _rms_norm, "scaled to a root mean square of 1 over the last axes",
          [example("F.rms_norm(x, (5,), w, 1e-6)", x="f32[2, 5]", w="f32[5]"), example("F.rms_norm(x, (4,))", x="f32[3, 4]")], arity=None)


def _infer_channels(name: str):
    """group_norm and batch_norm: parameters of one element for each of the channels, axis 1."""
    def infer(operands, attrs):
        x, *more = operands
        float_only(name)([x], attrs)
        _not_mixed(name, operands)
        if x.shape is None:
            return x
        if len(x.shape) < 2:
            raise TypeRuleError(f"{name} of {x}", "an input of at least 2 axes (N, C, ...)")
        for part in more:
            if part.shape is not None and (len(part.shape) != 1 or proved_different(part.shape[0], x.shape[1])):
                raise TypeRuleError(f"{name} of {x} with a parameter of {part}: the input has {x.shape[1]} channels on axis 1", f"{x.shape[1]} elements")
        if name == "group_norm" and isinstance(x.shape[1], int) and x.shape[1] % attrs["groups"]:
            raise TypeRuleError(f"group_norm of {x} in {attrs['groups']} groups: {x.shape[1]} channels do not divide",
                                "a number of groups that divides the channels")
        return x
    return infer


def _per_channel(x: Op) -> tuple[Dim, ...]:
    return (x.type.shape[1], *[1] * (len(x.type.shape) - 2))


def _group_norm(b: Builder, operands, attrs):
    x = wide(b, operands[0])
    n, c, *rest = x.type.shape
    grouped = reshaped(b, x, (n, attrs["groups"], exact_quotient(c, attrs["groups"]) or c // attrs["groups"], product(rest)))
    scaled = _standardised(b, grouped, (2, 3), attrs["eps"])
    return b.cast(_affine(b, reshaped(b, scaled, x.type.shape), operands, attrs, _per_channel(x)), operands[0].type.dtype)


def _batch_norm(b: Builder, operands, attrs):
    """(x - mean) / sqrt(var + eps) * scale + shift with one given mean and variance for each channel."""
    x = wide(b, operands[0])
    mean, var = (reshaped(b, b.cast(p, x.type.dtype), _per_channel(x)) for p in operands[1:3])
    inverse = b.emit("rsqrt", b.emit("add", var, b.constant(attrs["eps"], x.type.dtype)))
    scaled = b.emit("mul", b.emit("sub", x, mean), inverse)
    return b.cast(_affine(b, scaled, operands[2:], attrs, _per_channel(x)), operands[0].type.dtype)


composite("group_norm", _infer_channels("group_norm"), _group_norm, "centred and scaled to unit variance over groups of channels",
          [example("F.group_norm(x, 2, w, c)", x="f32[2, 4, 3]", w="f32[4]", c="f32[4]"), example("F.group_norm(x, 1)", x="f32[2, 4]"),
           example("F.instance_norm(x)", x="f32[2, 3, 5]")], arity=None)
composite("batch_norm", _infer_channels("batch_norm"), _batch_norm, "centred and scaled by given statistics of each channel",
          [example("F.batch_norm(x, m, v.abs(), w, c)", x="f32[2, 3, 4]", m="f32[3]", v="f32[3]", w="f32[3]", c="f32[3]"),
           example("F.batch_norm(x, m, v.abs(), eps=1e-3)", x="f32[2, 3]", m="f32[3]", v="f32[3]")], arity=None)


def present(*parts):
    return [p for p in parts if p is not None]


def _rank(b: Builder, input, normalized_shape, name: str) -> int:
    shape = (normalized_shape,) if not isinstance(normalized_shape, (tuple, list)) else tuple(normalized_shape)
    own = input.type.shape
    if own is not None and (len(shape) > len(own) or any(map(proved_different, own[len(own) - len(shape):], shape))):
        raise TypeRuleError(f"{name} of {input.type} over ({', '.join(map(str, shape))})", "the sizes of the input's last axes")
    return len(shape)


@spelled("torch.nn.functional.layer_norm", "torch.layer_norm")
def layer_norm(b: Builder, input, normalized_shape, weight=None, bias=None, eps=1e-05):
    return b.emit("layer_norm", input, *present(weight, bias), rank=_rank(b, input, normalized_shape, "layer_norm"), eps=float(eps),
                  scale=weight is not None, shift=bias is not None)


@spelled("torch.nn.functional.rms_norm", "torch.rms_norm")
def rms_norm(b: Builder, input, normalized_shape, weight=None, eps=None):
    eps = EPSILON[DType.F64 if dtype_of(input) == DType.F64 else DType.F32] if eps is None else eps
    return b.emit("rms_norm", input, *present(weight), rank=_rank(b, input, normalized_shape, "rms_norm"), eps=float(eps),
                  scale=weight is not None, shift=False)


@spelled("torch.nn.functional.group_norm", "torch.group_norm")
def group_norm(b: Builder, input, num_groups, weight=None, bias=None, eps=1e-05):
    return b.emit("group_norm", input, *present(weight, bias), groups=num_groups, eps=float(eps), scale=weight is not None, shift=bias is not None)


@spelled("torch.nn.functional.batch_norm")
def batch_norm(b: Builder, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    if training or running_mean is None or running_var is None:
        _infer_channels("batch_norm")([v.type for v in (input, running_mean, running_var, weight, bias) if v is not None], {})
        raise unsupported("batch_norm while training, which writes to the running statistics", "model.eval(), or training=False with running statistics",
                          (input.type,))
    return b.emit("batch_norm", input, running_mean, running_var, *present(weight, bias), eps=float(eps), scale=weight is not None, shift=bias is not None)


@spelled("torch.nn.functional.instance_norm")
def instance_norm(b: Builder, input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05):
    if running_mean is not None or not use_input_stats:
        raise unsupported("instance_norm with running statistics", "", (input.type,))
    if not isinstance(shape_of(input)[1], int):
        raise unsupported("instance_norm with a symbolic number of channels", "", (input.type,))
    return group_norm(b, input, shape_of(input)[1], weight, bias, eps)
