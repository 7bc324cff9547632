"""Which dtype a mix of operands computes in: PyTorch's category rules and NumPy's (NEP 50)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.types import DType, TensorType

_ORDER = (DType.BOOL, DType.U8, DType.I8, DType.I16, DType.I32, DType.I64, DType.F16, DType.BF16, DType.F32, DType.F64)
_CATEGORY = {"bool": 0, "int": 1, "float": 2}


def common_dtype(values: Sequence[TensorType | Any], library: str) -> DType | None:
    """The dtype of a result of `values`: tensor types, or Python numbers (weak). None if it hangs on an unknown dtype."""
    return numpy_dtype(values) if library == "numpy" else torch_dtype(values)


def default_float(library: str) -> DType:
    return DType.F64 if library == "numpy" else DType.F32


def promote(a: DType, b: DType) -> DType:
    """torch.promote_types, which for these types equals numpy.promote_types except for integers with small floats."""
    if a == b:
        return a
    if _ORDER.index(a) > _ORDER.index(b):
        a, b = b, a
    if {a, b} == {DType.F16, DType.BF16}:
        return DType.F32
    if a == DType.U8 and b == DType.I8:
        return DType.I16
    return b


def torch_dtype(values: Sequence[TensorType | Any]) -> DType | None:
    """PyTorch: tensors with axes decide unless a 0-d tensor, and after it a Python number, is of a higher category.

    Source: "Type promotion" in the PyTorch documentation (torch.result_type)."""
    if any(isinstance(v, TensorType) and v.shape is None for v in values):
        return _whatever_rank(values)
    tiers: list[DType | None] = [None, None, None]
    for value in values:
        if not isinstance(value, TensorType):
            dtype, tier = _torch_weak(value), 2
        elif value.dtype is None:
            return None
        else:
            dtype, tier = value.dtype, 1 if value.shape == () else 0
        tiers[tier] = dtype if tiers[tier] is None else promote(tiers[tier], dtype)
    result = None
    for dtype in tiers:
        if dtype is not None and (result is None or _CATEGORY[dtype.value[2]] > _CATEGORY[result.value[2]]):
            result = dtype
    return result


def _whatever_rank(values: Sequence[TensorType | Any]) -> DType | None:
    """The dtype if it is the same whether tensors of unknown rank have axes or not."""
    found = {torch_dtype([TensorType(shape, v.dtype) if isinstance(v, TensorType) and v.shape is None else v for v in values])
             for shape in ((), (2,))}
    return found.pop() if len(found) == 1 else None


def numpy_dtype(values: Sequence[TensorType | Any]) -> DType | None:
    """NumPy 2: arrays and NumPy scalars promote by type alone, Python numbers only raise the category. Source: NEP 50."""
    result: DType | None = None
    weak = -1
    for value in values:
        if not isinstance(value, TensorType):
            weak = max(weak, 0 if isinstance(value, bool) else 2 if isinstance(value, float) else 1)
        elif value.dtype is None:
            return None
        else:
            result = value.dtype if result is None else _numpy_promote(result, value.dtype)
    if result is None:
        return (DType.BOOL, DType.I64, DType.F64)[weak]
    if weak > _CATEGORY[result.value[2]]:
        return DType.I64 if weak == 1 else DType.F64
    return result


def _numpy_promote(a: DType, b: DType) -> DType:
    integer, other = (a, b) if a.is_int else (b, a)
    if integer.is_int and other.is_float and other in (DType.F16, DType.F32):
        if integer.size >= 4:
            return DType.F64
        if integer.size == 2:
            return DType.F32
    return promote(a, b)


def _torch_weak(value: Any) -> DType:
    if isinstance(value, bool):
        return DType.BOOL
    return DType.F32 if isinstance(value, float) else DType.I64
