"""One spelling for each value: neutral arithmetic goes, chains of views and casts become one, scalar constants are computed.

Every rule keeps every bit of every result, for NaN, infinities and -0.0 too; what does not (x * 0, x + 0.0, reassociation)
is not here.
"""
from __future__ import annotations

import math

from ..ir.function import Function, Op
from ..ir.types import DType
from ..ops.definition import DEFINITIONS
from .rewriter import Rewriter, rewrite, rule

# Correctly rounded or exact in every implementation, so that computing them here and there gives the same bits.
_FOLDED = frozenset(("add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "round", "maximum", "minimum",
                     "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "cast", "select"))

# Casts that keep every value of the left type.
_EXACT = {
    DType.BOOL: frozenset(DType),
    DType.U8: frozenset((DType.I16, DType.I32, DType.I64, DType.F16, DType.BF16, DType.F32, DType.F64)),
    DType.I8: frozenset((DType.I16, DType.I32, DType.I64, DType.F16, DType.BF16, DType.F32, DType.F64)),
    DType.I16: frozenset((DType.I32, DType.I64, DType.F32, DType.F64)),
    DType.I32: frozenset((DType.I64, DType.F64)),
    DType.I64: frozenset(),
    DType.F16: frozenset((DType.F32, DType.F64)),
    DType.BF16: frozenset((DType.F32, DType.F64)),
    DType.F32: frozenset((DType.F64,)),
    DType.F64: frozenset(),
}


@rule("f(1.0, 2.0)", "its value", "the op is correctly rounded, so it is the same number whenever it is computed")
def constant_folding(r: Rewriter, op: Op) -> Op | None:
    if op.name not in _FOLDED or op.type.shape != () or op.type.dtype in (DType.BF16, None):
        return None
    numbers = [r.number(o) for o in op.operands]
    types = [r.value(o).type for o in op.operands]
    if any(n is None or t.dtype in (DType.BF16, None) for n, t in zip(numbers, types)):
        return None
    import numpy as np  # here, so that a function without scalar constants compiles from the cache without it
    with np.errstate(all="ignore"):
        value = DEFINITIONS[op.name].evaluate([np.asarray(n, t.dtype.numpy) for n, t in zip(numbers, types)], dict(op.attrs))
    number = np.asarray(value).item()
    if isinstance(number, float) and math.isnan(number):
        return None                          # a NaN has no one value to be compared by
    return r.constant(number, op.type.dtype)


@rule("x * 1, 1 * x, x / 1, x ** 1", "x", "1 is neutral for every x; NaN stays NaN and -0.0 stays -0.0")
def times_one(r: Rewriter, op: Op) -> Op | None:
    if op.name == "mul":
        return _other_operand(r, op, lambda n: n == 1)
    if op.name in ("div", "pow"):
        return _left_operand(r, op, lambda n: n == 1)
    return None


@rule("x + 0 (integers), x + -0.0, x - 0.0", "x", "-0.0 is the neutral element of float addition; +0.0 would turn -0.0 into 0.0")
def plus_zero(r: Rewriter, op: Op) -> Op | None:
    if op.type.dtype is None or op.type.dtype == DType.BOOL:
        return None
    is_float = op.type.dtype.is_float
    if op.name == "add":
        return _other_operand(r, op, lambda n: n == 0 and (not is_float or math.copysign(1, n) < 0))
    if op.name == "sub":
        return _left_operand(r, op, lambda n: n == 0 and (not is_float or math.copysign(1, n) > 0))
    return None


@rule("neg(neg(x))", "x", "a sign changed twice is the sign; integers wrap back")
def double_negation(r: Rewriter, op: Op) -> Op | None:
    inner = op.name == "neg" and r.made_by(op.operands[0], "neg")
    return r.value(inner.operands[0]) if inner else None


@rule("not(not(x))", "x", "of truth values")
def double_not(r: Rewriter, op: Op) -> Op | None:
    inner = op.name == "not" and op.type.dtype == DType.BOOL and r.made_by(op.operands[0], "not")
    return r.value(inner.operands[0]) if inner and r.value(inner.operands[0]).type == op.type else None


@rule("cast(x) to its own type", "x", "nothing is converted")
def cast_to_itself(r: Rewriter, op: Op) -> Op | None:
    return _if_same_type(r, op, "cast")


@rule("cast(cast(x: a) to b) to c", "cast(x) to c", "b holds every value of a, so the detour through it loses nothing")
def cast_chain(r: Rewriter, op: Op) -> Op | None:
    inner = op.name == "cast" and r.made_by(op.operands[0], "cast")
    if not inner:
        return None
    source = r.value(inner.operands[0])
    a, b, c = source.type.dtype, inner.type.dtype, op.type.dtype
    if None in (a, b, c) or b not in _EXACT[a]:
        return None
    if c == a:
        return source
    # A float on its way to an integer may be out of range, and an integer through a float on its way to a smaller one
    # wraps only without the detour: neither is shortened.
    if not (c.is_float or c == DType.BOOL or (a.is_int and b.is_int) or a == DType.BOOL):
        return None
    return r.emit("cast", source, dtype=c)


@rule("transpose(transpose(x, p), q)", "transpose(x, p of q)", "permutations compose")
def transpose_of_transpose(r: Rewriter, op: Op) -> Op | None:
    inner = op.name == "transpose" and r.made_by(op.operands[0], "transpose")
    if not inner:
        return None
    return r.emit("transpose", r.value(inner.operands[0]), axes=tuple(inner.attr("axes")[axis] for axis in op.attr("axes")))


@rule("transpose(x) in the order of its axes", "x", "no axis moves")
def transpose_of_nothing(r: Rewriter, op: Op) -> Op | None:
    if op.name != "transpose" or tuple(op.attr("axes")) != tuple(range(len(op.attr("axes")))):
        return None
    return r.value(op.operands[0])


@rule("reshape(reshape(x))", "reshape(x)", "only the last shape is seen; elements keep their order")
def reshape_of_reshape(r: Rewriter, op: Op) -> Op | None:
    inner = op.name == "reshape" and r.made_by(op.operands[0], "reshape")
    return r.emit("reshape", r.value(inner.operands[0]), shape=op.type.shape) if inner else None


@rule("reshape or broadcast of x to its own shape", "x", "every element stays where it is")
def view_of_nothing(r: Rewriter, op: Op) -> Op | None:
    if op.name in ("reshape", "broadcast"):
        return _if_same_type(r, op, op.name)
    return None


@rule("broadcast(broadcast(x))", "broadcast(x)", "only the last shape is seen")
def broadcast_of_broadcast(r: Rewriter, op: Op) -> Op | None:
    inner = op.name == "broadcast" and r.made_by(op.operands[0], "broadcast")
    return r.emit("broadcast", r.value(inner.operands[0]), shape=op.type.shape) if inner else None


@rule("reshape(reduce(x)) that puts back the reduced axes as 1", "reduce(x, keepdims)", "the same sums, named by position")
def keep_reduced_axes(r: Rewriter, op: Op) -> Op | None:
    """Makes `x.mean(-1).unsqueeze(-1)` and `x.mean(-1, keepdim=True)` one spelling, which fuses with what reads it row by row."""
    if op.name != "reshape":
        return None
    inner = r.value(op.operands[0])
    if DEFINITIONS[inner.name].kind != "reduction" or inner.attr("keepdims") is not False or not r.read_once(inner.id):
        return None
    source = r.value(inner.operands[0]).type
    axes = inner.attr("axes")
    if op.type.shape != tuple(1 if axis in axes else dim for axis, dim in enumerate(source.shape)):
        return None
    return r.emit(inner.name, r.value(inner.operands[0]), **{**dict(inner.attrs), "keepdims": True})


def _other_operand(r: Rewriter, op: Op, neutral) -> Op | None:
    for constant, kept in ((1, 0), (0, 1)):
        number = _spread_number(r, op.operands[constant])
        if number is not None and neutral(number) and r.value(op.operands[kept]).type == op.type:
            return r.value(op.operands[kept])
    return None


def _left_operand(r: Rewriter, op: Op, neutral) -> Op | None:
    number = _spread_number(r, op.operands[1])
    if number is not None and neutral(number) and r.value(op.operands[0]).type == op.type:
        return r.value(op.operands[0])
    return None


def _spread_number(r: Rewriter, id: int) -> int | float | bool | None:
    """The value of a scalar constant, or of one broadcast to a shape."""
    spread = r.made_by(id, "broadcast")
    return r.number(spread.operands[0] if spread else id)


def _if_same_type(r: Rewriter, op: Op, name: str) -> Op | None:
    if op.name != name or not op.type.complete or r.value(op.operands[0]).type != op.type:
        return None
    return r.value(op.operands[0])


RULES = (constant_folding, times_one, plus_zero, double_negation, double_not, cast_to_itself, cast_chain,
         transpose_of_transpose, transpose_of_nothing, reshape_of_reshape, view_of_nothing, broadcast_of_broadcast,
         keep_reduced_axes)


def canonicalise(function: Function, first_id: int = 0) -> Function:
    return rewrite(function, RULES, first_id)
