"""The stages from source to native library, in order, each made on first use and kept.

    stages = Stages.of(function)            # a CIR function from any front end
    stages.optimized.history                # [(pass name, function after it)]
    stages.kernels                          # ir.kernel.KernelGraph
    stages.nests                            # loops.nest.Nest, one for each kernel
    stages.llvm, stages.assembly, stages.object
    stages.lineage                          # lineage.Lineage over all layers

This is the API for tools: panels, explain, compile and tests all read the same object. Import it, not the stages.
It refuses nothing itself; what a stage refuses is its CuvilError, raised where the stage is asked for.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from .diagnostics import CuvilError
from .ir.function import Function, Op
from .lineage import Element, Lineage, Origin
from .source import LineIndex, Span

if TYPE_CHECKING:
    from .ir.kernel import KernelGraph
    from .llvm import Line, LlvmModule
    from .loops.memory import Program
    from .loops.nest import Nest
    from .passes import Optimized


@dataclass(frozen=True)
class Stages:
    """One function on its way to one target. Immutable: other options make another object.

    function   as captured, its symbols replaced by `dims` where they were given
    sources    path -> text of the files that origins point into, for the source layer; read from disk where missing
    """

    function: Function
    target: str = "cpu"
    opt_level: int = 2
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, function: Function, target: str = "cpu", opt_level: int = 2, dims: Mapping[str, int] | None = None,
           sources: Mapping[str, str] | None = None) -> Stages:
        if opt_level not in (0, 1, 2):
            raise CuvilError(f"opt_level is {opt_level!r}", expected="0 (no fusion), 1 (no epilogues) or 2 (all)")
        return cls(function.substitute(dims) if dims else function, target, opt_level, sources or {})

    def at(self, **dims: int) -> Stages:
        """The same function for given sizes."""
        return replace(self, function=self.function.substitute(dims))

    @cached_property
    def optimized(self) -> Optimized:
        from . import passes
        return passes.run(self.function)

    @cached_property
    def kernels(self) -> KernelGraph:
        from .passes.fuse import fuse
        return fuse(self.optimized.function, self.opt_level, self.optimized.composites)

    @cached_property
    def program(self) -> Program:
        """Loop nests and the memory plan; sizes must be numbers by now."""
        from . import llvm, loops
        self._all_sizes_known()
        try:
            target = llvm.target(self.target)
        except ValueError as error:
            raise CuvilError(str(error), code="CUV004") from None
        return loops.program(self.kernels, target)

    @property
    def nests(self) -> tuple[Nest, ...]:
        return self.program.nests

    @cached_property
    def llvm(self) -> LlvmModule:
        from . import llvm
        return llvm.emit(self.program)

    @cached_property
    def assembly(self) -> tuple[Line, ...]:
        return tuple(self.llvm.assembly())

    @cached_property
    def object(self) -> bytes:
        return self.llvm.object()

    @cached_property
    def lineage(self) -> Lineage:
        """All layers; those that cannot be made (symbolic sizes, a refused op) are left out, `problems` says why."""
        elements: list[Element] = []
        origins: dict[str, tuple[str, ...]] = {}
        for layer in (self._text_layers, self._ir_layer, self._kernel_layer, self._loop_layer, self._llvm_layer, self._asm_layer):
            try:
                for element, sources in layer():
                    elements.append(element)
                    if sources:
                        origins[element.id] = tuple(dict.fromkeys(sources))
            except CuvilError:
                break
        return Lineage(tuple(elements), origins)

    @cached_property
    def problems(self) -> dict[str, CuvilError]:
        """Layer -> why it cannot be made."""
        found: dict[str, CuvilError] = {}
        for layer, make in (("kernel", "kernels"), ("loop", "nests"), ("llvm", "llvm"), ("asm", "assembly")):
            try:
                getattr(self, make)
            except CuvilError as error:
                found[layer] = error
        return found

    def _all_sizes_known(self) -> None:
        symbols = self.function.symbols
        if symbols:
            names = ", ".join(symbols)
            raise CuvilError(f"{self.function.name} has no sizes for {names}", self.function.origin and self.function.origin.span,
                             "a number for each symbolic size", f"give shapes: input_shapes={{...}} or --shape; sizes needed: {names}",
                             code="CUV003")

    # The layers: elements in reading order, each with the ids it came from.

    def _text_layers(self) -> Iterator[tuple[Element, tuple[str, ...]]]:
        spans = dict.fromkeys((o.span, o.node) for op in self.optimized.function.ops for o in origin_chain(op))
        if self.function.origin is not None:
            spans[self.function.origin.span, self.function.origin.node or "FunctionDef"] = None
        home = self._home
        texts = _Texts(self.sources)
        lines = sorted({(span.path != home, span.path, n) for span, _ in spans for n in range(span.line, span.end_line + 1)})
        for _, path, number in lines:
            end = texts.line(path, number)
            yield Element(line_id(path, number, home), "source", end, None, Span(path, number, 0, number, len(end))), ()
        enclosing: list[tuple[Span, str]] = []
        for span, node in sorted(spans, key=lambda s: (s[0].path != home, s[0].path, s[0].line, s[0].column, -s[0].end_line, -s[0].end_column, s[1])):
            while enclosing and not enclosing[-1][0].encloses(span):
                enclosing.pop()
            id = cst_id(span, node, home)
            yield (Element(id, "cst", f"{node or 'Expression'} {texts.slice(span)}", enclosing[-1][1] if enclosing else None, span),
                   tuple(line_id(span.path, n, home) for n in range(span.line, span.end_line + 1)))
            enclosing.append((span, id))

    def _ir_layer(self) -> Iterator[tuple[Element, tuple[str, ...]]]:
        from .ir.text import print_op
        for op in self.optimized.function.ops:
            yield (Element(f"ir:%{op.id}", "ir", print_op(op), note="" if op.origins else "made by the compiler"),
                   tuple(cst_id(o.span, o.node, self._home) for o in origin_chain(op)))

    def _kernel_layer(self) -> Iterator[tuple[Element, tuple[str, ...]]]:
        for kernel in self.kernels.kernels:
            yield (Element(f"kernel:{kernel.name}", "kernel", f"{kernel.name} ({kernel.kind}, {len(kernel.ops)} ops)"),
                   tuple(f"ir:%{id}" for id in kernel.ops))

    def _loop_layer(self) -> Iterator[tuple[Element, tuple[str, ...]]]:
        from .loops.nest import line
        for nest in self.nests:
            parents: list[str] = []
            for depth, statement in nest.statements:
                del parents[depth:]
                yield (Element(statement.id, "loop", line(statement), parents[-1] if parents else None),
                       (f"kernel:{nest.kernel}", *statement.origins))
                parents.append(statement.id)

    def _llvm_layer(self) -> Iterator[tuple[Element, tuple[str, ...]]]:
        for line in self.llvm.lines:
            yield Element(line.id, "llvm", line.text, note=line.note), line.origins

    def _asm_layer(self) -> Iterator[tuple[Element, tuple[str, ...]]]:
        for line in self.assembly:
            yield Element(line.id, "asm", line.text, note=line.note), line.origins

    @property
    def _home(self) -> str:
        """The file of the function; places in other files carry their path in ids."""
        return self.function.origin.span.path if self.function.origin else ""


def origin_chain(op: Op) -> Iterator[Origin]:
    """The places an op comes from, and the calls through which each was inlined."""
    for origin in op.origins:
        yield origin
        for caller in origin.callers:
            yield Origin(caller, "Call")


def line_id(path: str, number: int, home: str = "") -> str:
    return f"source:{number}" if path == home else f"source:{path}:{number}"


def cst_id(span: Span, node: str, home: str = "") -> str:
    """ "cst:4:11-4:20:BinaryOperation"; lines from 1 and columns from 0, as in Span."""
    where = "" if span.path == home else f"{span.path}:"
    return f"cst:{where}{span.line}:{span.column}-{span.end_line}:{span.end_column}:{node}"


class _Texts:
    """The texts of the files, given or on disk; a file that cannot be read shows empty lines."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self._indexes: dict[str, LineIndex] = {}

    def line(self, path: str, number: int) -> str:
        return self._index(path).line(number)

    def slice(self, span: Span) -> str:
        """The first line of the piece of text."""
        text = self.line(span.path, span.line)
        return text[span.column:span.end_column] if span.line == span.end_line else text[span.column:] + " ..."

    def _index(self, path: str) -> LineIndex:
        if path not in self._indexes:
            text = self._given.get(path)
            if text is None:
                try:
                    with open(path, encoding="utf-8") as file:
                        text = file.read()
                except (OSError, ValueError):
                    text = ""
            self._indexes[path] = LineIndex(text)
        return self._indexes[path]
