"""What the rules of models say again and again: like an operand, folded along axes, a square matrix, the floats of integers."""
from __future__ import annotations

from typing import Any

from ...ir.dims import Dim, proved_different
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import TypeRuleError
from ..promotion import default_float
from ..reductions import reduced
from ..rules import broadcast


def like(x: Op, dtype: DType | None = None) -> TensorType:
    return TensorType(x.type.shape, x.type.dtype if dtype is None else dtype)


def floats(b: Builder, x: Op) -> DType | None:
    """The element type of a mathematical function of x: torch takes its default for integers, NumPy the smallest float that holds them."""
    dtype = x.type.dtype
    if dtype is None or dtype.is_float:
        return dtype
    if b.library != "numpy":
        return default_float(b.library)
    return DType.F16 if dtype.size == 1 else DType.F32 if dtype.size == 2 else DType.F64


def need_floats(what: str, *operands: Op) -> DType | None:
    """Floating-point operands of one element type, as most of linalg and of the layers take them."""
    for x in operands:
        if x.type.dtype is not None and not x.type.dtype.is_float:
            raise TypeRuleError(f"{what} of {x.type}", "floating-point elements; cast with .float() first", "dtype-mismatch")
    known = {x.type.dtype for x in operands if x.type.dtype is not None}
    if len(known) > 1:
        raise TypeRuleError(f"{what} of {' with '.join(str(x.type) for x in operands)}: the element types differ", "operands of one element type",
                            "dtype-mismatch")
    return None if any(x.type.dtype is None for x in operands) else known.pop()


def need_rank(x: Op, what: str, *ranks: int) -> None:
    """One of the ranks; the last may be negative: -2 is `at least 2`."""
    rank = x.type.rank
    if rank is not None and rank not in ranks and not any(r < 0 and rank >= -r for r in ranks):
        shown = " or ".join(str(r) if r >= 0 else f"at least {-r}" for r in ranks)
        raise TypeRuleError(f"{what} of {x.type}, which has {rank} axes", f"a tensor of {shown} axes")


def need_same(what: str, x: Op, y: Op, a: Dim, c: Dim, axes: str) -> None:
    if proved_different(a, c):
        raise TypeRuleError(f"{what} of {x.type} with {y.type}: {axes} have sizes {a} and {c}", "equal sizes")


def folded(b: Builder, x: Op, dim: Any, keepdim: bool, dtype: DType | None) -> TensorType:
    """x folded along axes; () and None are all."""
    axes = b.axes(dim, x)
    return reduced(x.type, {"axes": () if x.type.shape == () else axes, "keepdims": bool(keepdim)}, "a reduction", dtype)


def along(b: Builder, x: Op, dim: int, size: Dim, dtype: DType | None = None) -> TensorType:
    """x with another size on one axis."""
    axis = b.axis(dim, x)
    dtype = x.type.dtype if dtype is None else dtype
    if not x.type.shape:
        return TensorType(x.type.shape, dtype)
    return TensorType(tuple(size if a == axis else d for a, d in enumerate(x.type.shape)), dtype)


def together(what: str, *operands: Op, dtype: DType | None = None) -> TensorType:
    return TensorType(broadcast([x.type for x in operands], what), dtype)


def square(b: Builder, x: Op, what: str) -> tuple[tuple[Dim, ...] | None, Dim | None]:
    """(leading sizes, size) of a batch of square matrices; (None, None) when the rank is not known."""
    need_rank(x, what, -2)
    if x.type.shape is None:
        return None, None
    *lead, rows, columns = x.type.shape
    if proved_different(rows, columns):
        raise TypeRuleError(f"{what} of {x.type}: {rows} rows and {columns} columns", "square matrices")
    return tuple(lead), rows


def shaped(lead: tuple[Dim, ...] | None, *rest: Dim, dtype: DType | None) -> TensorType:
    """Leading sizes, which may be unknown, and own ones."""
    return TensorType(None if lead is None else (*lead, *rest), dtype)
