"""Device code for GPUs: PTX through LLVM's NVPTX back end, SPIR-V through its SPIR-V back end.

Each phase of a nest is one kernel whose parallel loop has a thread for every round: an element of an elementwise kernel, a
row of a reduction. Kernels take pointers to the values they touch, in the order GpuKernel.arguments says, and are launched
in order, `threads` rounded up to whole blocks. Scalar functions are those of functions.py; what needs the C library, a
matmul, a convolution, or a check of gathered positions is refused.
"""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..diagnostics import CuvilError
from ..loops.memory import Home, Program
from ..loops.nest import Buffer, Check, Loop, Nest, Statement
from ..source import Span
from . import host, spirv
from .debug import Debug
from .module import Line, phases
from .statements import Phase
from .writer import Value, Writer

BLOCK = 256                                              # threads of a block; a multiple of every warp size


@dataclass(frozen=True)
class GpuKernel:
    """threads: how many are needed; arguments: where each pointer's value lies, in order."""

    name: str
    threads: int
    arguments: tuple[Home, ...]

    @property
    def grid(self) -> tuple[int, int]:
        """(blocks, threads of a block)"""
        return -(-self.threads // BLOCK), BLOCK


@dataclass(frozen=True)
class GpuModule:
    """source: the LLVM text as written. `code` is PTX text for CUDA, a SPIR-V binary for OpenCL; suffix is its file's."""

    source: str
    program: Program
    kernels: tuple[GpuKernel, ...]
    statements: tuple[str, ...]

    @property
    def suffix(self) -> str:
        return ".ptx" if self.program.target.kind == "cuda" else ".spv"

    @property
    def scratch(self) -> int:
        return self.program.scratch

    @property
    def target(self):
        return self.program.target

    @property
    def triple(self) -> str:
        return self.program.target.triple

    @property
    def version(self) -> str:
        return host.version()

    @cached_property
    def text(self) -> str:
        """The optimised module."""
        return self._made[0]

    @property
    def code(self) -> bytes:
        return self._made[1]

    def object(self) -> bytes:
        return self.code

    @cached_property
    def _made(self) -> tuple[str, bytes]:
        module = host.parse(self.source, self.program.target)
        host.optimise(module, self.program.target)
        text = str(module)
        if self.program.target.kind == "cuda":
            return text, host.machine(self.program.target).emit_assembly(module).encode()
        return text, spirv.emit(text)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        from .lines import llvm_lines
        return llvm_lines(self)

    def assembly(self) -> tuple[Line, ...]:
        """PTX instructions with the LLVM lines they came from; SPIR-V is a binary and has no lines."""
        from .lines import ptx_lines
        return ptx_lines(self) if self.program.target.kind == "cuda" else ()

    def cubin(self) -> bytes | None:
        """Machine code of the GPU, where NVIDIA's assembler is on the PATH; None elsewhere. CuvilError when it refuses the PTX."""
        ptxas = shutil.which("ptxas")
        if ptxas is None or self.program.target.kind != "cuda":
            return None
        with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
            (Path(folder) / "k.ptx").write_bytes(self.code)
            done = subprocess.run([ptxas, f"-arch={self.program.target.cpu}", "k.ptx", "-o", "k.cubin"], cwd=folder, capture_output=True,
                                  text=True, timeout=120, stdin=subprocess.DEVNULL)
            if done.returncode:
                raise CuvilError(f"ptxas refuses the PTX of {self.program.function.name}: {done.stderr.strip()[:400]}", code="CUV005")
            return (Path(folder) / "k.cubin").read_bytes()


def emit(program: Program) -> GpuModule:
    """The module for a program on a GPU target. CuvilError, with its place, for a kernel that cannot run there."""
    debug = Debug(kind="DebugDirectivesOnly")
    declares: dict[str, str] = {}
    spans = {f"ir:%{op.id}": op.origins[0].span for op in program.function.ops if op.origins}
    functions, kernels = [], []
    for nest in program.nests:
        for statements in phases(nest.body):
            text, kernel = _kernel(program, nest, statements, debug, declares, spans)
            functions.append(text)
            kernels.append(kernel)
    cuda = program.target.kind == "cuda"
    attributes = "attributes #0 = { nounwind }\nattributes #1 = { nounwind }"
    parts = [f'source_filename = "{program.function.name}"', *functions, "\n".join(sorted(declares.values())), attributes]
    return GpuModule("\n\n".join([*parts, debug.text] if cuda else parts), program, tuple(kernels), tuple(debug.statements))


def _kernel(program: Program, nest: Nest, statements: tuple[Statement, ...], debug: Debug, declares: dict[str, str],
            spans: dict[str, Span]) -> tuple[str, GpuKernel]:
    loop, target = statements[0], program.target
    span = next((spans[o] for o in nest.origins if o in spans), None)
    if len(statements) != 1 or not isinstance(loop, Loop) or loop.kind != "parallel":
        raise CuvilError(f"kernel {nest.kernel} has steps that are not one parallel loop, which {target.name} does not run", span, code="CUV005")
    if any(isinstance(s, Check) for _, s in nest.statements):
        raise CuvilError(f"kernel {nest.kernel} gathers at positions that must be checked, which is not compiled for {target.name}", span,
                         "positions that are known to be inside", "compile for the target cpu", "CUV005")
    name = nest.kernel
    cuda = target.kind == "cuda"
    w = Writer(target, declares, memory="ptr addrspace(1)")
    subprogram = debug.subprogram(name, span) if cuda else ""

    def locate(statement: Statement) -> None:
        if cuda:
            place = next((spans[o] for o in statement.origins if o in spans), span)
            w.location = f", !dbg {debug.location(subprogram, place, statement.id)}"

    locate(loop)
    phase = _Thread(w, target, {}, locate, lambda what: 0)
    index = _thread_index(w, cuda)
    inside, done = w.label("inside"), w.label("done")
    w.branch(w.compare("slt", index, loop.extent.value), inside, done)
    w.start(inside)
    phase.variables[loop.var] = index
    try:
        phase.write(loop.body)
    except CuvilError as error:
        raise CuvilError(f"kernel {nest.kernel}: {error.what}", error.span or span, error.expected, error.hint, error.code) from None
    locate(loop)
    w.jump(done)
    w.start(done)
    w.put("ret void")
    arguments = ", ".join(f"ptr addrspace(1) {a}" for a in phase.arguments.values())
    text = w.function(name, arguments, "ptx_kernel void" if cuda else "spir_kernel void", f" !dbg {subprogram}" if cuda else "")
    return text, GpuKernel(name, loop.extent.value, tuple(program.homes[key] for key in phase.arguments))


def _thread_index(w: Writer, cuda: bool) -> Value:
    if not cuda:
        w.declares["@_Z13get_global_idj"] = "declare spir_func i64 @_Z13get_global_idj(i32) #1"
        return w.make("call spir_func i64 @_Z13get_global_idj(i32 0)", "i64")
    parts = []
    for register in ("ctaid", "ntid", "tid"):
        name = f"@llvm.nvvm.read.ptx.sreg.{register}.x"
        w.declares[name] = f"declare i32 {name}()"
        parts.append(w.convert("zext", w.make(f"call i32 {name}()", "i32"), "i64"))
    block, size, thread = parts
    return w.op("add", w.op("mul", block, size), thread)


class _Thread(Phase):
    """A phase whose values come as arguments."""

    @property
    def arguments(self) -> dict[tuple[int, str], str]:
        return self.pointers

    def pointer(self, buffer: Buffer) -> str:
        return self.pointers.setdefault((buffer.value, buffer.role), f"%value{len(self.pointers)}")
