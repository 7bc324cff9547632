"""What panels are told: payload types, declared once. `python -m cuvil_ide.protocol` prints them as TypeScript.

A payload is frozen, plain data that goes through JSON unchanged. Lines and columns are 1-based, as people count. A panel
draws one payload and computes nothing that a view could have computed; only following lineage edges is done in the panel.
The generated file is webview/src/protocol.ts; a test fails when it is stale.
"""
from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Literal

VERSION = 1


@dataclass(frozen=True)
class Position:
    line: int
    column: int


@dataclass(frozen=True)
class Range:
    start: Position
    end: Position


@dataclass(frozen=True)
class Place:
    """A range in a file of the workspace."""

    path: str
    range: Range


@dataclass(frozen=True)
class PanelInfo:
    """An entry of `cuvil/panels`."""

    id: str
    title: str
    question: str                     # the question this panel answers


@dataclass(frozen=True)
class ViewRequest:
    """The parameters of `cuvil/view`: a panel for the function at a position (or named)."""

    panel: str
    path: str
    position: Position | None = None
    function: str = ""


@dataclass(frozen=True)
class ColumnElement:
    """A line of a drilldown column.

    depth    indentation by enclosing elements; parent is the enclosing element's id
    place    where it stands in the user's file, on the source, cst and ir layers
    note     why it has no origin
    symbol   the name it binds or uses, if it is one: scope and bindings are in DrilldownPayload.scopes
    """

    id: str
    text: str
    depth: int
    parent: str | None
    place: Place | None
    note: str = ""
    symbol: str = ""


@dataclass(frozen=True)
class Column:
    """One layer. mapped and total are its coverage: elements with an origin, of all."""

    id: str                           # a layer of cuvil.lineage.LAYERS
    title: str
    elements: list[ColumnElement]
    mapped: int
    total: int
    made_by: str                      # the command or setting that made it
    problem: str = ""                 # why the column is empty


@dataclass(frozen=True)
class GraphNode:
    id: str                           # an element id of the ir or kernel layer
    title: str
    detail: str
    group: str                        # id of the kernel or composite it is drawn in, "" if none
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class GraphEdge:
    source: str
    target: str
    label: str                        # the type that flows
    fused: bool
    reason: str                       # why the value does or does not pass through memory
    points: list[float]               # x0, y0, x1, y1, ... of the drawn line


@dataclass(frozen=True)
class Graph:
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    width: float
    height: float


@dataclass(frozen=True)
class Binding:
    name: str
    kind: str                         # "parameter", "assignment", "import", "function", "builtin"
    scope: str                        # "attention.forward" or "module"
    place: Place | None
    type: str                         # what is known of its value: "f32[B, T, 64]"


@dataclass(frozen=True)
class Scope:
    """A name's scope chain, innermost first, and what it is bound to in each."""

    symbol: str
    chain: list[str]
    bindings: list[Binding]


@dataclass(frozen=True)
class DrilldownPayload:
    panel: Literal["drilldown"]
    path: str
    function: str
    functions: list[str]              # all functions of the file that can be shown
    version: str                      # content hash of the text this was made from
    stale: bool                       # made from the last good text, not the newest
    columns: list[Column]
    origins: dict[str, list[str]]     # element id -> ids of the layer before that it came from
    graph: Graph
    scopes: dict[str, Scope]          # by element id of the name
    highlight_depth: int              # how many layers away from the selection are highlighted


@dataclass(frozen=True)
class Metric:
    """A number per element, and how to show it.

    provenance   static (from code and shapes), simulated, measured
    scale        linear, log, or diverging around `centre` (the machine's ridge point for intensity)
    low, high    the real extremes of the finite values, of those above zero on a log or diverging scale; equal when all are equal
    """

    id: str                           # "intensity"
    title: str                        # "Arithmetic intensity"
    unit: str                         # "FLOP/B"
    provenance: Literal["static", "simulated", "measured"]
    scale: Literal["linear", "log", "diverging"]
    low: float
    high: float
    centre: float | None
    note: str = ""


@dataclass(frozen=True)
class Heat:
    """A value of a metric for an element. value: None when unknown; position: 0..1 on the scale, None when unknown."""

    value: float | None
    position: float | None
    label: str                        # as shown: "34.1 FLOP/B"
    formula: str = ""                 # symbolic: "2*B*T*T*64"


@dataclass(frozen=True)
class LineHeat:
    line: int
    heat: Heat


@dataclass(frozen=True)
class HeatmapPayload:
    panel: Literal["heatmap"]
    path: str
    function: str
    functions: list[str]
    version: str
    stale: bool
    metrics: list[Metric]
    values: dict[str, dict[str, Heat]]          # metric id -> element id (ir or kernel) -> heat
    lines: dict[str, list[LineHeat]]            # metric id -> heat per source line
    source: list[str]                           # the function's lines; the first is number first_line
    first_line: int
    places: dict[str, list[Place]]              # element id -> where it comes from
    graph: Graph
    dims: dict[str, int]                        # sizes that symbols were given for the numbers
    machine: str                                # what the ridge point belongs to
    problem: str = ""


PAYLOADS = (Position, Range, Place, PanelInfo, ViewRequest, ColumnElement, Column, GraphNode, GraphEdge, Graph, Binding, Scope,
            DrilldownPayload, Metric, Heat, LineHeat, HeatmapPayload)


def to_json(value: object) -> object:
    """A payload as plain JSON data."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def typescript() -> str:
    """The declarations for webview/src/protocol.ts."""
    lines = ["// Generated by `python -m cuvil_ide.protocol`; edit language_server/cuvil_ide/protocol.py instead.", "",
             f"export const VERSION = {VERSION};"]
    for declared in PAYLOADS:
        hints = typing.get_type_hints(declared)
        lines += ["", f"export interface {declared.__name__} {{"]
        lines += [f"  readonly {f.name}: {_typescript(hints[f.name])};" for f in dataclasses.fields(declared)]
        lines += ["}"]
    return "\n".join(lines) + "\n"


def _typescript(hint: object) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return " | ".join(f'"{a}"' for a in arguments)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_typescript(a) for a in arguments)
    if origin is list:
        inner = _typescript(arguments[0])
        return f"readonly ({inner})[]" if "|" in inner else f"readonly {inner}[]"
    if origin is dict:
        return f"{{ readonly [key: string]: {_typescript(arguments[1])} }}"
    if dataclasses.is_dataclass(hint):
        return hint.__name__
    return {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}[hint]


if __name__ == "__main__":
    print(typescript(), end="")
