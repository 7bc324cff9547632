"""Kernels of sizes that do not fit vectors and tiles: values, the same bits for any number of threads, odd and empty inputs."""
from __future__ import annotations

import numpy as np
import pytest
from native import Native

import cuvil.ops  # noqa: F401
from cuvil import passes
from cuvil.diagnostics import CuvilError
from cuvil.ir import interpret
from cuvil.ir.function import Function
from cuvil.ir.types import DType, TensorType
from cuvil.ops.builder import Builder

TARGETS = ["cpu", "x86_64_avx2", "generic"]
SIZES = [1, 7, 15, 16, 17, 33, 67]
F32 = DType.F32
random = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def check(function: Function, *inputs: np.ndarray, target: str = "cpu", tolerance: float = 2e-5, parameters=None, **options) -> list[np.ndarray]:
    """Native results, compared with the interpreter's and between one thread and three."""
    native = Native(passes.run(function).function, target, **options)
    found, shared = native(inputs, parameters), native(inputs, parameters, threads=3)
    with np.errstate(all="ignore"):
        expected = interpret.run(function, inputs, parameters or {})
    for f, s, e in zip(found, shared, expected, strict=True):
        np.testing.assert_allclose(f, e, tolerance, tolerance)
        assert f.tobytes() == s.tobytes(), "three threads give other bits than one"
    return found


def built(make, *shapes: tuple[int, ...], dtype: DType = F32) -> Function:
    b = Builder()
    result = make(b, *(b.input(f"x{i}", i, TensorType(s, dtype)) for i, s in enumerate(shapes)))
    return b.function("f", result if isinstance(result, list) else [result])


def softmax(b: Builder, x, axis: int):
    top = b.emit("reduce_max", x, axes=(axis,), keepdims=True)
    e = b.emit("exp", b.emit("sub", x, top))
    return b.emit("div", e, b.emit("reduce_sum", e, axes=(axis,), keepdims=True))


@pytest.mark.parametrize("target", TARGETS)
def test_ragged_elementwise_and_row_kernels(target):
    functions = []
    for n in SIZES:
        functions.append((built(lambda b, x, y: b.emit("mul", b.emit("tanh", x), y), (3, n), (n,)), floats(3, n), floats(n)))
        functions.append((built(lambda b, x: softmax(b, x, 1), (5, n)), floats(5, n)))
        functions.append((built(lambda b, x: softmax(b, x, 0), (n, 5)), floats(n, 5)))
        functions.append((built(lambda b, x: b.emit("reduce_sum", x, axes=(0, 2), keepdims=False), (3, n, 4)), floats(3, n, 4)))
    for function, *inputs in functions[::2] if target != "cpu" else functions:
        check(function, *inputs, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 15, 17), (16, 33, 67), (33, 16, 64), (100, 130, 70), (2, 300, 40)])
def test_ragged_matmuls_with_an_epilogue(shape, target):
    m, k, n = shape
    function = built(lambda b, x, y, c: b.emit("maximum", b.emit("add", b.emit("matmul", x, y), c), b.constant(0.0, F32)), (m, k), (k, n), (n,))
    check(function, floats(m, k), floats(k, n), floats(n), target=target)


# A transposed right operand, one made of parameters, one read with batch axes that broadcast, and rows summed as they lie.
@pytest.mark.parametrize("m", [1, 3, 50])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_matmul_operands_are_read_through_their_views(m, batch):
    def make(b, x, y):
        axes = (*range(len(batch)), len(batch) + 1, len(batch))
        return b.emit("matmul", x, b.emit("transpose", y, axes=axes))
    check(built(make, (*batch, m, 40), (*batch, 33, 40)), floats(*batch, m, 40), floats(*batch, 33, 40))
    check(built(lambda b, x, y: b.emit("matmul", x, y), (*batch, m, 40), (40, 33)), floats(*batch, m, 40), floats(40, 33))


def test_parameters_are_packed_once_and_give_the_same():
    b = Builder()
    x, w = b.input("x", 0, TensorType((50, 40), F32)), b.parameter("w", TensorType((70, 40), F32))
    function = b.function("linear", [b.emit("matmul", x, b.emit("transpose", w, axes=(1, 0)))])
    native = Native(function)
    assert native.module.prepared >= 70 * 40 * 4
    weights, a = floats(70, 40), floats(50, 40)
    np.testing.assert_allclose(native([a], {"w": weights})[0], a @ weights.T, 2e-5, 2e-5)


@pytest.mark.parametrize("dtype", [DType.I32, DType.I64, DType.F64, DType.F16])
def test_matmul_of_other_elements(dtype):
    x, y = (random.integers(-9, 9, s).astype(dtype.numpy) for s in ((13, 20), (20, 37)))
    check(built(lambda b, x, y: b.emit("matmul", x, y), x.shape, y.shape, dtype=dtype), x, y, tolerance=1e-3)


