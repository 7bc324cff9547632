"""How comparisons, logic on truth values and operations on bits are said, and maximum and minimum of two tensors."""
from __future__ import annotations

from ..ir.function import Op
from ..ir.types import DType
from .arithmetic import arithmetic
from .builder import Builder, number
from .definition import spelled, unsupported
from .rules import dtype_of

for _name, _torch in (("eq", "eq"), ("ne", "ne not_equal"), ("lt", "lt less"), ("le", "le less_equal"), ("gt", "gt greater"), ("ge", "ge greater_equal")):
    spelled(f"operator.{_name}", *(f"torch.{n}" for n in _torch.split()), *(f"torch.Tensor.{n}" for n in _torch.split()),
            f"numpy.{dict(eq='equal', ne='not_equal', lt='less', le='less_equal', gt='greater', ge='greater_equal')[_name]}")(
        lambda b, input, other, *, _name=_name: compare(b, _name, input, other))


def compare(b: Builder, name: str, x, y):
    """Python numbers beyond the tensor's integer type: NumPy compares them exactly, torch's answer is not portable."""
    for value, other in ((x, y), (y, x)):
        dtype = other.type.dtype if isinstance(other, Op) else None
        if isinstance(value, int) and dtype is not None and dtype.is_int and number(value, dtype) != value:
            raise unsupported(f"comparison of {other.type} with {value}", f"a number that {dtype.numpy} holds")
    return b.emit(name, *b.promote(x, y))


def _logical(b: Builder, name: str, *values):
    return b.emit(name, *(b.cast(b.tensor(v), DType.BOOL) for v in values))


for _name in ("and", "or", "xor", "not"):
    spelled(f"torch.logical_{_name}", f"torch.Tensor.logical_{_name}", f"numpy.logical_{_name}")(
        (lambda b, input, *, _name=_name: _logical(b, _name, input)) if _name == "not" else
        (lambda b, input, other, *, _name=_name: _logical(b, _name, input, other)))


def _bits(b: Builder, name: str, *values):
    return b.emit(name, *b.promote(*values))


for _name, _operators in (("and", ("and_", "iand")), ("or", ("or_", "ior")), ("xor", ("xor", "ixor"))):
    spelled(*(f"operator.{n}" for n in _operators), f"torch.bitwise_{_name}", f"torch.Tensor.bitwise_{_name}", f"numpy.bitwise_{_name}")(
        lambda b, input, other, *, _name=_name: _bits(b, _name, input, other))
spelled("operator.invert", "torch.bitwise_not", "torch.Tensor.bitwise_not", "numpy.invert", "numpy.bitwise_not")(
    lambda b, x: _bits(b, "not", x))
for _name, _long in (("shl", "left"), ("shr", "right")):
    spelled(f"operator.{'l' if _name == 'shl' else 'r'}shift", f"torch.bitwise_{_long}_shift", f"torch.Tensor.bitwise_{_long}_shift",
            f"numpy.{_long}_shift")(lambda b, input, other, *, _name=_name: _bits(b, _name, input, other))


@spelled("torch.maximum", "torch.Tensor.maximum", "numpy.maximum")
def maximum(b: Builder, input, other):
    return arithmetic(b, "maximum", input, other)


@spelled("torch.minimum", "torch.Tensor.minimum", "numpy.minimum")
def minimum(b: Builder, input, other):
    return arithmetic(b, "minimum", input, other)


def _skipping_nan(b: Builder, name: str, x, y):
    x, y = b.promote(x, y)
    if not dtype_of(x).is_float:
        return arithmetic(b, name, x, y)
    chosen = b.emit("select", b.emit("isnan", y), x, b.emit(name, x, y))
    return b.emit("select", b.emit("isnan", x), y, chosen)


for _name in ("fmax", "fmin"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}", f"numpy.{_name}")(
        lambda b, input, other, *, _name={"fmax": "maximum", "fmin": "minimum"}[_name]: _skipping_nan(b, _name, input, other))
