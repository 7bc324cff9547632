"""Loops become LLVM IR, objects and assembly. Nothing outside this package imports llvmlite.

    module = emit(loops.program(graph, target("cpu")))
    module.object()
"""
from __future__ import annotations

from .host import target
from .module import Line, LlvmModule, emit

__all__ = ["Line", "LlvmModule", "emit", "target"]
