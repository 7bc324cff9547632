"""A program as one LLVM module: text, lines with their origins, object code, assembly.

The entry point is `int32_t cuvil_kernel_main(void** inputs, void** outputs, void** parameters, const int64_t* dims,
void* scratch, int32_t threads)`. It runs the kernels in order, parallel phases through the runtime's `cuvil_parallel_for`,
and returns 0, or a number from 1 that counts `checks`: what was wrong with the data. scratch has `module.scratch` bytes. With
`module.prepared` > 0, `parameters` has one pointer more at its end, to that many bytes which
`int32_t cuvil_kernel_pack(void** parameters, void* prepared, int32_t threads)` has filled once; both blocks are aligned to 64
bytes. The runtime gives each thread memory for panels (`cuvil_thread_memory`). Nothing is global, so any number of runs may go
on at once. Outputs must not overlap inputs.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..diagnostics import CuvilError
from ..loops.memory import Home, Program
from ..loops.nest import Loop, Statement
from ..source import Span
from ..targets import Target
from . import host
from .debug import Debug
from .statements import ERROR, FIRST_VALUE, Phase
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

    @property
    def scratch(self) -> int:
        """Bytes of the scratch block one run needs, aligned to 64."""
        return self.program.scratch

    @property
    def prepared(self) -> int:
        """Bytes of packed parameters; 0: there is no cuvil_kernel_pack."""
        return self.program.prepared

    @property
    def target(self) -> Target:
        return self.program.target

    @property
    def triple(self) -> str:
        return host.machine(self.target).triple

    @property
    def version(self) -> str:
        return host.version()

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
    """The module for a program on a CPU; gpu.py is for the other targets."""
    return _Emitter(program, entry, pack).module()


class _Emitter:
    def __init__(self, program: Program, entry: str, pack: str) -> None:
        self.program, self.entry, self.pack = program, entry, pack
        self.debug = Debug()
        self.declares: dict[str, str] = {}
        self.checks: list[str] = []
        self.functions: list[str] = []
        self.slots = {key: FIRST_VALUE + i for i, key in enumerate(program.homes)}
        self.names: dict[str, int] = {}
        self.spans = {f"ir:%{op.id}": op.origins[0].span for op in program.function.ops if op.origins}

    def module(self) -> LlvmModule:
        prepared = [self._phase(f"{nest.kernel}_prepare", p) for nest in self.program.nests for p in phases(nest.prepare)]
        running = [self._phase(nest.kernel, p) for nest in self.program.nests for p in phases(nest.body)]
        self._main(running)
        if self.program.prepared:
            self._pack(prepared)
        declares = "\n".join(sorted(self.declares.values()))
        attributes = ('attributes #0 = { noinline nounwind uwtable(sync) "frame-pointer"="none" }\n'
                      "attributes #1 = { nounwind willreturn memory(none) }")
        text = "\n\n".join([f'source_filename = "{self.program.function.name}"', *self.functions, declares, attributes, self.debug.text])
        return LlvmModule(text, self.program, tuple(self.checks), tuple(self.debug.statements))

    def _phase(self, name: str, statements: tuple[Statement, ...]) -> tuple[str, int | None]:
        """Writes a function; gives its name and how many rounds it has to share among threads (None: serial)."""
        count = self.names[name] = self.names.get(name, -1) + 1
        name += f".{count}" if count else ""
        w = Writer(self.program.target, self.declares)
        span = self._span(statements[0])
        subprogram = self.debug.subprogram(name, span)

        def locate(statement: Statement) -> None:
            w.location = f", !dbg {self.debug.location(subprogram, self._span(statement) or span, statement.id)}"

        locate(statements[0])
        phase = Phase(w, self.program.target, self.slots, locate, self._check)
        if is_parallel(statements[0]):
            phase.phase(statements[0])
        else:
            phase.write(statements)
        locate(statements[0])
        w.put("ret void")
        self.functions.append(w.function(name, "ptr %context, i64 %begin, i64 %end, i64 %thread", "internal void", f" !dbg {subprogram}"))
        return name, statements[0].extent.value if is_parallel(statements[0]) else None

    def _span(self, statement: Statement) -> Span | None:
        return next((self.spans[o] for o in statement.origins if o in self.spans), None)

    def _check(self, what: str) -> int:
        if what not in self.checks:
            self.checks.append(what)
        return self.checks.index(what) + 1

    def _main(self, running: list[tuple[str, int | None]]) -> None:
        program = self.program
        w = self._entry(self.entry)
        error = self._run(w, running, "%parameters")
        for id, output in program.copies:
            size = program.function.by_id[id].type.nbytes
            if (id, "value") not in program.homes:
                raise CuvilError(f"result %{id} of {program.function.name} is made by no kernel")
            self.declares["@llvm.memcpy.p0.p0.i64"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
            source = self._home(w, program.homes[id, "value"], "%parameters")
            w.put(f"call void @llvm.memcpy.p0.p0.i64(ptr {self._table(w, '%outputs', output)}, ptr {source}, i64 {size}, i1 false)")
        w.put(f"ret {w.make(f'load i32, ptr {error}', 'i32')}")
        self.functions.append(w.function(
            self.entry, "ptr %inputs, ptr %outputs, ptr %parameters, ptr %dims, ptr %scratch, i32 %threads", "hidden i32",
            f" !dbg {self.subprogram}"))

    def _pack(self, prepared: list[tuple[str, int | None]]) -> None:
        """Parameters are read from their table, the packed block is written."""
        w = self._entry(self.pack)
        error = self._run(w, prepared, None)
        w.put(f"ret {w.make(f'load i32, ptr {error}', 'i32')}")
        self.functions.append(w.function(self.pack, "ptr %parameters, ptr %prepared, i32 %threads", "hidden i32", f" !dbg {self.subprogram}"))

    def _entry(self, name: str) -> Writer:
        origin = self.program.function.origin
        w = Writer(self.program.target, self.declares)
        self.subprogram = self.debug.subprogram(name, origin and origin.span)
        w.location = f", !dbg {self.debug.location(self.subprogram, origin and origin.span, '')}"
        return w

    def _run(self, w: Writer, functions: list[tuple[str, int | None]], packed_in: str | None) -> str:
        """Fills the context and calls the phases in order; gives the place of the error word."""
        context = w.alloca("ptr", FIRST_VALUE + max(len(self.program.homes), 1), 8)
        error = w.alloca("i32", 1, 4)
        w.put(f"store i32 0, ptr {error}")
        self._slot(w, context, ERROR, error)
        for key, home in self.program.homes.items():
            if packed_in or home.kind in ("parameter", "packed"):
                self._slot(w, context, self.slots[key], self._home(w, home, packed_in))
        for name, rounds in functions:
            if rounds is None:
                w.put(f"call void @{name}(ptr {context}, i64 0, i64 1, i64 0)")
            else:
                self.declares["@cuvil_parallel_for"] = "declare hidden void @cuvil_parallel_for(ptr, ptr, i64, i32)"
                w.put(f"call void @cuvil_parallel_for(ptr @{name}, ptr {context}, i64 {rounds}, i32 %threads)")
        return error

    def _slot(self, w: Writer, context: str, slot: int, pointer: str) -> None:
        place = w.name()
        w.put(f"{place} = getelementptr inbounds ptr, ptr {context}, i64 {slot}")
        w.put(f"store ptr {pointer}, ptr {place}")

    def _home(self, w: Writer, home: Home, packed_in: str | None) -> str:
        if home.kind == "scratch":
            return self._at(w, "%scratch", home.position)
        if home.kind == "packed":
            base = self._table(w, packed_in, len(self.program.function.parameters)) if packed_in else "%prepared"
            return self._at(w, base, home.position)
        return self._table(w, {"input": "%inputs", "output": "%outputs", "parameter": "%parameters"}[home.kind], home.position)

    def _table(self, w: Writer, table: str, index: int) -> str:
        place = self._at(w, table, 8 * index)
        return w.make(f"load ptr, ptr {place}, align 8", "ptr").text

    def _at(self, w: Writer, base: str, offset: int) -> str:
        return w.address(base, "i8", Value(str(offset), "i64"))


def phases(body: tuple[Statement, ...]) -> list[tuple[Statement, ...]]:
    """Runs of statements that one function holds: a parallel loop each, serial ones together."""
    found: list[list[Statement]] = []
    open = False
    for statement in body:
        if is_parallel(statement) or not open:
            found.append([])
        found[-1].append(statement)
        open = not is_parallel(statement)
    return [tuple(p) for p in found]


def is_parallel(statement: Statement) -> bool:
    return isinstance(statement, Loop) and statement.kind == "parallel"
