"""Any OpenCL 2.1 device, as SPIR-V. Whether it fuses multiply-adds in hardware is not known, so none are asked for."""
from . import Target

TARGET = Target(name="opencl", kind="opencl", triple="spirv64-unknown-unknown", cpu="", vector_bytes=1, registers=64, tiles=())
