"""Which dtype a mix of operands computes in: PyTorch's category rules, and NumPy's before and after NEP 50."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.types import DType, TensorType

_ORDER = (DType.BOOL, DType.U8, DType.I8, DType.I16, DType.I32, DType.I64, DType.F16, DType.BF16, DType.F32, DType.F64)
_CATEGORY = {"bool": 0, "int": 1, "float": 2}


def common_dtype(values: Sequence[TensorType | Any], library: str, numpy: tuple[int, ...] = (2,)) -> DType | None:
    """The dtype of a result of `values`: tensor types, or Python numbers (weak). None if it hangs on what is not known, or has no name here.

    numpy   the version of NumPy; before 2 the values of 0-d arrays and numbers decide"""
    if library == "numpy":
        return numpy_dtype(values) if numpy[0] >= 2 else numpy1_dtype(values)
    return torch_dtype(values)


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
        return _whatever_rank(values, torch_dtype)
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


def _whatever_rank(values: Sequence[TensorType | Any], rule: Callable[[Sequence[TensorType | Any]], DType | None]) -> DType | None:
    """The dtype if it is the same whether tensors of unknown rank have axes or not."""
    found = {rule([TensorType(shape, v.dtype) if isinstance(v, TensorType) and v.shape is None else v for v in values])
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


# Unsigned types that only NumPy's smallest types of values have, as (kind, bytes) beside the named ones.
_NAMES = {**{("bool", 1): DType.BOOL, ("unsigned", 1): DType.U8}, **{("signed", d.size): d for d in DType if d.is_int and d != DType.U8},
          **{("float", d.size): d for d in (DType.F16, DType.F32, DType.F64)}}
_KINDS = {dtype: kind for kind, dtype in _NAMES.items()}
_GROUP = {"bool": 0, "unsigned": 1, "signed": 1, "float": 2}
_LARGEST = {2: 65504.0, 4: 3.4028234663852886e38}
_Kind = tuple[str, int]


def numpy1_dtype(values: Sequence[TensorType | Any]) -> DType | None:
    """NumPy 1: where arrays with axes are of the higher or the same category, numbers and 0-d arrays count as the smallest type of their value.

    Source: numpy.result_type in the documentation of NumPy 1.26, and NEP 50's account of it."""
    if any(isinstance(v, TensorType) and v.shape is None for v in values):
        return _whatever_rank(values, numpy1_dtype)
    if any(isinstance(v, TensorType) and v.dtype not in _KINDS for v in values):
        return None
    arrays = [_KINDS[v.dtype] for v in values if isinstance(v, TensorType) and v.shape != ()]
    scalars = [v for v in values if not isinstance(v, TensorType) or v.shape == ()]
    group = max((_GROUP[_scalar(v)[0]] for v in scalars), default=-1)
    if not arrays or group > max(_GROUP[kind] for kind, _ in arrays):
        choices = [[*arrays, *map(_scalar, scalars)]]
    else:
        choices = [arrays]
        for value in scalars:
            choices = [[*kinds, least] for kinds in choices for least in _least(value, any(kind == "unsigned" for kind, _ in arrays))]
    found = {_NAMES.get(_joined(kinds)) for kinds in choices}
    return found.pop() if len(found) == 1 else None


def _scalar(value: TensorType | Any) -> _Kind:
    if isinstance(value, TensorType):
        return _KINDS[value.dtype]
    return ("bool", 1) if isinstance(value, bool) else ("float", 8) if isinstance(value, float) else ("signed", 8)


def _least(value: TensorType | Any, unsigned: bool) -> list[_Kind]:
    """The smallest type that holds a value; all that it may be for a 0-d array. Small positive integers are of either sign, as the arrays are."""
    if isinstance(value, TensorType):
        kind, size = _KINDS[value.dtype]
        sizes = [s for s in (1, 2, 4, 8) if s <= size and (s > 1 or kind != "float")]
        return [(each, s) for s in sizes for each in (("signed", "unsigned") if kind in ("signed", "unsigned") else (kind,))]
    if isinstance(value, bool):
        return [("bool", 1)]
    if isinstance(value, float):
        return [("float", next((size for size, most in _LARGEST.items() if not most < abs(value) < math.inf), 8))]
    for size in (1, 2, 4, 8):
        if -(1 << 8 * size - 1) <= value < 0 or 0 <= value < 1 << 8 * size:
            small = 0 <= value < 1 << 8 * size - 1 and not unsigned
            return [("signed" if value < 0 or small else "unsigned", size)]
    return [("object", 8)]


def _joined(kinds: list[_Kind]) -> _Kind:
    """numpy.promote_types, folded: signed integers that hold unsigned ones are twice as large, floats hold integers of half their size."""
    kind, size = kinds[0]
    for other, width in kinds[1:]:
        if other == kind:
            size = max(size, width)
        elif "object" in (kind, other):
            return "object", 8
        elif "bool" in (kind, other):
            kind, size = (other, width) if kind == "bool" else (kind, size)
        elif "float" in (kind, other):
            whole, real = (width, size) if kind == "float" else (size, width)
            kind, size = "float", max(real, min(2 * whole, 8))
        else:
            positive, either = (size, width) if kind == "unsigned" else (width, size)
            kind, size = ("signed", max(either, 2 * positive)) if positive < 8 else ("float", 8)
    return kind, size


def _torch_weak(value: Any) -> DType:
    if isinstance(value, bool):
        return DType.BOOL
    return DType.F32 if isinstance(value, float) else DType.I64
