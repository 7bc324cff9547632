"""Decoding with a key-value cache, the way an inference server writes it.

Three functions are compiled: attention of new tokens over everything seen so far, a softmax written out by hand, and the MLP
that follows attention. The last two functions each hold one deliberate mistake, marked in a comment, so that there is
something to see for the lints; they are not compiled.

    cuvil lint examples/attention.py
    cuvil compile examples/attention.py
    python examples/attention.py            compiled against eager PyTorch
"""
import math

import numpy as np
import torch
import torch.nn.functional as F

import cuvil as cu

HEADS, HEAD_SIZE = 8, 64
WIDTH = HEADS * HEAD_SIZE


@cu.compile(input_shapes={
    "q": ("b", HEADS, "t", HEAD_SIZE),
    "k": ("b", HEADS, "t", HEAD_SIZE),
    "v": ("b", HEADS, "t", HEAD_SIZE),
    "k_cache": ("b", HEADS, "past", HEAD_SIZE),
    "v_cache": ("b", HEADS, "past", HEAD_SIZE),
})
def cached_attention(q, k, v, k_cache, v_cache):
    """Attention of t new tokens over past + t; also gives the grown cache, for the next step."""
    keys = torch.cat([k_cache, k], dim=2)
    values = torch.cat([v_cache, v], dim=2)
    t, total = q.shape[2], keys.shape[2]
    scores = q @ keys.transpose(-2, -1) / math.sqrt(HEAD_SIZE)
    visible = torch.ones(t, total, dtype=torch.bool).tril(diagonal=total - t)
    scores = scores.masked_fill(~visible, float("-inf"))
    return torch.softmax(scores, dim=-1) @ values, keys, values


@cu.compile(input_shapes={"scores": ("rows", "columns")})
def stable_softmax(scores):
    """Softmax over the last axis; the maximum is taken off first, so that exp cannot overflow."""
    weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return weights / weights.sum(dim=-1, keepdim=True)


@cu.compile(input_shapes={
    "x": ("tokens", WIDTH),
    "w_up": (WIDTH, 4 * WIDTH),
    "b_up": (4 * WIDTH,),
    "w_down": (4 * WIDTH, WIDTH),
    "b_down": (WIDTH,),
})
def mlp(x, w_up, b_up, w_down, b_down):
    """The block after attention: bias and GELU ride along with the first product, bias and residual with the second."""
    hidden = F.gelu(x @ w_up + b_up, approximate="tanh")
    return x + (hidden @ w_down + b_down)


def calibration_error(logits, labels):
    """Mean distance between the best score of each row and its label."""
    rows, _ = logits.shape
    assert labels.shape == (rows,)
    best = torch.softmax(logits, dim=-1).amax(dim=-1, keepdim=True)
    # Deliberate: (rows, 1) minus (rows,) is a (rows, rows) table of all pairs, and its mean looks like a plausible score.
    return (best - labels).abs().mean()


def describe(cache_length, limit=None):
    """A line for the log."""
    # Deliberate: both sides are constants, so the test always holds and `limit` is never looked at. The fix is safe.
    if None == None:
        return f"{cache_length} tokens in the cache"
    return f"{cache_length} of {limit} tokens in the cache"


def inputs(seed=0):
    """For each compiled function, arrays to call it with."""
    random = np.random.default_rng(seed)

    def normal(*shape, scale=1.0):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    b, t, past, tokens = 2, 4, 124, 64
    return {
        "cached_attention": (*(normal(b, HEADS, t, HEAD_SIZE) for _ in range(3)),
                             *(normal(b, HEADS, past, HEAD_SIZE) for _ in range(2))),
        "stable_softmax": (normal(256, 512, scale=30.0),),
        "mlp": (normal(tokens, WIDTH), normal(WIDTH, 4 * WIDTH, scale=WIDTH ** -0.5), normal(4 * WIDTH),
                normal(4 * WIDTH, WIDTH, scale=(4 * WIDTH) ** -0.5), normal(WIDTH)),
    }


def main():
    for name, arrays in inputs().items():
        compiled = globals()[name]
        tensors = [torch.from_numpy(a) for a in arrays]
        found, expected = compiled(*tensors), compiled.__wrapped__(*tensors)
        pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
        print(f"{name}: max difference {max((f - e).abs().max().item() for f, e in pairs):.1e}")


if __name__ == "__main__":
    main()
