"""What the lowering of one kernel knows: the function, the kernel, where values lie, the target."""
from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.function import Function, Op
from ..ir.kernel import Kernel
from ..ir.scalar import Expr, apply, const
from ..targets import Target
from .nest import Buffer, Statement


@dataclass(frozen=True)
class Place:
    """buffers: op id -> Buffer, for the values the kernel reads from memory and those it writes.
    prepare: statements that run once, when parameters are loaded; lowerings add to it."""

    function: Function
    kernel: Kernel
    buffers: dict[int, Buffer]
    target: Target
    prepare: list[Statement] = field(default_factory=list)


def buffer(op: Op) -> Buffer:
    return Buffer(op.id, op.label or op.attr("name") or f"%{op.id}", op.type.dtype, op.type.numel)


def offset(op: Op, index: tuple[Expr, ...]) -> Expr:
    """The flat position of an index, row by row."""
    total: Expr = const(0)
    for i, size in zip(index, op.type.shape, strict=True):
        total = apply("add", apply("mul", total, const(size)), i)
    return total
