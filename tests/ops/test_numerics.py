"""What values do at the edges: NaN, infinities, signed zeros, wrapping, ties, empty and 0-d tensors. PyTorch eager is right."""
from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuvil.ir.interpret import run
from cuvil.ops.definition import Example, example
from cuvil.ops.examples import capture

SPECIAL = np.array([np.nan, -np.inf, np.inf, -0.0, 0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45, 3e38, -3.0, 7.0], np.float32)
INTEGERS = np.array([-128, 127, -127, 7, -7, 8, -8, 1, -1, 100, 3, -3], np.int8)

# Ordinary operations on special floats.
FLOATS = ["torch.relu(x)", "torch.clamp(x, min=0.5)", "torch.clamp(x, 0.5, -0.5)", "torch.clamp(x, -0.5, float('inf'))",
          "torch.maximum(x, x.flip(0))", "torch.minimum(x.flip(0), x)", "torch.round(x)", "torch.floor(x)", "torch.trunc(x)", "torch.sign(x)",
          "x // 0.3", "x % 0.7", "x % -0.7", "torch.fmod(x, 0.7)", "x // x.flip(0)", "torch.div(x, 0.3, rounding_mode='trunc')", "x ** 2", "x ** 0.5",
          "x ** -1", "x ** 3", "torch.pow(x, x.flip(0))", "torch.sqrt(x)", "torch.rsqrt(x)", "torch.reciprocal(x)", "x.bool()",
          "x.to(torch.int32).bool()", "x == x", "x != x", "x < x.flip(0)", "x >= 0", "x * (x >= 0)", "torch.nan_to_num(x)",
          "torch.nan_to_num(x, 1.0, 2.0, -2.0)", "torch.isfinite(x)", "torch.fmax(x, x.flip(0))", "x.argmax()", "x.argmin()", "x.max()", "x.amin()",
          "x[1:].max(0)[1]", "torch.softmax(x[1:2].expand(3), 0)", "torch.log_softmax(x[4:], 0)", "torch.logsumexp(x[1:2], 0)",
          "torch.logsumexp(x[2:3], 0)", "x + 0.0", "0.0 - x", "x * 1.0", "x.half().float()", "x.to(torch.bfloat16).float()", "x.any()",
          "x.bool().all()", "F.gelu(x[4:10])", "F.silu(x[3:])", "torch.sigmoid(x)", "F.softplus(x)", "F.elu(x)", "F.leaky_relu(x)", "torch.tanh(x)",
          "torch.erf(x)", "torch.expm1(x)", "F.logsigmoid(x)", "F.hardswish(x)", "F.mish(x)", "torch.log1p(x[:10])", "torch.exp2(x)", "torch.atan(x)",
          "torch.where(x > 0, x, 0)", "F.hardtanh(x)", "torch.sum(x[3:])", "torch.prod(x[5:10])", "x[3:].var()", "x[:2].mean()",
          "x.masked_fill(x.isnan(), -1.0)", "torch.atan2(x, x.flip(0))"]
# Integers wrap, divide towards minus infinity, and keep their type.
SMALL = ["x + x", "x * x", "x - x.flip(0)", "-x", "torch.abs(x)", "x // x.flip(0)", "x % x.flip(0)", "x // -3", "x % -3",
         "torch.div(x, 3, rounding_mode='trunc')", "torch.div(x, x.flip(0), rounding_mode='trunc')", "torch.fmod(x, 3)", "x / 3", "x + 200",
         "x * 2.5", "(x + x).int()", "x.byte()", "~x", "x & 12", "x | 3", "x ^ 5", "x << 1", "x >> 1", "x ** 2", "x ** 3", "x.sum()", "x.prod()",
         "x.float().mean()", "x.max()", "x.argmin()", "x > 1.5", "x == 7", "torch.clamp(x, -5, 30)", "x.bool()", "x.byte() - 100", "-x.byte()",
         "x.byte() > 100", "x.byte() * x.byte()", "x.short() * 300", "torch.where(x > 0, x, 0.5)", "torch.exp(x)", "torch.round(x)"]


@pytest.mark.parametrize("code", FLOATS)
def test_special_floats(code):
    compare(code, SPECIAL)


