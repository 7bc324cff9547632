"""Abstract values: what the interpreter knows of a Python object without running anything.

Unknown carries a reason and is silent: an operation on Unknown is Unknown, and no rule reports on it.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from ...ir.dims import Dim
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ...source import Span

if TYPE_CHECKING:
    import libcst as cst


@dataclass(frozen=True, slots=True)
class Unknown:
    """reason   short and countable, without names of the user's: "call of an unknown function", "parameter without annotation"."""

    reason: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A torch tensor or NumPy array. `op` makes it and holds its (maybe partial) type.

    library   "torch" or "numpy"
    """

    op: Op
    library: str = "torch"

    @property
    def type(self) -> TensorType:
        return self.op.type


@dataclass(frozen=True, slots=True)
class Scalar:
    """A Python int, float, bool, str, None, DType or slice. Sizes may be symbolic (a Poly)."""

    value: int | float | bool | str | None | Dim | DType | Any


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list or tuple whose items are known one by one."""

    items: tuple[Value, ...]
    kind: str = "tuple"


@dataclass(frozen=True)
class Mapping:
    """A dict with known string or number keys."""

    items: dict[Any, Value]


@dataclass(frozen=True)
class UserFunction:
    """A function of the workspace, with the values its free names have."""

    name: str
    node: cst.FunctionDef | cst.Lambda
    module: Any                              # frontends.python.workspace.ModuleFacts
    receiver: Value | None = None


@dataclass(frozen=True)
class UserClass:
    name: str
    node: cst.ClassDef
    module: Any


@dataclass(frozen=True)
class Instance:
    """An object of a user's class or of a library layer (nn.Linear): its attributes, and its path of registration."""

    of: Any
    attributes: dict[str, Value] = field(default_factory=dict)
    path: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """Something of torch, NumPy or the standard library, by its full dotted name: "torch.nn.functional.softmax"."""

    name: str
    receiver: Value | None = None


Value = Union[Unknown, Tensor, Scalar, Sequence, Mapping, UserFunction, UserClass, Instance, Library]
