"""Whatever the function and the level of fusion, native code gives what the interpreter gives; whatever the threads, the same bits."""
import sys
from pathlib import Path

import numpy as np
import pytest

import cuvil as cu
from cuvil.artifact.build import build
from cuvil.artifact.load import load_built
from cuvil.ir.interpret import run
from cuvil.pipeline import Stages, compile_file

sys.path.insert(0, str(Path(__file__).parents[1] / "passes"))
from programs import drawn  # noqa: E402


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0, 1, 2])
def test_any_function_computes_what_the_interpreter_computes(seed, level):
    function = drawn(seed + 77, 16)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((4, 6)).astype(np.float32) for _ in range(2)]
    got = load_built(build(Stages.of(function, opt_level=level)))(*arrays)
    with np.errstate(all="ignore"):
        expected = run(function, arrays)
    for g, e in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-3, atol=1e-4)


SOURCE = """import numpy as np
import cuvil as cu


@cu.compile(input_shapes={"x": (300, 700), "w": (700, 333), "b": (333,)})
def block(x, w, b):
    h = np.tanh(x @ w + b)
    e = np.exp(h - h.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), x.sum(axis=0)
"""


def test_the_same_bits_for_any_number_of_threads_and_every_run(tmp_path):
    (tmp_path / "model.py").write_text(SOURCE)
    built, = compile_file(str(tmp_path / "model.py"))
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((300, 700), (700, 333), (333,)))
    results = [cu.load(built.path, threads=threads)(x, w, b) for threads in (1, 2, 3, 7, 1)]
    h = np.tanh(x.astype(np.float64) @ w + b)
    e = np.exp(h - h.max(axis=1, keepdims=True))
    np.testing.assert_allclose(results[0][0], e / e.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-6)
    for other in results[1:]:
        for a, b_ in zip(results[0], other):
            np.testing.assert_array_equal(a.view(np.uint32), b_.view(np.uint32))
