"""Compiled kernels against PyTorch eager and NumPy: softmax, layer_norm, an MLP, attention.

Milliseconds, p50, fp32, all threads for everybody, taken in turn in one run. "of torch" is torch's time over ours: above 1 we
are the faster one. Each result is compared with eager's first; a wrong one ends the run.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F
from report import Row, in_turn, main

import cuvil as cu


@cu.compile(input_shapes={"x": ("rows", "columns")})
def softmax(x):
    return torch.softmax(x, dim=-1)


@cu.compile(input_shapes={"x": ("rows", 1024), "weight": (1024,), "bias": (1024,)})
def layer_norm(x, weight, bias):
    return F.layer_norm(x, (1024,), weight, bias)


@cu.compile(input_shapes={"x": ("rows", 512), "w_up": (512, 2048), "b_up": (2048,), "w_down": (2048, 512), "b_down": (512,)})
def mlp(x, w_up, b_up, w_down, b_down):
    return F.gelu(x @ w_up + b_up, approximate="tanh") @ w_down + b_down


@cu.compile(input_shapes={name: ("b", 8, "t", 64) for name in "qkv"})
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def numpy_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def numpy_layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5)) * weight + bias


def numpy_mlp(x, w_up, b_up, w_down, b_down):
    h = x @ w_up + b_up
    c = np.float32(math.sqrt(2 / math.pi))
    return np.float32(0.5) * h * (1 + np.tanh(c * (h + np.float32(0.044715) * h * h * h))) @ w_down + b_down


def numpy_attention(q, k, v):
    return numpy_softmax(q @ k.swapaxes(-1, -2) * np.float32(1 / math.sqrt(q.shape[-1]))) @ v


def measure() -> list[Row]:
    random = np.random.default_rng(0)

    def normal(*shape, scale=1.0):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    cases = [
        ("softmax 2048x1024", softmax, numpy_softmax, [normal(2048, 1024)]),
        ("layer_norm 2048x1024", layer_norm, numpy_layer_norm, [normal(2048, 1024), normal(1024), normal(1024)]),
        ("mlp 256x512x2048", mlp, numpy_mlp,
         [normal(256, 512), normal(512, 2048, scale=0.04), normal(2048), normal(2048, 512, scale=0.02), normal(512)]),
        ("attention 2x8x256x64", attention, numpy_attention, [normal(2, 8, 256, 64) for _ in range(3)]),
    ]
    with torch.inference_mode():
        return [_row(name, compiled, plain, arrays) for name, compiled, plain, arrays in cases]


def _row(name: str, compiled, plain, arrays) -> Row:
    tensors = [torch.from_numpy(a) for a in arrays]
    eager = compiled.__wrapped__
    torch.testing.assert_close(compiled(*tensors), eager(*tensors), rtol=1e-4, atol=1e-4)
    times = in_turn({"cuvil": lambda: compiled(*tensors), "torch": lambda: eager(*tensors), "numpy": lambda: plain(*arrays)})
    ms = {who: seconds * 1000 for who, seconds in times.items()}
    return {"kernel": name, "cuvil ms": ms["cuvil"], "torch ms": ms["torch"], "numpy ms": ms["numpy"],
            "of torch": ms["torch"] / ms["cuvil"], "of numpy": ms["numpy"] / ms["cuvil"]}


if __name__ == "__main__":
    main(__doc__, measure)
