"""Server x86-64 since Skylake-SP and Zen 4: 32 registers of 64 bytes, masks for every lane."""
from . import Target

TARGET = Target(
    name="x86_64_avx512", cpu="x86-64-v4", features="-prefer-256-bit",
    needs=("avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"), vector_bytes=64, registers=32, fma=True,
    l1=48 * 1024, l2=2 * 1024 * 1024, tile_rows=6, tile_vectors=4, tile_depth=256)
