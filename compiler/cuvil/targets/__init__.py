"""Machines that code is made for: data only, one file per kind. What is chosen for a running machine is in llvm/host.py.

A target refuses nothing itself; llvm/ refuses kernels that a kind of machine cannot run.
"""
from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Target:
    """One kind of machine.

    kind           "cpu", "cuda" or "opencl"
    triple         LLVM's name of the machine; "" is that of the machine we run on
    cpu, features  LLVM's processor name and feature string
    needs          host features (LLVM names) that must be there to choose it for a running machine
    vector_bytes   width of a vector register; registers: how many of them
    fma            whether a fused multiply-add is one instruction
    halves         whether converting between f16 and f32 is one instruction
    l1, l2         bytes of data cache of one core
    tiles          matmul register tiles (rows, vectors), the favourite first: sums, a row of vectors and one element in registers
    parallel_from  estimated element operations from which a kernel is worth waking threads for
    """

    name: str
    kind: str = "cpu"
    triple: str = ""
    cpu: str = "x86-64"
    features: str = ""
    needs: tuple[str, ...] = ()
    vector_bytes: int = 16
    registers: int = 16
    fma: bool = False
    halves: bool = False
    l1: int = 32 * 1024
    l2: int = 512 * 1024
    tiles: tuple[tuple[int, int], ...] = ((4, 2), (8, 1))
    parallel_from: int = 1 << 17

    def lanes(self, element_bytes: int) -> int:
        return max(1, self.vector_bytes // element_bytes)


# From the most to the least able; the first whose needs a host meets is chosen for it.
CPUS = ("x86_64_avx512", "x86_64_avx2", "generic")
GPUS = ("cuda_sm90", "opencl")
# Names that people use besides the files'.
ALIASES = {"cuda": "cuda_sm90", "cuda:sm_90": "cuda_sm90", "sm_90": "cuda_sm90"}


def named(name: str) -> Target:
    """The target with this name ("x86_64_avx2", "generic", ...); ValueError names those there are."""
    name = ALIASES.get(name, name)
    if name not in CPUS + GPUS:
        raise ValueError(f"no target {name!r}; there are cpu, {', '.join((*CPUS, *GPUS, *ALIASES))}")
    return import_module(f"{__name__}.{name}").TARGET


def choose(features: frozenset[str] | set[str]) -> Target:
    """The CPU target for a host with these features."""
    return next(target for target in map(named, CPUS) if features >= set(target.needs))
