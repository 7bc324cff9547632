"""Kernels: groups of ops that become one loop nest, and the decision about every producer-consumer edge.

`passes/fuse.py` makes a KernelGraph; loops/ turns each kernel into a nest; cost/ and the panels read it.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..lineage import Origin
from .dims import Dim
from .function import Function


@dataclass(frozen=True)
class Kernel:
    """One loop nest over memory.

    name     "k0_matmul_gelu": stable for the same function
    kind     of its root: "elementwise", "reduction", "contraction", "convolution", "window", "movement"
    root     the op whose iteration space the nest has
    ops      ids of all members, in the function's order; an op that is cheap may be a member of several kernels
    inputs   ids of values read from memory; outputs: ids of values written to memory
    """

    name: str
    kind: str
    root: int
    ops: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class FusionDecision:
    """Why a value does or does not pass through memory between two ops.

    reason   the rule, as people read it: "elementwise into its consumer", "read by 3 kernels", "contraction needs packed operands"
    bytes    traffic saved (fused) or at stake (not fused)
    """

    producer: int
    consumer: int
    fused: bool
    reason: str
    bytes: Dim


@dataclass(frozen=True)
class KernelGraph:
    """The kernels in the order they run, over the optimised function."""

    function: Function
    kernels: tuple[Kernel, ...]
    decisions: tuple[FusionDecision, ...]
