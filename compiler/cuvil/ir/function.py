"""CIR: a function is a list of single-result ops in SSA form, each a frozen value that remembers its origins.

    func @mlp(%0: f32[B, 768] "x") {
      %1 = constant {value = 2.0} : f32[]
      %2 "h" = mul %0, %1 : f32[B, 768]
      return %2
    }

An op's id is the id of its one result. What Python returns as several values is several results; an operation with two
outputs (max with indices) is two ops. Elementwise ops broadcast their operands as NumPy does and take equal dtypes.
Nothing here knows what an op means: that is ops/.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..lineage import Origin
from .types import TensorType


@dataclass(frozen=True, slots=True)
class Op:
    """One operation and its result.

    name      a key of the vocabulary, ops.DEFINITIONS
    attrs     (name, value) pairs sorted by name; values are hashable: int, float, bool, str, Dim, DType, tuples of these
    label     the name the user gave the value, "" if none
    """

    id: int
    name: str
    operands: tuple[int, ...]
    attrs: tuple[tuple[str, Any], ...]
    type: TensorType
    origins: tuple[Origin, ...] = ()
    label: str = ""

    def attr(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    @property
    def attributes(self) -> Mapping[str, Any]:
        return dict(self.attrs)

    @property
    def key(self) -> tuple:
        """What makes two ops compute the same value. Attributes by their text: 0.0 == -0.0 == False, but they are not the same value."""
        return self.name, self.operands, repr(self.attrs), self.type


def sorted_attrs(attrs: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(attrs.items()))


@dataclass(frozen=True)
class Function:
    """ops are in an order in which every operand stands before its use.

    Inputs are ops named `input` (attrs index, name) and `parameter` (attr name: "encoder.0.weight"), first in the list.
    returns   "tensor" for a bare value, "tuple" for a tuple of results
    origin    the span of the `def`
    """

    name: str
    ops: tuple[Op, ...]
    results: tuple[int, ...]
    returns: str = "tensor"
    origin: Origin | None = None

    @cached_property
    def by_id(self) -> dict[int, Op]:
        return {op.id: op for op in self.ops}

    @cached_property
    def by_name(self) -> dict[str, tuple[Op, ...]]:
        found: dict[str, list[Op]] = {}
        for op in self.ops:
            found.setdefault(op.name, []).append(op)
        return {name: tuple(ops) for name, ops in found.items()}

    @cached_property
    def users(self) -> dict[int, tuple[Op, ...]]:
        """For each value the ops that read it (once for each op)."""
        users: dict[int, list[Op]] = {op.id: [] for op in self.ops}
        for op in self.ops:
            for operand in dict.fromkeys(op.operands):
                users[operand].append(op)
        return {id: tuple(ops) for id, ops in users.items()}

    @cached_property
    def inputs(self) -> tuple[Op, ...]:
        return tuple(sorted((op for op in self.ops if op.name == "input"), key=lambda op: op.attr("index")))

    @cached_property
    def parameters(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.name == "parameter")

    @property
    def body(self) -> Iterator[Op]:
        """The ops that compute something."""
        return (op for op in self.ops if op.name not in ("input", "parameter"))

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The free dims of the inputs and parameters, in order of appearance."""
        found: dict[str, None] = {}
        for op in (*self.inputs, *self.parameters):
            for dim in op.type.shape or ():
                found.update(dict.fromkeys(sorted(TensorType((dim,), op.type.dtype).symbols)))
        return tuple(found)

    def with_ops(self, ops: tuple[Op, ...], results: tuple[int, ...] | None = None) -> Function:
        return replace(self, ops=ops, results=self.results if results is None else results)

    def substitute(self, dims: Mapping[str, int]) -> Function:
        """The function for given sizes: symbols in types and attributes replaced."""
        from .dims import Poly, substitute
        values = dict(dims)

        def concrete(value: Any) -> Any:
            if isinstance(value, Poly):
                return substitute(value, values)
            if isinstance(value, tuple):
                return tuple(concrete(v) for v in value)
            return value

        return self.with_ops(tuple(
            replace(op, type=op.type.substitute(values), attrs=tuple((k, concrete(v)) for k, v in op.attrs)) for op in self.ops))
