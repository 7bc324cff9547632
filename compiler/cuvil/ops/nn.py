"""Neural network functions: activations, softmax, normalisations, attention. All are composites that people know by name."""
from __future__ import annotations

import math

import numpy as np

from ..ir.dims import exact_quotient, product, proved_different
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .builder import Builder
from .composite import composite
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .elementwise import float_operand
from .reductions import fold, wide
from .rules import broadcast, check_axis, dtype_of, shape_of
from .shape import expanded, reshaped


def _infer_float(name: str):
    def infer(operands, attrs):
        x = operands[0]
        if x.dtype is not None and not x.dtype.is_float:
            raise TypeRuleError(f"{name} of {x}", "floating-point elements; cast with .float() first", "dtype-mismatch")
        return x
    return infer


def _infer_axis(name: str):
    def infer(operands, attrs):
        check_axis(attrs["axis"], operands[0], name)
        return _infer_float(name)(operands, attrs)
    return infer


# --- softmax --------------------------------------------------------------------------------------------------------

def _fold(b: Builder, name: str, x: Op, axis: int) -> Op:
    return b.emit(name, x, axes=(axis,) if x.type.shape else (), keepdims=True)


def _softmax(b: Builder, operands, attrs):
    """exp(x - max) / sum: a row that is -inf everywhere gives NaN, as in ATen."""
    x = wide(b, operands[0])
    e = b.emit("exp", b.emit("sub", x, _fold(b, "reduce_max", x, attrs["axis"])))
    return b.cast(b.emit("div", e, _fold(b, "reduce_sum", e, attrs["axis"])), operands[0].type.dtype)


def _log_softmax(b: Builder, operands, attrs):
    x = wide(b, operands[0])
    centred = b.emit("sub", x, _fold(b, "reduce_max", x, attrs["axis"]))
    total = _fold(b, "reduce_sum", b.emit("exp", centred), attrs["axis"])
    return b.cast(b.emit("sub", centred, b.emit("log", total)), operands[0].type.dtype)


composite("softmax", _infer_axis("softmax"), _softmax, "exp(x) / sum(exp(x)) along an axis",
          [example("torch.softmax(x, dim=-1)", x="f32[2, 5]"), example("F.softmax(x, dim=0)", x="f32[3, 4]"), example("x.softmax(1)", x="f32[2, 3, 4]"),
           example("torch.softmax(x, 0)", x="f32[]"), example("F.softmax(x, dim=-1, dtype=torch.float32)", x="f16[2, 5]"),
           example("torch.softmax(x, -1)", x="f16[2, 5]"), example("F.softmin(x, dim=1)", x="f32[2, 5]")])
composite("log_softmax", _infer_axis("log_softmax"), _log_softmax, "log(softmax(x)) along an axis, without overflow",
          [example("torch.log_softmax(x, dim=-1)", x="f32[2, 5]"), example("F.log_softmax(x, dim=0)", x="f64[3, 4]")])


