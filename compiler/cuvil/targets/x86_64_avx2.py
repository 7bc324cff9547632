"""x86-64 since Haswell and Zen: 16 registers of 32 bytes, fused multiply-add."""
from . import Target

TARGET = Target(
    name="x86_64_avx2", cpu="x86-64-v3", needs=("avx2", "fma", "f16c"), vector_bytes=32, registers=16, fma=True, halves=True,
    l1=32 * 1024, l2=512 * 1024, tiles=((6, 2), (4, 3), (12, 1)))
