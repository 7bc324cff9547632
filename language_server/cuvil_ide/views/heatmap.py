"""Fusion heatmap: where a function computes and where it only moves bytes, on its graph and on its source lines.

Intensity is FLOP per byte of compulsory traffic (cost/counts.py), shown around the machine's ridge point: below it code waits for
memory. An op that computes on values which never leave registers has no traffic of its own, and says so.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cuvil.cost import Cost, Machine, cost_by_line, cost_of_kernel, cost_of_op, detect, number
from cuvil.cost.lines import place_in

from ..protocol import Graph, Heat, HeatmapPayload, LineHeat, Metric, PanelInfo, Place
from .graph import draw, kernel_id, op_id
from .scale import fit, label, position
from .subject import Subject, place

if TYPE_CHECKING:
    from cuvil.ir.kernel import KernelGraph

INFO = PanelInfo("heatmap", "Fusion Heatmap", "Where does it compute, and where does it only move bytes?")
FUSED = "no traffic of its own: fused"


def payload(subject: Subject) -> HeatmapPayload:
    machine, span = detect(), subject.function.span
    source = [subject.facts.source.line(n) for n in range(span.line, span.end_line + 1)]
    if subject.stages is None or subject.misfit:
        function, problem = subject.function.function, subject.misfit or subject.refusal
        graph = draw(function, None) if function is not None else Graph([], [], 0.0, 0.0)
        return HeatmapPayload("heatmap", subject.path, subject.name, subject.functions, subject.version, subject.stale, [], {}, {}, source,
                              span.line, {}, graph, subject.dims, str(machine), str(problem))
    kernels = subject.symbolic
    metrics, values, lines = _measure(kernels, subject, machine)
    composites = {i: c.name for i, c in subject.concrete.optimized.composites.items()}
    return HeatmapPayload("heatmap", subject.path, subject.name, subject.functions, subject.version, subject.stale, metrics, values, lines, source,
                          span.line, _places(kernels, subject), draw(kernels.function, kernels, composites), subject.dims, str(machine))


def _measure(graph: KernelGraph, subject: Subject, machine: Machine) -> tuple[list[Metric], dict, dict]:
    """The three metrics: for each its scale, a heat per op and kernel, a heat per line."""
    function, dims = graph.function, subject.dims
    symbolic: dict[str, Cost] = {op_id(op.id): cost_of_op(function, op) for op in function.body}
    symbolic |= {kernel_id(k): cost_of_kernel(function, k) for k in graph.kernels}
    costs = {id: (number(c.flops, dims), number(c.bytes, dims)) for id, c in symbolic.items()}
    by_line = {n: (c.flops, c.bytes) for n, c in cost_by_line(graph, subject.function.span, dims).items() if n}
    note = "at example sizes " + ", ".join(f"{k} = {v}" for k, v in dims.items()) if dims else ""
    metrics, values, lines = [], {}, {}
    for id, title, unit, kind, of, formula in _METRICS:
        scale = fit([of(*c) for c in (*costs.values(), *by_line.values())], kind, machine.ridge)
        metrics.append(Metric(id, title, unit, "static", scale.kind, scale.low, scale.high, scale.centre, note))
        values[id] = {element: _heat(of(*c), scale, unit, c[0], formula(symbolic[element])) for element, c in costs.items()}
        lines[id] = [LineHeat(n, _heat(of(*c), scale, unit, c[0], "")) for n, c in by_line.items()]
    return metrics, values, lines


def _heat(value: float | None, scale, unit: str, flops: float, formula: str) -> Heat:
    if value is None:
        return Heat(None, None, FUSED if flops else "no work and no traffic", formula)
    return Heat(float(value), position(scale, value), label(value, unit), formula)


def _intensity(flops: float, nbytes: float) -> float | None:
    return flops / nbytes if nbytes else None


_METRICS: tuple[tuple[str, str, str, str, Callable[[float, float], float | None], Callable[[Cost], str]], ...] = (
    ("intensity", "Arithmetic intensity", "FLOP/B", "diverging", _intensity, lambda c: f"({c.flops}) / ({c.bytes})"),
    ("bytes", "Memory traffic", "B", "log", lambda flops, nbytes: nbytes, lambda c: str(c.bytes)),
    ("flops", "Arithmetic", "FLOP", "log", lambda flops, nbytes: flops, lambda c: str(c.flops)),
)


def _places(graph: KernelGraph, subject: Subject) -> dict[str, list[Place]]:
    """Where elements come from: in the function's own text where they have a place in it, else where they really stand."""
    found = {}
    for id, origins in [*((op_id(op.id), op.origins) for op in graph.function.ops), *((kernel_id(k), k.origins) for k in graph.kernels)]:
        spans = dict.fromkeys(place_in(o, subject.function.span) or o.span for o in origins)
        found[id] = [place(span) for span in spans]
    return found
