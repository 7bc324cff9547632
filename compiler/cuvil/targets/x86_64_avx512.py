"""Server x86-64 since Skylake-SP and Zen 4: 32 registers of 64 bytes, masks for every lane."""
from . import Target

TARGET = Target(
    name="x86_64_avx512", cpu="x86-64-v4", features="-prefer-256-bit",
    needs=("avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"), vector_bytes=64, registers=32, fma=True, halves=True,
    l1=48 * 1024, l2=2 * 1024 * 1024, tiles=((12, 2), (8, 3), (6, 4), (24, 1)))
