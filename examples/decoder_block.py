"""A transformer decoder block as an nn.Module: pre-norm, causal attention, MLP, each with its residual.

    cuvil explain examples/decoder_block.py:DecoderBlock.forward
    python examples/decoder_block.py        compiled against eager PyTorch
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import cuvil as cu


class CausalSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: torch.FloatTensor) -> torch.Tensor:
        batch, t, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=-1)
        q, k, v = (y.view(batch, t, self.heads, width // self.heads).transpose(1, 2) for y in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(attended.transpose(1, 2).reshape(batch, t, width))


class DecoderBlock(nn.Module):
    def __init__(self, width: int = 128, heads: int = 4):
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads)
        self.norm_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.FloatTensor) -> torch.Tensor:
        batch, t, width = x.shape
        assert width == 128
        x = x + self.attention(self.norm_attention(x))
        return x + self.down(F.gelu(self.up(self.norm_mlp(x))))


def inputs(seed=0):
    """Arrays to call the block with."""
    return {"DecoderBlock.forward": (np.random.default_rng(seed).standard_normal((2, 16, 128)).astype(np.float32),)}


def main():
    torch.manual_seed(0)
    block = DecoderBlock().eval()
    x = torch.from_numpy(inputs()["DecoderBlock.forward"][0])
    compiled = cu.compile(block, input_shapes={"x": ("batch", "t", 128)})
    with torch.inference_mode():
        print(f"DecoderBlock: max difference {(compiled(x) - block(x)).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
