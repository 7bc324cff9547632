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
from .nest import Gemm, Nest

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
    packed    op id of a constant matmul operand -> byte offset in the packed block
    copies    (op id, output index) for results that no kernel writes: an input returned as it is, a value returned twice
    scratch   bytes all threads share; thread_scratch: bytes each thread needs besides
    """

    function: Function
    nests: tuple[Nest, ...]
    target: Target
    homes: dict[int, Home]
    copies: tuple[tuple[int, int], ...]
    scratch: int
    thread_scratch: int
    packed: int

    def scratch_bytes(self, threads: int) -> int:
        """What the caller allocates for a run with so many threads, aligned to 64 bytes."""
        return self.scratch + self.thread_scratch * max(threads, 1)


def plan(graph: KernelGraph, nests: Sequence[Nest], target: Target) -> Program:
    function = graph.function
    homes: dict[int, Home] = {op.id: Home("input", i) for i, op in enumerate(function.inputs)}
    homes |= {op.id: Home("parameter", i) for i, op in enumerate(function.parameters)}
    written = {id for kernel in graph.kernels for id in kernel.outputs}
    copies = []
    for i, id in enumerate(function.results):
        if id in written and id not in homes:
            homes[id] = Home("output", i)
        else:
            copies.append((id, i))
    last = {id: step for step, kernel in enumerate(graph.kernels) for id in (*kernel.outputs, *kernel.inputs)}
    for id, _ in copies:
        last[id] = len(graph.kernels)
    blocks = _Blocks()
    ending: dict[int, list[tuple[int, int]]] = {}
    for step, kernel in enumerate(graph.kernels):
        for id in kernel.outputs:
            if id not in homes:
                size = aligned(function.by_id[id].type.nbytes)
                position = blocks.take(size)
                homes[id] = Home("scratch", position)
                ending.setdefault(last[id], []).append((position, size))
        for position, size in ending.pop(step, ()):
            blocks.give_back(position, size)
    templates = [s for nest in nests for _, s in nest.statements if isinstance(s, Gemm)]
    return Program(function, tuple(nests), target, homes, tuple(copies), blocks.size,
                   max((aligned(t.thread_bytes) for t in templates), default=0), 0)


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
