"""Payloads of real functions: what every one of them must hold, what is special about some, and what is shown when a stage refuses."""
import json
import math
from pathlib import Path

import pytest

from cuvil.diagnostics import CuvilError
from cuvil.lineage import LAYERS
from cuvil_ide import views
from cuvil_ide.protocol import Position, ViewRequest, to_json
from cuvil_ide.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"

SOFTMAX = '''import torch
import cuvil as cu

SCALE = 2.0


@cu.compile(input_shapes={"x": ("rows", 64)})
def soft(x):
    y = x * SCALE
    return torch.softmax(y, dim=-1)
'''
MLP = '''import torch
import torch.nn.functional as F
import cuvil as cu


def activation(h):
    return F.gelu(h)


@cu.compile(input_shapes={"x": (32, 64), "w": (64, 128), "b": (128,)})
def mlp(x, w, b):
    hidden = activation(x @ w + b)
    return hidden.sum(dim=-1)
'''
REFUSED = '''import torch
import cuvil as cu


@cu.compile(input_shapes={"x": (8,)})
def pick(x):
    y = x + 1
    return y[y > 0]
'''


@pytest.fixture
def show(tmp_path):
    def show(panel: str, text: str, function: str = "", line: int = 0):
        session = Session(tmp_path)
        path = str(tmp_path / "m.py")
        session.update(path, text)
        return views.view(session, ViewRequest(panel, path, Position(line, 1) if line else None, function))
    return show


def column(payload, id):
    return next(c for c in payload.columns if c.id == id)


def check_drilldown(payload):
    """What holds of every drilldown."""
    assert [c.id for c in payload.columns] == list(LAYERS)
    elements = {e.id: c.id for c in payload.columns for e in c.elements}
    assert len(elements) == sum(len(c.elements) for c in payload.columns), "ids are unique"
    for id, sources in payload.origins.items():
        assert id in elements and sources and len(set(sources)) == len(sources)
        for source in sources:
            assert LAYERS.index(elements[source]) < LAYERS.index(elements[id]), f"{id} comes from {source}"
    for c in payload.columns:
        assert c.total == len(c.elements)
        mapped = sum(1 for e in c.elements if payload.origins.get(e.id))
        assert c.mapped == (c.total if c.id == "source" else mapped)
        assert bool(c.elements) != bool(c.problem) and c.made_by
        before = set()
        for e in c.elements:
            assert e.parent is None or e.parent in before, "parents come first"
            before.add(e.id)
            assert (e.depth == 0) == (e.parent is None)
            if c.id not in ("source",) and not payload.origins.get(e.id):
                assert e.note, f"{e.id} {e.text!r} has no origin and does not say why"
    assert set(payload.scopes) == {e.id for e in column(payload, "cst").elements if e.symbol}
    check_graph(payload.graph, elements)
    assert json.loads(json.dumps(to_json(payload), allow_nan=False)) == to_json(payload)


def check_graph(graph, elements):
    nodes = {n.id: n for n in graph.nodes}
    assert set(nodes) <= set(elements)
    for n in graph.nodes:
        assert n.width > 0 and n.height > 0 and 0 <= n.x and n.x + n.width <= graph.width + 0.1 and n.y + n.height <= graph.height + 0.1
        if n.group:
            box = nodes[n.group]
            assert box.x <= n.x and n.x + n.width <= box.x + box.width + 0.1 and box.y <= n.y and n.y + n.height <= box.y + box.height + 0.1
    for e in graph.edges:
        assert e.source in nodes and e.target in nodes and len(e.points) >= 4 and len(e.points) % 2 == 0
        assert e.reason


def check_heatmap(payload):
    ids = {m.id for m in payload.metrics}
    assert set(payload.values) == set(payload.lines) == ids
    computing = {n.id for n in payload.graph.nodes if n.group or n.id.startswith("kernel:")}
    for m in payload.metrics:
        assert computing <= set(payload.values[m.id])
        heats = [*payload.values[m.id].values(), *(x.heat for x in payload.lines[m.id])]
        finite = [h.value for h in heats if h.value is not None and (h.value > 0 or m.scale == "linear")]
        assert m.low == min(finite, default=0.0) and m.high == max(finite, default=0.0)
        for id, heat in payload.values[m.id].items():
            assert id.startswith(("ir:", "kernel:")) and (heat.value is None) == (heat.position is None)
            assert heat.position is None or (0 <= heat.position <= 1 and math.isfinite(heat.value))
            assert heat.label and heat.formula
        for line in payload.lines[m.id]:
            assert payload.first_line <= line.line < payload.first_line + len(payload.source)
    assert json.loads(json.dumps(to_json(payload), allow_nan=False)) == to_json(payload)


