"""Activations: composites of one operand that people know by name. f16 and bf16 are computed in f32 and rounded once."""
from __future__ import annotations

import math

from ..ir.dims import product, proved_different
from ..ir.function import Op
from .arithmetic import float_operand
from .builder import Builder
from .composite import composite
from .definition import TypeRuleError, example, spelled, values
from .joining import chunk
from .reductions import wide
from .rules import dtype_of, float_only, shape_of
from .shape import reshaped


def _number(b: Builder, value: float, like: Op) -> Op:
    return b.constant(value, like.type.dtype)


def through(decompose):
    """An activation of f16 or bf16 is computed in f32 and rounded once, as ATen does it."""
    def wrapped(b: Builder, operands, attrs):
        x = operands[0]
        return b.cast(decompose(b, wide(b, x), attrs), x.type.dtype)
    return wrapped


def _relu(b, x, attrs):
    """0 where x < 0: so NaN and -0.0 stay, as in ATen."""
    return b.emit("select", b.emit("lt", x, _number(b, 0, x)), _number(b, 0, x), x)


def _sigmoid(b, x, attrs):
    """1 / (1 + exp(-x)): exp may overflow to inf, which gives 0."""
    return b.emit("div", _number(b, 1.0, x), b.emit("add", _number(b, 1.0, x), b.emit("exp", b.emit("neg", x))))


def _silu(b, x, attrs):
    return b.emit("div", x, b.emit("add", _number(b, 1.0, x), b.emit("exp", b.emit("neg", x))))


def _gelu(b, x, attrs):
    """0.5 x (1 + erf(x / sqrt 2)), or with tanh(sqrt(2/pi) (x + 0.044715 x^3)). Source: Hendrycks and Gimpel, 2016."""
    half = b.emit("mul", _number(b, 0.5, x), x)
    if attrs["approximate"] == "tanh":
        cube = b.emit("mul", b.emit("mul", x, x), x)
        inner = b.emit("mul", _number(b, math.sqrt(2 / math.pi), x), b.emit("add", x, b.emit("mul", _number(b, 0.044715, x), cube)))
        return b.emit("mul", half, b.emit("add", _number(b, 1.0, x), b.emit("tanh", inner)))
    return b.emit("mul", half, b.emit("add", _number(b, 1.0, x), b.emit("erf", b.emit("mul", x, _number(b, math.sqrt(0.5), x)))))


def _positive(b, x) -> Op:
    return b.emit("gt", x, _number(b, 0, x))


def _elu(b, x, attrs):
    below = b.emit("mul", _number(b, attrs["alpha"], x), b.emit("expm1", x))
    return b.emit("select", _positive(b, x), x, below)


def _leaky_relu(b, x, attrs):
    return b.emit("select", _positive(b, x), x, b.emit("mul", x, _number(b, attrs["slope"], x)))


def _softplus(b, x, attrs):
    """log(1 + exp(beta x)) / beta; x itself where beta x exceeds the threshold."""
    scaled = b.emit("mul", x, _number(b, attrs["beta"], x))
    soft = b.emit("div", b.emit("log1p", b.emit("exp", scaled)), _number(b, attrs["beta"], x))
    return b.emit("select", b.emit("gt", scaled, _number(b, attrs["threshold"], x)), x, soft)


def _mish(b, x, attrs):
    return b.emit("mul", x, b.emit("tanh", b.emit("softplus", x, beta=1.0, threshold=20.0)))


def _hardsigmoid(b, x, attrs):
    """relu6(x + 3) / 6"""
    six = b.emit("minimum", b.emit("maximum", b.emit("add", x, _number(b, 3, x)), _number(b, 0, x)), _number(b, 6, x))
    return b.emit("div", six, _number(b, 6, x))


def _hardswish(b, x, attrs):
    six = b.emit("minimum", b.emit("maximum", b.emit("add", x, _number(b, 3, x)), _number(b, 0, x)), _number(b, 6, x))
    return b.emit("div", b.emit("mul", x, six), _number(b, 6, x))


def _logsigmoid(b, x, attrs):
    """min(x, 0) - log1p(exp(-|x|))"""
    tail = b.emit("log1p", b.emit("exp", b.emit("neg", b.emit("abs", x))))
    return b.emit("sub", b.emit("minimum", x, _number(b, 0, x)), tail)


composite("relu", lambda operands, attrs: operands[0], lambda b, operands, attrs: _relu(b, operands[0], attrs), "max(x, 0); NaN stays NaN",
          [example("F.relu(x)", x="f32[2, 3]"), example("x.relu()", x="i32[4]"), example("torch.relu(x)", x=values("f32", [math.nan, -0.0, 1.0]))])
for _name, _decompose, _summary, _examples in (
        ("sigmoid", _sigmoid, "1 / (1 + exp(-x))", ["torch.sigmoid(x)", "x.sigmoid()", "F.sigmoid(x * 100)"]),
        ("silu", _silu, "x sigmoid(x)", ["F.silu(x)"]),
        ("gelu", _gelu, "x times the normal distribution function of x", ["F.gelu(x)", "F.gelu(x, approximate='tanh')"]),
        ("elu", _elu, "x above 0, alpha (exp(x) - 1) below", ["F.elu(x)", "F.elu(x, alpha=0.5)"]),
        ("leaky_relu", _leaky_relu, "x above 0, slope x below", ["F.leaky_relu(x, 0.2)"]),
        ("softplus", _softplus, "log(1 + exp(x))", ["F.softplus(x)", "F.softplus(x * 30, beta=2)"]),
        ("mish", _mish, "x tanh(softplus(x))", ["F.mish(x)"]), ("hardsigmoid", _hardsigmoid, "relu6(x + 3) / 6", ["F.hardsigmoid(x * 5)"]),
        ("hardswish", _hardswish, "x relu6(x + 3) / 6", ["F.hardswish(x * 5)"]), ("logsigmoid", _logsigmoid, "log(sigmoid(x))", ["F.logsigmoid(x)"])):
    composite(_name, float_only(_name), through(_decompose), _summary,
              [e for code in _examples for e in (example(code, x="f32[9]"), *([example(code, x="f16[9]")] if code == _examples[0] else []))])


