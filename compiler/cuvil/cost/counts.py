"""FLOPs and compulsory bytes, as symbolic sizes.

FLOPs come from each op's own definition (an FMA is 2). Bytes are compulsory traffic: every value a kernel reads from
memory is read once, every value it writes is written once, whatever the caches do. Three refinements make that true of real code:

* a value that is only sliced or gathered is read as far as it is used: min(its bytes, the bytes of what is taken);
* constants stand in the code and are not traffic;
* an op that is recomputed in several kernels is counted in each of them, because each of them does the work.

The model is the usual one for rooflines: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..ir.dims import Dim, minimum
from ..ir.function import Function, Op
from ..ir.kernel import Kernel, KernelGraph
from ..ops.definition import DEFINITIONS, MOVEMENT


@dataclass(frozen=True, slots=True)
class Cost:
    """flops: floating-point (and for integer code, integer) operations; read, written: bytes from and to memory."""

    flops: Dim = 0
    read: Dim = 0
    written: Dim = 0

    @property
    def bytes(self) -> Dim:
        return self.read + self.written

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.read + other.read, self.written + other.written)

    def at(self, sizes: Mapping[str, int]) -> Cost:
        """The numbers for given sizes."""
        from .sizes import number
        return Cost(number(self.flops, sizes), number(self.read, sizes), number(self.written, sizes))

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None while a size is symbolic or when no byte moves."""
        if not isinstance(self.flops, int) or not isinstance(self.bytes, int) or self.bytes == 0:
            return None
        return self.flops / self.bytes


def cost_of_op(function: Function, op: Op) -> Cost:
    """The op by itself, as a library that runs ops one by one would pay for it."""
    if op.name in ("input", "parameter") or not op.type.complete:
        return Cost()
    read: Dim = 0
    for operand in dict.fromkeys(op.operands):
        read = read + bytes_taken(function, operand, (op,))
    return Cost(flops_of(function, op), read, 0 if is_constant(op) else op.type.nbytes)


def cost_of_kernel(function: Function, kernel: Kernel) -> Cost:
    members = [function.by_id[id] for id in kernel.ops]
    readers: dict[int, list[Op]] = {id: [] for id in kernel.inputs}
    flops: Dim = 0
    for op in members:
        flops = flops + flops_of(function, op)
        for operand in dict.fromkeys(op.operands):
            if operand in readers:
                readers[operand].append(op)
    read: Dim = 0
    for value, ops in readers.items():
        read = read + bytes_taken(function, value, ops)
    written: Dim = 0
    for value in kernel.outputs:
        written = written + function.by_id[value].type.nbytes
    return Cost(flops, read, written)


def cost_of_graph(graph: KernelGraph) -> Cost:
    """All kernels one after the other: what the compiled function moves and computes."""
    return total(cost_of_kernel(graph.function, kernel) for kernel in graph.kernels)


def unfused(function: Function) -> Cost:
    """The same ops run one by one, every value through memory: what fusion saves is the difference in bytes."""
    return total(cost_of_op(function, op) for op in function.body)


def total(costs: Iterable[Cost]) -> Cost:
    result = Cost()
    for cost in costs:
        result = result + cost
    return result


def flops_of(function: Function, op: Op) -> Dim:
    definition = DEFINITIONS.get(op.name)
    if definition is None or not op.type.complete:
        return 0
    return definition.flops(op.type, [function.by_id[o].type for o in op.operands], dict(op.attrs))


def bytes_taken(function: Function, value: int, readers: Iterable[Op]) -> Dim:
    """Bytes of a value that these ops read between them, each byte once."""
    made_by = function.by_id[value]
    if is_constant(made_by) or not made_by.type.complete:
        return 0
    whole, taken = made_by.type.nbytes, 0
    for reader in readers:
        if _kind(reader) != MOVEMENT or not reader.type.complete:
            return whole
        taken = taken + reader.type.numel * made_by.type.dtype.size
    return minimum(whole, taken) if taken != 0 else 0 if whole == 0 else taken


def is_constant(op: Op) -> bool:
    """Made from nothing: a literal, an arange, a fill."""
    return not op.operands and op.name not in ("input", "parameter")


def _kind(op: Op) -> str:
    definition = DEFINITIONS.get(op.name)
    return definition.kind if definition else ""
