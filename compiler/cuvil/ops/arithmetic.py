"""How torch, NumPy and Python's operators say arithmetic and mathematical functions.

A spelling does what the libraries do before the elements meet: promote, turn Python numbers into constants of the tensor's
dtype, and put casts where they are.
"""
from __future__ import annotations

import math
from typing import Any

from ..diagnostics import CuvilError
from ..ir.dims import Poly
from ..ir.function import Op
from ..ir.scalar import Const, apply
from ..ir.types import DType
from .builder import Builder, number
from .definition import TypeRuleError, example, spelled, unsupported
from .movement import movement
from .promotion import default_float
from .rules import dtype_of, same

# --- functions of one operand ---------------------------------------------------------------------------------------


def float_operand(b: Builder, x: Any):
    """x as the floats a mathematical function works on: torch takes its default dtype, NumPy the smallest that holds the integers."""
    x = b.tensor(x)
    dtype = x.type.dtype
    if dtype is None or dtype.is_float:
        return x
    if b.library != "numpy":
        return b.cast(x, default_float(b.library))
    return b.cast(x, DType.F16 if dtype.size == 1 else DType.F32 if dtype.size == 2 else DType.F64)


def _unary(name: str, torch: str, numpy: str, operand) -> None:
    names = [f"torch.{n}" for n in torch.split()] + [f"torch.Tensor.{n}" for n in torch.split()]
    spelled(*names, *(("torch.special." + torch.split()[0],) if name in ("erf", "exp2", "expm1", "log1p") else ()))(
        lambda b, input: b.emit(name, operand(b, input)))
    if numpy:
        spelled(*(f"numpy.{n}" for n in numpy.split()))(lambda b, x: b.emit(name, operand(b, x)))


for _name, _torch, _numpy in (
        ("exp", "exp", "exp"), ("exp2", "exp2", "exp2"), ("expm1", "expm1", "expm1"), ("log", "log", "log"), ("log2", "log2", "log2"),
        ("log1p", "log1p", "log1p"), ("sqrt", "sqrt", "sqrt"), ("rsqrt", "rsqrt", ""), ("sin", "sin", "sin"), ("cos", "cos", "cos"),
        ("tan", "tan", "tan"), ("tanh", "tanh", "tanh"), ("erf", "erf", ""), ("atan", "atan arctan", "arctan atan"),
        ("sinh", "sinh", "sinh"), ("cosh", "cosh", "cosh")):
    _unary(_name, _torch, _numpy, float_operand)
spelled("torch.nn.functional.tanh")(lambda b, input: b.emit("tanh", float_operand(b, input)))


@spelled("torch.reciprocal", "torch.Tensor.reciprocal", examples=[example("torch.reciprocal(x)", x="i32[4]")])
def reciprocal(b: Builder, input):
    return b.emit("reciprocal", float_operand(b, input))


@spelled("numpy.reciprocal")
def numpy_reciprocal(b: Builder, x):
    if not dtype_of(x).is_float:
        raise unsupported("np.reciprocal of integers", "1 / x", (x.type,))
    return b.emit("reciprocal", x)


@spelled("torch.log10", "torch.Tensor.log10", "numpy.log10", examples=[example("torch.log10(x)", x="f32[4]")])
def log10(b: Builder, x):
    x = float_operand(b, x)
    return b.emit("mul", b.emit("log2", x), b.constant(math.log10(2), dtype_of(x)))


@spelled("torch.round", "torch.Tensor.round", examples=[example("torch.round(x)", x="f16[9]"), example("torch.round(x, decimals=1)", x="f32[9]")])
def torch_round(b: Builder, input, decimals: int = 0):
    if input.type.dtype is None and not decimals:
        return b.emit("round", input)
    if dtype_of(input) == DType.BOOL:
        raise TypeRuleError("round of bool elements", "numbers", "dtype-mismatch")
    if not dtype_of(input).is_float:
        return input
    if not decimals:
        return b.emit("round", input)
    if dtype_of(input).size < 4:
        raise unsupported(f"round to decimals of {input.type}")
    ten = b.constant(10.0 ** abs(decimals), dtype_of(input))        # ATen: round(x * 10^d) / 10^d
    away, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return b.emit(back, b.emit("round", b.emit(away, input, ten)), ten)


