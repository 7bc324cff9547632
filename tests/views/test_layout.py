"""Layers point down, boxes never overlap, groups enclose their own, and the same graph is always drawn the same."""
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil_ide.views.layout import Box, layers, place


def boxes(*ids, group=""):
    return [Box(id, 60.0 + 10 * len(id), 30.0, group) for id in ids]


def overlap(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


# A chain goes straight down.
def test_chain():
    placed = place(boxes("a", "b", "c"), [("a", "b"), ("b", "c")])
    assert placed.boxes["a"].y < placed.boxes["b"].y < placed.boxes["c"].y
    assert len({box.x for box in placed.boxes.values()}) == 1
    assert len(placed.lines["a", "b"]) == 4


# A residual connection: the long edge decides the layer.
def test_longest_path():
    assert layers(["x", "f", "g", "y"], [("x", "f"), ("f", "g"), ("g", "y"), ("x", "y")]) == {"x": 0, "f": 1, "g": 2, "y": 3}


def test_siblings_stand_beside_each_other():
    placed = place(boxes("x", "q", "k", "v", "o"), [("x", "q"), ("x", "k"), ("x", "v"), ("q", "o"), ("k", "o"), ("v", "o")])
    q, k, v = (placed.boxes[id] for id in "qkv")
    assert q.y == k.y == v.y
    assert q.x < k.x < v.x                  # in the order they were written
    assert abs(placed.boxes["x"].x - k.x) < 1e-6


def test_groups_enclose_their_members_and_nothing_else():
    nodes = [*boxes("x"), *boxes("m", "g", group="k0"), *boxes("s", "t", group="k1")]
    placed = place(nodes, [("x", "m"), ("m", "g"), ("g", "s"), ("s", "t")])
    for group, members in (("k0", "mg"), ("k1", "st")):
        frame = placed.boxes[group]
        for id, box in placed.boxes.items():
            inside = frame.x <= box.x and frame.y <= box.y and box.x + box.width <= frame.x + frame.width and box.y + box.height <= frame.y + frame.height
            assert inside == (id in members or id == group)


# Two groups that need each other cannot be two boxes: their nodes are drawn flat, still without overlap.
def test_groups_in_a_cycle_are_dropped():
    nodes = [Box("a", 50, 30, "k0"), Box("b", 50, 30, "k1"), Box("c", 50, 30, "k0")]
    placed = place(nodes, [("a", "b"), ("b", "c")])
    assert set(placed.boxes) == {"a", "b", "c"}
    assert placed.boxes["a"].y < placed.boxes["b"].y < placed.boxes["c"].y


def test_odd_input():
    assert place([], []).width == 0.0
    assert place(boxes("a"), [("a", "a"), ("a", "ghost")]).lines == {}
    cycle = place(boxes("a", "b"), [("a", "b"), ("b", "a")])
    assert cycle.boxes["a"].y != cycle.boxes["b"].y


graphs = st.integers(1, 14).flatmap(lambda n: st.tuples(
    st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=30),
    st.lists(st.sampled_from(["", "k0", "k1"]), min_size=n, max_size=n)))


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_any_graph(graph):
    n, edges, groups = graph
    nodes = [Box(f"n{i}", 40.0 + 7 * (i % 5), 30.0, groups[i]) for i in range(n)]
    edges = [(f"n{a}", f"n{b}") for a, b in sorted(edges)]
    placed = place(nodes, edges)
    assert placed == place(nodes, edges)
    leaves = [placed.boxes[node.id] for node in nodes]
    assert not any(overlap(a, b) for a, b in itertools.combinations(leaves, 2))
    assert all(box.x >= -1e-9 and box.y >= -1e-9 for box in placed.boxes.values())
    assert set(placed.lines) == set(edges)


# Ten thousand ops in a chain with skips: no recursion, nothing quadratic.
def test_large():
    ids = [f"n{i}" for i in range(10_000)]
    edges = [*itertools.pairwise(ids), *zip(ids, ids[5:])]
    placed = place([Box(id, 60, 30) for id in ids], edges)
    assert len(placed.boxes) == 10_000 and len(placed.lines) == len(edges)


def crosses(line, box):
    """A straight piece of the line runs through the inside of the box."""
    for x0, y0, x1, y1 in zip(line[0::2], line[1::2], line[2::2], line[3::2]):
        for step in range(1, 20):
            x, y = x0 + (x1 - x0) * step / 20, y0 + (y1 - y0) * step / 20
            if box.x + 1 < x < box.x + box.width - 1 and box.y + 1 < y < box.y + box.height - 1:
                return True
    return False


# The residual of a block goes around it, and so does a value that a kernel needs only at its end.
def test_long_lines_pass_between_boxes():
    chain = boxes("x", "f", "g", "h", "y")
    edges = [("x", "f"), ("f", "g"), ("g", "h"), ("h", "y"), ("x", "y")]
    placed = place(chain, edges)
    assert not any(crosses(placed.lines["x", "y"], placed.boxes[id]) for id in "fgh")


def test_lines_into_a_group_pass_between_its_boxes():
    nodes = [*boxes("x", "r"), *boxes("a", "b", "c", "d", group="k0"), *boxes("z")]
    placed = place(nodes, [("x", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("r", "d"), ("a", "z"), ("d", "z")])
    assert not any(crosses(placed.lines["r", "d"], placed.boxes[id]) for id in "abc")
    assert not any(crosses(placed.lines["a", "z"], placed.boxes[id]) for id in "bcd")
    for (source, target), line in placed.lines.items():
        assert line[1] == round(placed.boxes[source].y + placed.boxes[source].height, 1) and line[-1] == round(placed.boxes[target].y, 1)