@spelled("torch.softmax", "torch.Tensor.softmax", "torch.special.softmax")
def softmax(b: Builder, input, dim, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("softmax", x, axis=b.axis(dim, x))


def _given_axis(b: Builder, x: Op, dim, name: str) -> int:
    if dim is None:
        raise unsupported(f"{name} without dim, which guesses the axis from the rank", "dim=-1")
    return b.axis(dim, x)


@spelled("torch.nn.functional.softmax")
def functional_softmax(b: Builder, input, dim=None, _stacklevel=3, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("softmax", x, axis=_given_axis(b, x, dim, "softmax"))


@spelled("torch.nn.functional.softmin")
def softmin(b: Builder, input, dim=None, _stacklevel=3, dtype=None):
    return functional_softmax(b, b.emit("neg", input), dim, 3, dtype)


@spelled("torch.log_softmax", "torch.Tensor.log_softmax", "torch.special.log_softmax")
def log_softmax(b: Builder, input, dim, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("log_softmax", x, axis=b.axis(dim, x))


@spelled("torch.nn.functional.log_softmax")
def functional_log_softmax(b: Builder, input, dim=None, _stacklevel=3, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("log_softmax", x, axis=_given_axis(b, x, dim, "log_softmax"))


# --- activations ----------------------------------------------------------------------------------------------------

def _number(b: Builder, value: float, like: Op) -> Op:
    return b.constant(value, like.type.dtype)


def _through(decompose):
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
          [example("F.relu(x)", x="f32[2, 3]"), example("x.relu()", x="i32[4]"), example("torch.relu(x)", x=np.array([np.nan, -0.0, 1.0], np.float32))])
for _name, _decompose, _summary, _examples in (
        ("sigmoid", _sigmoid, "1 / (1 + exp(-x))", ["torch.sigmoid(x)", "x.sigmoid()", "F.sigmoid(x * 100)"]),
        ("silu", _silu, "x sigmoid(x)", ["F.silu(x)"]), ("gelu", _gelu, "x times the normal distribution function of x", ["F.gelu(x)", "F.gelu(x, approximate='tanh')"]),
        ("elu", _elu, "x above 0, alpha (exp(x) - 1) below", ["F.elu(x)", "F.elu(x, alpha=0.5)"]),
        ("leaky_relu", _leaky_relu, "x above 0, slope x below", ["F.leaky_relu(x, 0.2)"]),
        ("softplus", _softplus, "log(1 + exp(x))", ["F.softplus(x)", "F.softplus(x * 30, beta=2)"]),
        ("mish", _mish, "x tanh(softplus(x))", ["F.mish(x)"]), ("hardsigmoid", _hardsigmoid, "relu6(x + 3) / 6", ["F.hardsigmoid(x * 5)"]),
        ("hardswish", _hardswish, "x relu6(x + 3) / 6", ["F.hardswish(x * 5)"]), ("logsigmoid", _logsigmoid, "log(sigmoid(x))", ["F.logsigmoid(x)"])):
    composite(_name, _infer_float(_name), _through(_decompose), _summary,
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


@spelled("torch.nn.functional.prelu", "torch.prelu", examples=[example("F.prelu(x, w)", x="f32[2, 4, 3]", w="f32[4]"), example("F.prelu(x, w)", x="f32[5]", w="f32[1]")])
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


@spelled("torch.nn.functional.cosine_similarity", "torch.cosine_similarity", examples=[example("F.cosine_similarity(x, y)", x="f32[2, 5]", y="f32[2, 5]"),
                                                                                      example("F.cosine_similarity(x, y, dim=-1)", x="f32[3, 5]", y="f32[5]")])
def cosine_similarity(b: Builder, x1, x2, dim=1, eps=1e-08):
    """dot / (max(|x1|, eps) max(|x2|, eps)), after broadcasting."""
    x, y = b.promote(x1, x2)
    shape = broadcast([x.type, y.type], "cosine_similarity")
    if shape is None:
        raise not_known("cosine_similarity of unknown ranks")
    x, y = expanded(b, x, shape), expanded(b, y, shape)
    fix = lambda v: b.emit("maximum", fold(b, "norm", v, dim, True, p=2.0), b.constant(eps, dtype_of(v)))
    return fold(b, "reduce_sum", b.emit("mul", b.emit("div", x, fix(x)), b.emit("div", y, fix(y))), dim, False)


@spelled("torch.nn.functional.one_hot", examples=[example("F.one_hot(x.abs(), 9)", x="i64[4]")])
def one_hot(b: Builder, tensor, num_classes=-1):
    if num_classes == -1:
        raise unsupported("one_hot without num_classes, whose size hangs on data", "num_classes=...")
    classes = b.emit("iota", shape=(num_classes,), axis=0, dtype=dtype_of(tensor))
    return b.cast(b.emit("eq", reshaped(b, tensor, (*shape_of(tensor), 1)), classes), DType.I64)


@spelled("torch.nn.functional.pixel_shuffle", "torch.pixel_shuffle", examples=[example("F.pixel_shuffle(x, 2)", x="f32[1, 8, 2, 3]")])
def pixel_shuffle(b: Builder, input, upscale_factor):
    *lead, c, h, w = shape_of(input)
    r, n = upscale_factor, len(lead)
    channels = exact_quotient(c, r * r)
    if channels is None:
        raise TypeRuleError(f"pixel_shuffle of {input.type} by {r}", f"a number of channels that {r * r} divides")
    x = reshaped(b, input, (*lead, channels, r, r, h, w))
    x = b.emit("transpose", x, axes=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshaped(b, x, (*lead, channels, h * r, w * r))


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
    from .shape import chunk
    value, gate = chunk(b, input, 2, dim)
    return b.emit("mul", value, b.emit("sigmoid", gate))


@spelled("torch.nn.functional.dropout", "torch.dropout")
def dropout(b: Builder, input, p=0.5, training=True, inplace=False):
    if training and p != 0:
        raise unsupported("dropout while training, which is random", "training=False, or model.eval()")
    return input


@spelled("torch.nn.functional.normalize", examples=[example("F.normalize(x, dim=-1)", x="f32[2, 3]")])
def normalize(b: Builder, input, p=2.0, dim=1, eps=1e-12):
    length = fold(b, "norm", input, dim, True, p=float(p))
    return b.emit("div", input, b.emit("maximum", length, b.constant(eps, dtype_of(input))))
