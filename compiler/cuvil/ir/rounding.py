"""Numbers as an element type holds them, in plain Python: the least and the greatest, the nearest, and how far apart they lie."""
from __future__ import annotations

import math
import struct
from math import inf

from .types import DType

_FORMATS = {DType.F16: "e", DType.F32: "f", DType.BF16: "f"}
_DIGITS = {DType.F16: 11, DType.BF16: 8, DType.F32: 24, DType.F64: 53}
_LEAST = {DType.F16: 2.0 ** -24, DType.BF16: 2.0 ** -133, DType.F32: 2.0 ** -149, DType.F64: 2.0 ** -1074}      # above zero
_GREATEST = {DType.F16: 65504.0, DType.BF16: (2 - 2.0 ** -7) * 2.0 ** 127, DType.F32: (2 - 2.0 ** -23) * 2.0 ** 127, DType.F64: (2 - 2.0 ** -52) * 2.0 ** 1023}


def limits(dtype: DType) -> tuple[int, int] | tuple[float, float]:
    """The least and the greatest finite value."""
    if dtype.is_float:
        return -_GREATEST[dtype], _GREATEST[dtype]
    if dtype in (DType.BOOL, DType.U8):
        return 0, 1 if dtype == DType.BOOL else 255
    half = 1 << (dtype.size * 8 - 1)
    return -half, half - 1


def smallest(dtype: DType) -> float:
    """The smallest float above zero."""
    return _LEAST[dtype]


def spacing(dtype: DType) -> float:
    """The distance from 1 to the next float."""
    return 2.0 ** (1 - _DIGITS[dtype])


def nearest(value: float, dtype: DType) -> float:
    """The float of an element type that is nearest, ties to even; inf where it is too large."""
    value = _double(value)
    if dtype == DType.F64 or math.isinf(value) or math.isnan(value):
        return value
    try:
        single = struct.unpack(_FORMATS[dtype], struct.pack(_FORMATS[dtype], value))[0]
    except OverflowError:
        return inf if value > 0 else -inf
    if dtype != DType.BF16:
        return single
    bits = struct.unpack("I", struct.pack("f", single))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", bits))[0]


def outward(lo: float, hi: float, dtype: DType, units: float) -> tuple[float, float]:
    """Bounds of what is computed in an element type, when the result may be off by so many units in the last place."""
    step = spacing(dtype) * units
    if units and lo != 0 and not math.isinf(lo):
        lo -= abs(lo) * step + smallest(dtype)
    if units and hi != 0 and not math.isinf(hi):
        hi += abs(hi) * step + smallest(dtype)
    return nearest(lo, dtype), nearest(hi, dtype)


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
