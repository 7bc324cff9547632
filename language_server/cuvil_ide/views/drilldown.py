"""Drilldown: one function in all its layers, side by side, with the lineage that links them.

Every column says how much of it is mapped and what made it. When a stage cannot be made, the columns before it still show, and
the first column that is missing says why and where.
"""
from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError
from cuvil.lineage import LAYERS, Element
from cuvil.pipeline import cst_id, line_id, origin_chain
from cuvil.source import Source, Span

from ..protocol import Column, ColumnElement, DrilldownPayload, Graph, PanelInfo, Scope
from ..session import read
from .graph import draw, kernel_id, op_id
from .scopes import scopes
from .subject import Subject, failed, place

if TYPE_CHECKING:
    from cuvil.ir.function import Function, Op
    from cuvil.ir.kernel import KernelGraph

INFO = PanelInfo("drilldown", "Drilldown", "What did my line become?")
HIGHLIGHT_DEPTH = 3
EMITTED = {"kernel": "kernels", "loop": "loops"}            # what `cuvil compile --emit` calls them
WRAPPERS = {"IndentedBlock", "SimpleStatementLine", "SimpleStatementSuite"}      # each line again: what is in them hangs on what is around
TITLES = {"source": "Source", "cst": "Syntax", "ir": "Tensor IR", "kernel": "Kernels", "loop": "Loops", "llvm": "LLVM", "asm": "Assembly"}


def payload(subject: Subject) -> DrilldownPayload:
    names = scopes(subject.facts, subject.function)
    shown = _Layers(subject.path, {subject.path: subject.facts.source})
    symbols = _text(subject, names, shown)
    problems: dict[str, CuvilError] = {}
    graph = Graph([], [], 0.0, 0.0)
    if subject.concrete is not None:
        try:
            _lineage(subject, shown)
            problems = {"loop": subject.misfit} if subject.misfit else dict(subject.concrete.problems)
        except Exception as error:           # a defect in a late stage costs that stage and those after it, not the panel
            problems["loop"] = failed(error, subject.function)
            _function(subject.concrete.optimized.function, shown)
            _kernels(subject.concrete.kernels, shown)
        graph = draw(subject.symbolic.function, subject.symbolic, {i: c.name for i, c in subject.concrete.optimized.composites.items()})
    else:
        problems["kernel"] = subject.refusal
        if subject.function.function is not None:
            _function(subject.function.function, shown)
            graph = draw(subject.function.function, None)
        else:
            problems["ir"] = subject.refusal
    return DrilldownPayload(
        "drilldown", subject.path, subject.name, subject.functions, subject.version, subject.stale,
        [_column(subject, layer, shown, problems, symbols) for layer in LAYERS], shown.edges(), graph,
        {id: names[key] for id, key in symbols.items()}, HIGHLIGHT_DEPTH)


class _Layers:
    """Elements layer by layer, each once, and what they came from. home: the file whose places need no path in their ids."""

    def __init__(self, home: str, sources: dict[str, Source]) -> None:
        self.home, self.sources = home, sources
        self.elements: dict[str, list[Element]] = {layer: [] for layer in LAYERS}
        self.origins: dict[str, tuple[str, ...]] = {}
        self.present: set[str] = set()

    def add(self, element: Element, origins: tuple[str, ...] = ()) -> None:
        if element.id in self.present:
            return
        self.present.add(element.id)
        self.elements[element.layer].append(element)
        if origins:
            self.origins[element.id] = origins

    def node(self, span: Span, kind: str, text: str = "", parent: str | None = None) -> str:
        """A syntax node and, before it, the lines it stands on. Its id."""
        id = cst_id(span, kind, self.home)
        if id not in self.present:
            lines = range(span.line, span.end_line + 1)
            for number in lines:
                line = self.text(span.path).line(number)
                self.add(Element(line_id(span.path, number, self.home), "source", line, None, Span(span.path, number, 0, number, len(line))))
            shown = text or self.text(span.path).slice(span).partition("\n")[0]
            self.add(Element(id, "cst", f"{kind} {shown}".rstrip(), parent, span), tuple(line_id(span.path, n, self.home) for n in lines))
        return id

    def text(self, path: str) -> Source:
        if path not in self.sources:
            try:
                self.sources[path] = Source(path, read(path))
            except CuvilError:               # a helper's file that is gone: its places stay, without their text
                self.sources[path] = Source(path, "")
        return self.sources[path]

    def edges(self) -> dict[str, list[str]]:
        """An edge to something that is not shown would lead nowhere."""
        return {id: kept for id, sources in self.origins.items() if (kept := [s for s in dict.fromkeys(sources) if s in self.present])}


def _text(subject: Subject, names: dict[tuple[Span, str], Scope], shown: _Layers) -> dict[str, tuple[Span, str]]:
    """All lines and all syntax nodes of the definition that say something, whether anything was made of them or not. Returns which
    elements are names."""
    span, path = subject.function.span, subject.path
    for number in range(span.line, span.end_line + 1):
        text = subject.facts.source.line(number)
        shown.add(Element(line_id(path, number, path), "source", text, None, Span(path, number, 0, number, len(text))))
    symbols: dict[str, tuple[Span, str]] = {}
    definition = subject.facts.module.by_name.get(subject.name)
    if definition is None or definition.tree is None:
        return symbols
    ids: dict[int, str | None] = {}
    for node in definition.tree.walk():
        kind, code = type(node).__name__, definition.tree.code(node).partition("\n")[0]
        around = ids.get(id(definition.tree.parent(node)))
        if kind in WRAPPERS or not code:     # no text: the parameters of `def f():`
            ids[id(node)] = around
            continue
        at = definition.span(node, path)
        element = ids[id(node)] = shown.node(at, kind, code, around)
        if kind == "Name" and (at, node.value) in names:
            symbols[element] = at, node.value
    return symbols


