"""One line above each function that computes with tensors: what it becomes, and whether its meaning changed since the last commit.

The first answer is quick and has all lenses, with placeholders; `resolve` fills one in. Their number depends only on the
functions of the file, so nothing jumps when the numbers arrive.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError
from cuvil.source import Span

from .describe import bytes_text, shorten

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts

    from ..session import Session

COST, HEAD = "cost", "head"
LIMIT = 80                  # characters of a refusal; all of it is in the tooltip


@dataclass(frozen=True)
class Lens:
    """kind: COST opens the drilldown, HEAD the semantic diff. title: "…" until resolved."""

    span: Span
    kind: str
    function: str
    title: str = "…"
    tooltip: str = ""


def lenses(facts: FileFacts) -> list[Lens]:
    return [Lens(function.header, kind, function.name)
            for function in facts.functions if function.function is not None or function.entry is not None
            for kind in (COST, HEAD)]


def resolve(session: Session, path: str, lens: Lens) -> Lens:
    if lens.kind == HEAD:
        from ..diff.head import against_head
        verdict, tooltip = against_head(session, path, lens.function)
        return replace(lens, title=f"vs HEAD: {verdict}", tooltip=tooltip)
    try:
        title, tooltip = _cost(session, path, lens.function)
    except CuvilError as error:
        title, tooltip = f"not compiled: {_why(session.facts(path).function(lens.function), error)}", str(error)
    except Exception as error:               # a defect of ours is said where the numbers would be
        title, tooltip = f"Cuvil failed here: {type(error).__name__}", f"{error}. Please report this with the function's code."
    return replace(lens, title=title, tooltip=tooltip)


def _why(function: FunctionFacts | None, error: CuvilError) -> str:
    """The refusal in the words of a lens. Where types are missing, what to do and for which parameters; else what was refused."""
    from cuvil.frontends.python.values import Tensor, Untyped
    open_: dict[str, list[str]] = {}         # what is not known -> of which parameters
    for name, value in function.parameters if function is not None and "input_shapes" in error.hint else ():
        if isinstance(value, Tensor) and not value.type.complete:
            part = "element type" if value.type.shape is not None else "shape" if value.type.dtype is not None else "type"
            open_.setdefault(part, []).append(name)
        elif isinstance(value, Untyped):
            open_.setdefault("type", []).append(name)
    if not open_:
        return shorten(error.what.partition("\n")[0], LIMIT)
    missing = ", ".join(f"{part} of {' and '.join(names)}" for part, names in open_.items())
    return f"give input_shapes ({missing} unknown)"


def _cost(session: Session, path: str, name: str) -> tuple[str, str]:
    from cuvil.cost import cost_of_graph, example_sizes
    stages = session.stages(path, name)
    graph = stages.kernels
    sizes = example_sizes(graph.function.symbols)
    cost = cost_of_graph(graph).at(sizes)
    ops = sum(1 for op in graph.function.body if op.name != "constant")
    intensity = "" if cost.intensity is None else f" · {cost.intensity:.3g} FLOP/B"
    title = f"{_count(ops, 'op')} → {_count(len(graph.kernels), 'kernel')}{intensity} · {bytes_text(cost.bytes)}"
    given = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
    return title, f"{cost.flops:,} FLOP, {cost.bytes:,} B" + (f" at {given}" if given else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
