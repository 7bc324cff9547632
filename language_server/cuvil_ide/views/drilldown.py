"""Drilldown: one function in all its layers, side by side, with the lineage that links them.

Every column says how much of it is mapped and what made it. When a stage cannot be made, the columns before it still show, and
the first column that is missing says why and where.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError
from cuvil.lineage import LAYERS, Element
from cuvil.pipeline import cst_id, line_id, origin_chain
from cuvil.source import Span

from ..protocol import Column, ColumnElement, DrilldownPayload, Graph, PanelInfo, Scope
from .graph import draw, kernel_id, op_id
from .scopes import scopes
from .subject import Subject, failed, place

if TYPE_CHECKING:
    from cuvil.ir.function import Function
    from cuvil.ir.kernel import KernelGraph

INFO = PanelInfo("drilldown", "Drilldown", "What did my line become?")
HIGHLIGHT_DEPTH = 3
TITLES = {"source": "Source", "cst": "Syntax", "ir": "Tensor IR", "kernel": "Kernels", "loop": "Loops", "llvm": "LLVM", "asm": "Assembly"}


def payload(subject: Subject) -> DrilldownPayload:
    names = scopes(subject.facts, subject.function)
    layers, symbols = _text_layers(subject, names)
    origins: dict[str, tuple[str, ...]] = {}
    for element in layers["cst"]:
        origins[element.id] = tuple(line_id(element.span.path, n, subject.path) for n in range(element.span.line, element.span.end_line + 1))
    problems: dict[str, CuvilError] = {}
    graph = Graph([], [], 0.0, 0.0)
    if subject.concrete is not None:
        try:
            lineage, problems = subject.concrete.lineage, dict(subject.concrete.problems)
            _add(layers, origins, _symbolic(subject, lineage.elements), lineage.origins)
        except Exception as error:           # a defect in a late stage costs that stage and those after it, not the panel
            problems["loop"] = failed(error, subject.function)
            _captured(subject.concrete.optimized.function, subject.path, layers, origins)
            _kernels(subject.concrete.kernels, layers, origins)
        graph = draw(subject.symbolic.function, subject.symbolic, {i: c.name for i, c in subject.concrete.optimized.composites.items()})
    else:
        problems["kernel"] = subject.refusal
        if subject.function.function is not None:
            _captured(subject.function.function, subject.path, layers, origins)
            graph = draw(subject.function.function, None)
        else:
            problems["ir"] = subject.refusal
    return DrilldownPayload(
        "drilldown", subject.path, subject.name, subject.functions, subject.version, subject.stale,
        [_column(subject, layer, layers[layer], origins, problems, symbols) for layer in LAYERS],
        _existing(layers, origins), graph, {id: names[key] for id, key in symbols.items()}, HIGHLIGHT_DEPTH)


def _text_layers(subject: Subject, names: dict[tuple[Span, str], Scope]) -> tuple[dict[str, list[Element]], dict[str, tuple[Span, str]]]:
    """All lines and all syntax nodes of the definition, whether anything was made of them or not; and which elements are names."""
    layers: dict[str, list[Element]] = {layer: [] for layer in LAYERS}
    symbols: dict[str, tuple[Span, str]] = {}
    source, span, path = subject.facts.source, subject.function.span, subject.path
    for number in range(span.line, span.end_line + 1):
        text = source.line(number)
        layers["source"].append(Element(line_id(path, number, path), "source", text, None, Span(path, number, 0, number, len(text))))
    definition = subject.facts.module.by_name.get(subject.name)
    if definition is None or definition.tree is None:
        return layers, symbols
    seen: set[str] = set()
    enclosing: dict[int, str] = {}
    for node in definition.tree.walk():
        at, kind = definition.span(node, path), type(node).__name__
        parent = definition.tree.parent(node)
        above = enclosing.get(id(parent)) if parent is not None else None
        id_ = cst_id(at, kind, path)
        enclosing[id(node)] = id_
        if id_ in seen:                      # two nodes of one kind and place (a statement line and its only statement differ in kind)
            continue
        seen.add(id_)
        text = definition.tree.code(node).partition("\n")[0].rstrip()
        layers["cst"].append(Element(id_, "cst", f"{kind} {text}" if text else kind, above, at))
        if kind == "Name" and (at, node.value) in names:
            symbols[id_] = at, node.value
    return layers, symbols


def _add(layers: dict[str, list[Element]], origins: dict[str, tuple[str, ...]], elements: Iterable[Element],
         more: dict[str, tuple[str, ...]]) -> None:
    """The lineage's elements after our own text layers; a text element that is there already keeps its place."""
    present = {element.id for layer in layers.values() for element in layer}
    for element in elements:
        if element.id not in present:
            layers[element.layer].append(element)
            if element.id in more:
                origins[element.id] = more[element.id]