@spelled("numpy.round", "numpy.around", "numpy.ndarray.round", examples=[example("np.round(x)", x="f32[9]"), example("x.round(2)", x="f64[9]")])
def numpy_round(b: Builder, a, decimals: int = 0):
    return torch_round(b, a, decimals)


@spelled("numpy.rint")
def rint(b: Builder, x):
    return b.emit("round", float_operand(b, x))


def _integral(name: str):
    """floor, ceil, trunc: integers are already what they would become."""
    def spell(b: Builder, x):
        x = b.tensor(x)
        if x.type.dtype == DType.BOOL and b.library != "numpy":
            raise TypeRuleError(f"{name} of {x.type}", "numbers", "dtype-mismatch")
        return x if x.type.dtype is not None and not x.type.dtype.is_float else b.emit(name, x)
    return spell


for _name, _aliases in (("floor", ()), ("ceil", ()), ("trunc", ("torch.fix", "torch.Tensor.fix", "numpy.fix"))):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}", f"numpy.{_name}", *_aliases,
            examples=[example(f"torch.{_name}(x)", x="f32[9]"), example(f"torch.{_name}(x)", x="i32[4]")])(_integral(_name))


@spelled("torch.neg", "torch.negative", "torch.Tensor.neg", "torch.Tensor.negative", "numpy.negative", "operator.neg")
def neg(b: Builder, x):
    if x.type.dtype == DType.BOOL:
        raise TypeRuleError(f"negation of {x.type}", "numbers; for bool elements ~x", "dtype-mismatch")
    return b.emit("neg", x)


@spelled("operator.pos", "torch.positive", "numpy.positive")
def positive(b: Builder, x):
    if x.type.dtype == DType.BOOL:
        raise TypeRuleError(f"+ of {x.type}", "numbers", "dtype-mismatch")
    return x


@spelled("torch.abs", "torch.absolute", "torch.Tensor.abs", "numpy.abs", "numpy.absolute", "builtins.abs", "operator.abs")
def absolute(b: Builder, x):
    if x.type.dtype == DType.BOOL and b.library != "numpy":
        raise TypeRuleError(f"abs of {x.type}", "numbers", "dtype-mismatch")
    return x if x.type.dtype in (DType.BOOL, DType.U8) else b.emit("abs", x)


@spelled("numpy.fabs", examples=[example("np.fabs(x)", x="i32[4]")])
def fabs(b: Builder, x):
    return b.emit("abs", float_operand(b, x))


@spelled("torch.sign", "torch.Tensor.sign", "numpy.sign")
def sign(b: Builder, x):
    if x.type.dtype == DType.BOOL:
        return x
    result = b.emit("sign", x)
    if b.library == "numpy" and dtype_of(x).is_float:               # np.sign(nan) is nan, torch.sign(nan) is 0
        return b.emit("select", b.emit("isnan", x), x, result)
    return result


@spelled("torch.square", "torch.Tensor.square", "numpy.square")
def square(b: Builder, x):
    return arithmetic(b, "mul", x, x)


# --- of two operands ------------------------------------------------------------------------------------------------

def arithmetic(b: Builder, name: str, x, y):
    """A binary op after promotion; on bools addition is `or` and multiplication `and`, in both libraries."""
    if b.library == "numpy" and b.numpy[0] >= 2:                    # NEP 50: an OverflowError; torch wraps
        for value, other in ((x, y), (y, x)):
            fits(value, other.type.dtype if isinstance(other, Op) else None, f"{name} of {getattr(other, 'type', other)}")
    x, y = b.promote(x, y)
    if x.type.dtype == DType.BOOL == y.type.dtype:
        if name in ("sub", "neg"):
            raise TypeRuleError(f"subtraction of {x.type} and {y.type}", "numbers; for bool elements ^ or logical_xor", "dtype-mismatch")
        name = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}.get(name, name)
    return b.emit(name, x, y)


def _scaled(b: Builder, y, alpha):
    return y if isinstance(alpha, (int, float)) and alpha == 1 else arithmetic(b, "mul", y, alpha) if not is_number(y) else y * alpha