@spelled("torch.relu", "torch.Tensor.relu")
def relu(b: Builder, input):
    return b.emit("relu", input)


@spelled("torch.nn.functional.relu")
def functional_relu(b: Builder, input, inplace=False):
    return b.emit("relu", input)


@spelled("torch.nn.functional.relu6", examples=[example("F.relu6(x * 10)", x="f32[9]")])
def relu6(b: Builder, input, inplace=False):
    return hardtanh(b, input, 0.0, 6.0)


@spelled("torch.nn.functional.hardtanh", examples=[example("F.hardtanh(x)", x="f32[9]")])
def hardtanh(b: Builder, input, min_val=-1.0, max_val=1.0, inplace=False):
    return b.emit("minimum", b.emit("maximum", input, b.constant(min_val, dtype_of(input))), b.constant(max_val, dtype_of(input)))


@spelled("torch.sigmoid", "torch.Tensor.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit")
def sigmoid(b: Builder, input):
    return b.emit("sigmoid", float_operand(b, input))


@spelled("torch.nn.functional.silu")
def silu(b: Builder, input, inplace=False):
    return b.emit("silu", input)


@spelled("torch.nn.functional.gelu")
def gelu(b: Builder, input, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise TypeRuleError(f"gelu with approximate={approximate!r}", "'none' or 'tanh'", "argument")
    return b.emit("gelu", input, approximate=approximate)


@spelled("torch.nn.functional.elu")
def elu(b: Builder, input, alpha=1.0, inplace=False):
    return b.emit("elu", input, alpha=float(alpha))


@spelled("torch.nn.functional.leaky_relu")
def leaky_relu(b: Builder, input, negative_slope=0.01, inplace=False):
    return b.emit("leaky_relu", input, slope=float(negative_slope))


@spelled("torch.nn.functional.prelu", "torch.prelu",
         examples=[example("F.prelu(x, w)", x="f32[2, 4, 3]", w="f32[4]"), example("F.prelu(x, w)", x="f32[5]", w="f32[1]")])
def prelu(b: Builder, input, weight):
    """Slopes belong to axis 1, whatever the rank."""
    own, many = shape_of(input), shape_of(weight)
    if product(many) != 1:
        if len(own) < 2 or proved_different(product(many), own[1]):
            raise TypeRuleError(f"prelu of {input.type} with slopes {weight.type}", "one slope, or one for each channel on axis 1")
        weight = reshaped(b, weight, (own[1], *[1] * (len(own) - 2)))
    else:
        weight = reshaped(b, weight, ())
    return b.emit("select", _positive(b, input), input, b.emit("mul", weight, input))


@spelled("torch.nn.functional.selu", "torch.selu", examples=[example("F.selu(x)", x="f32[9]")])
def selu(b: Builder, input, inplace=False):
    """scale * elu(x, alpha). Source: Klambauer et al., 2017."""
    return b.emit("mul", b.emit("elu", input, alpha=1.6732632423543772), b.constant(1.0507009873554805, dtype_of(input)))


@spelled("torch.nn.functional.softsign", examples=[example("F.softsign(x)", x="f32[9]")])
def softsign(b: Builder, input):
    return b.emit("div", input, b.emit("add", b.constant(1.0, dtype_of(input)), b.emit("abs", input)))


@spelled("torch.nn.functional.tanhshrink", examples=[example("F.tanhshrink(x * 3)", x="f32[9]")])
def tanhshrink(b: Builder, input):
    return b.emit("sub", input, b.emit("tanh", input))


@spelled("torch.nn.functional.threshold", "torch.threshold", examples=[example("F.threshold(x, 0.1, -2.0)", x="f32[9]")])
def threshold(b: Builder, input, threshold, value, inplace=False):
    return b.emit("select", b.emit("le", input, b.constant(threshold, dtype_of(input))), b.constant(value, dtype_of(input)), input)


@spelled("torch.nn.functional.softplus")
def softplus(b: Builder, input, beta=1.0, threshold=20.0):
    return b.emit("softplus", input, beta=float(beta), threshold=float(threshold))


for _name in ("mish", "hardsigmoid", "hardswish"):
    spelled(f"torch.nn.functional.{_name}")(lambda b, input, inplace=False, *, _name=_name: b.emit(_name, input))


@spelled("torch.nn.functional.logsigmoid")
def logsigmoid(b: Builder, input):
    return b.emit("logsigmoid", input)


@spelled("torch.nn.functional.glu", examples=[example("F.glu(x, dim=1)", x="f32[2, 6]")])
def glu(b: Builder, input, dim=-1):
    size = shape_of(input)[b.axis(dim, input)] if shape_of(input) else 1
    if isinstance(size, int) and size % 2:
        raise TypeRuleError(f"glu over axis {dim} of {input.type}, which has size {size}", "an even size")
    value, gate = chunk(b, input, 2, dim)
    return b.emit("mul", value, b.emit("sigmoid", gate))
