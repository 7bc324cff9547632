"""Where every value lies: the static memory plan of a function.

Inputs, outputs and parameters are the caller's. A value that one kernel writes and later ones read gets a place in the
scratch block that the caller provides: places are handed out in the order of writing, the smallest free gap that fits first,
and given back after the last reader. Packed matmul operands made of parameters have a block of their own that lives as long
as the parameters. Everything is aligned to 64 bytes.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.function import Function
from ..ir.kernel import KernelGraph
from ..targets import Target
from .nest import Buffer, Load, Nest, Store, Tile
from .schedule import expressions

ALIGNMENT = 64


@dataclass(frozen=True)
class Home:
    """kind: "input", "output", "parameter" (position is the index), "scratch" or "packed" (position is a byte offset)."""

    kind: str
    position: int


@dataclass(frozen=True)
class Program:
    """All that code is emitted from.

    homes     op id -> where its value lies
    copies    (op id, output index) for results that no kernel writes: an input returned as it is, a value returned twice
    scratch   bytes of values between kernels
    prepared  bytes of packed parameters
    """

    function: Function
    nests: tuple[Nest, ...]
    target: Target
    homes: dict[tuple[int, str], Home]
    copies: tuple[tuple[int, int], ...]
    scratch: int
    prepared: int


def plan(graph: KernelGraph, nests: Sequence[Nest], target: Target) -> Program:
    function = graph.function
    homes = {(op.id, "value"): Home("input", i) for i, op in enumerate(function.inputs)}
    homes |= {(op.id, "value"): Home("parameter", i) for i, op in enumerate(function.parameters)}
    written = {id for kernel in graph.kernels for id in kernel.outputs}
    copies = []
    for i, id in enumerate(function.results):
        if id in written and (id, "value") not in homes:
            homes[id, "value"] = Home("output", i)
        else:
            copies.append((id, i))
    last = {id: step for step, kernel in enumerate(graph.kernels) for id in (*kernel.outputs, *kernel.inputs)}
    last |= {id: len(graph.kernels) for id, _ in copies}
    scratch, prepared = _Blocks(), _Blocks()
    ending: dict[int, list[tuple[int, int]]] = {}
    for step, (kernel, nest) in enumerate(zip(graph.kernels, nests, strict=True)):
        for buffer in buffers(nest):
            key = buffer.value, buffer.role
            size = aligned(buffer.numel * buffer.dtype.size)
            if key in homes or buffer.role in ("stack", "panel"):
                continue
            if buffer.role == "packed":
                homes[key] = Home("packed", prepared.take(size))
                continue
            homes[key] = Home("scratch", scratch.take(size))
            ending.setdefault(last.get(buffer.value, step), []).append((homes[key].position, size))
        for position, size in ending.pop(step, ()):
            scratch.give_back(position, size)
    return Program(function, tuple(nests), target, homes, tuple(copies), scratch.size, prepared.size)


def buffers(nest: Nest) -> list[Buffer]:
    """Every buffer the nest touches, in the order it does."""
    found: dict[Buffer, None] = {}
    for _, statement in nest.statements:
        if isinstance(statement, Tile):
            found |= dict.fromkeys(m.buffer for m in (statement.left, statement.right, statement.out))
        if isinstance(statement, Store):
            found[statement.buffer] = None
        todo = list(expressions(statement))
        while todo:
            expression = todo.pop()
            if isinstance(expression, Load):
                found[expression.buffer] = None
                todo += [expression.offset] if expression.guard is None else [expression.offset, expression.guard]
            todo += getattr(expression, "arguments", ())
    return list(found)


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class _Blocks:
    """Free gaps of a growing block, by position."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        fitting = [gap for gap in self.free if gap[1] >= size]
        if not fitting:
            position = self.size
            if self.free and sum(self.free[-1]) == self.size:            # grow the last gap
                position = self.free.pop()[0]
            self.size = position + size
            return position
        position, room = min(fitting, key=lambda gap: gap[1])
        self.free.remove((position, room))
        if room > size:
            self.free.append((position + size, room - size))
            self.free.sort()
        return position

    def give_back(self, position: int, size: int) -> None:
        if not size:
            return
        joined: list[tuple[int, int]] = []
        for start, room in sorted([*self.free, (position, size)]):
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + room)
            else:
                joined.append((start, room))
        self.free = joined