def fits(value, dtype: DType | None, what: str) -> None:
    """A Python integer beyond an integer type, which both libraries refuse where they do not wrap."""
    if isinstance(value, int) and dtype is not None and dtype.is_int and number(value, dtype) != value:
        raise TypeRuleError(f"{what} with {value}", f"a number that {dtype.numpy} holds", "argument")


def is_number(x) -> bool:
    return isinstance(x, (bool, int, float, Poly))


@spelled("torch.add", "torch.Tensor.add")
def torch_add(b: Builder, input, other, alpha=1):
    return arithmetic(b, "add", input, _scaled(b, other, alpha))


@spelled("torch.sub", "torch.subtract", "torch.Tensor.sub", "torch.Tensor.subtract")
def torch_sub(b: Builder, input, other, alpha=1):
    return arithmetic(b, "sub", input, _scaled(b, other, alpha))


@spelled("torch.rsub")
def rsub(b: Builder, input, other, alpha=1):
    return arithmetic(b, "sub", other, _scaled(b, input, alpha))


@spelled("torch.mul", "torch.multiply", "torch.Tensor.mul", "torch.Tensor.multiply")
def torch_mul(b: Builder, input, other):
    return arithmetic(b, "mul", input, other)


for _name, _numpy in (("add", "add"), ("sub", "subtract"), ("mul", "multiply")):
    spelled(f"operator.{_name}", f"operator.i{_name}", f"numpy.{_numpy}")(lambda b, x, y, *, _name=_name: arithmetic(b, _name, x, y))


@spelled("operator.truediv", "operator.itruediv", "numpy.divide", "numpy.true_divide")
def truediv(b: Builder, x, y):
    x, y = b.promote(x, y)
    if x.type.dtype is not None and y.type.dtype is not None and not x.type.dtype.is_float:
        x, y = (b.cast(v, default_float(b.library)) for v in (x, y))
    return b.emit("div", x, y)


