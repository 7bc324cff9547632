"""Kernels become loop nests: the last stage that knows ops, the first that knows memory.

`lower(graph, target)` makes one Nest for each kernel, `program(graph, target)` adds the memory plan: what llvm/ emits from.
Shapes are static here; a function with symbolic sizes is bound first (Function.substitute).
"""
from __future__ import annotations

from ..diagnostics import CuvilError
from ..ir.kernel import Kernel, KernelGraph
from ..ops.definition import CONTRACTION, CONVOLUTION, ELEMENTWISE, MOVEMENT, REDUCTION, WINDOW
from ..targets import Target, named
from . import contraction, convolution, elementwise, reduction, window
from .memory import Program, plan
from .nest import Nest, numbered
from .place import Place, buffer
from .schedule import cost

ON_GPUS = (ELEMENTWISE, MOVEMENT, REDUCTION)
LOWERINGS = {ELEMENTWISE: elementwise.lower, MOVEMENT: elementwise.lower, REDUCTION: reduction.lower,
             CONTRACTION: contraction.lower, CONVOLUTION: convolution.lower, WINDOW: window.lower}


def lower(graph: KernelGraph, target: Target | None = None) -> tuple[Nest, ...]:
    """One nest for each kernel, in the order they run. CuvilError for what cannot be lowered, with its place."""
    target = target or named("x86_64_avx2")
    _static(graph)
    return tuple(_nest(graph, kernel, number, target) for number, kernel in enumerate(graph.kernels))


def program(graph: KernelGraph, target: Target | None = None) -> Program:
    target = target or named("x86_64_avx2")
    return plan(graph, lower(graph, target), target)


def _nest(graph: KernelGraph, kernel: Kernel, number: int, target: Target) -> Nest:
    function = graph.function
    buffers = {id: buffer(function.by_id[id]) for id in (*kernel.inputs, *kernel.outputs)}
    lowering = LOWERINGS[kernel.kind]
    if target.kind != "cpu" and kernel.kind not in ON_GPUS:
        raise CuvilError(f"kernel {kernel.name} is a {kernel.kind}, which is not compiled for {target.name}",
                         kernel.origins[0].span if kernel.origins else None, "elementwise and row-reduction kernels only",
                         "compile for the target cpu", "CUV005")
    place = Place(function, kernel, buffers, target)
    body = lowering(place)
    return numbered(Nest(kernel.name, number, tuple(body), tuple(f"ir:%{id}" for id in kernel.ops), tuple(place.prepare), cost(body)))


def _static(graph: KernelGraph) -> None:
    if graph.function.symbols:
        raise CuvilError(f"{graph.function.name} has sizes that are not numbers: {', '.join(graph.function.symbols)}",
                         graph.function.origin and graph.function.origin.span, "static shapes",
                         "give input_shapes, or bind the sizes with Function.substitute")
    for op in graph.function.ops:
        if not op.type.complete:
            raise CuvilError(f"the type of {op.name} %{op.id} is not known: {op.type}", op.origins[0].span if op.origins else None)
