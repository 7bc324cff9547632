"""Any 64-bit machine: vectors of 16 bytes, no fused multiply-add assumed."""
from . import Target

TARGET = Target(name="generic", cpu="", vector_bytes=16, registers=16, fma=False, tiles=((4, 2), (8, 1)))
