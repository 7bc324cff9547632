"""Mathematical functions that are made of others: inverse trigonometric and hyperbolic functions, hypot, xlogy, logit, logaddexp.

Each formula keeps relative accuracy where the textbook one loses it, and does not overflow where the result would not.
"""
from __future__ import annotations

import math

from ..ir.function import Op
from ..ir.types import TensorType
from .activations import through
from .arithmetic import arithmetic, float_operand, is_number
from .builder import Builder
from .composite import composite
from .definition import TypeRuleError, example, spelled
from .rules import broadcast, common, dtype_of, float_only

LARGE = 1e8                                     # beyond it x^2 + 1 is x^2 in every float type, and x^2 may overflow


def _c(b: Builder, value: float, x: Op) -> Op:
    return b.constant(value, x.type.dtype)


def _leg(b, x):
    """sqrt(1 - x^2), exact where |x| is near 1."""
    return b.emit("sqrt", b.emit("mul", b.emit("sub", _c(b, 1.0, x), x), b.emit("add", _c(b, 1.0, x), x)))


def _asin(b, x, attrs):
    return b.emit("atan2", x, _leg(b, x))


def _acos(b, x, attrs):
    return b.emit("atan2", _leg(b, x), x)


def _asinh(b, x, attrs):
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1))) of a = |x|; log(a) + log 2 for large a."""
    a = b.emit("abs", x)
    square = b.emit("mul", a, a)
    root = b.emit("add", _c(b, 1.0, x), b.emit("sqrt", b.emit("add", square, _c(b, 1.0, x))))
    small = b.emit("log1p", b.emit("add", a, b.emit("div", square, root)))
    large = b.emit("add", b.emit("log", a), _c(b, math.log(2), x))
    size = b.emit("select", b.emit("gt", a, _c(b, LARGE, x)), large, small)
    signed = b.emit("select", b.emit("lt", x, _c(b, 0.0, x)), b.emit("neg", size), size)
    return b.emit("select", b.emit("eq", x, _c(b, 0.0, x)), x, signed)


def _acosh(b, x, attrs):
    """log1p(t + sqrt(2t + t^2)) of t = x - 1; log(x) + log 2 for large x; NaN below 1."""
    t = b.emit("sub", x, _c(b, 1.0, x))
    root = b.emit("sqrt", b.emit("add", b.emit("mul", t, _c(b, 2.0, x)), b.emit("mul", t, t)))
    large = b.emit("add", b.emit("log", x), _c(b, math.log(2), x))
    return b.emit("select", b.emit("gt", x, _c(b, LARGE, x)), large, b.emit("log1p", b.emit("add", t, root)))


def _atanh(b, x, attrs):
    """(log1p(x) - log1p(-x)) / 2"""
    return b.emit("mul", _c(b, 0.5, x), b.emit("sub", b.emit("log1p", x), b.emit("log1p", b.emit("neg", x))))


for _name, _decompose, _summary, _torch, _numpy, _scale in (
        ("asin", _asin, "the inverse sine", "asin arcsin", "arcsin asin", "x.clip(-1, 1)"),
        ("acos", _acos, "the inverse cosine", "acos arccos", "arccos acos", "x.clip(-1, 1)"),
        ("asinh", _asinh, "the inverse hyperbolic sine", "asinh arcsinh", "arcsinh asinh", "x * 30"),
        ("acosh", _acosh, "the inverse hyperbolic cosine", "acosh arccosh", "arccosh acosh", "x * 9"),
        ("atanh", _atanh, "the inverse hyperbolic tangent", "atanh arctanh", "arctanh atanh", "x / 3")):
    composite(_name, float_only(_name), through(_decompose), _summary,
              [example(f"torch.{_name}({_scale})", x="f32[30]"), example(f"torch.{_name}(x)", x="f64[9]"),
               example(f"np.{_numpy.split()[0]}({_scale})", x="f32[9]")])
    spelled(*(f"torch.{n}" for n in _torch.split()), *(f"torch.Tensor.{n}" for n in _torch.split()), *(f"numpy.{n}" for n in _numpy.split()))(
        lambda b, x, *, _name=_name: b.emit(_name, float_operand(b, x)))


def _infer_two(name: str):
    def infer(operands, attrs):
        return TensorType(broadcast(operands, name), common(operands, name))
    return infer


def _hypot(b: Builder, operands, attrs):
    """m sqrt(1 + (n / m)^2) of m = max(|x|, |y|), n = min(|x|, |y|): squares do not overflow."""
    x, y = b.emit("abs", operands[0]), b.emit("abs", operands[1])
    m, n = b.emit("maximum", x, y), b.emit("minimum", x, y)
    ratio = b.emit("div", n, m)
    size = b.emit("mul", m, b.emit("sqrt", b.emit("add", _c(b, 1.0, m), b.emit("mul", ratio, ratio))))
    infinite = b.emit("or", b.emit("isinf", x), b.emit("isinf", y))                 # also when the other is NaN
    return b.emit("select", infinite, _c(b, math.inf, m), b.emit("select", b.emit("eq", m, _c(b, 0.0, m)), m, size))


composite("hypot", _infer_two("hypot"), _hypot, "sqrt(x^2 + y^2), without overflow",
          [example("torch.hypot(x, y)", x="f32[9]", y="f32[9]"), example("np.hypot(x * 1e30, y * 1e30)", x="f32[9]", y="f32[9]"),
           example("torch.hypot(x * 0, y * 0)", x="f32[3]", y="f32[3]")],
          arity=2)


def _logaddexp(b: Builder, operands, attrs):
    """m + log1p(exp(-|x - y|)) of m = max(x, y); m alone where both are the same infinity."""
    x, y = operands
    m, gap = b.emit("maximum", x, y), b.emit("neg", b.emit("abs", b.emit("sub", x, y)))
    total = b.emit("add", m, b.emit("log1p", b.emit("exp", gap)))
    return b.emit("select", b.emit("and", b.emit("isinf", m), b.emit("eq", x, y)), m, total)


composite("logaddexp", _infer_two("logaddexp"), _logaddexp, "log(exp(x) + exp(y)), without overflow",
          [example("torch.logaddexp(x, y)", x="f32[9]", y="f32[9]"), example("np.logaddexp(x, y)", x="f64[9]", y="f64[9]")], arity=2)

def _of_two(b: Builder, name: str, input, other):
    if b.library == "numpy":                                         # each operand becomes floats before they meet
        return b.emit(name, *b.promote(*(v if is_number(v) else float_operand(b, v) for v in (input, other))))
    x, y = b.promote(input, other)
    if x.type.dtype is not None and not x.type.dtype.is_float:
        raise TypeRuleError(f"{name} of {x.type}", "floating-point elements; cast with .float() first", "dtype-mismatch")
    return b.emit(name, x, y)


for _name in ("hypot", "logaddexp"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}", f"numpy.{_name}")(lambda b, input, other, *, _name=_name: _of_two(b, _name, input, other))


@spelled("torch.xlogy", "torch.Tensor.xlogy", "torch.special.xlogy", examples=[example("torch.xlogy(x.trunc(), y)", x="f32[9]", y="f32[9]")])
def xlogy(b: Builder, input, other):
    """x log(y); 0 where x is 0, unless y is NaN."""
    x, y = (float_operand(b, v) for v in b.promote(input, other))
    zero = b.constant(0.0, dtype_of(x))
    plain = b.emit("select", b.emit("eq", x, zero), zero, b.emit("mul", x, b.emit("log", y)))
    return b.emit("select", b.emit("isnan", y), y, plain)


@spelled("torch.logit", "torch.Tensor.logit", "torch.special.logit",
         examples=[example("torch.logit(x.sigmoid())", x="f32[9]"), example("torch.logit(x, eps=1e-3)", x="f32[9]")])
def logit(b: Builder, input, eps=None):
    x = float_operand(b, input)
    if eps is not None:
        x = b.emit("minimum", b.emit("maximum", x, b.constant(eps, dtype_of(x))), b.constant(1 - eps, dtype_of(x)))
    return b.emit("log", b.emit("div", x, b.emit("sub", b.constant(1.0, dtype_of(x)), x)))


for _name, _factor in (("deg2rad", math.pi / 180), ("rad2deg", 180 / math.pi)):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}", f"numpy.{_name}", *({"deg2rad": ("numpy.radians",), "rad2deg": ("numpy.degrees",)}[_name]),
            examples=[example(f"torch.{_name}(x)", x="f32[4]"), example(f"np.{_name}(x)", x="f64[4]")])(
        lambda b, x, *, _factor=_factor: arithmetic(b, "mul", float_operand(b, x), _factor))


@spelled("torch.heaviside", "torch.Tensor.heaviside", "numpy.heaviside", examples=[example("torch.heaviside(x.trunc(), y)", x="f32[9]", y="f32[9]")])
def heaviside(b: Builder, input, values):
    x, y = b.promote(input, values)
    zero = b.constant(0, dtype_of(x))
    step = b.emit("select", b.emit("gt", x, zero), b.constant(1, dtype_of(x)), zero)
    result = b.emit("select", b.emit("eq", x, zero), y, step)
    return b.emit("select", b.emit("isnan", x), x, result) if dtype_of(x).is_float and b.library == "numpy" else result
