"""The lineage graph of a function: the elements of every layer in reading order, each with the ids of those it came from.

Nothing is left out silently: an element without an origin says why in its note, and layers end where a stage refuses.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..diagnostics import CuvilError
from ..ir.function import Op
from ..lineage import Element, Lineage, Origin
from ..source import LineIndex, Span

if TYPE_CHECKING:
    from .stages import Stages

Layer = Iterator[tuple[Element, tuple[str, ...]]]


def lineage(stages: Stages) -> Lineage:
    """All layers that can be made; Stages.problems says why the others are missing."""
    elements: list[Element] = []
    origins: dict[str, tuple[str, ...]] = {}
    for layer in (_text_layers, _ir_layer, _kernel_layer, _loop_layer, _llvm_layer, _asm_layer):
        try:
            for element, sources in layer(stages):
                elements.append(element)
                if sources:
                    origins[element.id] = tuple(dict.fromkeys(sources))
        except CuvilError:
            break
    return Lineage(tuple(elements), origins)


def home(stages: Stages) -> str:
    """The file of the function; places in other files carry their path in ids."""
    return stages.function.origin.span.path if stages.function.origin else ""


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


def _text_layers(stages: Stages) -> Layer:
    spans = dict.fromkeys((o.span, o.node) for op in stages.optimized.function.ops for o in origin_chain(op))
    if stages.function.origin is not None:
        spans[stages.function.origin.span, stages.function.origin.node or "FunctionDef"] = None
    here = home(stages)
    texts = _Texts(stages.sources)
    lines = sorted({(span.path != here, span.path, n) for span, _ in spans for n in range(span.line, span.end_line + 1)})
    for _, path, number in lines:
        end = texts.line(path, number)
        yield Element(line_id(path, number, here), "source", end, None, Span(path, number, 0, number, len(end))), ()
    enclosing: list[tuple[Span, str]] = []
    for span, node in sorted(spans, key=lambda s: (s[0].path != here, s[0].path, s[0].line, s[0].column, -s[0].end_line, -s[0].end_column, s[1])):
        while enclosing and not enclosing[-1][0].encloses(span):
            enclosing.pop()
        id = cst_id(span, node, here)
        yield (Element(id, "cst", f"{node or 'Expression'} {texts.slice(span)}", enclosing[-1][1] if enclosing else None, span),
               tuple(line_id(span.path, n, here) for n in range(span.line, span.end_line + 1)))
        enclosing.append((span, id))


def _ir_layer(stages: Stages) -> Layer:
    from ..ir.text import print_op
    here = home(stages)
    for op in stages.optimized.function.ops:
        yield (Element(f"ir:%{op.id}", "ir", print_op(op), note="" if op.origins else "made by the compiler"),
               tuple(cst_id(o.span, o.node, here) for o in origin_chain(op)))


def _kernel_layer(stages: Stages) -> Layer:
    for kernel in stages.kernels.kernels:
        yield (Element(f"kernel:{kernel.name}", "kernel", f"{kernel.name} ({kernel.kind}, {len(kernel.ops)} ops)"),
               tuple(f"ir:%{id}" for id in kernel.ops))


def _loop_layer(stages: Stages) -> Layer:
    from ..loops.nest import line
    for nest in stages.nests:
        parents: list[str] = []
        for depth, statement in nest.statements:
            del parents[depth:]
            yield (Element(statement.id, "loop", line(statement), parents[-1] if parents else None),
                   (f"kernel:{nest.kernel}", *statement.origins))
            parents.append(statement.id)


def _llvm_layer(stages: Stages) -> Layer:
    for line in stages.llvm.lines:
        yield Element(line.id, "llvm", line.text, note=line.note), line.origins


def _asm_layer(stages: Stages) -> Layer:
    for line in stages.assembly:
        yield Element(line.id, "asm", line.text, note=line.note), line.origins
