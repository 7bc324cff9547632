"""The interpreter's doors: symbols from shapes, arguments that do not fit, bfloat16, nested composites."""
from __future__ import annotations

import numpy as np
import pytest

from cuvil.diagnostics import CuvilError
from cuvil.ir.interpret import run
from cuvil.ir.text import parse_function
from cuvil.ir.types import DType, TensorType
from cuvil.ops import SPELLINGS, Builder

F = """func @f(%0: f32[B, 2*T] "x", %1: f32[B, T] "y", parameter %2: f32[T] "w") -> tuple {
  %3 = add %1, %2 : f32[B, T]
  %4 = concat %3, %3 {axis = 1} : f32[B, 2*T]
  %5 = add %0, %4 : f32[B, 2*T]
  return %5, %3
}
"""


def ones(*shape):
    return np.ones(shape, np.float32)


def test_symbols_are_bound_from_shapes():
    first, second = run(parse_function(F), [ones(2, 6), ones(2, 3)], {"w": ones(3)})
    np.testing.assert_array_equal(first, np.full((2, 6), 3, np.float32))
    np.testing.assert_array_equal(second, np.full((2, 3), 2, np.float32))


@pytest.mark.parametrize("inputs, parameters, what", [
    ([ones(2, 6)], {"w": ones(3)}, "f takes 2 arguments, 1 were given"),
    ([ones(2, 6), ones(2, 3)], {}, "no value for parameter w"),
    ([ones(2, 6), ones(4, 3)], {"w": ones(3)}, "size 4 on axis 0, but B is 2"),
    ([ones(2, 7), ones(2, 3)], {"w": ones(3)}, "size 7 on axis 1, but 2*T is 6"),
    ([ones(2, 6), ones(2, 3).astype(np.float64)], {"w": ones(3)}, "argument 'y' is float64[2, 3]"),
    ([ones(6), ones(2, 3)], {"w": ones(3)}, "argument 'x' is float32[6]"),
])
def test_arguments_that_do_not_fit(inputs, parameters, what):
    with pytest.raises(CuvilError) as error:
        run(parse_function(F), inputs, parameters)
    assert what in str(error.value)


def test_a_size_alone_in_a_product_is_solved():
    f = parse_function('func @f(%0: f32[4*T + 1] "x") -> tensor {\n  %1 = iota {axis = 0, dtype = i64, shape = (T,)} : i64[T]\n  return %1\n}')
    assert run(f, [ones(13)])[0].tolist() == [0, 1, 2]
    with pytest.raises(CuvilError, match="does not determine"):
        run(f, [ones(12)])


def test_bfloat16_is_rounded_after_every_op():
    b = Builder()
    x = b.input("x", 0, TensorType((2,), DType.BF16))
    f = b.function("f", [b.emit("sub", b.emit("add", x, b.constant(256.0, DType.BF16)), b.constant(256.0, DType.BF16))])
    assert run(f, [np.array([1.0, 0.5], np.float32)])[0].tolist() == [0.0, 0.0]          # 257 and 256.5 round to 256 (8 bits)


def test_an_index_outside_is_refused():
    b = Builder()
    w, i = b.input("w", 0, TensorType((4, 2), DType.F32)), b.input("i", 1, TensorType((3,), DType.I64))
    f = b.function("f", [SPELLINGS["torch.nn.functional.embedding"](b, i, w)])
    with pytest.raises(CuvilError, match="index 4 is outside an axis of 4 elements"):
        run(f, [ones(4, 2), np.array([0, 4, 1])])


def test_deep_chains_need_no_recursion():
    b = Builder()
    x = b.input("x", 0, TensorType((1,), DType.F32))
    for _ in range(5000):
        x = b.emit("relu", b.emit("neg", x))
    assert run(b.function("f", [x]), [ones(1)])[0].tolist() == [0.0]


@pytest.mark.parametrize("operator", ["operator.floordiv", "operator.mod", "torch.fmod"])
def test_an_integer_division_by_zero_is_refused(operator):
    """Eager PyTorch raises; NumPy gives 0."""
    x, y = np.array([7, 8]), np.array([2, 0])
    for library in ("torch", "numpy"):
        b = Builder(library)
        args = b.input("x", 0, TensorType((2,), DType.I64)), b.input("y", 1, TensorType((2,), DType.I64))
        f = b.function("f", [SPELLINGS[operator](b, *args)])
        if library == "torch":
            with pytest.raises(CuvilError, match="integer division by zero"):
                run(f, [x, y])
        elif operator != "torch.fmod":
            assert run(f, [x, y])[0][1] == 0
