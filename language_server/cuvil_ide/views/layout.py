"""Where the boxes of a graph stand: layers from top to bottom, groups as boxes around their nodes, lines that go around what is between.

    placed = place(nodes, edges)             # nodes: [Box(id, width, height, group)], edges: [(source id, target id)]
    placed.boxes["ir:%3"].x                  # left edge; also .y, .width, .height; a group's own box is there under its id
    placed.lines[("ir:%1", "ir:%3")]         # [x0, y0, x1, y1, ...] of the drawn line, from the bottom of one box to the top of the other

Layered drawing in Sugiyama's way: a node's layer is the longest path to it, nodes of a layer are ordered by the mean position of
their neighbours (barycentre), then pushed towards them without overlap. A line over several layers takes a narrow place of its own in
each (a dummy), so it passes between boxes. Groups are laid out inside first, with a port on their edge for every line that crosses it,
and then as single boxes; if that makes a cycle among groups, they are dropped and the nodes laid out flat. The result is a function of
the input alone (no randomness, ties keep the given order), iterative, and near-linear in nodes plus edges.
Source: Sugiyama, Tagawa, Toda, IEEE Trans. SMC 11(2), 1981.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

GAP_X, GAP_Y, PADDING, HEADER = 24.0, 36.0, 10.0, 12.0
LANE = 6.0                                   # the width a passing line takes
FARTHEST = 40                                # layers; a longer line is drawn straight, which keeps the number of dummies linear
SWEEPS = 4

Edge = tuple[str, str]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    id: str
    width: float
    height: float
    group: str = ""
    x: float = 0.0
    y: float = 0.0


@dataclass
class Placed:
    boxes: dict[str, Box]
    lines: dict[Edge, list[float]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def place(nodes: Sequence[Box], edges: Sequence[Edge]) -> Placed:
    known = {node.id for node in nodes}
    edges = list(dict.fromkeys((s, t) for s, t in edges if s in known and t in known and s != t))
    placed = _grouped(nodes, edges)
    if placed is None:
        flat = _flat(nodes, edges)
        placed = Placed(flat.boxes, {edge: _line(_bottom(flat.boxes[edge[0]]), flat.bends[edge], _top(flat.boxes[edge[1]])) for edge in edges})
    placed.width = max((box.x + box.width for box in placed.boxes.values()), default=0.0)
    placed.height = max((box.y + box.height for box in placed.boxes.values()), default=0.0)
    return placed


def layers(ids: Sequence[str], edges: Sequence[Edge]) -> dict[str, int] | None:
    """The longest path to each node; None if there is a cycle."""
    level = dict.fromkeys(ids, 0)
    missing, after = dict.fromkeys(ids, 0), {id: [] for id in ids}
    for source, target in edges:
        missing[target] += 1
        after[source].append(target)
    ready, done = [id for id in ids if not missing[id]], 0
    while done < len(ready):
        id = ready[done]
        done += 1
        for target in after[id]:
            level[target] = max(level[target], level[id] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return level if done == len(level) else None


# Groups: inside first, then as boxes.

def _grouped(nodes: Sequence[Box], edges: Sequence[Edge]) -> Placed | None:
    members: dict[str, list[Box]] = {}
    for node in nodes:
        if node.group:
            members.setdefault(node.group, []).append(node)
    if not members:
        return None
    owner = {node.id: node.group or node.id for node in nodes}
    inner: dict[str, dict[Edge, None]] = {group: {} for group in members}
    outer_edges: dict[Edge, None] = {}
    for source, target in edges:
        a, b = owner[source], owner[target]
        if a == b:
            inner[a][source, target] = None
            continue
        outer_edges[a, b] = None
        if a in inner:
            inner[a][source, _port("out", source)] = None
        if b in inner:
            inner[b][_port("in", source), target] = None
    parts = {group: _inside(boxes, list(inner[group])) for group, boxes in members.items()}
    outer: dict[str, Box] = {}
    for node in nodes:                       # groups stand where their first node stood
        if not node.group:
            outer[node.id] = node
        elif node.group not in outer:
            part = parts[node.group]
            outer[node.group] = Box(node.group, part.width + 2 * PADDING, part.height + 2 * PADDING + HEADER)
    if layers(list(outer), list(outer_edges)) is None:
        return None
    whole = _flat(list(outer.values()), list(outer_edges))
    placed = Placed(dict(whole.boxes))
    for group, part in parts.items():
        dx, dy = whole.boxes[group].x + PADDING, whole.boxes[group].y + PADDING + HEADER
        part.move(dx, dy)
        placed.boxes.update((id, replace(box, group=group)) for id, box in part.boxes.items() if not id.startswith("port:"))
    for source, target in edges:
        placed.lines[source, target] = _through(source, target, owner, parts, whole, placed)
    return placed


def _port(side: str, value: str) -> str:
    """A point on a group's edge where the lines of one value cross it."""
    return f"port:{side}:{value}"


def _inside(boxes: list[Box], edges: list[Edge]) -> _Flat:
    ports = dict.fromkeys(id for edge in edges for id in edge if id.startswith("port:"))
    return _flat([*boxes, *(Box(id, LANE, 0.0) for id in ports)], edges, {id for id in ports if id.startswith("port:out:")})


def _through(source: str, target: str, owner: dict[str, str], parts: dict[str, _Flat], whole: _Flat, placed: Placed) -> list[float]:
    """The line of a value: out of its group, between the groups, into the other."""
    a, b = owner[source], owner[target]
    start, end = _bottom(placed.boxes[source]), _top(placed.boxes[target])
    if a == b:
        return _line(start, parts[a].bends[source, target], end)
    bends: list[Point] = []
    if a in parts:
        port = _port("out", source)
        bends += [*parts[a].bends[source, port], (_bottom(parts[a].boxes[port])[0], whole.boxes[a].y + whole.boxes[a].height)]
    bends += whole.bends[a, b]
    if b in parts:
        port = _port("in", source)
        bends += [(_top(parts[b].boxes[port])[0], whole.boxes[b].y), *parts[b].bends[port, target]]
    return _line(start, bends, end)


