"""Arithmetic on elements: the primitives of ir/scalar.py as ops, and how torch, NumPy and Python's operators say them.

An elementwise op takes operands of one dtype and broadcasts them. Spellings do what the libraries do before that:
promote, turn Python numbers into constants of the tensor's dtype, and put casts where they are.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.dims import Poly
from ..ir.function import Op
from ..ir.scalar import BINARY, COMPARE, UNARY
from ..ir.types import DType, TensorType
from .builder import Builder, number
from .definition import ELEMENTWISE, FLOPS, TypeRuleError, define, example, spelled, unsupported
from .promotion import common_dtype, default_float
from .rules import broadcast, common, dtype_of, numel, shapes

FLOAT_ONLY = frozenset(("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "atan",
                        "sinh", "cosh", "reciprocal", "div", "atan2", "isnan", "isinf", "floor", "ceil", "round", "trunc"))
BITS = frozenset(("not", "and", "or", "xor", "shl", "shr"))


# --- what the primitives mean, in NumPy -----------------------------------------------------------------------------

def _mod(a, b):
    """Remainder with the divisor's sign (Python's %), by C's fmod for floats as ATen does it."""
    if a.dtype.kind != "f":
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _truncdiv(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)).astype(a.dtype)


def _pow(a, b):
    """Integer powers wrap; a negative exponent gives the truncated quotient, as ATen's powi does."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    positive = np.power(a, np.maximum(b, 0))
    inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b % 2), 0)).astype(a.dtype) if a.dtype.kind == "i" else positive
    return np.where(b < 0, inverse, positive)


def _sign(x):
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


_erf = np.frompyfunc(math.erf, 1, 1)

MEANING = {
    "neg": np.negative, "abs": np.abs, "not": np.invert, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "erf": lambda x: np.asarray(_erf(x)).astype(x.dtype),
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "isnan": np.isnan, "isinf": np.isinf,
    "sign": _sign, "reciprocal": np.reciprocal, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "floordiv": np.floor_divide,
    "truncdiv": _truncdiv, "mod": _mod, "pow": _pow, "maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}


def convert(x: np.ndarray, dtype: DType) -> np.ndarray:
    """An element type conversion as PyTorch does it on x86-64: float to integer truncates through i64 and wraps; bf16 is held in f32.

    Floats outside the integer's range have no defined value in C; this is what the hardware conversion gives."""
    if dtype == DType.BF16:
        return round_bf16(x.astype(np.float32))
    if dtype == DType.BOOL:
        return x != 0
    if x.dtype.kind == "f" and dtype.is_int:
        if dtype in (DType.I32, DType.I64):
            return x.astype(dtype.numpy)
        return x.astype(np.int64).astype(dtype.numpy)
    return x.astype(dtype.numpy)


