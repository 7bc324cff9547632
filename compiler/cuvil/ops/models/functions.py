"""Functions of elements that have no accurate form in CIR, or none at all: the gamma and Bessel families, bits, copysign, gcd."""
from __future__ import annotations

from ...ir.function import Op
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import TypeRuleError, typed
from ..rules import broadcast, broadcastable
from .forms import floats, like, need_floats


def _named(names: str, *homes: str) -> list[str]:
    return [f"{home}.{name}" for home in homes for name in names.split()]


def _floating(b: Builder, input):
    return like(input, floats(b, input))


typed(*_named("erfc erfinv lgamma digamma i0 sinc", "torch", "torch.Tensor"))(_floating)
typed(*_named("erfc erfinv erfcx i0 i0e i1 i1e entr gammaln digamma psi ndtri log_ndtr ndtr sinc bessel_j0 bessel_j1 bessel_y0 bessel_y1 "
              "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 airy_ai", "torch.special"))(_floating)


@typed("numpy.i0", "numpy.sinc", "numpy.spacing", "numpy.cbrt")
def numpy_floating(b: Builder, x):
    return like(x, floats(b, x))


@typed("torch.mvlgamma", "torch.Tensor.mvlgamma", "torch.special.multigammaln")
def mvlgamma(b: Builder, input, p):
    return like(input, floats(b, input))


@typed("torch.polygamma", "torch.special.polygamma")
def polygamma(b: Builder, n, input):
    return like(input, floats(b, input))


@typed("torch.Tensor.polygamma")
def polygamma_method(b: Builder, self, n):
    return like(self, floats(b, self))


@typed("torch.frac", "torch.Tensor.frac")
def frac(b: Builder, input):
    need_floats("frac", input)
    return input.type


@typed("torch.sgn", "torch.Tensor.sgn")
def sgn(b: Builder, input):
    return input.type


@typed("torch.signbit", "torch.Tensor.signbit", instead="x < 0")
def signbit(b: Builder, input):
    return like(input, DType.BOOL)


@typed("numpy.signbit", instead="x < 0")
def numpy_signbit(b: Builder, x):
    return like(x, DType.BOOL)


@typed(*_named("isposinf isneginf isreal", "torch"), *_named("isneginf isposinf isreal", "torch.Tensor"))
def is_infinite(b: Builder, input):
    return like(input, DType.BOOL)


@typed("numpy.isposinf", "numpy.isneginf", "numpy.isreal", "numpy.iscomplex")
def numpy_is(b: Builder, x):
    return like(x, DType.BOOL)


@typed("torch.frexp", "torch.Tensor.frexp")
def frexp(b: Builder, input):
    need_floats("frexp", input)
    return input.type, like(input, DType.I32)


@typed("numpy.frexp")
def numpy_frexp(b: Builder, x):
    return like(x, floats(b, x)), like(x, DType.I32)


@typed("numpy.modf")
def modf(b: Builder, x):
    return (like(x, floats(b, x)),) * 2


@typed("numpy.divmod")
def numpy_divmod(b: Builder, x1, x2):
    return (_two(b, x1, x2),) * 2


# --- of two operands ------------------------------------------------------------------------------------------------

def _type(x):
    return x.type if isinstance(x, Op) else x


def _two(b: Builder, x, y, floating: bool = False, what: str = "operands") -> TensorType:
    if floating and b.library == "numpy":                                # each operand becomes floats before they meet
        dtype = b.common_dtype([like(v, floats(b, v)) if isinstance(v, Op) else v for v in (x, y)])
    else:
        dtype = b.common_dtype([_type(x), _type(y)])
    if floating and dtype is not None and not dtype.is_float:
        dtype = DType.F32
    return TensorType(broadcast([v.type for v in (x, y) if isinstance(v, Op)], what), dtype)


@typed(*_named("copysign logaddexp2 nextafter", "torch"), *_named("copysign logaddexp2 nextafter", "torch.Tensor"))
def copysign(b: Builder, input, other):
    return _two(b, input, other, True)


@typed("torch.ldexp", "torch.Tensor.ldexp")
def ldexp(b: Builder, input, other):
    return _two(b, input, other, True)


@typed("torch.float_power", "torch.Tensor.float_power")
def float_power(b: Builder, input, exponent):
    return TensorType(broadcast([v.type for v in (input, exponent) if isinstance(v, Op)], "float_power"), DType.F64)