def _symbolic(subject: Subject, elements: tuple[Element, ...]) -> Iterable[Element]:
    """IR lines with the user's symbols instead of example sizes, where the passes did the same with both."""
    from cuvil.ir.text import print_op
    texts = {op_id(op.id): print_op(op) for op in subject.symbolic.function.ops}
    return [replace(e, text=texts.get(e.id, e.text)) for e in elements]


def _captured(function: Function, path: str, layers: dict[str, list[Element]], origins: dict[str, tuple[str, ...]]) -> None:
    """The IR of a function that is refused or fails later."""
    from cuvil.ir.text import print_op
    known = {element.id for element in layers["cst"]}
    for op in function.ops:
        layers["ir"].append(Element(op_id(op.id), "ir", print_op(op), note="" if op.origins else "made by the compiler"))
        for origin in origin_chain(op):
            id_ = cst_id(origin.span, origin.node, path)
            if id_ not in known:             # a place in a helper of another file
                known.add(id_)
                layers["cst"].append(Element(id_, "cst", origin.node or "Expression", None, origin.span))
            origins[op_id(op.id)] = (*origins.get(op_id(op.id), ()), id_)


def _kernels(graph: KernelGraph, layers: dict[str, list[Element]], origins: dict[str, tuple[str, ...]]) -> None:
    for kernel in graph.kernels:
        layers["kernel"].append(Element(kernel_id(kernel), "kernel", f"{kernel.name} ({kernel.kind}, {len(kernel.ops)} ops)"))
        origins[kernel_id(kernel)] = tuple(op_id(id) for id in kernel.ops)


def _column(subject: Subject, layer: str, elements: list[Element], origins: dict[str, tuple[str, ...]], problems: dict[str, CuvilError],
            symbols: dict[str, tuple[Span, str]]) -> Column:
    depth: dict[str, int] = {}
    shown = []
    for element in elements:
        depth[element.id] = depth.get(element.parent, -1) + 1 if element.parent else 0
        symbol = symbols[element.id][1] if element.id in symbols else ""
        shown.append(ColumnElement(element.id, element.text, depth[element.id], element.parent if element.parent in depth else None,
                                   place(element.span or _first_place(subject, element)), element.note, symbol))
    mapped = len(elements) if layer == "source" else sum(1 for e in elements if origins.get(e.id))
    return Column(layer, TITLES[layer], shown, mapped, len(elements), _made_by(subject, layer), "" if elements else _problem(layer, problems))


def _first_place(subject: Subject, element: Element) -> Span | None:
    """Ops stand where their first origin stands."""
    if element.layer != "ir":
        return None
    function = subject.concrete.optimized.function if subject.concrete else subject.function.function
    op = function.by_id.get(int(element.id.removeprefix("ir:%")))
    return op.origins[0].span if op is not None and op.origins else None


def _made_by(subject: Subject, layer: str) -> str:
    sizes = ", ".join(f"{name} = {size}" for name, size in subject.dims.items())
    target = subject.concrete.target if subject.concrete else "cpu"
    match layer:
        case "source":
            return subject.path
        case "cst":
            return "libcst"
        case "ir":
            return "front end and passes"
        case "kernel":
            return "fusion at opt_level " + str(subject.concrete.opt_level if subject.concrete else 2)
    return f"target {target}" + (f", example sizes {sizes}" if sizes else "")


def _problem(layer: str, problems: dict[str, CuvilError]) -> str:
    """The reason of this layer, or of the nearest one before it that is missing."""
    for earlier in reversed(LAYERS[:LAYERS.index(layer) + 1]):
        if earlier in problems:
            return str(problems[earlier])
    return "nothing was made at this layer"


def _existing(layers: dict[str, list[Element]], origins: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Edges between elements that are shown, each once; an edge to something left out would lead nowhere."""
    present = {element.id for layer in layers.values() for element in layer}
    return {id: kept for id, sources in origins.items() if id in present and (kept := [s for s in dict.fromkeys(sources) if s in present])}
