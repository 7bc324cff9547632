"""A program as one LLVM module: text, lines with their origins, object code, assembly.

The entry point is `int32_t cuvil_kernel_main(void** inputs, void** outputs, void** parameters, const int64_t* dims,
void* scratch, int32_t threads)`. It runs the kernels in order, parallel phases through the runtime's `cuvil_parallel_for`,
and returns 0, or a number from 1 that counts `checks`: what was wrong with the data. scratch has `scratch_bytes(threads)`
bytes. With packed parameters, `parameters` has one pointer more, to `packed_bytes` bytes that
`void cuvil_kernel_pack(void** parameters, void* packed, int32_t threads)` has filled. Nothing is allocated, nothing is
global, so any number of runs may go on at once. Outputs must not overlap inputs.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..diagnostics import CuvilError
from ..loops.memory import Program
from ..loops.nest import Gemm, Loop, Nest, Statement
from ..source import Span
from . import host
from .debug import Debug
from .statements import ERROR, FIRST_VALUE, THREAD_SCRATCH, Phase
from .writer import Value, Writer

ENTRY = "cuvil_kernel_main"
PACK = "cuvil_kernel_pack"


@dataclass(frozen=True)
class Line:
    """A line of LLVM or assembly text. origins: ids of the loop statements, or of the LLVM lines, it came from; else note says why none."""

    id: str
    text: str
    origins: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class LlvmModule:
    """source: the text as written, with debug locations; checks: what each error code means, from 1; statements: loop statement
    ids by discriminator - 1."""

    source: str
    program: Program
    checks: tuple[str, ...]
    statements: tuple[str, ...]

    def scratch_bytes(self, threads: int) -> int:
        return self.program.scratch_bytes(threads)

    @property
    def packed_bytes(self) -> int:
        return self.program.packed

    @cached_property
    def text(self) -> str:
        """The optimised module."""
        return self._optimised[0]

    def object(self) -> bytes:
        """The object file, position independent."""
        return self._optimised[1]

    @cached_property
    def _optimised(self) -> tuple[str, bytes]:
        module = host.parse(self.source, self.program.target)
        host.optimise(module, self.program.target)
        return str(module), host.machine(self.program.target).emit_object(module)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        from .lines import llvm_lines
        return llvm_lines(self)

    def assembly(self) -> tuple[Line, ...]:
        from .lines import assembly_lines
        return assembly_lines(self)


def emit(program: Program, entry: str = ENTRY, pack: str = PACK) -> LlvmModule:
    """The module for a program. CuvilError for element types that the target cannot compute in."""
    return _Emitter(program, entry, pack).module()


class _Emitter:
    def __init__(self, program: Program, entry: str, pack: str) -> None:
        self.program, self.entry, self.pack = program, entry, pack
        self.debug = Debug()
        self.declares: dict[str, str] = {}
        self.checks: list[str] = []
        self.functions: list[str] = []
        self.slots = {id: FIRST_VALUE + i for i, id in enumerate(program.homes)}
        self.spans = {f"ir:%{op.id}": op.origins[0].span for op in program.function.ops if op.origins}

    def module(self) -> LlvmModule:
        phases = [self._phase(nest, i, statement) for nest in self.program.nests for i, statement in enumerate(self._phases(nest))]
        self._main(phases)
        declares = "\n".join(sorted(self.declares.values()))
        text = "\n\n".join([
            f'source_filename = "{self.program.function.name}"', "@cuvil_nothing = internal constant [64 x i8] zeroinitializer, align 64",
            *self.functions, declares,
            'attributes #0 = { nounwind uwtable(sync) "frame-pointer"="none" }\nattributes #1 = { nounwind willreturn memory(none) }', self.debug.text])
        return LlvmModule(text, self.program, tuple(self.checks), tuple(self.debug.statements))

    def _phases(self, nest: Nest) -> list[tuple[Statement, ...]]:
        """Runs of statements that one function holds: a parallel loop each, serial ones together."""
        phases: list[list[Statement]] = []
        open = False
        for statement in nest.body:
            parallel = is_parallel(statement)
            if parallel or not open:
                phases.append([])
            phases[-1].append(statement)
            open = not parallel
        return [tuple(p) for p in phases]

    def _phase(self, nest: Nest, index: int, statements: tuple[Statement, ...]) -> tuple[str, int | None, str]:
        """Writes a function; gives its name, how many rounds it has to share among threads (None: serial), a location for its call."""
        name = nest.kernel + (f"_{index}" if index else "")
        w = Writer(self.program.target.fma, self.declares)
        span = self._span(statements[0])
        subprogram = self.debug.subprogram(name, span)

        def locate(statement: Statement) -> None:
            w.location = f", !dbg {self.debug.location(subprogram, self._span(statement) or span, statement.id)}"

        locate(statements[0])
        phase = Phase(w, self.slots, locate, self._check)
        if is_parallel(statements[0]):
            phase.phase(statements[0])
        else:
            phase.write(statements)
        locate(statements[0])
        w.put("ret void")
        self.functions.append(w.function(name, "ptr %context, i64 %begin, i64 %end, i64 %thread", "internal void", f" !dbg {subprogram}"))
        rounds = None
        if is_parallel(statements[0]):
            rounds = statements[0].tasks if isinstance(statements[0], Gemm) else statements[0].extent.value
        return name, rounds, w.location

    def _span(self, statement: Statement) -> Span | None:
        return next((self.spans[o] for o in statement.origins if o in self.spans), None)

    def _check(self, what: str) -> int:
        if what not in self.checks:
            self.checks.append(what)
        return self.checks.index(what) + 1

    def _main(self, phases: list[tuple[str, int | None, str]]) -> None:
        program = self.program
        w = Writer(program.target.fma, self.declares)
        subprogram = self.debug.subprogram(self.entry, program.function.origin and program.function.origin.span)
        w.location = f", !dbg {self.debug.location(subprogram, program.function.origin and program.function.origin.span, '')}"
        context = w.alloca("ptr", FIRST_VALUE + max(len(program.homes), 1), 8)
        error = w.alloca("i32", 1, 4)
        w.put(f"store i32 0, ptr {error}")
        self._slot(w, context, ERROR, error)
        self._slot(w, context, THREAD_SCRATCH, self._at(w, "%scratch", program.scratch))
        for id, home in program.homes.items():
            self._slot(w, context, self.slots[id], self._home(w, id))
        for name, rounds, _ in phases:
            if rounds is None:
                w.put(f"call void @{name}(ptr {context}, i64 0, i64 1, i64 0)")
            else:
                self.declares["@cuvil_parallel_for"] = "declare hidden void @cuvil_parallel_for(ptr, ptr, i64, i32)"
                w.put(f"call void @cuvil_parallel_for(ptr @{name}, ptr {context}, i64 {rounds}, i32 %threads)")
        for id, output in program.copies:
            size = program.function.by_id[id].type.nbytes
            if id not in program.homes:
                raise CuvilError(f"result %{id} of {program.function.name} is made by no kernel")
            self.declares["@llvm.memcpy.p0.p0.i64"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
            w.put(f"call void @llvm.memcpy.p0.p0.i64(ptr {self._table(w, '%outputs', output)}, ptr {self._home(w, id)}, i64 {size}, i1 false)")
        result = w.make(f"load i32, ptr {error}", "i32")
        w.put(f"ret {result}")
        self.functions.append(w.function(
            self.entry, "ptr %inputs, ptr %outputs, ptr %parameters, ptr %dims, ptr %scratch, i32 %threads", "hidden i32", f" !dbg {subprogram}"))

    def _slot(self, w: Writer, context: str, slot: int, pointer: str) -> None:
        place = w.name()
        w.put(f"{place} = getelementptr inbounds ptr, ptr {context}, i64 {slot}")
        w.put(f"store ptr {pointer}, ptr {place}")

    def _home(self, w: Writer, id: int) -> str:
        home = self.program.homes[id]
        match home.kind:
            case "scratch":
                return self._at(w, "%scratch", home.position)
            case "packed":
                return self._at(w, self._table(w, "%parameters", len(self.program.function.parameters)), home.position)
        return self._table(w, {"input": "%inputs", "output": "%outputs", "parameter": "%parameters"}[home.kind], home.position)

    def _table(self, w: Writer, table: str, index: int) -> str:
        place = self._at(w, table, 8 * index)
        return w.make(f"load ptr, ptr {place}, align 8", "ptr").text

    def _at(self, w: Writer, base: str, offset: int) -> str:
        return w.address(base, "i8", Value(str(offset), "i64"))


def is_parallel(statement: Statement) -> bool:
    return isinstance(statement, Loop) and statement.kind == "parallel" or isinstance(statement, Gemm) and statement.parallel