# The whole way: every layer is there, and a source line reaches the assembly.
def test_softmax_in_all_layers(show):
    payload = show("drilldown", SOFTMAX)
    check_drilldown(payload)
    assert payload.function == "soft" and payload.functions == ["soft"] and not payload.stale
    assert all(c.elements for c in payload.columns)
    derived: dict[str, set[str]] = {}
    for id, sources in payload.origins.items():
        for source in sources:
            derived.setdefault(source, set()).add(id)
    reached, todo = set(), ["source:9"]
    while todo:
        for id in derived.get(todo.pop(), ()):
            if id not in reached:
                reached.add(id)
                todo.append(id)
    assert {id.partition(":")[0] for id in reached} == {"cst", "ir", "kernel", "loop", "llvm", "asm"}


# The code's own symbols stand in the IR; the layers that need numbers say which they took.
def test_symbols_are_shown_and_example_sizes_are_named(show):
    payload = show("drilldown", SOFTMAX)
    assert any("f32[rows, 64]" in e.text for e in column(payload, "ir").elements)
    assert column(payload, "loop").made_by == "example sizes rows = 128 · cuvil compile m.py:soft --emit loops -o - --dim rows=128"
    assert any(n.detail.startswith("f32[rows, 64]") for n in payload.graph.nodes)


# People wrote "softmax": it is a line of its own that opens to what it became, and leads to the same kernel.
def test_composites_open(show):
    payload = show("drilldown", SOFTMAX)
    (softmax,) = [e for e in column(payload, "ir").elements if e.text.startswith("softmax")]
    parts = [e for e in column(payload, "ir").elements if e.parent == softmax.id]
    assert softmax.text == "softmax : f32[rows, 64]  (5 ops)" and len(parts) == 5 and all(e.depth == 1 for e in parts)
    assert softmax.place.range.start.line == 10 and payload.origins[softmax.id] == payload.origins[parts[0].id]
    (kernel,) = column(payload, "kernel").elements
    assert softmax.id in payload.origins[kernel.id]


def test_ops_stand_where_they_were_written(show):
    payload = show("drilldown", SOFTMAX)
    multiply = next(e for e in column(payload, "ir").elements if " mul " in e.text)
    assert (multiply.place.range.start.line, multiply.place.range.start.column) == (9, 9)
    assert any(id.startswith("cst:9:8-9:17:BinaryOperation") for id in payload.origins[multiply.id])


def test_a_helper_is_followed_and_its_call_is_an_origin(show):
    payload = show("drilldown", MLP)
    check_drilldown(payload)
    sources = {s for e in column(payload, "ir").elements for s in payload.origins.get(e.id, ()) if s.endswith(":Call")}
    lines = {int(s.split(":")[1]) for s in sources}
    assert {7, 12} <= lines


def test_kernels_are_groups_of_the_graph(show):
    payload = show("drilldown", MLP)
    kernels = {e.id for e in column(payload, "kernel").elements}
    assert {n.group for n in payload.graph.nodes if n.group} == kernels
    assert any(e.fused for e in payload.graph.edges) and any(not e.fused for e in payload.graph.edges)


# A block says nothing that its statements do not say: they stand right below what they belong to, in one line each.
def test_syntax_is_shown_without_wrappers(show):
    payload = show("drilldown", SOFTMAX.replace("    return torch", "    if True:\n        pass; y = -y\n    return torch").replace("soft(x):", "soft(x=None):"))
    check_drilldown(payload)
    rows = [(e.depth, e.text.partition(" ")[0]) for e in column(payload, "cst").elements]
    assert [kind for depth, kind in rows if depth == 1] == ["Decorator", "Name", "Parameters", "Assign", "If", "Return"]
    assert rows[-1 - rows[::-1].index((1, "If")):][:4] == [(1, "If"), (2, "Name"), (2, "Pass"), (2, "Assign")]
    (function, *_) = column(payload, "cst").elements
    assert {e.text.partition(" ")[0] for e in column(show("drilldown", "import torch\n\n\ndef made():\n    return torch.ones(3)\n"), "cst").elements
            if e.depth == 1} == {"Name", "Return"} and function.depth == 0


def test_names_have_their_scopes(show):
    payload = show("drilldown", SOFTMAX)
    scale = next(e for e in column(payload, "cst").elements if e.symbol == "SCALE")
    assert payload.scopes[scale.id].chain == ["soft", "module", "builtins"]
    assert payload.scopes[scale.id].bindings[0].place.range.start.line == 4
    y = [payload.scopes[e.id] for e in column(payload, "cst").elements if e.symbol == "x"][-1]
    assert y.bindings[0].kind == "parameter" and y.bindings[0].type == "f32[rows, 64]"


# The function at a place, the named one, or the first entry point.
def test_which_function(show):
    assert show("drilldown", MLP).function == "mlp"
    assert show("drilldown", MLP, line=7).function == "activation"
    assert show("drilldown", MLP, function="activation").function == "activation"
    with pytest.raises(CuvilError, match="no function nothing"):
        show("drilldown", MLP, function="nothing")
    with pytest.raises(CuvilError, match="no function to show"):
        show("drilldown", "x = 1\n")
    with pytest.raises(CuvilError, match="no panel 'roofline3d'"):
        show("roofline3d", MLP)


