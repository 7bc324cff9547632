"""Composites become the primitives they are made of. `Composite` remembers which op was which, so that a view can fold them again."""
from __future__ import annotations

from dataclasses import dataclass

from ..ir.function import Function
from ..ops.definition import COMPOSITE, DEFINITIONS
from .rewriter import Rewriter, unused_id


@dataclass(frozen=True, slots=True)
class Composite:
    """id of the op that people wrote, in the function before this pass; name: "softmax"."""

    id: int
    name: str


def decompose(function: Function, first_id: int = 0) -> tuple[Function, dict[int, Composite]]:
    """The function in primitives, and for each op that came out of a composite the outermost one it was part of."""
    composites: dict[int, Composite] = {}
    while any(DEFINITIONS[op.name].kind == COMPOSITE for op in function.body):
        function, parts = _decompose_once(function, first_id)
        first_id = max(first_id, unused_id(function))
        for id, (parent, name) in parts.items():
            composites[id] = composites.get(parent, Composite(parent, name))
    return function, {id: c for id, c in composites.items() if id in function.by_id}


def _decompose_once(function: Function, first_id: int) -> tuple[Function, dict[int, tuple[int, str]]]:
    r = Rewriter(function, first_id)
    parts: dict[int, tuple[int, str]] = {}
    for op in function.ops:
        if DEFINITIONS[op.name].kind != COMPOSITE:
            r.keep(op)
            continue
        operands = [r.value(r.renamed.get(o, o)) for o in op.operands]
        before = len(r.ops)
        with r.at(*op.origins):
            value = DEFINITIONS[op.name].decompose(r, operands, dict(op.attrs))
        if value.type != op.type:
            raise AssertionError(f"{op.name} has type {op.type}, its decomposition {value.type}")
        r.stand_for(op, value)
        parts.update((part.id, (op.id, op.name)) for part in r.ops[before:])
    return r.finish(), parts