@pytest.mark.parametrize("code", ["x + x", "x * 3.3", "torch.exp(x)", "x.sum()", "torch.softmax(x, 0)", "x.round()", "x // 0.3", "x % 0.7",
                                  "torch.sqrt(x)", "F.gelu(x)", "x.mean()"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_float_types(code, dtype):
    compare(code, np.linspace(0.1, 2.1, 14).astype(np.float32), dtype)


@pytest.mark.parametrize("code", SMALL)
def test_integers(code):
    compare(code, INTEGERS)


@pytest.mark.parametrize("code", ["x.mean(0)", "x.sum(-1)", "x.amax(0)", "torch.softmax(x, 0)", "x.prod(0)", "torch.logsumexp(x, 0)", "x.flip(0)", "x.argmax()",
                                  "x.max(0)[0]", "x.reshape(1, 1)", "x.expand(2, 3)", "x[None]", "x[...]", "x.squeeze()", "x.T", "x.sum().flip(0)"])
@pytest.mark.filterwarnings("ignore")
def test_no_axes(code):
    compare(code, np.float32(2.5))


@pytest.mark.parametrize("code", ["x.sum(1)", "x.prod(1)", "x.gt(0).all(1)", "x.gt(0).any(1)", "x.mean(1)", "torch.logsumexp(x, 1)", "x.t().sum(1)",
                                  "x.t().amax(1)", "x.sum()", "torch.cat([x, x.new_ones(3, 2)], 1)", "x + 1", "x @ x.t()", "torch.softmax(x, 1)",
                                  "x.reshape(0, 3)", "x[:, :1]", "x.flip(1)", "F.pad(x, (1, 1))", "x.expand(2, 3, 0)", "x.permute(1, 0)",
                                  "x.repeat(2, 2)"])
@pytest.mark.filterwarnings("ignore")
def test_no_elements(code):
    compare(code, np.zeros((3, 0), np.float32))


# NumPy-spelled code lives by NumPy's rules: NEP 50 promotion, doubles for integers, and its own NaN and sign conventions.
NUMPY = ["np.sign(x)", "np.maximum(x, x[::-1])", "np.fmin(x, x[::-1])", "np.clip(x, -0.5, 0.5)", "np.round(x)", "np.floor_divide(x, 0.3)",
         "np.mod(x, 0.7)", "x // 0.3", "x % -0.7", "x ** 2", "x ** 0.5", "x ** 3", "np.sqrt(x)", "np.argmax(x)", "np.max(x)", "np.min(x[3:])",
         "np.any(x)", "np.all(x)", "np.isfinite(x)", "np.nan_to_num(x)", "np.where(x > 0, x, 0)", "np.exp(x)", "np.log1p(x[:10])", "np.mean(x[3:])",
         "np.std(x[3:10])", "np.sum(x[3:])", "x > 1", "np.square(x)", "np.abs(x)", "np.hypot(x, x[::-1])", "np.logaddexp(x, x[::-1])",
         "x.astype(np.float64)", "x * np.float64(2)", "x + np.int64(3)", "x * 2", "x[::-1].copy()", "np.arctan2(x, x[::-1])", "np.tanh(x)"]
NUMPY_INTEGERS = ["np.mean(x)", "np.sum(x)", "np.prod(x)", "x / 3", "x // 3", "x % -3", "x + 1", "x * 2.5", "np.exp(x)", "np.sqrt(np.abs(x))",
                  "np.var(x)", "x.astype(np.uint8)", "np.cumsum(x)", "x + x.astype(np.float32)", "x + x.astype(np.int16)", "np.true_divide(x, 7)",
                  "np.round(x)", "np.floor(x)", "np.argmin(x)", "np.power(x, 2)", "x << 2", "np.clip(x, -5, 5)", "np.where(x > 0, x, 0.5)",
                  "np.maximum(x, 3)", "-x", "np.linalg.norm(x)", "np.float32(x)", "np.average(x)", "np.max(x, axis=0, keepdims=True)", "x == 7",
                  "np.logical_not(x)"]


@pytest.mark.parametrize("code, values", [(c, SPECIAL) for c in NUMPY] + [(c, INTEGERS) for c in NUMPY_INTEGERS])
@pytest.mark.filterwarnings("ignore")
def test_numpy(code, values):
    function = capture(example(code, x=values), "numpy")
    want = np.asarray(eval(code, {"np": np, "x": values}))
    [result] = run(function, [values])
    assert (result.dtype, result.shape) == (want.dtype, want.shape)
    if want.dtype.kind == "f":
        np.testing.assert_allclose(result.astype("f8"), want.astype("f8"), rtol={2: 1e-3, 4: 4e-6, 8: 1e-12}[want.dtype.itemsize])
    else:
        np.testing.assert_array_equal(result, want)


def test_layer_norm_of_a_row_far_from_zero_is_no_further_from_the_truth_than_eager():
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(0)) + 8192
    truth = F.layer_norm(x.double(), (64,)).numpy()
    [value] = run(capture(example("F.layer_norm(x, (64,))", x=x.numpy())), [x.numpy()])
    assert np.abs(value - truth).max() <= np.abs(F.layer_norm(x, (64,)).numpy() - truth).max()


def compare(code, values, dtype=None):
    tensor = torch.tensor(values)
    if dtype:
        tensor = tensor.to(getattr(torch, dtype))
        given = {"x": (tuple(values.shape), dtype)}
        held = tensor.float().numpy() if dtype == "bfloat16" else tensor.numpy()
        function = capture(Example(code, given))
    else:
        held = np.asarray(values)
        function = capture(example(code, x=held))
    want = eval(code, {"torch": torch, "F": F, "x": tensor})
    [result] = run(function, [held])
    type_ = function.by_id[function.results[0]].type
    assert f"torch.{type_.dtype.numpy}" == str(want.dtype) and type_.shape == tuple(want.shape)
    want = (want.float() if want.dtype == torch.bfloat16 else want).numpy()
    if want.dtype.kind == "f":
        eps = {"float16": 1e-3, "bfloat16": 8e-3}.get(type_.dtype.numpy, 4e-6)
        np.testing.assert_allclose(result.astype("f8"), want.astype("f8"), rtol=eps, atol=0 if dtype is None else eps / 10)
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(want[zeros]))
    else:
        np.testing.assert_array_equal(result, want)
