"""Where the boxes of a graph stand: layers from top to bottom, groups as boxes around their nodes.

    placed = place(nodes, edges)             # nodes: [Box(id, width, height, group)], edges: [(source id, target id)]
    placed.boxes["ir:%3"].x                  # left edge; also .y, .width, .height; a group's own box is there under its id
    placed.lines[("ir:%1", "ir:%3")]         # (x0, y0, x1, y1, ...) of the drawn line

Layered drawing in Sugiyama's way: a node's layer is the longest path to it, nodes of a layer are ordered by the mean position of
their neighbours (barycentre), then pushed towards them without overlap. Groups are laid out inside first and then as single boxes;
if that makes a cycle among groups, the groups are dropped and the nodes laid out flat. The result is a function of the input
alone (no randomness, ties keep the given order), iterative, and near-linear in nodes plus edges.
Source: Sugiyama, Tagawa, Toda, IEEE Trans. SMC 11(2), 1981.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

GAP_X, GAP_Y, PADDING, HEADER = 24.0, 36.0, 12.0, 22.0
SWEEPS = 4


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
    lines: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def place(nodes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> Placed:
    known = {node.id for node in nodes}
    edges = list(dict.fromkeys((s, t) for s, t in edges if s in known and t in known and s != t))
    placed = _grouped(nodes, edges) or _flat(nodes, edges)
    for source, target in edges:
        placed.lines[source, target] = _line(placed.boxes[source], placed.boxes[target])
    placed.width = max((box.x + box.width for box in placed.boxes.values()), default=0.0)
    placed.height = max((box.y + box.height for box in placed.boxes.values()), default=0.0)
    return placed


def layers(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int] | None:
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


def _grouped(nodes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> Placed | None:
    members: dict[str, list[Box]] = {}
    for node in nodes:
        if node.group:
            members.setdefault(node.group, []).append(node)
    if not members:
        return None
    owner = {node.id: node.group or node.id for node in nodes}
    outer_edges = list(dict.fromkeys((owner[s], owner[t]) for s, t in edges if owner[s] != owner[t]))
    inner_edges: dict[str, list[tuple[str, str]]] = {group: [] for group in members}
    for source, target in edges:
        if owner[source] == owner[target]:
            inner_edges[owner[source]].append((source, target))
    inner = {group: _flat(boxes, inner_edges[group]) for group, boxes in members.items()}
    outer: dict[str, Box] = {}
    for node in nodes:                       # groups stand where their first node stood
        if not node.group:
            outer[node.id] = node
        elif node.group not in outer:
            size = inner[node.group]
            outer[node.group] = Box(node.group, size.width + 2 * PADDING, size.height + 2 * PADDING + HEADER)
    if layers(list(outer), outer_edges) is None:
        return None
    placed = _flat(list(outer.values()), outer_edges)
    for group, part in inner.items():
        frame = placed.boxes[group]
        for box in part.boxes.values():
            placed.boxes[box.id] = replace(box, x=frame.x + PADDING + box.x, y=frame.y + PADDING + HEADER + box.y, group=group)
    return placed


def _flat(nodes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> Placed:
    ids = [node.id for node in nodes]
    level = layers(ids, edges)
    if level is None:                        # not a graph of values; keep the given order, one below the other
        level = {id: i for i, id in enumerate(ids)}
    rows: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for id in ids:
        rows[level[id]].append(id)
    above: dict[str, list[str]] = {id: [] for id in ids}
    below: dict[str, list[str]] = {id: [] for id in ids}
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    rank = {id: float(i) for row in rows for i, id in enumerate(row)}
    for sweep in range(SWEEPS):
        neighbours, order = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for row in order:
            row.sort(key=lambda id: _mean([rank[n] for n in neighbours[id]], rank[id]))
            rank.update((id, float(i)) for i, id in enumerate(row))
    return _coordinates({node.id: node for node in nodes}, rows, above, below)


def _coordinates(boxes: dict[str, Box], rows: list[list[str]], above: dict[str, list[str]], below: dict[str, list[str]]) -> Placed:
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
    placed, y = {}, 0.0
    for row in rows:
        for id in row:
            placed[id] = replace(boxes[id], x=centre[id] - boxes[id].width / 2 - left, y=y)
        y += max((boxes[id].height for id in row), default=0.0) + GAP_Y
    width = max((box.x + box.width for box in placed.values()), default=0.0)
    return Placed(placed, {}, width, max(y - GAP_Y, 0.0))


def _settle(row: list[str], wanted: list[float], boxes: dict[str, Box], centre: dict[str, float]) -> None:
    """Put a row as near to where its nodes want to be as their order and sizes allow: push right, then move all by the mean error."""
    edge, got = float("-inf"), []
    for id, want in zip(row, wanted):
        half = boxes[id].width / 2
        got.append(max(want, edge + half))
        edge = got[-1] + half + GAP_X
    shift = _mean([w - g for w, g in zip(wanted, got)], 0.0)
    centre.update(zip(row, (g + shift for g in got)))


def _line(source: Box, target: Box) -> list[float]:
    """From the bottom of one box to the top of the other; a line that goes far bends near its ends, so that it leaves straight down."""
    x0, y0 = source.x + source.width / 2, source.y + source.height
    x1, y1 = target.x + target.width / 2, target.y
    if x0 == x1:
        return [x0, y0, x1, y1]
    step = min(GAP_Y / 3, abs(y1 - y0) / 3)
    return [x0, y0, x0, y0 + step, x1, y1 - step, x1, y1]


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
