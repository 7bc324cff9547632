"""Programs over symbolic sizes: the types people read, and the same program run for several sizes against torch."""
from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuvil.ir.dims import symbol
from cuvil.ir.interpret import run
from cuvil.ir.text import parse_function, print_function
from cuvil.ir.types import TensorType
from cuvil.ir.verify import verify
from cuvil.ops.definition import Example
from cuvil.ops.examples import capture

SIZES = [{"B": 1, "T": 1}, {"B": 2, "T": 4}, {"B": 3, "T": 6}]
# (expression, its inputs, the type of its result)
CASES = [
    ("x.reshape(x.shape[0], -1)", "f32[B, T, 4]", "f32[B, 4*T]"), ("x.view(-1, 4)", "f32[B, T, 4]", "f32[B*T, 4]"),
    ("x.view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2)", "f32[B, T, 4]", "f32[B, 2, T, 2]"), ("x.flatten(0, 1)", "f32[B, T, 4]", "f32[B*T, 4]"),
    ("torch.softmax(x, -1)", "f32[B, T]", "f32[B, T]"), ("x.mean(1)", "f32[B, T]", "f32[B]"), ("x.var(0, unbiased=False)", "f32[B, T]", "f32[T]"),
    ("x @ x.mT", "f32[B, T]", "f32[B, B]"), ("x[:, -1]", "f32[B, T]", "f32[B]"), ("x[:, :1]", "f32[B, T]", "f32[B, 1]"),
    ("x[:, x.shape[1] // 2:]", "f32[B, T]", "f32[B, -(T // 2) + T]"), ("torch.cat([x, x], 1)", "f32[B, T]", "f32[B, 2*T]"),
    ("x[:, None].expand(-1, 3, -1)", "f32[B, T]", "f32[B, 3, T]"),
    ("torch.arange(x.shape[1]) + x", "f32[B, T]", "f32[B, T]"), ("torch.zeros(x.shape[1], x.shape[0]) + x.T", "f32[B, T]", "f32[T, B]"),
    ("torch.tril(x @ x.mT)", "f32[B, T]", "f32[B, B]"), ("x.argmax(1)", "f32[B, T]", "i64[B]"), ("x.repeat(1, 2)", "f32[B, T]", "f32[B, 2*T]"),
    ("F.scaled_dot_product_attention(x, x, x, is_causal=True)", "f32[B, 2, T, 4]", "f32[B, 2, T, 4]"),
    ("F.layer_norm(x, (4,))", "f32[B, T, 4]", "f32[B, T, 4]"),
    ("torch.einsum('bti,bsi->bts', x, x)", "f32[B, T, 4]", "f32[B, T, T]"), ("F.pad(x, (1, 2))", "f32[B, T]", "f32[B, T + 3]"),
    ("x * x.shape[1]", "f32[B, T]", "f32[B, T]"),
    ("F.max_pool2d(x, 1)", "f32[B, 1, T, T]", "f32[B, 1, T, T]"), ("torch.chunk(x, 2, -1)[1]", "f32[B, T, 6]", "f32[B, T, 3]"),
    ("x.unflatten(1, (-1, 2))", "f32[B, 2*T]", "f32[B, T, 2]"),
    ("x.cumsum(1)", "f32[B, T]", "f32[B, T]"), ("F.conv2d(x, torch.ones(1, 1, 3, 3), padding=1)", "f32[B, 1, T, T]", "f32[B, 1, T, T]"),
    ("x.flip(1)", "f32[B, T]", "f32[B, T]"),
]


@pytest.mark.parametrize("code, type, result", CASES)
def test_symbolic(code, type, result):
    given = TensorType.parse(type)
    function = verify(capture(Example(code, {"x": (given.shape, given.dtype.numpy)})))
    assert str(function.by_id[function.results[0]].type) == result
    assert parse_function(print_function(function)) == function
    for sizes in SIZES:
        shape = given.substitute(sizes).shape
        x = torch.linspace(-1, 2, int(np.prod(shape))).reshape(shape)
        verify(function.substitute(sizes))
        np.testing.assert_allclose(run(function, [x.numpy()])[0], eval(code, {"torch": torch, "F": F, "x": x}).numpy(), rtol=1e-5, atol=1e-6)


def test_a_size_is_an_integer_constant_that_is_cast():
    function = capture(Example("x / x.shape[0]", {"x": ((symbol("B"),), "float32")}))
    assert [str(op.attr("value")) for op in function.ops if op.name == "constant"] == ["B"]