@typed("torch.gcd", "torch.lcm", "torch.Tensor.gcd", "torch.Tensor.lcm")
def gcd(b: Builder, input, other):
    for x in (input, other):
        if isinstance(x, Op) and x.type.dtype is not None and x.type.dtype.is_float:
            raise TypeRuleError(f"gcd of {x.type}", "integers", "dtype-mismatch")
    return _two(b, input, other)


@typed("torch.special.xlog1py", "torch.special.zeta")
def xlog1py(b: Builder, input, other):
    return _two(b, input, other, True)


@typed("torch.igamma", "torch.igammac", "torch.special.gammainc", "torch.special.gammaincc", "torch.Tensor.igamma", "torch.Tensor.igammac")
def igamma(b: Builder, input, other):
    for x in (input, other):
        need_floats("igamma", x)
    return _two(b, input, other)


@typed("torch.isclose", "torch.Tensor.isclose")
def isclose(b: Builder, input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if None not in (input.type.dtype, other.type.dtype) and input.type.dtype != other.type.dtype:
        raise TypeRuleError(f"isclose of {input.type} with {other.type}: the element types differ", "operands of one element type", "dtype-mismatch")
    return TensorType(broadcast([input.type, other.type], "isclose"), DType.BOOL)


@typed("numpy.isclose")
def numpy_isclose(b: Builder, a, c, rtol=1e-05, atol=1e-08, equal_nan=False):
    return TensorType(broadcast([v.type for v in (a, c) if isinstance(v, Op)], "isclose"), DType.BOOL)


for _name in ("copysign", "logaddexp2", "nextafter"):
    typed(f"numpy.{_name}")(lambda b, x1, x2: _two(b, x1, x2, True))
for _name in ("gcd", "lcm"):
    typed(f"numpy.{_name}")(lambda b, x1, x2: _two(b, x1, x2))


@typed("numpy.ldexp")
def numpy_ldexp(b: Builder, x1, x2):
    return TensorType(broadcast([v.type for v in (x1, x2) if isinstance(v, Op)], "ldexp"), floats(b, x1))


# --- activations ----------------------------------------------------------------------------------------------------

@typed("torch.celu", "torch.nn.functional.celu")
def celu(b: Builder, input, alpha=1.0, inplace=False):
    need_floats("celu", input)
    return input.type


@typed("torch.rrelu", "torch.nn.functional.rrelu")
def rrelu(b: Builder, input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False):
    need_floats("rrelu", input)
    return input.type


@typed("torch.hardshrink", "torch.nn.functional.hardshrink", "torch.nn.functional.softshrink", "torch.Tensor.hardshrink")
def hardshrink(b: Builder, input, lambd=0.5):
    need_floats("a shrinking", input)
    return input.type


@typed("torch.nn.functional.gumbel_softmax", instead="random values made by the caller")
def gumbel_softmax(b: Builder, logits, tau=1, hard=False, eps=1e-10, dim=-1):
    need_floats("gumbel_softmax", logits)
    b.axis(dim, logits)
    return logits.type


@typed(*(f"torch.nn.functional.{n}" for n in ("dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")),
       "torch.alpha_dropout", "torch.feature_dropout")
def dropout(b: Builder, input, p=0.5, training=True, inplace=False):
    return input.type


@typed("torch.fake_quantize_per_tensor_affine")
def fake_quantize(b: Builder, input, scale, zero_point, quant_min, quant_max):
    return input.type


@typed("torch.fake_quantize_per_channel_affine")
def fake_quantize_channels(b: Builder, input, scale, zero_point, axis, quant_min, quant_max):
    return input.type


@typed("torch.Tensor.fill", "torch.Tensor.zero", "torch.Tensor.fill_diagonal")
def filled(b: Builder, input, *values, **more):
    return input.type


@typed("torch.Tensor.copy")
def copy(b: Builder, self, src, non_blocking=False):
    """x.copy_(y): y is broadcast to x and cast."""
    if isinstance(src, Op) and src.type.shape is not None and self.type.shape is not None:
        if not broadcastable(src.type.shape, self.type.shape):
            raise TypeRuleError(f"copy_ of {src.type} into {self.type}", "a source that broadcasts to the target")
    return self.type
