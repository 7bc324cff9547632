"""Mathematical functions against results rounded from a wider format: errors in units in the last place, and special values."""
from __future__ import annotations

import math

import numpy as np
import pytest
from native import Native

import cuvil.ops  # noqa: F401
from cuvil.ir.types import DType, TensorType
from cuvil.ops.builder import Builder

# name: (NumPy's function on long doubles, low, high, allowed ulp in f32, in f64)
FUNCTIONS = {
    "exp": (np.exp, -104, 89, 1.5, 1.5), "exp2": (np.exp2, -150, 128, 1.5, 1.5), "expm1": (np.expm1, -20, 88, 2, 2),
    "log": (np.log, 0, 1e30, 1.5, 1.5), "log2": (np.log2, 0, 1e30, 2.5, 2), "log1p": (np.log1p, -1, 1e6, 2.5, 2.5),
    "sin": (np.sin, -1e5, 1e5, 1, 1), "cos": (np.cos, -1e5, 1e5, 1, 1), "tan": (np.tan, -1e3, 1e3, 1, 2),
    "tanh": (np.tanh, -10, 10, 3, 3), "atan": (np.arctan, -1e3, 1e3, 1, 1), "erf": (None, -4, 4, 2, 1),
    "sinh": (np.sinh, -88, 88, 2, 2), "cosh": (np.cosh, -88, 88, 2, 2), "sqrt": (np.sqrt, 0, 1e30, 0.5, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 1.5, 1.5),
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-38, 2.0 ** 40, 3e38, -3e38, 88.8, 104.0, -103.9, -104.2, 0.5]


@pytest.fixture(scope="module", params=["cpu", "x86_64_avx2", "generic"])
def functions(request):
    """All functions of one element type as results of one native function of a vector."""
    made = {}
    for dtype in (DType.F32, DType.F64):
        b = Builder()
        x = b.input("x", 0, TensorType((4096 + 7,), dtype))
        made[dtype] = Native(b.function("all", [b.emit(name, x) for name in FUNCTIONS]), request.param)
    return made


def numbers(low: float, high: float, dtype: str) -> np.ndarray:
    """Evenly spread, and spread by magnitude."""
    random = np.random.default_rng(1)
    size = 10.0 ** random.uniform(-8, math.log10(max(abs(low), abs(high))), 2048) * random.choice([-1, 1], 2048)
    return np.clip(np.concatenate([random.uniform(low, high, 2048), size, np.zeros(7)]), low, high).astype(dtype)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_stated_bound(functions, name, dtype):
    exact, low, high, *bounds = FUNCTIONS[name]
    x = numbers(low, high, dtype.numpy)
    found = functions[dtype]([x])[list(FUNCTIONS).index(name)]
    wide = x.astype(np.longdouble)
    expected = exact(wide) if exact else np.array([math.erf(v) for v in x], np.longdouble)
    unit = np.maximum(np.spacing(np.abs(expected.astype(dtype.numpy))), np.finfo(dtype.numpy).smallest_subnormal)
    with np.errstate(invalid="ignore"):
        error = np.abs(found.astype(np.longdouble) - expected) / unit
    error[~np.isfinite(expected) | ~np.isfinite(found)] = 0
    worst = int(np.argmax(error))
    assert error[worst] <= bounds[dtype is DType.F64], f"{name}({x[worst]!r}) = {found[worst]!r}, exact {expected[worst]!r}: {error[worst]:.2f} ulp"


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_and_the_sign_of_zero(functions, name, dtype):
    x = np.resize(np.array(SPECIAL, dtype.numpy), 4096 + 7)
    found = functions[dtype]([x])[list(FUNCTIONS).index(name)][:len(SPECIAL)]
    x = x[:len(SPECIAL)]
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][0](x.astype(np.longdouble)).astype(dtype.numpy) if FUNCTIONS[name][0] else \
            np.array([math.erf(v) for v in x], dtype.numpy)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype.numpy).eps, atol=2 * float(np.finfo(dtype.numpy).smallest_subnormal))
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all(), (x, found, expected)
