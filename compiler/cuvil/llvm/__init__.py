"""Loops become LLVM IR, objects and assembly. Nothing outside this package imports llvmlite.

    module = emit(loops.program(graph, target("cpu")))
    module.object()

For GPU targets `emit` gives a GpuModule (gpu.py): device code and what a host needs to launch it.
"""
from __future__ import annotations

from ..loops.memory import Program
from . import gpu, module
from .gpu import GpuModule
from .host import target
from .module import Line, LlvmModule


def emit(program: Program) -> LlvmModule | GpuModule:
    """CuvilError, with the kernel's place, for what the program's target cannot run."""
    return module.emit(program) if program.target.kind == "cpu" else gpu.emit(program)


__all__ = ["GpuModule", "Line", "LlvmModule", "emit", "target"]
