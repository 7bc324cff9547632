"""Makes CIR: every op comes into being through `Builder.emit`, which types it and gives it its origin.

Spellings, decompositions, front ends and passes all write `b.emit("add", x, y)`. A tensor value is the Op that makes it.
"""
from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

from ..ir.dims import Poly, symbol
from ..ir.function import Function, Op, sorted_attrs
from ..ir.types import DType, TensorType
from ..lineage import Origin
from .definition import DEFINITIONS, TypeRuleError, unsupported
from .promotion import common_dtype

Number = bool | int | float | Poly


def as_dtype(dtype) -> DType:
    """A dtype as user code gives it: a DType, or a name such as "float32"."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        try:
            return DType.parse(dtype)
        except ValueError:
            pass
    raise unsupported(f"the element type {dtype!r}", "one of " + ", ".join(d.numpy for d in DType))


def number(value: bool | int | float, dtype: DType) -> bool | int | float:
    """A Python number as an element of dtype holds it: integers wrap, floats lose their fraction; floats stay exact doubles."""
    if dtype == DType.BOOL:
        return bool(value)
    if dtype.is_float:
        return float(value)
    bits = dtype.size * 8
    wrapped = int(value) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if dtype != DType.U8 and wrapped >> (bits - 1) else wrapped


class Builder:
    """A growing list of ops.

    library    "torch" or "numpy": whose promotion and default dtype rules the code being read lives by
    numpy      the version of NumPy, whose promotion rules changed with 2
    origins    what the ops emitted now come from; set with `at`
    """

    def __init__(self, library: str = "torch", first_id: int = 0, numpy: tuple[int, ...] = (2,)) -> None:
        self.ops: list[Op] = []
        self.library = library
        self.numpy = numpy
        self.origins: tuple[Origin, ...] = ()
        self._next = first_id
        self._unbacked = 0

    @contextmanager
    def at(self, *origins: Origin):
        """Ops emitted inside come from these places."""
        before, self.origins = self.origins, origins
        try:
            yield self
        finally:
            self.origins = before

    def unbacked(self) -> Poly:
        """A size that only the data decide (nonzero, unique): a new symbol each time, named as torch names them."""
        self._unbacked += 1
        return symbol(f"u{self._unbacked - 1}")

    def emit(self, name: str, *operands: Op, label: str = "", **attrs: Any) -> Op:
        """Append an op; its type is inferred. Raises TypeRuleError when the operand types cannot go together."""
        type = DEFINITIONS[name].infer([o.type for o in operands], attrs)
        return self.append(name, tuple(o.id for o in operands), attrs, type, label)

    def append(self, name: str, operands: tuple[int, ...], attrs: dict[str, Any], type: TensorType, label: str = "") -> Op:
        op = Op(self._next, name, operands, sorted_attrs(attrs), type, self.origins, label)
        self._next += 1
        self.ops.append(op)
        return op

    def input(self, name: str, index: int, type: TensorType) -> Op:
        return self.append("input", (), {"index": index, "name": name}, type, name)

    def parameter(self, name: str, type: TensorType) -> Op:
        return self.append("parameter", (), {"name": name}, type, name)

    def constant(self, value: Number, dtype: DType) -> Op:
        """A 0-d number. A symbolic size is an i64 that is cast."""
        if isinstance(value, Poly):
            return self.cast(self.emit("constant", value=value, dtype=DType.I64), dtype)
        return self.emit("constant", value=number(value, dtype), dtype=dtype)

    def cast(self, x: Op, dtype: DType) -> Op:
        return x if x.type.dtype == dtype else self.emit("cast", x, dtype=dtype)

    def tensor(self, value: Op | Number, like: DType | None = None) -> Op:
        """A value as a tensor; a Python number becomes a 0-d constant of the dtype `like`, or of the library's default."""
        if isinstance(value, Op):
            return value
        return self.constant(value, like or self.common_dtype([value]))

    def common_dtype(self, values: Iterable[TensorType | Number]) -> DType | None:
        """The element type of a result of tensors and Python numbers, by the library's rules."""
        return common_dtype(list(values), self.library, self.numpy)

    def promote(self, *values: Op | Number) -> tuple[Op, ...]:
        """The values as tensors of their common dtype, by the library's rules (Python numbers are weak)."""
        dtype = self.common_dtype(v.type if isinstance(v, Op) else v for v in values)
        if dtype is None:                       # facts go on, the result's dtype is unknown too
            ops = [v if isinstance(v, Op) else self.constant(v, self.common_dtype([v])) for v in values]
            if len({v.type.dtype for v in ops}) > 1 and all(v.type.dtype is not None for v in ops):       # it hangs on a rank or a value
                return tuple(self.emit("cast", v, dtype=None) for v in ops)
            return tuple(ops)
        return tuple(self.cast(v, dtype) if isinstance(v, Op) else self.constant(v, dtype) for v in values)

    def axis(self, axis: int, x: Op | int) -> int:
        """The axis counted from the front, checked against the rank (which may be given as an int); rank unknown: as it is."""
        rank = x.type.rank if isinstance(x, Op) else x
        if rank is None:
            return axis
        limit = max(rank, 1)
        if not -limit <= axis < limit:
            raise TypeRuleError(f"axis {axis} is outside a tensor of {rank} axes" + (f", {x.type}" if isinstance(x, Op) else ""),
                                f"an axis from {-limit} to {limit - 1}")
        return axis % limit

    def axes(self, axes: int | Iterable[int] | None, x: Op) -> tuple[int, ...] | None:
        """Axes counted from the front and sorted; None means all. None comes back when they are all and the rank is unknown."""
        if axes is None or axes == () or axes == []:
            return None if x.type.rank is None else tuple(range(x.type.rank))
        if isinstance(axes, int):
            return (self.axis(axes, x),)
        found = sorted(self.axis(a, x) for a in axes)
        if len(set(found)) != len(found):
            raise TypeRuleError(f"axis {next(a for a in found if found.count(a) > 1)} is named twice", "each axis once")
        return tuple(found)

    def function(self, name: str, results: Iterable[Op], returns: str = "tensor", origin: Origin | None = None) -> Function:
        return Function(name, tuple(self.ops), tuple(r.id for r in results), returns, origin)


