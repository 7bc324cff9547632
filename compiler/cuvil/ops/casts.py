"""Conversions of the element type: .to, .float, .astype, np.float32(x), ..."""
from __future__ import annotations

from ..ir.types import DType, TensorType
from .builder import Builder, as_dtype
from .definition import spelled, unsupported
from .rules import dtype_of


@spelled("torch.Tensor.to")
def to(b: Builder, self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    for argument in args:
        if isinstance(argument, DType):
            dtype = argument
        elif hasattr(argument, "type") and isinstance(argument.type, TensorType):
            dtype = dtype_of(argument)
    return self if dtype is None else b.cast(self, dtype)


@spelled("torch.Tensor.type")
def type_(b: Builder, self, dtype, non_blocking=False):
    if not isinstance(dtype, DType):
        raise unsupported(f"type({dtype!r})", "a dtype such as torch.float32")
    return b.cast(self, dtype)


@spelled("torch.Tensor.type_as")
def type_as(b: Builder, self, other):
    return b.cast(self, dtype_of(other))


@spelled("numpy.ndarray.astype", "numpy.astype")
def astype(b: Builder, self, dtype, order="K", casting="unsafe", subok=True, copy=True, device=None):
    return b.cast(self, as_dtype(dtype))


for _method, _dtype in (("float", DType.F32), ("double", DType.F64), ("half", DType.F16), ("bfloat16", DType.BF16), ("int", DType.I32),
                        ("long", DType.I64), ("short", DType.I16), ("char", DType.I8), ("byte", DType.U8), ("bool", DType.BOOL)):
    spelled(f"torch.Tensor.{_method}")(lambda b, self, memory_format=None, *, _dtype=_dtype: b.cast(self, _dtype))
for _dtype in DType:
    if _dtype != DType.BF16:
        spelled(f"numpy.{_dtype.numpy if _dtype != DType.BOOL else 'bool_'}")(lambda b, x, *, _dtype=_dtype: b.cast(b.tensor(x, _dtype), _dtype))
