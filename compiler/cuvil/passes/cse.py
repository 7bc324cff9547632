"""Common subexpressions: of ops that compute the same value from the same values the first stays, with the origins of all."""
from __future__ import annotations

from dataclasses import replace

from ..ir.function import Function, Op
from .rewriter import Rewriter

# Ops whose every evaluation counts on its own.
EFFECTS = frozenset(("input", "parameter", "random"))


def cse(function: Function, first_id: int = 0) -> Function:
    r = Rewriter(function, first_id)
    seen: dict[tuple, Op] = {}
    for op in function.ops:
        current = replace(op, operands=tuple(r.renamed.get(o, o) for o in op.operands))
        key = (current.name, current.operands, current.type, distinct(current.attrs))
        first = seen.get(key) if op.name not in EFFECTS else None
        if first is not None:
            r.stand_for(op, first)
        else:
            seen[key] = r.keep(op)
    return r.finish()


def distinct(value: object) -> object:
    """A key that keeps apart what Python calls equal: 0.0 and -0.0, 1 and 1.0 and True."""
    if isinstance(value, tuple):
        return tuple(distinct(item) for item in value)
    if isinstance(value, float):
        return value.hex()
    return type(value).__name__, value