def _lineage(subject: Subject, shown: _Layers) -> None:
    """Everything that was made. IR lines have the user's symbols instead of example sizes where the passes did the same with both."""
    from cuvil.ir.text import print_op
    texts = {op_id(op.id): print_op(op) for op in subject.symbolic.function.ops}
    lineage = subject.concrete.lineage
    opened, inside = _composites(subject)
    members: dict[str, list[str]] = {}
    for id, parent in inside.items():
        members.setdefault(parent, []).append(id)
    used = {source for sources in lineage.origins.values() for source in sources}
    for element in lineage.elements:
        origins = lineage.origins.get(element.id, ())
        if element.id in opened:
            line = opened[element.id]
            shown.add(line, tuple(dict.fromkeys(source for id in members[line.id] for source in lineage.origins.get(id, ()))))
        if element.layer == "kernel":        # a folded composite leads on to the kernels that its ops are in
            origins = tuple(dict.fromkeys(part for id in origins for part in (*((inside[id],) if id in inside else ()), id)))
        if element.layer != "cst" or element.id in used:
            shown.add(replace(element, text=texts.get(element.id, element.text), parent=inside.get(element.id, element.parent)), origins)


def _composites(subject: Subject) -> tuple[dict[str, Element], dict[str, str]]:
    """Runs of ops that one composite became: people read "softmax" and open it. First op of a run -> its line; op -> the id of that line."""
    composites, function = subject.concrete.optimized.composites, subject.symbolic.function
    runs: list[list[Op]] = []
    for op in function.ops:
        if op.id not in composites:
            runs.append([])
        elif runs and runs[-1] and composites[runs[-1][-1].id] == composites[op.id]:
            runs[-1].append(op)
        else:
            runs.append([op])
    opened, inside = {}, {}
    for run in runs:
        if len(run) < 2:                     # an op is its own line
            continue
        first, last = op_id(run[0].id), run[-1]
        name = f'{composites[last.id].name} "{last.label}"' if last.label else composites[last.id].name
        opened[first] = Element(f"ir:{composites[last.id].name}@{run[0].id}", "ir", f"{name} : {last.type}  ({len(run)} ops)", None,
                                last.origins[0].span if last.origins else None)
        inside.update((op_id(op.id), opened[first].id) for op in run)
    return opened, inside


def _function(function: Function, shown: _Layers) -> None:
    """The IR of a function that is refused or fails later."""
    from cuvil.ir.text import print_op
    for op in function.ops:
        places = tuple(dict.fromkeys(shown.node(o.span, o.node or "Expression") for o in origin_chain(op)))
        shown.add(Element(op_id(op.id), "ir", print_op(op), note="" if places else "made by the compiler"), places)


def _kernels(graph: KernelGraph, shown: _Layers) -> None:
    for kernel in graph.kernels:
        shown.add(Element(kernel_id(kernel), "kernel", f"{kernel.name} ({kernel.kind}, {len(kernel.ops)} ops)"), tuple(op_id(id) for id in kernel.ops))


def _column(subject: Subject, layer: str, shown: _Layers, problems: dict[str, CuvilError], symbols: dict[str, tuple[Span, str]]) -> Column:
    elements, depth = shown.elements[layer], {}
    rows = []
    for element in elements:
        parent = element.parent if element.parent in depth else None
        depth[element.id] = depth[parent] + 1 if parent else 0
        symbol = symbols[element.id][1] if element.id in symbols else ""
        rows.append(ColumnElement(element.id, element.text, depth[element.id], parent, place(element.span or _first_place(subject, element)),
                                  element.note, symbol))
    mapped = len(elements) if layer == "source" else sum(1 for e in elements if shown.origins.get(e.id))
    return Column(layer, TITLES[layer], rows, mapped, len(elements), _made_by(subject, layer), "" if elements else _problem(layer, problems))


def _first_place(subject: Subject, element: Element) -> Span | None:
    """Ops stand where their first origin stands."""
    if not element.id.startswith("ir:%"):
        return None
    function = subject.concrete.optimized.function if subject.concrete else subject.function.function
    op = function.by_id.get(int(element.id.removeprefix("ir:%")))
    return op.origins[0].span if op is not None and op.origins else None


def _made_by(subject: Subject, layer: str) -> str:
    """What made the column; from the kernels on a command that makes the same text, with the sizes it was made for."""
    name = PurePath(subject.path).name
    if layer == "source":
        return name
    if layer == "cst":
        return "libcst"
    stage = EMITTED.get(layer, layer)
    sizes = ", ".join(f"{symbol} = {size}" for symbol, size in subject.dims.items())
    flags = "".join(f" --dim {symbol}={size}" for symbol, size in subject.dims.items())
    return (f"example sizes {sizes} · " if sizes else "") + f"cuvil compile {name}:{subject.name} --emit {stage} -o -{flags}"


def _problem(layer: str, problems: dict[str, CuvilError]) -> str:
    """The reason of this layer, or of the nearest one before it that is missing."""
    for earlier in reversed(LAYERS[:LAYERS.index(layer) + 1]):
        if earlier in problems:
            return str(problems[earlier])
    return "nothing was made at this layer"