@pytest.mark.parametrize("case", [
    dict(x=(2, 8, 9, 14), w=(12, 8, 3, 3), stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1),
    dict(x=(1, 8, 30, 33), w=(8, 8, 3, 3), stride=(2, 2), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1),
    dict(x=(1, 16, 7, 7), w=(32, 16, 1, 1), stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1),
    dict(x=(2, 12, 8, 17), w=(12, 1, 3, 3), stride=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=12),
    dict(x=(1, 12, 10, 10), w=(24, 4, 2, 3), stride=(1, 2), padding=((0, 1), (2, 0)), dilation=(2, 1), groups=3)])
def test_convolutions(case):
    attrs = {k: case[k] for k in ("stride", "padding", "dilation", "groups")}
    function = built(lambda b, x, w: b.emit("maximum", b.emit("conv2d", x, w, **attrs), b.constant(0.0, F32)), case["x"], case["w"])
    check(function, floats(*case["x"]), floats(*case["w"]))


# Work large enough to be shared among threads, cut in every way there is: pieces of a line, rows, panels, shares of rows.
def test_shared_work_gives_the_same_bits():
    check(built(lambda b, x, y: b.emit("exp", b.emit("add", x, y)), (70_001,), (70_001,)), floats(70_001), floats(70_001))
    check(built(lambda b, x: softmax(b, x, 1), (257, 300)), floats(257, 300))
    check(built(lambda b, x: b.emit("reduce_sum", x, axes=(0,), keepdims=False), (300, 517)), floats(300, 517), tolerance=1e-4)
    check(built(lambda b, x, y: b.emit("matmul", x, y), (401, 64), (64, 32)), floats(401, 64), floats(64, 32))
    check(built(lambda b, x, y: b.emit("matmul", x, y), (2, 3, 64, 50), (2, 3, 50, 64)), floats(2, 3, 64, 50), floats(2, 3, 50, 64))


# Equal terms round the same way every time, so a plain running sum drifts: 0.1 a million times is off in the fourth digit.
@pytest.mark.parametrize("count", [2_000, 2_049, 40_000, 1_000_003])
@pytest.mark.parametrize("target", TARGETS)
def test_long_sums_stay_at_rounding_level(count, target):
    function = built(lambda b, x: b.emit("reduce_sum", x, axes=(0,), keepdims=False), (count,))
    found = Native(passes.run(function).function, target)([np.full(count, 0.1, np.float32)])[0]
    exact = count * float(np.float32(0.1))
    assert abs(float(found) - exact) <= 1e-6 * exact


def test_nan_infinities_and_signed_zeros_go_through():
    x = np.array([[np.nan, 1, -1], [np.inf, -np.inf, 0], [-0.0, 0.0, 2]], np.float32)
    top, = check(built(lambda b, x: b.emit("reduce_max", x, axes=(1,), keepdims=False), x.shape), x)
    assert np.isnan(top[0]) and top[1] == np.inf
    negative, = check(built(lambda b, x: b.emit("neg", x), x.shape), x)
    assert np.signbit(negative[1, 2]) and not np.signbit(negative[2, 0])


def test_empty_tensors():
    empty = np.zeros((3, 0), np.float32)
    total, = check(built(lambda b, x: b.emit("reduce_sum", x, axes=(1,), keepdims=False), (3, 0)), empty)
    assert total.tolist() == [0, 0, 0]
    assert check(built(lambda b, x: b.emit("exp", x), (3, 0)), empty)[0].shape == (3, 0)
    product, = check(built(lambda b, x, y: b.emit("matmul", x, y), (3, 0), (0, 4)), empty, np.zeros((0, 4), np.float32))
    assert product.tolist() == [[0] * 4] * 3


def test_integers_wrap_and_division_is_guarded():
    low = np.array([-128, -128, 127, 7, -7], np.int8)
    by = np.array([-1, 0, 1, 2, 2], np.int8)
    quotient, rest, total = check(built(lambda b, x, y: [b.emit("floordiv", x, y), b.emit("mod", x, y), b.emit("add", x, x)], (5,), (5,),
                                        dtype=DType.I8), low, by)
    assert quotient.tolist() == [-128, 0, 127, 3, -4] and rest.tolist() == [0, 0, 0, 1, 1] and total.tolist() == [0, 0, -2, 14, -14]


def test_a_gathered_position_outside_is_an_error_and_reads_nothing():
    from cuvil.ops.definition import call
    b = Builder()
    table, at = b.input("table", 0, TensorType((5, 4), F32)), b.input("at", 1, TensorType((3,), DType.I64))
    native = Native(passes.run(b.function("lookup", [call(b, "torch.nn.functional.embedding", [at, table], {})])).function)
    values = floats(5, 4)
    np.testing.assert_array_equal(native([values, np.array([4, 0, 2])])[0], values[[4, 0, 2]])
    with pytest.raises(IndexError, match="out of range"):
        native([values, np.array([4, 5, 2])])


def test_results_that_no_kernel_makes_are_copied():
    x, y = floats(4), floats(4)
    found = check(built(lambda b, x, y: [x, b.emit("add", x, y), x], (4,), (4,)), x, y)
    np.testing.assert_array_equal(found[2], x)


def test_symbolic_sizes_are_refused():
    from cuvil.ir.dims import symbol
    b = Builder()
    x = b.input("x", 0, TensorType((symbol("n"),), F32))
    with pytest.raises(CuvilError, match="n"):
        Native(b.function("f", [b.emit("exp", x)]))
