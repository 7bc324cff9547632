"""Device code: PTX that assembles, SPIR-V, a manifest to launch them by; what does not run there is refused with its place."""
import json

import pytest

import cuvil as cu
from cuvil.artifact.device import assemble, find_ptxas
from cuvil.pipeline import compile_file

SOURCE = """import torch
import cuvil as cu


@cu.compile(input_shapes={"x": (64, 100)})
def softmax(x):
    return torch.softmax(x * 2, dim=-1)


@cu.compile(input_shapes={"x": (64, 100), "w": (100, 3)})
def product(x, w):
    return x @ w
"""


@pytest.fixture
def source(tmp_path):
    (tmp_path / "model.py").write_text(SOURCE)
    return str(tmp_path / "model.py")


@pytest.mark.parametrize("target, suffix, start", [("cuda:sm_90", ".ptx", b"//"), ("opencl", ".spv", b"\x03\x02\x23\x07")])
def test_device_code_and_how_to_launch_it(source, tmp_path, target, suffix, start):
    built, = compile_file(source, "softmax", output_dir=tmp_path / "out", target=target)
    assert built.path.suffix == suffix and built.path.read_bytes().lstrip().startswith(start)
    launch = json.loads((tmp_path / f"out/softmax{suffix}.json").read_text())["launch"]
    assert launch and all(step["blocks"] * step["threads_per_block"] >= 64 for step in launch)
    assert [a["kind"] for a in launch[0]["arguments"]] == ["input", "output"]


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_ptx_assembles(source, tmp_path):
    built, = compile_file(source, "softmax", output_dir=tmp_path, target="cuda:sm_90")
    assert (tmp_path / "softmax.cubin").read_bytes().startswith(b"\x7fELF") and tmp_path / "softmax.cubin" in built.paths
    with pytest.raises(cu.CuvilError, match="ptxas refused"):
        assemble(b"not ptx", "sm_90")


def test_what_does_not_run_there_is_refused_where_it_stands(source):
    with pytest.raises(cu.CuvilError, match="contraction") as caught:
        compile_file(source, "product", target="cuda:sm_90")
    assert caught.value.span.line == 12
    with pytest.raises(cu.CuvilError, match="no target 'abacus'"):
        compile_file(source, "product", target="abacus")


def test_a_function_for_a_device_is_saved_not_called(module, tmp_path):
    f = cu.compile(module("""
        def f(x):
            return torch.exp(x)
    """).f, target="opencl", input_shapes={"x": (8,)})
    assert [p.suffix for p in f.save(tmp_path / "f.spv")] == [".spv", ".json"]
    import numpy as np
    with pytest.raises(cu.CuvilError, match="cannot be called from Python"):
        f(np.zeros(8, np.float32))