# One level: layers, order, coordinates.

@dataclass
class _Flat:
    """bends: for each edge the points it passes between its ends."""

    boxes: dict[str, Box]
    bends: dict[Edge, list[Point]]
    width: float
    height: float

    def move(self, dx: float, dy: float) -> None:
        self.boxes = {id: replace(box, x=box.x + dx, y=box.y + dy) for id, box in self.boxes.items()}
        self.bends = {edge: [(x + dx, y + dy) for x, y in points] for edge, points in self.bends.items()}


def _flat(nodes: Sequence[Box], edges: Sequence[Edge], last: set[str] = frozenset()) -> _Flat:
    """last: ids that stand in the bottom layer."""
    boxes = {node.id: node for node in nodes}
    level = layers(list(boxes), edges)
    if level is None:                        # not a graph of values; keep the given order, one below the other
        level = {id: i for i, id in enumerate(boxes)}
    deepest = max(level.values(), default=-1)
    level.update((id, deepest) for id in last)
    rows: list[list[str]] = [[] for _ in range(deepest + 1)]
    for id in boxes:
        rows[level[id]].append(id)
    links, passing = _lanes(edges, level, rows, boxes)
    above: dict[str, list[str]] = {id: [] for id in boxes}
    below: dict[str, list[str]] = {id: [] for id in boxes}
    for a, b in links:
        above[b].append(a)
        below[a].append(b)
    rank = {id: float(i) for row in rows for i, id in enumerate(row)}
    for sweep in range(SWEEPS):
        neighbours, order = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in order:
            row.sort(key=lambda id: _mean([rank[n] for n in neighbours[id]], rank[id]))
            rank.update((id, float(i)) for i, id in enumerate(row))
    heights = _coordinates(boxes, rows, above, below)
    bends = {edge: [point for id in passing.get(edge, ()) for point in _passing(boxes[id], heights[level[id]])] for edge in edges}
    real = {node.id: boxes[node.id] for node in nodes}
    return _Flat(real, bends, max((b.x + b.width for b in boxes.values()), default=0.0), max((b.y + b.height for b in real.values()), default=0.0))


def _lanes(edges: Sequence[Edge], level: dict[str, int], rows: list[list[str]], boxes: dict[str, Box]) -> tuple[list[Edge], dict[Edge, list[str]]]:
    """Edges cut at every layer by dummies, which are added to rows, boxes and level; and for each long edge its dummies."""
    links: list[Edge] = []
    passing: dict[Edge, list[str]] = {}
    for number, (source, target) in enumerate(edges):
        span = range(level[source] + 1, level[target])
        before = source
        for layer in span if 0 < len(span) <= FARTHEST else ():
            dummy = f"lane:{number}:{layer}"
            boxes[dummy], level[dummy] = Box(dummy, LANE, 0.0), layer
            rows[layer].append(dummy)
            passing.setdefault((source, target), []).append(dummy)
            links.append((before, dummy))
            before = dummy
        links.append((before, target))
    return links, passing


def _coordinates(boxes: dict[str, Box], rows: list[list[str]], above: dict[str, list[str]], below: dict[str, list[str]]) -> list[float]:
    """Sets x and y of all boxes; the height of each row."""
    centre: dict[str, float] = {}
    for row in rows:
        x = 0.0
        for id in row:
            centre[id] = x + boxes[id].width / 2
            x += boxes[id].width + GAP_X
    for sweep in range(SWEEPS):
        neighbours, order = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in order:
            wanted = [_mean([centre[n] for n in neighbours[id]], centre[id]) for id in row]
            _settle(row, wanted, boxes, centre)
    left = min((centre[id] - boxes[id].width / 2 for id in boxes), default=0.0)
    heights, y = [], 0.0
    for row in rows:
        heights.append(max((boxes[id].height for id in row), default=0.0))
        for id in row:
            boxes[id] = replace(boxes[id], x=centre[id] - boxes[id].width / 2 - left, y=y)
        y += heights[-1] + (GAP_Y if heights[-1] else GAP_Y / 3)         # a row of ports or passing lines alone needs little room
    return heights


def _settle(row: list[str], wanted: list[float], boxes: dict[str, Box], centre: dict[str, float]) -> None:
    """Put a row as near to where its nodes want to be as their order and sizes allow: push right, then move all by the mean error."""
    edge, got = float("-inf"), []
    for id, want in zip(row, wanted):
        half = boxes[id].width / 2
        got.append(max(want, edge + half))
        edge = got[-1] + half + GAP_X
    shift = _mean([w - g for w, g in zip(wanted, got)], 0.0)
    centre.update(zip(row, (g + shift for g in got)))


def _passing(lane: Box, height: float) -> tuple[Point, ...]:
    x = lane.x + lane.width / 2
    return ((x, lane.y), (x, lane.y + height)) if height else ((x, lane.y),)


def _line(start: Point, bends: list[Point], end: Point) -> list[float]:
    """A line that leaves and arrives straight down."""
    points = [start, *bends, end]
    if not bends and start[0] != end[0]:
        step = min(GAP_Y / 3, abs(end[1] - start[1]) / 3)
        points = [start, (start[0], start[1] + step), (end[0], end[1] - step), end]
    return [round(value, 1) for point in points for value in point]


def _bottom(box: Box) -> Point:
    return box.x + box.width / 2, box.y + box.height


def _top(box: Box) -> Point:
    return box.x + box.width / 2, box.y


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
