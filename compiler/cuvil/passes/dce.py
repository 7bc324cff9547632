"""Dead code: what no result is computed from goes. Inputs stay, they are the signature; parameters that nothing reads go."""
from __future__ import annotations

from ..ir.function import Function


def dce(function: Function, first_id: int = 0) -> Function:
    alive = set(function.results)
    for op in reversed(function.ops):
        if op.id in alive:
            alive.update(op.operands)
    kept = tuple(op for op in function.ops if op.id in alive or op.name == "input")
    return function if len(kept) == len(function.ops) else function.with_ops(kept)
