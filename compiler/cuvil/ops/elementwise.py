"""The primitives of ir/scalar.py as ops on tensors: operands of one dtype, broadcast.

How torch, NumPy and Python's operators say them is in arithmetic.py, comparison.py, selection.py and casts.py.
"""
from __future__ import annotations

import math

from ..ir.scalar import BINARY, COMPARE, UNARY
from ..ir.types import DType, TensorType
from .array import np
from .definition import ELEMENTWISE, FLOPS, TypeRuleError, define, example, values
from .meaning import convert, meanings
from .rules import broadcast, common, numel, shapes

FLOAT_ONLY = frozenset(("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf", "atan",
                        "sinh", "cosh", "reciprocal", "div", "atan2", "isnan", "isinf", "floor", "ceil", "round", "trunc"))
BITS = frozenset(("not", "and", "or", "xor", "shl", "shr"))


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
              example("torch.nan_to_num(x, nan=0.5)", x=values("f32", [math.nan, math.inf, -math.inf, 2.0]))],
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
           evaluate=lambda arrays, attrs, name=_name: meanings()[name](*arrays),
           arity=1 if _name in UNARY else 2, summary=f"{_name} of elements", examples=(*_default_examples(_name), *_EXAMPLES.get(_name, ())))

define("select", ELEMENTWISE, infer=_infer_select, flops=_flops("select"), evaluate=lambda arrays, attrs: np.where(*arrays),
       arity=3, summary="the second operand's element where the condition holds, else the third's",
       examples=(example("torch.where(x > 0, x, y)", x="f32[2, 3]", y="f32[3]"), example("torch.where(m, x, 0)", m="bool[4]", x="f32[4]"),
                 example("np.where(m, 1.0, 0.0)", m="bool[4]"), example("np.where(m, x, 0)", m="bool[4]", x="f32[4]"),
                 example("x.masked_fill(m, float('-inf'))", m="bool[2, 1]", x="f32[2, 3]"), example("x.masked_fill(m, -9)", m="bool[4]", x="i64[4]")))
define("cast", ELEMENTWISE, infer=_infer_cast, flops=_flops("cast"), evaluate=lambda arrays, attrs: convert(arrays[0], attrs["dtype"]),
       summary="conversion of the element type",
       examples=(example("x.to(torch.int8)", x=values("f32", [300.0, 127.9, -128.9, -0.99])), example("x.half()", x="f32[4]"),
                 example("x.bool().float()", x="f32[4]"), example("x.astype(np.int32)", x="f32[4]"), example("x.to(torch.bfloat16)", x="f32[9]"),
                 example("x.type(torch.float64)", x="f32[4]"), example("x.to('cpu').double()", x="f32[4]"), example("x.type_as(y)", x="i32[4]", y="f16[1]")))
