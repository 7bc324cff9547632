"""Scalar expressions: what one element of a tensor is, in terms of elements of others.

An op's loop form (ops/definition.py, `at`) is written in these, the loop nests are built of them, and LLVM is emitted
from them. Index expressions are i64.

    PRIMITIVES is the whole arithmetic. Meaning is PyTorch's: integers wrap; `div` is true division of floats;
    `floordiv` and `mod` round towards minus infinity, `truncdiv` towards zero; `maximum` and `minimum` give NaN if
    either side is NaN; `round` is half to even; comparisons give bool; `select` takes (condition, then, else).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from .dims import Dim
from .types import DType

UNARY = ("neg", "abs", "not", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh",
         "erf", "floor", "ceil", "round", "trunc", "isnan", "isinf", "sign", "reciprocal", "atan", "sinh", "cosh")
BINARY = ("add", "sub", "mul", "div", "floordiv", "truncdiv", "mod", "pow", "maximum", "minimum", "atan2",
          "and", "or", "xor", "shl", "shr")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
PRIMITIVES = frozenset((*UNARY, *BINARY, *COMPARE, "select", "cast"))


@dataclass(frozen=True, slots=True)
class Const:
    """A number of a given type; a Dim when the size is symbolic (then dtype is i64)."""

    value: int | float | bool | Dim
    dtype: DType


@dataclass(frozen=True, slots=True)
class Index:
    """A loop variable."""

    name: str
    dtype: DType = DType.I64


@dataclass(frozen=True, slots=True)
class Read:
    """An element of the tensor that an op of the function makes."""

    value: int
    index: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Apply:
    """A primitive of PRIMITIVES; `cast` converts its one argument to dtype."""

    primitive: str
    arguments: tuple[Expr, ...]
    dtype: DType


Expr = Union[Const, Index, Read, Apply]


def const(value: int | float | bool | Dim, dtype: DType = DType.I64) -> Const:
    return Const(value, dtype)


def cast(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype == dtype else Apply("cast", (value,), dtype)


def apply(primitive: str, *arguments: Expr, dtype: DType | None = None) -> Expr:
    """A primitive applied, with index arithmetic on constants folded."""
    if primitive in COMPARE or primitive in ("isnan", "isinf"):
        return Apply(primitive, arguments, DType.BOOL)
    result = dtype or (arguments[1].dtype if primitive == "select" else arguments[0].dtype)
    if result == DType.I64 and len(arguments) == 2:
        folded = _fold(primitive, *arguments)
        if folded is not None:
            return folded
    return Apply(primitive, arguments, result)


def _fold(primitive: str, a: Expr, b: Expr) -> Expr | None:
    x = a.value if isinstance(a, Const) else None
    y = b.value if isinstance(b, Const) else None
    match primitive:
        case "add":
            return const(x + y) if x is not None and y is not None else b if x == 0 else a if y == 0 else None
        case "sub":
            return const(x - y) if x is not None and y is not None else a if y == 0 else None
        case "mul":
            if x is not None and y is not None:
                return const(x * y)
            return const(0) if x == 0 or y == 0 else b if x == 1 else a if y == 1 else None
        case "floordiv":
            return const(x // y) if x is not None and y is not None and y != 0 else a if y == 1 else None
        case "mod":
            return const(x % y) if x is not None and y is not None and y != 0 else const(0) if y == 1 else None
    return None
