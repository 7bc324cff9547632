"""The graph of a function as both panels draw it: ops in the boxes of their kernels, values as edges that say whether they are fused."""
from __future__ import annotations

from collections.abc import Mapping

from cuvil.ir.function import Function, Op
from cuvil.ir.kernel import Kernel, KernelGraph

from ..protocol import Graph, GraphEdge, GraphNode
from .layout import Box, place

HEIGHT, CHARACTER, MARGIN, NARROWEST, WIDEST = 38.0, 7.2, 24.0, 64.0, 280.0


def draw(function: Function, graph: KernelGraph | None, names: Mapping[int, str] | None = None) -> Graph:
    """graph: None when there are no kernels yet. names: op id -> the composite people wrote it as."""
    home = kernels_of(graph) if graph else {}
    drawn = [op for op in function.ops if not _is_number(op)]
    titles = {op.id: (_title(op), _detail(op, names or {})) for op in drawn}
    boxes = [Box(op_id(op.id), _width(*titles[op.id]), HEIGHT, kernel_id(home[op.id]) if op.id in home else "") for op in drawn]
    present = {op.id for op in drawn}
    values = [(operand, op.id) for op in drawn for operand in dict.fromkeys(op.operands) if operand in present]
    placed = place(boxes, [(op_id(a), op_id(b)) for a, b in values])
    decisions = {(d.producer, d.consumer): d for d in graph.decisions} if graph else {}
    nodes = [_node(placed.boxes[kernel_id(k)], k.name, f"{k.kind}, {len(k.ops)} ops") for k in graph.kernels if kernel_id(k) in placed.boxes] \
        if graph else []
    nodes += [_node(placed.boxes[op_id(op.id)], *titles[op.id]) for op in drawn]
    edges = []
    for a, b in values:
        decision = decisions.get((a, b))
        fused = decision.fused if decision else False
        reason = decision.reason if decision else _reason(function.by_id[a], graph)
        edges.append(GraphEdge(op_id(a), op_id(b), str(function.by_id[a].type), fused, reason, placed.lines[op_id(a), op_id(b)]))
    return Graph(nodes, edges, placed.width, placed.height)


def kernels_of(graph: KernelGraph) -> dict[int, Kernel]:
    """The kernel each op is drawn in: the one that writes it, else the first that computes it."""
    home: dict[int, Kernel] = {}
    for kernel in graph.kernels:
        for id in kernel.ops:
            if id not in home or id in kernel.outputs:
                home[id] = kernel
    return home


def op_id(id: int) -> str:
    return f"ir:%{id}"


def kernel_id(kernel: Kernel) -> str:
    return f"kernel:{kernel.name}"


def _is_number(op: Op) -> bool:
    """A scalar constant: part of the instruction that uses it, and clutter in a picture."""
    return op.name == "constant" and op.type.shape == ()


def _title(op: Op) -> str:
    if op.name in ("input", "parameter"):
        return op.label or op.attr("name", "") or op.name
    return f"{op.label} = {op.name}" if op.label else op.name


def _detail(op: Op, names: Mapping[int, str]) -> str:
    return f"{op.type} · {names[op.id]}" if op.id in names else str(op.type)


def _reason(producer: Op, graph: KernelGraph | None) -> str:
    if producer.name in ("input", "parameter"):
        return f"{producer.name}: read from memory"
    return "" if graph else "not decided: the function has no kernels"


def _width(title: str, detail: str) -> float:
    return min(max(max(len(title), len(detail)) * CHARACTER + MARGIN, NARROWEST), WIDEST)


def _node(box: Box, title: str, detail: str) -> GraphNode:
    return GraphNode(box.id, title, detail, box.group, round(box.x, 1), round(box.y, 1), box.width, box.height)
