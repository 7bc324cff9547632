"""Runs CIR functions natively: passes, kernels, loops, LLVM, then the object in this process.

Many functions share one module where possible (a batch), because each module costs a link. The thread pool is the real
runtime, compiled once.
"""
from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as binding
import numpy as np

import cuvil
from cuvil import llvm, loops
from cuvil.ir.function import Function
from cuvil.ir.types import DType
from cuvil.passes.fuse import fuse

RUNTIME = Path(cuvil.__file__).parent / "runtime" / "threads.c"
NUMPY = {DType.BF16: np.uint16}


@lru_cache
def runtime_folder() -> Path:
    """Where the thread pool lies, as threads.o and as a library of its own, threads.so."""
    folder = Path(tempfile.mkdtemp(prefix="cuvil-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    compiler = [shutil.which("cc")] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
    subprocess.run([*compiler, "-O2", "-c", "-fPIC", "-DCUVIL_HIDDEN=", str(RUNTIME), "-o", str(folder / "threads.o")],
                   check=True, capture_output=True)
    subprocess.run([*compiler, "-shared", str(folder / "threads.o"), "-o", str(folder / "threads.so"), "-lpthread"],
                   check=True, capture_output=True)
    return folder


@lru_cache
def runtime() -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(runtime_folder() / "threads.so"))
    for name in ("cuvil_parallel_for", "cuvil_thread_memory"):
        binding.add_symbol(name, ctypes.cast(loaded[name], ctypes.c_void_p).value)
    return loaded


class Native:
    """A function compiled for a target; call it with arrays."""

    def __init__(self, function: Function, target: str = "cpu", opt_level: int = 2) -> None:
        runtime()
        self.function = function
        self.program = loops.program(fuse(function, opt_level), llvm.target(target))
        self.module = llvm.emit(self.program)
        image = self.module.object()
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(""), binding.Target.from_default_triple().create_target_machine(jit=True))
        self.engine.add_object_file(binding.ObjectFileRef.from_data(image))
        self.engine.finalize_object()
        signature = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5, ctypes.c_int32)
        self.main = signature(self.engine.get_function_address("cuvil_kernel_main"))
        self.pack = None
        if self.module.prepared:
            self.pack = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(
                self.engine.get_function_address("cuvil_kernel_pack"))

    def __call__(self, inputs, parameters=None, threads: int = 1) -> list[np.ndarray]:
        function = self.function
        given = [stored(a, op.type.dtype) for a, op in zip(inputs, function.inputs, strict=True)]
        weights = [stored(parameters[op.attr("name")], op.type.dtype) for op in function.parameters]
        results = [function.by_id[id].type for id in function.results]
        outputs = [np.full(t.shape, 77, NUMPY.get(t.dtype, t.dtype.numpy)) for t in results]
        scratch = aligned(self.module.scratch)
        if self.pack:
            packed = aligned(self.module.prepared)
            self.pack(pointers(weights), packed.ctypes.data, threads)
            weights = [*weights, packed]
        code = self.main(pointers(given), pointers(outputs), pointers(weights), None, scratch.ctypes.data, threads)
        if code:
            raise IndexError(self.module.checks[code - 1])
        return [read_back(o, t.dtype) for o, t in zip(outputs, results)]


def stored(array: np.ndarray, dtype: DType) -> np.ndarray:
    """An array as it lies in memory; bf16 is the upper half of f32."""
    if dtype == DType.BF16:
        return np.ascontiguousarray((np.asarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16))
    return np.ascontiguousarray(array, dtype.numpy)


def read_back(array: np.ndarray, dtype: DType) -> np.ndarray:
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == DType.BF16 else array


def aligned(size: int) -> np.ndarray:
    block = np.zeros(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start:start + size + 1] if size else block[start:start + 1]


def pointers(arrays) -> ctypes.Array:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