# A refusal costs the stages after it and nothing before; the reason has its place.
def test_a_refused_function_shows_what_there_is(show):
    payload = show("drilldown", REFUSED)
    check_drilldown(payload)
    assert column(payload, "source").elements and column(payload, "cst").elements
    for id in ("kernel", "loop", "llvm", "asm"):
        assert column(payload, id).elements == [] and "m.py:8:" in column(payload, id).problem
    heat = show("heatmap", REFUSED)
    assert "m.py:8:" in heat.problem and heat.metrics == [] and len(heat.source) == 4


# A layer behind the open sizes wants one size and no other: no numbers are shown for sizes that the code cannot have.
def test_example_sizes_that_do_not_fit(show):
    text = SOFTMAX.replace('("rows", 64)', '("rows", "columns")').replace("torch.softmax(y, dim=-1)", "y.reshape(y.shape[0] * y.shape[1]) @ torch.zeros(6, 2)")
    payload = show("drilldown", text)
    check_drilldown(payload)
    assert column(payload, "ir").elements and column(payload, "kernel").elements
    assert "the sizes rows = 128, columns = 128" in column(payload, "loop").problem and column(payload, "loop").elements == []
    heat = show("heatmap", text)
    assert "the sizes rows = 128, columns = 128" in heat.problem and heat.values == {} and heat.graph.nodes


# Code that does not parse shows the last text that did, and says so.
def test_stale(tmp_path):
    session = Session(tmp_path)
    path = str(tmp_path / "m.py")
    session.update(path, SOFTMAX)
    first = views.view(session, ViewRequest("drilldown", path))
    session.update(path, SOFTMAX.replace("y = x * SCALE", "y = x * * SCALE"))
    broken = views.view(session, ViewRequest("drilldown", path, None, "soft"))
    check_drilldown(broken)
    assert broken.stale and not first.stale and broken.version != first.version
    session.update(path, SOFTMAX)
    again = views.view(session, ViewRequest("drilldown", path, None, "soft"))
    assert to_json(again) == to_json(first)


# Asked again, nothing is made again; after an edit elsewhere in the file the native code of this function is still good.
def test_what_did_not_change_is_not_made_again(tmp_path):
    session, path = Session(tmp_path), str(tmp_path / "m.py")
    session.update(path, SOFTMAX + "\n\ndef other(x):\n    return x\n")
    request = ViewRequest("drilldown", path, None, "soft")
    first = views.view(session, request)
    assert views.view(session, request) is first
    about = views.subject(session, request)
    session.update(path, SOFTMAX + "\n\ndef other(x):\n    return x + 1\n")
    after = views.subject(session, request)
    assert after is not about and after.stages is about.stages and after.concrete is about.concrete
    second = views.view(session, request)
    assert second.version != first.version and second.columns == first.columns
    session.update(path, SOFTMAX.replace("SCALE = 2.0", "SCALE = 3.0"))
    assert any("3.0" in e.text for e in column(views.view(session, request), "ir").elements)


def test_heatmap_of_a_softmax(show):
    payload = show("heatmap", SOFTMAX)
    check_heatmap(payload)
    intensity = payload.values["intensity"]
    (kernel,) = [id for id in intensity if id.startswith("kernel:")]
    # 128 rows of 64: one multiply, four ops and one exp (12 FLOP) for each element; every element read and written once.
    assert intensity[kernel].value == pytest.approx((1 + 4 + 12) / 8)
    assert intensity[kernel].formula == "(1088*rows) / (512*rows)"
    assert payload.dims == {"rows": 128} and "FLOP/B" in payload.machine
    assert {m.id: m.unit for m in payload.metrics} == {"intensity": "FLOP/B", "bytes": "B", "flops": "FLOP"}
    assert payload.metrics[0].scale == "diverging" and payload.metrics[0].centre > 0
    assert [x.line for x in payload.lines["flops"]] == [9, 10]
    total = payload.values["flops"][kernel].value
    assert sum(x.heat.value for x in payload.lines["flops"]) == pytest.approx(total)
    assert payload.source[-1] == "    return torch.softmax(y, dim=-1)"


# A matmul computes, a sum moves: they stand on different sides of each other.
def test_heat_tells_computing_from_moving(show):
    payload = show("heatmap", MLP)
    check_heatmap(payload)
    heat = {id: h for id, h in payload.values["intensity"].items() if id.startswith("kernel:")}
    matmul, total = (next(h for id, h in heat.items() if word in id) for word in ("matmul", "sum"))
    assert matmul.position > total.position


@pytest.mark.parametrize("name", ["attention", "mlp", "numpy_pipeline", "decoder_block", "convnet"])
def test_examples(name):
    """All functions of the examples, in both panels."""
    session = Session(EXAMPLES)
    path = str(EXAMPLES / f"{name}.py")
    functions = views.view(session, ViewRequest("heatmap", path)).functions
    assert functions
    for function in functions:
        check_drilldown(views.view(session, ViewRequest("drilldown", path, None, function)))
        check_heatmap(views.view(session, ViewRequest("heatmap", path, None, function)))
