"""What people read about kernels: their names, and for every edge whether its value passes through memory and why."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..ir.function import Op
from ..ir.kernel import FusionDecision, Kernel
from ..ops.definition import CONTRACTION, CONVOLUTION, ELEMENTWISE, MOVEMENT, REDUCTION, SOURCE, WINDOW

if TYPE_CHECKING:
    from .fuse import Fusion

PACKED = frozenset((CONTRACTION, CONVOLUTION, WINDOW))           # read their operands many times


def is_number(op: Op) -> bool:
    """A scalar constant: part of the instructions that read it, never memory."""
    return op.name == "constant" and op.type.shape == ()


def title(fusion: Fusion, ops: list[Op]) -> str:
    """What people would call it: the composites and heavy ops in it, at most three."""
    shown: dict[str, None] = {}
    for op in ops:
        composite = fusion.composites.get(op.id)
        if composite is not None:
            shown[composite.name] = None
        elif op.id in fusion.home or (len(ops) <= 3 and not is_number(op)):
            shown[op.name] = None
    return "_".join(list(shown)[:3])


def decisions(fusion: Fusion, kernels: list[Kernel]) -> Iterator[FusionDecision]:
    inside: dict[int, list[Kernel]] = {}
    for kernel in kernels:
        for id in kernel.ops:
            inside.setdefault(id, []).append(kernel)
    reads = {kernel.name: frozenset(kernel.inputs) for kernel in kernels}
    written = {id for kernel in kernels for id in kernel.outputs}
    for op in fusion.function.body:
        for operand in dict.fromkeys(op.operands):
            producer = fusion.function.by_id[operand]
            if fusion.kind[operand] == SOURCE and operand not in fusion.kernels or op.id not in inside:
                continue
            fused = not any(operand in reads[kernel.name] for kernel in inside[op.id])
            once = 0 if is_number(producer) else producer.type.nbytes
            yield FusionDecision(operand, op.id, fused, _fused_because(fusion, producer, op) if fused else
                                 _apart_because(fusion, producer, op), once if fused and operand in written else 2 * once)


def _fused_because(fusion: Fusion, producer: Op, consumer: Op) -> str:
    if is_number(producer):
        return "constant: part of the instruction stream"
    if producer.id in fusion.home:
        if fusion.kind[fusion.groups[fusion.home[producer.id]].root.id] == REDUCTION:
            return "same rows: read again while they are in cache"
        return "epilogue: applied before the result is stored"
    if len(fusion.kernels[producer.id]) > 1:
        return f"cheap enough to compute in each of {len(fusion.kernels[producer.id])} kernels"
    if fusion.kind[producer.id] == MOVEMENT:
        return "movement: an index map in its consumer"
    return f"elementwise into its {'consumer' if fusion.kind[consumer.id] in (ELEMENTWISE, MOVEMENT) else fusion.kind[consumer.id]}"


def _apart_because(fusion: Fusion, producer: Op, consumer: Op) -> str:
    reason = fusion.reasons.get((producer.id, consumer.id))
    if reason:
        return reason
    if fusion.kind[consumer.id] in PACKED:
        return f"{fusion.kind[consumer.id]} needs packed operands: it reads each element many times"
    made = fusion.kind[fusion.groups[fusion.home[producer.id]].root.id]
    if fusion.kind[consumer.id] == REDUCTION:
        return "reduces other rows than the kernel that makes it" if made == REDUCTION else \
            f"a reduction needs whole rows, a {made} finishes tiles" if made in PACKED else "a reduction needs finished rows"
    if fusion.kind[consumer.id] == MOVEMENT:
        return f"its elements are read in another order than the {made} finishes them"
    if consumer.id in fusion.home and fusion.kind[fusion.groups[fusion.home[consumer.id]].root.id] == REDUCTION:
        return "its consumer works on the rows of a later reduction"
    return "its consumer also waits for a later kernel"
