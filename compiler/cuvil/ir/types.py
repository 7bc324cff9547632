"""Types of tensors. A part that is not known is None; the compiler takes only complete types, facts may be partial."""
from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from .dims import Dim, parse_dim, product, substitute, symbols

Shape = tuple[Dim, ...]


class DType(Enum):
    """Element types, by their short names in IR text; the value is (NumPy name, bytes, category)."""

    BOOL = ("bool", 1, "bool")
    U8 = ("uint8", 1, "int")
    I8 = ("int8", 1, "int")
    I16 = ("int16", 2, "int")
    I32 = ("int32", 4, "int")
    I64 = ("int64", 8, "int")
    F16 = ("float16", 2, "float")
    BF16 = ("bfloat16", 2, "float")
    F32 = ("float32", 4, "float")
    F64 = ("float64", 8, "float")

    @property
    def numpy(self) -> str:
        """The name NumPy and torch both use."""
        return self.value[0]

    @property
    def size(self) -> int:
        return self.value[1]

    @property
    def is_float(self) -> bool:
        return self.value[2] == "float"

    @property
    def is_int(self) -> bool:
        return self.value[2] == "int"

    def __str__(self) -> str:
        return self.name.lower()

    __repr__ = __str__

    @staticmethod
    def parse(text: str) -> DType:
        """Accepts "f32" and "float32"; ValueError otherwise."""
        dtype = _BY_NAME.get(text)
        if dtype is None:
            raise ValueError(f"not an element type: {text!r}; known: {', '.join(str(d) for d in DType)}")
        return dtype


_BY_NAME = {name: d for d in DType for name in (str(d), d.numpy)}


@dataclass(frozen=True)
class TensorType:
    """shape: one Dim per axis, or None when the rank is unknown. dtype: None when unknown."""

    shape: Shape | None
    dtype: DType | None

    @property
    def complete(self) -> bool:
        return self.shape is not None and self.dtype is not None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @cached_property
    def numel(self) -> Dim:
        """Number of elements; only for known shapes."""
        return product(self.shape)

    @cached_property
    def nbytes(self) -> Dim:
        return self.numel * self.dtype.size

    @property
    def symbols(self) -> set[str]:
        return set().union(*(symbols(d) for d in self.shape)) if self.shape else set()

    def substitute(self, values: dict[str, Dim]) -> TensorType:
        if self.shape is None:
            return self
        return TensorType(tuple(substitute(d, values) for d in self.shape), self.dtype)

    def __str__(self) -> str:
        dtype = "?" if self.dtype is None else str(self.dtype)
        return f"{dtype}[{'...' if self.shape is None else ', '.join(map(str, self.shape))}]"

    __repr__ = __str__

    @staticmethod
    def parse(text: str) -> TensorType:
        """The inverse of str(): `f32[B, 8, 2*T]`; ValueError for anything else."""
        dtype, bracket, rest = text.strip().partition("[")
        if not bracket or not rest.endswith("]"):
            raise ValueError(f"not a tensor type: {text!r}")
        body = rest[:-1].strip()
        shape = None if body == "..." else tuple(parse_dim(d) for d in _split(body))
        return TensorType(shape, None if dtype == "?" else DType.parse(dtype))


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]] if text else []
