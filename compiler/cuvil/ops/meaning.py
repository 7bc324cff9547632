"""What the primitives of ir/scalar.py mean, in NumPy: PyTorch's arithmetic where the two differ."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from ..ir.types import DType
from .array import np


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


@cache
def _erf():
    return np.frompyfunc(math.erf, 1, 1)


@cache
def meanings() -> dict[str, Callable[..., Any]]:
    """The NumPy function of each primitive but select and cast, by name."""
    return {
        "neg": np.negative, "abs": np.abs, "not": np.invert, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
        "log2": np.log2, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: np.reciprocal(np.sqrt(x)), "sin": np.sin,
        "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "erf": lambda x: np.asarray(_erf()(x)).astype(x.dtype),
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