def round_bf16(x: np.ndarray) -> np.ndarray:
    """f32 values rounded to the nearest bf16 (ties to even), still held in f32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded).reshape(x.shape)


# --- definitions ----------------------------------------------------------------------------------------------------

def _infer(name: str):
    def infer(operands, attrs):
        dtype = common(operands, name)
        if dtype is not None:
            if name in FLOAT_ONLY and not dtype.is_float or name in BITS and dtype.is_float:
                raise TypeRuleError(f"{name} of {shapes(operands)}", "floating-point elements" if name in FLOAT_ONLY else
                                    "integer or bool elements", "dtype-mismatch")
        result = DType.BOOL if name in COMPARE or name in ("isnan", "isinf") else dtype
        return TensorType(broadcast(operands, name), result)
    return infer


def _infer_select(operands, attrs):
    condition, *values = operands
    if condition.dtype not in (None, DType.BOOL):
        raise TypeRuleError(f"select by {condition}", "a bool condition", "dtype-mismatch")
    return TensorType(broadcast(operands, "select"), common(values, "select"))


def _infer_cast(operands, attrs):
    return TensorType(operands[0].shape, attrs["dtype"])


def _flops(name: str):
    return lambda type, operands, attrs: numel(type) * FLOPS.get(name, 1)


_EXAMPLES = {
    "rsqrt": [example("torch.rsqrt(x)", x="f32[2, 3]")], "erf": [example("torch.erf(x)", x="f32[2, 3]")],
    "sign": [example("torch.sign(x)", x="f32[2, 3]"), example("np.sign(x)", x="i32[4]")],
    "neg": [example("-x", x="f32[2, 3]"), example("torch.neg(x)", x="u8[4]"), example("np.negative(x)", x="i8[4]")],
    "abs": [example("torch.abs(x)", x="i8[4]"), example("abs(x)", x="f32[4]")],
    "atan2": [example("torch.atan2(x, y)", x="f32[9]", y="f32[9]")],
    "not": [example("~x", x="bool[4]"), example("torch.bitwise_not(x)", x="u8[4]"), example("np.logical_not(x)", x="f32[3]")],
    "add": [example("x + y", x="f32[2, 3]", y="f32[3]"), example("torch.add(x, y, alpha=2)", x="f32[2, 3]", y="f32[2, 1]"),
            example("x + 1", x="u8[4]"), example("x + 2.5", x="i32[4]"), example("x + y", x="bool[4]", y="bool[4]"),
            example("np.add(x, y)", x="i32[2, 3]", y="f32[3]")],
    "sub": [example("1.5 - x", x="f16[4]"), example("x - y", x="u8[4]", y="u8[4]"), example("torch.rsub(x, 3)", x="f32[4]")],
    "mul": [example("x * y", x="bf16[4]", y="bf16[4]"), example("x * y", x="i64[4]", y="f32[]"), example("x ** 2", x="f32[4]"),
            example("np.square(x)", x="i32[4]")],
    "div": [example("x / y", x="i32[4]", y="i32[4]"), example("np.divide(x, y)", x="i32[4]", y="i32[4]"), example("x / 3", x="f64[4]")],
    "floordiv": [example("x // y", x="i32[4]", y="i32[4]"), example("x // 0.3", x="f32[9]"),
                 example("torch.div(x, 3, rounding_mode='floor')", x="i64[4]"), example("np.floor_divide(x, y)", x="f32[4]", y="f32[4]")],
    "truncdiv": [example("torch.div(x, y, rounding_mode='trunc')", x="i32[9]", y="i32[9]"),
                 example("torch.div(x, 0.3, rounding_mode='trunc')", x="f32[9]")],
    "mod": [example("x % y", x="i32[4]", y="i32[4]"), example("torch.remainder(x, 0.7)", x="f32[9]"),
            example("np.mod(x, 3)", x="i8[9]"), example("torch.fmod(x, y)", x="f32[9]", y="f32[9]"), example("np.fmod(x, y)", x="i32[9]", y="i32[9]")],
    "pow": [example("x ** y", x="f32[4]", y="f32[4]"), example("torch.pow(x, 3)", x="f32[4]"), example("2 ** x", x="f32[4]"),
            example("x ** -0.5", x="f32[4]"), example("np.power(x, 1.7)", x="f64[4]"), example("x ** 5", x="i32[4]")],
    "maximum": [example("torch.maximum(x, y)", x="f32[4]", y="f32[4]"), example("torch.clamp(x, min=-0.25)", x="f32[4]"),
                example("torch.max(x, y)", x="i32[4]", y="i32[4]"), example("np.fmax(x, y)", x="f32[4]", y="f32[4]")],
    "minimum": [example("x.clamp(-0.5, 0.5)", x="f32[9]"), example("np.clip(x, -0.5, 0.5)", x="f32[9]"), example("x.clip(0, 3)", x="i64[9]"),
                example("torch.clamp(x, max=y)", x="f32[2, 3]", y="f32[3]"), example("torch.fmin(x, y)", x="f32[4]", y="f32[4]")],
    "and": [example("torch.logical_and(x, y)", x="f32[4]", y="i32[4]"), example("x & y", x="i32[4]", y="i32[4]"), example("x & 3", x="u8[4]")],
    "or": [example("np.logical_or(x, y)", x="f32[4]", y="i32[4]"), example("x | y", x="bool[4]", y="bool[4]")],
    "xor": [example("torch.logical_xor(x, y)", x="bool[4]", y="bool[4]"), example("x ^ y", x="i8[4]", y="i8[4]")],
    "shl": [example("x << 2", x="i32[4]")], "shr": [example("x >> 1", x="i32[4]")],
    "eq": [example("x == y", x="i32[4]", y="f32[4]")], "gt": [example("x > 0.5", x="i32[4]"), example("torch.gt(x, y)", x="f32[4]", y="f32[]")],
    "isnan": [example("torch.isnan(x)", x="f32[4]"), example("np.isfinite(x)", x="f32[4]"),
              example("torch.nan_to_num(x, nan=0.5)", x=np.array([np.nan, np.inf, -np.inf, 2.0], np.float32))],
}

_SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _default_examples(name: str):
    if name in COMPARE:
        return [example(f"x {_SYMBOLS[name]} y", x="i32[9]", y="f32[9]")]
    if name in FLOAT_ONLY and name in UNARY:
        return [example(f"torch.{name}(x)", x="f32[9]"), example(f"torch.{name}(x)", x="f16[9]"),
                *([] if name in ("rsqrt", "erf", "reciprocal", "round", "atan") else [example(f"np.{name}(x)", x="i16[9]")])]
    return []


for _name in (*UNARY, *BINARY, *COMPARE):
    define(_name, ELEMENTWISE, infer=_infer(_name), flops=_flops(_name),
           evaluate=lambda arrays, attrs, meaning=MEANING[_name]: meaning(*arrays),
           arity=1 if _name in UNARY else 2, summary=f"{_name} of elements", examples=(*_default_examples(_name), *_EXAMPLES.get(_name, ())))

define("select", ELEMENTWISE, infer=_infer_select, flops=_flops("select"), evaluate=lambda arrays, attrs: np.where(*arrays),
       arity=3, summary="the second operand's element where the condition holds, else the third's",
       examples=(example("torch.where(x > 0, x, y)", x="f32[2, 3]", y="f32[3]"), example("torch.where(m, x, 0)", m="bool[4]", x="f32[4]"),
                 example("np.where(m, 1.0, 0.0)", m="bool[4]"), example("np.where(m, x, 0)", m="bool[4]", x="f32[4]"),
                 example("x.masked_fill(m, float('-inf'))", m="bool[2, 1]", x="f32[2, 3]"), example("x.masked_fill(m, -9)", m="bool[4]", x="i64[4]")))
define("cast", ELEMENTWISE, infer=_infer_cast, flops=_flops("cast"), evaluate=lambda arrays, attrs: convert(arrays[0], attrs["dtype"]),
       summary="conversion of the element type",
       examples=(example("x.to(torch.int8)", x=np.array([300.0, 127.9, -128.9, -0.99], np.float32)), example("x.half()", x="f32[4]"),
                 example("x.bool().float()", x="f32[4]"), example("x.astype(np.int32)", x="f32[4]"), example("x.to(torch.bfloat16)", x="f32[9]"),
                 example("x.type(torch.float64)", x="f32[4]"), example("x.to('cpu').double()", x="f32[4]"), example("x.type_as(y)", x="i32[4]", y="f16[1]")))


# --- spellings ------------------------------------------------------------------------------------------------------

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
        raise unsupported("np.reciprocal of integers", "1 / x")
    return b.emit("reciprocal", x)


@spelled("torch.log10", "torch.Tensor.log10", "numpy.log10", examples=[example("torch.log10(x)", x="f32[4]")])
def log10(b: Builder, x):
    x = float_operand(b, x)
    return b.emit("mul", b.emit("log2", x), b.constant(math.log10(2), dtype_of(x)))


@spelled("torch.round", "torch.Tensor.round", examples=[example("torch.round(x)", x="f16[9]"), example("torch.round(x, decimals=1)", x="f32[9]")])
def torch_round(b: Builder, input, decimals: int = 0):
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
        return x if x.type.dtype is not None and not x.type.dtype.is_float else b.emit(name, x)
    return spell


for _name, _aliases in (("floor", ()), ("ceil", ()), ("trunc", ("torch.fix", "torch.Tensor.fix"))):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}", f"numpy.{_name}", *_aliases,
            examples=[example(f"torch.{_name}(x)", x="f32[9]"), example(f"torch.{_name}(x)", x="i32[4]")])(_integral(_name))


@spelled("torch.neg", "torch.negative", "torch.Tensor.neg", "torch.Tensor.negative", "numpy.negative", "operator.neg")
def neg(b: Builder, x):
    if x.type.dtype == DType.BOOL:
        raise TypeRuleError(f"negation of {x.type}", "numbers; for bool elements ~x", "dtype-mismatch")
    return b.emit("neg", x)


@spelled("operator.pos", "torch.positive", "numpy.positive")
def positive(b: Builder, x):
    return x


@spelled("torch.abs", "torch.absolute", "torch.Tensor.abs", "numpy.abs", "numpy.absolute", "numpy.fabs", "builtins.abs", "operator.abs")
def absolute(b: Builder, x):
    if x.type.dtype == DType.BOOL and b.library != "numpy":
        raise TypeRuleError(f"abs of {x.type}", "numbers", "dtype-mismatch")
    return x if x.type.dtype in (DType.BOOL, DType.U8) else b.emit("abs", x)


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


def arithmetic(b: Builder, name: str, x, y):
    """A binary op after promotion; on bools addition is `or` and multiplication `and`, in both libraries."""
    if b.library == "numpy":                                        # NEP 50: an OverflowError; torch wraps
        for value, other in ((x, y), (y, x)):
            fits(value, other.type.dtype if isinstance(other, Op) else None, f"{name} of {getattr(other, 'type', other)}")
    x, y = b.promote(x, y)
    if x.type.dtype == DType.BOOL == y.type.dtype:
        if name in ("sub", "neg"):
            raise TypeRuleError(f"subtraction of {x.type} and {y.type}", "numbers; for bool elements ^ or logical_xor", "dtype-mismatch")
        name = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}.get(name, name)
    return b.emit(name, x, y)


def _scaled(b: Builder, y, alpha):
    return y if isinstance(alpha, (int, float)) and alpha == 1 else arithmetic(b, "mul", y, alpha) if not _is_number(y) else y * alpha


def fits(value, dtype: DType | None, what: str) -> None:
    """A Python integer beyond an integer type, which both libraries refuse where they do not wrap."""
    if isinstance(value, int) and dtype is not None and dtype.is_int and number(value, dtype) != value:
        raise TypeRuleError(f"{what} with {value}", f"a number that {dtype.numpy} holds", "argument")


def _is_number(x) -> bool:
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


def _division(b: Builder, name: str, x, y):
    if isinstance(y, (int, float)) and y == 0 and not dtype_of(x).is_float and isinstance(y, int):
        raise TypeRuleError(f"integer {'remainder' if name == 'mod' else 'division'} of {x.type} by zero", "a divisor that is not zero", "argument")
    x, y = b.promote(x, y)
    if x.type.dtype == DType.BOOL:
        raise unsupported(f"{name} of bool elements")
    return b.emit(name, x, y)


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
        return b.emit("sub", x, b.emit("mul", b.emit("truncdiv", x, y), y))
    zero = b.constant(0, dtype)
    rest = b.emit("mod", b.emit("abs", x), b.emit("abs", y))
    signed = b.emit("select", b.emit("lt", x, zero), b.emit("neg", rest), rest)
    return b.emit("select", b.emit("and", b.emit("eq", x, zero), b.emit("eq", rest, zero)), x, signed)      # fmod(-0.0, y) is -0.0


@spelled("operator.pow", "operator.ipow", "numpy.power", "numpy.pow", "numpy.float_power")
def power(b: Builder, x, y):
    """Small constant exponents become what ATen and NumPy compute for them."""
    if isinstance(y, (int, float)) and not isinstance(y, bool) and not _is_number(x):
        dtype = common_dtype([x.type, y], b.library)
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


@spelled("torch.pow", "torch.Tensor.pow")
def torch_pow(b: Builder, input, exponent):
    return power(b, input, exponent)


for _name, _torch in (("eq", "eq"), ("ne", "ne not_equal"), ("lt", "lt less"), ("le", "le less_equal"), ("gt", "gt greater"), ("ge", "ge greater_equal")):
    spelled(f"operator.{_name}", *(f"torch.{n}" for n in _torch.split()), *(f"torch.Tensor.{n}" for n in _torch.split()),
            f"numpy.{dict(eq='equal', ne='not_equal', lt='less', le='less_equal', gt='greater', ge='greater_equal')[_name]}")(
        lambda b, input, other, *, _name=_name: compare(b, _name, input, other))


def compare(b: Builder, name: str, x, y):
    """Python numbers beyond the tensor's integer type: NumPy compares them exactly, torch's answer is not portable."""
    for value, other in ((x, y), (y, x)):
        dtype = other.type.dtype if isinstance(other, Op) else None
        if isinstance(value, int) and dtype is not None and dtype.is_int and number(value, dtype) != value:
            raise unsupported(f"comparison of {other.type} with {value}", f"a number that {dtype.numpy} holds")
    return b.emit(name, *b.promote(x, y))


def _logical(b: Builder, name: str, *values):
    return b.emit(name, *(b.cast(b.tensor(v), DType.BOOL) for v in values))


for _name in ("and", "or", "xor", "not"):
    spelled(f"torch.logical_{_name}", f"torch.Tensor.logical_{_name}", f"numpy.logical_{_name}")(
        (lambda b, input, *, _name=_name: _logical(b, _name, input)) if _name == "not" else
        (lambda b, input, other, *, _name=_name: _logical(b, _name, input, other)))


def _bits(b: Builder, name: str, *values):
    return b.emit(name, *b.promote(*values))


for _name, _operators in (("and", ("and_", "iand")), ("or", ("or_", "ior")), ("xor", ("xor", "ixor"))):
    spelled(*(f"operator.{n}" for n in _operators), f"torch.bitwise_{_name}", f"torch.Tensor.bitwise_{_name}", f"numpy.bitwise_{_name}")(
        lambda b, input, other, *, _name=_name: _bits(b, _name, input, other))
spelled("operator.invert", "torch.bitwise_not", "torch.Tensor.bitwise_not", "numpy.invert", "numpy.bitwise_not")(
    lambda b, x: _bits(b, "not", x))
for _name, _long in (("shl", "left"), ("shr", "right")):
    spelled(f"operator.{'l' if _name == 'shl' else 'r'}shift", f"torch.bitwise_{_long}_shift", f"torch.Tensor.bitwise_{_long}_shift",
            f"numpy.{_long}_shift")(lambda b, input, other, *, _name=_name: _bits(b, _name, input, other))


@spelled("torch.maximum", "torch.Tensor.maximum", "numpy.maximum")
def maximum(b: Builder, input, other):
    return arithmetic(b, "maximum", input, other)


@spelled("torch.minimum", "torch.Tensor.minimum", "numpy.minimum")
def minimum(b: Builder, input, other):
    return arithmetic(b, "minimum", input, other)


def _skipping_nan(b: Builder, name: str, x, y):
    x, y = b.promote(x, y)
    if not dtype_of(x).is_float:
        return arithmetic(b, name, x, y)
    chosen = b.emit("select", b.emit("isnan", y), x, b.emit(name, x, y))
    return b.emit("select", b.emit("isnan", x), y, chosen)


for _name in ("fmax", "fmin"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}", f"numpy.{_name}")(
        lambda b, input, other, *, _name={"fmax": "maximum", "fmin": "minimum"}[_name]: _skipping_nan(b, _name, input, other))


@spelled("torch.atan2", "torch.arctan2", "torch.Tensor.atan2", "numpy.arctan2", "numpy.atan2")
def atan2(b: Builder, input, other):
    x, y = b.promote(input, other)
    return b.emit("atan2", float_operand(b, x), float_operand(b, y))


@spelled("torch.isnan", "torch.Tensor.isnan", "numpy.isnan")
def isnan(b: Builder, x):
    return b.emit("isnan", x) if dtype_of(x).is_float else b.emit("ne", x, x)


@spelled("torch.isinf", "torch.Tensor.isinf", "numpy.isinf")
def isinf(b: Builder, x):
    return b.emit("isinf", x) if dtype_of(x).is_float else b.emit("ne", x, x)


@spelled("torch.isfinite", "torch.Tensor.isfinite", "numpy.isfinite")
def isfinite(b: Builder, x):
    if not dtype_of(x).is_float:
        return b.emit("eq", x, x)
    return b.emit("not", b.emit("or", b.emit("isnan", x), b.emit("isinf", x)))


LARGEST = {DType.F16: 65504.0, DType.BF16: 3.3895313892515355e38, DType.F32: 3.4028234663852886e38, DType.F64: 1.7976931348623157e308}


@spelled("torch.nan_to_num", "torch.Tensor.nan_to_num")
def nan_to_num(b: Builder, input, nan=0.0, posinf=None, neginf=None):
    dtype = dtype_of(input)
    if not dtype.is_float:
        return input
    x = b.emit("select", b.emit("isnan", input), b.constant(0.0 if nan is None else nan, dtype), input)
    for sign, value in ((1, posinf), (-1, neginf)):
        hit = b.emit("eq", x, b.constant(sign * math.inf, dtype))
        x = b.emit("select", hit, b.constant(sign * LARGEST[dtype] if value is None else value, dtype), x)
    return x


@spelled("numpy.nan_to_num")
def numpy_nan_to_num(b: Builder, x, copy=True, nan=0.0, posinf=None, neginf=None):
    return nan_to_num(b, x, nan, posinf, neginf)


@spelled("torch.where")
def where(b: Builder, condition, input, other):
    return b.emit("select", b.cast(condition, DType.BOOL), *b.promote(input, other))


@spelled("torch.Tensor.where")
def tensor_where(b: Builder, self, condition, y):
    return where(b, condition, self, y)


@spelled("numpy.where")
def numpy_where(b: Builder, condition, x, y):
    return where(b, condition, x, y)


@spelled("torch.masked_fill", "torch.Tensor.masked_fill")
def masked_fill(b: Builder, input, mask, value):
    if mask.type.dtype not in (None, DType.BOOL):
        raise TypeRuleError(f"masked_fill with a mask of {mask.type}", "a bool mask", "dtype-mismatch")
    fits(value, dtype_of(input), f"masked_fill of {input.type}")
    value = b.cast(value, dtype_of(input)) if not _is_number(value) else b.constant(value, dtype_of(input))
    return b.emit("select", mask, value, input)


@spelled("torch.clamp", "torch.clip", "torch.Tensor.clamp", "torch.Tensor.clip")
def clamp(b: Builder, input, min=None, max=None):
    if min is None and max is None:
        raise TypeRuleError("clamp without bounds", "min, max or both", "argument")
    for bound in (min, max):
        fits(bound, input.type.dtype, f"clamp of {input.type}")
    values = b.promote(input, *(v for v in (min, max) if v is not None))
    x, bounds = values[0], list(values[1:])
    if min is not None:
        x = b.emit("maximum", x, bounds.pop(0))
    return b.emit("minimum", x, bounds[0]) if max is not None else x


@spelled("numpy.clip")
def numpy_clip(b: Builder, a, a_min=None, a_max=None, min=None, max=None):
    return clamp(b, a, a_min if min is None else min, a_max if max is None else max)


@spelled("numpy.ndarray.clip")
def array_clip(b: Builder, self, min=None, max=None):
    return clamp(b, self, min, max)


@spelled("torch.clamp_min", "torch.Tensor.clamp_min")
def clamp_min(b: Builder, input, min):
    return clamp(b, input, min)


@spelled("torch.clamp_max", "torch.Tensor.clamp_max")
def clamp_max(b: Builder, input, max):
    return clamp(b, input, None, max)


@spelled("torch.addcmul", "torch.Tensor.addcmul", examples=[example("torch.addcmul(x, y, x, value=0.5)", x="f32[4]", y="f32[4]")])
def addcmul(b: Builder, input, tensor1, tensor2, value=1):
    return arithmetic(b, "add", input, _scaled(b, arithmetic(b, "mul", tensor1, tensor2), value))


@spelled("torch.addcdiv", "torch.Tensor.addcdiv")
def addcdiv(b: Builder, input, tensor1, tensor2, value=1):
    return arithmetic(b, "add", input, _scaled(b, truediv(b, tensor1, tensor2), value))


@spelled("torch.lerp", "torch.Tensor.lerp", examples=[example("torch.lerp(x, y, 0.3)", x="f32[4]", y="f32[4]")])
def lerp(b: Builder, input, end, weight):
    return arithmetic(b, "add", input, arithmetic(b, "mul", arithmetic(b, "sub", end, input), weight))


# --- casts ----------------------------------------------------------------------------------------------------------

@spelled("torch.Tensor.to")
def to(b: Builder, self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    for argument in args:
        if isinstance(argument, DType):
            dtype = argument
        elif hasattr(argument, "type") and isinstance(argument.type, TensorType):
            dtype = dtype_of(argument)
    return self if dtype is None else b.cast(self, dtype)


@spelled("torch.Tensor.type")
def type_(b: Builder, self, dtype, non_blocking=False):
    if not isinstance(dtype, DType):
        raise unsupported(f"type({dtype!r})", "a dtype such as torch.float32")
    return b.cast(self, dtype)


@spelled("torch.Tensor.type_as")
def type_as(b: Builder, self, other):
    return b.cast(self, dtype_of(other))


@spelled("numpy.ndarray.astype", "numpy.astype")
def astype(b: Builder, self, dtype, order="K", casting="unsafe", subok=True, copy=True, device=None):
    return b.cast(self, as_dtype(dtype))


def as_dtype(dtype) -> DType:
    """A dtype as user code gives it: a DType, or a name such as "float32"."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        try:
            return DType.parse(dtype)
        except ValueError:
            pass
    raise unsupported(f"the element type {dtype!r}", "one of " + ", ".join(d.numpy for d in DType))


for _method, _dtype in (("float", DType.F32), ("double", DType.F64), ("half", DType.F16), ("bfloat16", DType.BF16), ("int", DType.I32),
                        ("long", DType.I64), ("short", DType.I16), ("char", DType.I8), ("byte", DType.U8), ("bool", DType.BOOL)):
    spelled(f"torch.Tensor.{_method}")(lambda b, self, memory_format=None, *, _dtype=_dtype: b.cast(self, _dtype))
for _dtype in DType:
    if _dtype != DType.BF16:
        spelled(f"numpy.{_dtype.numpy if _dtype != DType.BOOL else 'bool_'}")(lambda b, x, *, _dtype=_dtype: b.cast(b.tensor(x, _dtype), _dtype))
