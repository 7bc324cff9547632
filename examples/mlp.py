"""A gated feed-forward block (SwiGLU) with RMS normalisation, as in today's language models, in plain functions.

    python examples/mlp.py                  compiled against eager PyTorch
"""
import numpy as np
import torch
import torch.nn.functional as F

import cuvil as cu

WIDTH, HIDDEN = 256, 688


def rms_norm(x, weight, eps=1e-6):
    """Scale each row to a root mean square of one; followed into its callers, as any helper is."""
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * weight


@cu.compile(input_shapes={
    "x": ("batch", "t", WIDTH),
    "norm": (WIDTH,),
    "w_gate": (HIDDEN, WIDTH),
    "w_up": (HIDDEN, WIDTH),
    "w_down": (WIDTH, HIDDEN),
})
def gated_mlp(x, norm, w_gate, w_up, w_down):
    h = rms_norm(x, norm)
    return x + F.linear(F.silu(F.linear(h, w_gate)) * F.linear(h, w_up), w_down)


def inputs(seed=0):
    """For each compiled function, arrays to call it with."""
    random = np.random.default_rng(seed)

    def normal(*shape, scale=1.0):
        return (random.standard_normal(shape) * scale).astype(np.float32)

    return {"gated_mlp": (normal(2, 16, WIDTH), 1 + normal(WIDTH, scale=0.1), normal(HIDDEN, WIDTH, scale=WIDTH ** -0.5),
                          normal(HIDDEN, WIDTH, scale=WIDTH ** -0.5), normal(WIDTH, HIDDEN, scale=HIDDEN ** -0.5))}


def main():
    for name, arrays in inputs().items():
        compiled = globals()[name]
        tensors = [torch.from_numpy(a) for a in arrays]
        print(f"{name}: max difference {(compiled(*tensors) - compiled.__wrapped__(*tensors)).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
