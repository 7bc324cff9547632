"""Stages: lazy, immutable, and a lineage graph in which everything says where it came from."""
import pytest

import cuvil as cu
from cuvil.compiled.arguments import type_of
from cuvil.frontends.python import capture
from cuvil.lineage import LAYERS
from cuvil.pipeline import Stages
from cuvil.source import Source

TEXT = """import torch
import torch.nn.functional as F


def scaled(x, by):
    return x * by


def f(x, w, b):
    h = F.gelu(x @ w + b)
    return torch.softmax(scaled(h, 0.5), dim=-1)
"""


@pytest.fixture(scope="module")
def stages():
    source = Source("model.py", TEXT)
    types = {name: type_of(name, shape) for name, shape in {"x": (8, 16), "w": (16, 32), "b": (32,)}.items()}
    return Stages.of(capture(source, "f", types), sources={"model.py": TEXT})


def test_stages_are_made_once(stages):
    assert stages.kernels is stages.kernels and stages.llvm is stages.llvm
    with pytest.raises(AttributeError):
        stages.target = "other"


def test_every_layer_is_there_and_every_edge_points_to_the_layers_before(stages):
    lineage = stages.lineage
    assert stages.problems == {}
    order = {layer: i for i, layer in enumerate(LAYERS)}
    assert {e.layer for e in lineage.elements} == set(LAYERS)
    assert len(lineage.by_id) == len(lineage.elements)
    for id, sources in lineage.origins.items():
        for source in sources:
            assert order[lineage.by_id[source].layer] < order[lineage.by_id[id].layer], (id, source)


def test_an_element_without_an_origin_says_why(stages):
    for element in stages.lineage.elements:
        assert element.layer == "source" or stages.lineage.origins.get(element.id) or element.note, element


def test_coverage(stages):
    for layer in ("cst", "ir", "kernel", "loop"):
        coverage = stages.lineage.coverage(layer)
        assert coverage.mapped == coverage.total > 0, layer
    assert stages.lineage.coverage("llvm").mapped > 0.5 * stages.lineage.coverage("llvm").total


def test_a_line_reaches_its_machine_code_and_back(stages):
    lineage = stages.lineage
    gelu = lineage.trace("source:10")
    assert any(id.startswith("asm:") for id in gelu) and any(id.startswith("kernel:k0_") for id in gelu)
    machine = next(id for id in sorted(gelu) if id.startswith("asm:") and lineage.origins.get(id))
    assert "source:10" in lineage.trace(machine) or "source:11" in lineage.trace(machine)


def test_what_was_inlined_knows_the_call(stages):
    """`scaled` is followed: its product comes from line 6 and from the call on line 11."""
    lineage = stages.lineage
    product = next(e.id for e in lineage.layer("ir") if "mul" in e.text and "source:6" in lineage.trace(e.id) and "cst:6" in str(lineage.origins[e.id]))
    assert any(origin.startswith("cst:11:") for origin in lineage.origins[product])


def test_cst_elements_enclose_each_other(stages):
    lineage = stages.lineage
    for element in lineage.layer("cst"):
        if element.parent:
            assert lineage.by_id[element.parent].span.encloses(element.span)
    assert any(e.text.startswith("BinaryOperation x @ w") for e in lineage.layer("cst"))


def test_symbolic_sizes_stop_at_the_loops_and_say_which():
    source = Source("model.py", "import torch\ndef f(x):\n    return torch.exp(x) + 1\n")
    stages = Stages.of(capture(source, "f", {"x": type_of("x", ("n", 4))}))
    assert {e.layer for e in stages.lineage.elements} == {"source", "cst", "ir", "kernel"}
    assert "no sizes for n" in str(stages.problems["loop"])
    assert Stages.of(stages.function, dims={"n": 3}).at().problems == {}


def test_targets_and_levels_that_are_not():
    source = Source("model.py", "import torch\ndef f(x):\n    return torch.exp(x)\n")
    function = capture(source, "f", {"x": type_of("x", (2, 4))})
    with pytest.raises(cu.CuvilError, match="opt_level is 7"):
        Stages.of(function, opt_level=7)
    with pytest.raises(cu.CuvilError, match="no target 'abacus'"):
        _ = Stages.of(function, target="abacus").object
