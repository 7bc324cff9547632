"""What a call hands over, as types and values to compile for; what cannot be compiled for is refused here."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..diagnostics import CuvilError

if TYPE_CHECKING:
    from ..ir.types import TensorType


def type_of(name: str, shape: Any, dtype: Any = None) -> TensorType:
    """(2, "t") or "f32[2, t]" as a type; CuvilError when it is neither."""
    from ..ir.dims import parse_dim
    from ..ir.types import DType, TensorType
    try:
        if isinstance(shape, TensorType):
            return shape
        if isinstance(shape, str):
            return TensorType.parse(shape)
        if hasattr(shape, "dtype") and hasattr(shape, "shape"):
            return TensorType(tuple(map(int, shape.shape)), DType.parse(str(shape.dtype).rpartition(".")[2]))
        sizes = tuple(parse_dim(size) if isinstance(size, str) else int(size) for size in shape)
        return TensorType(sizes, DType.F32 if dtype is None else DType.parse(str(dtype).rpartition(".")[2]))
    except (TypeError, ValueError) as error:
        raise CuvilError(f"the shape of {name} is {shape!r}: {error}", expected='sizes such as (2, 3) or ("b", 3), or a type such as "f32[2, 3]"') from None


def type_of_argument(name: str, value: Any) -> Any:
    """The type of a tensor, or a Python value that can be compiled in; CuvilError for anything else."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        from ..artifact.call import is_array, is_tensor
        if not is_array(value) and not is_tensor(value):
            raise CuvilError(f"argument {name} is a {type(value).__module__}.{type(value).__name__}", expected="a plain torch tensor or NumPy array")
        device = str(getattr(value, "device", "cpu"))
        if device != "cpu":
            raise CuvilError(f"argument {name} is on {device}", expected="a tensor in CPU memory", hint=f"{name}.cpu()")
        return type_of(name, value)
    if is_value(value):
        return value
    raise CuvilError(f"argument {name} is a {type(value).__name__}", expected="a tensor, a number, a string, None, or a tuple of these")


def library_of(values: Iterable[Any]) -> str | None:
    """"torch" or "numpy": whose rules a call with these arguments lives by; a tensor among arrays makes the arrays tensors."""
    from ..artifact.call import is_array, is_tensor
    kinds = {"torch" if is_tensor(value) else "numpy" for value in values if is_tensor(value) or is_array(value)}
    return max(kinds, default=None)


def key_of(types: Mapping[str, Any], library: str | None = None) -> tuple:
    """Keeps apart what Python calls equal: 1, 1.0 and True; 0.0 and -0.0."""
    return library, *((name, repr(value) if is_value(value) else value) for name, value in types.items())


def is_value(value: Any) -> bool:
    """A Python value that can be compiled in."""
    return value is None or isinstance(value, (bool, int, float, str)) or isinstance(value, tuple) and all(map(is_value, value))


def same(value: Any, default: Any) -> bool:
    """The value is the default, to the bit."""
    return is_value(value) and is_value(default) and repr(value) == repr(default)


def check_shapes(function: str, declared: Mapping[str, Any], types: Mapping[str, TensorType]) -> None:
    """What input_shapes promises holds for these types; CuvilError with the sizes when not."""
    from ..ir.interpret import bind
    from ..ops.builder import Builder
    b = Builder()
    pairs = []
    for i, (name, shape) in enumerate(declared.items()):
        if name in types and not is_value(types[name]):
            wanted = type_of(name, shape)
            if len(wanted.shape) != len(types[name].shape) or any(isinstance(d, int) and d != s for d, s in zip(wanted.shape, types[name].shape)):
                raise CuvilError(f"argument {name} of {function} is {types[name]}", expected=f"the shape of its input_shapes, {wanted}")
            pairs.append((b.input(name, i, wanted), types[name].shape))
    bind(pairs)


def check_settings() -> None:
    """Global settings of torch that change what the same code computes; CuvilError when one is not the default."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if torch.get_default_dtype() != torch.float32:
        raise CuvilError(f"torch's default dtype is {torch.get_default_dtype()}", expected="torch.float32",
                         hint="write the dtype where tensors are made", code="CUV031")
    if torch.is_autocast_enabled("cpu"):
        raise CuvilError("autocast is on, and changes the element types of operations", expected="no autocast around compiled functions",
                         code="CUV031")
