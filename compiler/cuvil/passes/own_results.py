"""Each result gets a value of its own: an input that is returned, or a value returned twice, is copied."""
from __future__ import annotations

from ..ir.function import Function
from .rewriter import Rewriter


def own_results(function: Function, first_id: int = 0) -> Function:
    """A copy is a reshape to the same shape, which no pass after this removes."""
    r = Rewriter(function, first_id)
    for op in function.ops:
        r.keep(op)
    results: list[int] = []
    for id in function.results:
        op = r.value(id)
        if id in results or op.name in ("input", "parameter"):
            with r.at(*op.origins):
                id = r.emit("reshape", op, shape=op.type.shape).id
        results.append(id)
    return function.with_ops(tuple(r.ops), tuple(results))