@spelled("torch.div", "torch.divide", "torch.Tensor.div", "torch.Tensor.divide")
def torch_div(b: Builder, input, other, rounding_mode=None):
    if rounding_mode is None:
        return truediv(b, input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise TypeRuleError(f"div with rounding_mode {rounding_mode!r}", "None, 'floor' or 'trunc'", "argument")
    return floordiv(b, input, other) if rounding_mode == "floor" else _division(b, "truncdiv", input, other)


@spelled("torch.true_divide", "torch.Tensor.true_divide")
def true_divide(b: Builder, dividend, divisor):
    return truediv(b, dividend, divisor)


def _nonzero(arrays, attrs):
    if not arrays[0].all():
        raise CuvilError("integer division by zero", expected="divisors that are not zero")
    return arrays[0]


movement("checked_divisor", same, _nonzero, lambda type, operands, attrs, index, read: read(0, index),
         "the operand, whose elements must not be zero: torch raises where NumPy gives 0",
         [example("x // y", x="i32[2, 3]", y="i32[3]"), example("torch.remainder(x, y)", x="i64[4]", y="i64[4]")],
         guard=lambda type, operands, attrs, index, read: apply("ne", read(0, index), Const(0, type.dtype)), fails="integer division by zero")


def _division(b: Builder, name: str, x, y):
    """Of integers by a tensor the divisor is checked, as torch does; NumPy gives 0."""
    checked = isinstance(y, Op) and b.library != "numpy"
    x, y = b.promote(x, y)
    if x.type.dtype == DType.BOOL:
        raise unsupported(f"{name} of bool elements")
    whole = x.type.dtype is not None and x.type.dtype.is_int
    if whole and y.name == "constant" and y.attr("value") == 0:
        raise TypeRuleError(f"integer {'remainder' if name == 'mod' else 'division'} of {x.type} by zero", "a divisor that is not zero", "argument")
    return b.emit(name, x, b.emit("checked_divisor", y) if whole and checked else y)


@spelled("operator.floordiv", "operator.ifloordiv", "torch.floor_divide", "torch.Tensor.floor_divide", "numpy.floor_divide")
def floordiv(b: Builder, x, y):
    return _division(b, "floordiv", x, y)


@spelled("operator.mod", "operator.imod", "torch.remainder", "torch.Tensor.remainder", "numpy.mod", "numpy.remainder")
def mod(b: Builder, x, y):
    return _division(b, "mod", x, y)


@spelled("torch.fmod", "torch.Tensor.fmod", "numpy.fmod")
def fmod(b: Builder, x, y):
    """C's remainder, with the dividend's sign: of floats exact from the remainder of the absolute values."""
    x, y = b.promote(x, y)
    dtype = dtype_of(x)
    if dtype == DType.BOOL:
        raise unsupported("fmod of bool elements")
    if not dtype.is_float:
        return b.emit("sub", x, b.emit("mul", _division(b, "truncdiv", x, y), y))
    zero = b.constant(0, dtype)
    rest = b.emit("mod", b.emit("abs", x), b.emit("abs", y))
    signed = b.emit("select", b.emit("lt", x, zero), b.emit("neg", rest), rest)
    return b.emit("select", b.emit("and", b.emit("eq", x, zero), b.emit("eq", rest, zero)), x, signed)      # fmod(-0.0, y) is -0.0


@spelled("operator.pow", "operator.ipow", "numpy.power", "numpy.pow")
def power(b: Builder, x, y):
    """Small constant exponents become what ATen and NumPy compute for them."""
    if isinstance(y, (int, float)) and not isinstance(y, bool) and not is_number(x):
        dtype = b.common_dtype([x.type, y])
        if dtype is not None and dtype != DType.BOOL:
            x = b.cast(x, dtype)
            if isinstance(y, int) and y < 0 and not dtype.is_float:
                raise TypeRuleError(f"{x.type} to the power {y}", "a float base: integers to negative powers are not allowed", "argument")
            if y == 2:
                return b.emit("mul", x, x)
            if y == 1:
                return x
            if dtype.is_float and y in (0.5, -1):
                return b.emit({0.5: "sqrt", -1: "reciprocal"}[y], x)
            if dtype.is_float and b.library != "numpy" and y in (3, -2, -0.5):
                if y == -0.5:
                    return b.emit("rsqrt", x)
                squared = b.emit("mul", x, x)
                return b.emit("mul", squared, x) if y == 3 else b.emit("reciprocal", squared)
    x, y = b.promote(x, y)
    if x.type.dtype == DType.BOOL:
        raise unsupported("powers of bool elements")
    return b.emit("pow", x, y)


@spelled("numpy.float_power", examples=[example("np.float_power(x, 3)", x="i32[4]")])
def float_power(b: Builder, x1, x2):
    return b.emit("pow", *(b.cast(v, DType.F64) for v in b.promote(x1, x2)))


@spelled("torch.pow", "torch.Tensor.pow")
def torch_pow(b: Builder, input, exponent):
    return power(b, input, exponent)


@spelled("torch.atan2", "torch.arctan2", "torch.Tensor.atan2", "numpy.arctan2", "numpy.atan2")
def atan2(b: Builder, input, other):
    if b.library == "numpy":                                         # each operand becomes floats before they meet
        input, other = (v if is_number(v) else float_operand(b, v) for v in (input, other))
    x, y = b.promote(input, other)
    return b.emit("atan2", float_operand(b, x), float_operand(b, y))


@spelled("torch.addcmul", "torch.Tensor.addcmul", examples=[example("torch.addcmul(x, y, x, value=0.5)", x="f32[4]", y="f32[4]")])
def addcmul(b: Builder, input, tensor1, tensor2, value=1):
    return arithmetic(b, "add", input, _scaled(b, arithmetic(b, "mul", tensor1, tensor2), value))


@spelled("torch.addcdiv", "torch.Tensor.addcdiv")
def addcdiv(b: Builder, input, tensor1, tensor2, value=1):
    return arithmetic(b, "add", input, _scaled(b, truediv(b, tensor1, tensor2), value))


@spelled("torch.lerp", "torch.Tensor.lerp", examples=[example("torch.lerp(x, y, 0.3)", x="f32[4]", y="f32[4]")])
def lerp(b: Builder, input, end, weight):
    known = {v.type.dtype for v in (input, end, weight) if isinstance(v, Op)}
    if len(known) > 1 and None not in known:
        raise TypeRuleError(f"lerp of {input.type} with {end.type}: the element types differ", "operands of one element type", "dtype-mismatch")
    return arithmetic(b, "add", input, arithmetic(b, "mul", arithmetic(b, "sub", end, input), weight))
