"""Ops that do again what was done already: relu(relu(x)), floor(floor(x)), maximum(x, x)."""
from __future__ import annotations

from ..ir.function import Function, Op
from .rewriter import Rewriter, rewrite, rule

IDEMPOTENT = frozenset(("relu", "relu6", "abs", "floor", "ceil", "round", "trunc", "sign", "hardtanh", "clamp", "tril", "triu"))


@rule("f(f(x)) for idempotent f: relu, abs, floor, ceil, round, trunc, sign, ...", "f(x)",
      "f leaves its own results as they are, NaN and -0.0 too")
def idempotent(r: Rewriter, op: Op) -> Op | None:
    if op.name not in IDEMPOTENT or len(op.operands) != 1:
        return None
    inner = r.made_by(op.operands[0], op.name)
    return inner if inner and inner.attrs == op.attrs and inner.type == op.type else None


@rule("maximum(maximum(x, c), c), minimum(minimum(x, c), c)", "the inner one", "the result is x or c, and both are kept")
def repeated_bound(r: Rewriter, op: Op) -> Op | None:
    """Exact for equal bounds only: between -0.0 and 0.0 a maximum may give either, but then gives it again."""
    if op.name not in ("maximum", "minimum"):
        return None
    inner = r.made_by(op.operands[0], op.name)
    if not inner or inner.type != op.type:
        return None
    bound, inner_bound = r.value(op.operands[1]), r.value(inner.operands[1])
    same = bound.id == inner_bound.id or (
        bound.name == inner_bound.name == "constant" and bound.type == inner_bound.type
        and repr(bound.attr("value")) == repr(inner_bound.attr("value")))
    return inner if same else None


@rule("maximum(x, x), minimum(x, x), x & x, x | x", "x", "both sides are the same value")
def both_sides_equal(r: Rewriter, op: Op) -> Op | None:
    if op.name not in ("maximum", "minimum", "and", "or") or op.operands[0] != op.operands[1]:
        return None
    operand = r.value(op.operands[0])
    return operand if operand.type == op.type else None


RULES = (idempotent, repeated_bound, both_sides_equal)


def duplicate(function: Function, first_id: int = 0) -> Function:
    return rewrite(function, RULES, first_id)
