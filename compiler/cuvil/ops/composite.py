"""Composites: ops with a name people use, made of other ops. Meaning and cost are those of the decomposition."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..ir.dims import Dim
from ..ir.function import Function, sorted_attrs
from ..ir.types import DType, TensorType
from .builder import Builder
from .definition import COMPOSITE, DEFINITIONS, Definition, define


def composite(name: str, infer, decompose, summary: str, examples: Sequence[Any] = (), arity: int | None = 1) -> Definition:
    return define(name, COMPOSITE, arity=arity, infer=infer, decompose=decompose, summary=summary, examples=tuple(examples),
                  evaluate=lambda arrays, attrs: _evaluate(name, arrays, attrs),
                  flops=lambda type, operands, attrs: _flops(name, tuple(operands), sorted_attrs(attrs)))


@lru_cache(maxsize=4096)
def opened(name: str, operands: tuple[TensorType, ...], attrs: tuple[tuple[str, Any], ...]) -> Function:
    """One step of decomposition as a function of the operands."""
    b = Builder()
    values = [b.input(f"x{i}", i, type) for i, type in enumerate(operands)]
    return b.function(name, [DEFINITIONS[name].decompose(b, values, dict(attrs))])


def _evaluate(name, arrays, attrs):
    from ..ir.interpret import run
    types = tuple(TensorType(a.shape, DType.parse(a.dtype.name)) for a in arrays)
    return run(opened(name, types, sorted_attrs(attrs)), arrays)[0]


@lru_cache(maxsize=4096)
def _flops(name, operands, attrs) -> Dim:
    if any(not t.complete for t in operands):
        return 0
    function, total = opened(name, operands, attrs), 0
    for op in function.body:
        total = total + DEFINITIONS[op.name].flops(op.type, [function.by_id[o].type for o in op.operands], dict(op.attrs))
    return total
