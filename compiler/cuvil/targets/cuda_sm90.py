"""NVIDIA GPUs of compute capability 9.0 (Hopper), as PTX."""
from . import Target

TARGET = Target(name="cuda_sm90", kind="cuda", triple="nvptx64-nvidia-cuda", cpu="sm_90", features="+ptx80", vector_bytes=1,
                registers=255, fma=True, halves=True, tiles=())
