"""Costs of source lines, summed along lineage.

FLOPs belong to the line that an op comes from. A kernel's reads belong to the ops that read from memory, its writes to the ops whose
values it writes; so the lines of a function add up to the function. An op that stands for several places (after CSE, or a helper
called from two lines) is shared equally among them, which is why line costs are floats.

A line is a line of the function's own text: for an op that came through a call, the innermost caller that stands inside the function.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.function import Op
from ..ir.kernel import KernelGraph
from ..lineage import Origin
from ..source import Span
from .counts import bytes_taken, flops_of
from .sizes import number


@dataclass(frozen=True, slots=True)
class LineCost:
    flops: float = 0.0
    bytes: float = 0.0

    @property
    def intensity(self) -> float | None:
        return self.flops / self.bytes if self.bytes else None

    def plus(self, flops: float, nbytes: float) -> LineCost:
        return LineCost(self.flops + flops, self.bytes + nbytes)


def cost_by_line(graph: KernelGraph, within: Span | None, sizes: Mapping[str, int]) -> dict[int, LineCost]:
    """Cost of each line of `within` (the def; None: of any place). Line 0 collects what has no place in it."""
    function, lines = graph.function, {}

    def charge(op: Op, flops: float, nbytes: float) -> None:
        places = lines_of(op.origins, within) or (0,)
        for line in places:
            lines[line] = lines.get(line, LineCost()).plus(flops / len(places), nbytes / len(places))

    for kernel in graph.kernels:
        readers: dict[int, list[Op]] = {id: [] for id in kernel.inputs}
        for id in kernel.ops:
            op = function.by_id[id]
            charge(op, number(flops_of(function, op), sizes), 0.0)
            for operand in dict.fromkeys(op.operands):
                if operand in readers:
                    readers[operand].append(op)
        for value, ops in readers.items():
            nbytes = number(bytes_taken(function, value, ops), sizes)
            for op in ops:
                charge(op, 0.0, nbytes / len(ops))
        for value in kernel.outputs:
            op = function.by_id[value]
            charge(op, 0.0, number(op.type.nbytes, sizes))
    return dict(sorted(lines.items()))


def lines_of(origins: tuple[Origin, ...], within: Span | None) -> tuple[int, ...]:
    """The lines, each once, where these origins stand in the text of `within`."""
    return tuple(dict.fromkeys(place.line for origin in origins if (place := place_in(origin, within))))


def place_in(origin: Origin, within: Span | None) -> Span | None:
    """The innermost place of an origin that stands in `within`: its own span, else a caller's."""
    if within is None:
        return origin.span
    return next((span for span in (origin.span, *origin.callers) if within.encloses(span)), None)
