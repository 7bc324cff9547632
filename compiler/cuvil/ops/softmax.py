"""Softmax and log-softmax along an axis."""
from __future__ import annotations

from ..ir.function import Op
from .builder import Builder
from .composite import composite
from .definition import example, spelled, unsupported
from .reductions import wide
from .rules import check_axis, float_only


def _infer_axis(name: str):
    def infer(operands, attrs):
        check_axis(attrs["axis"], operands[0], name)
        return float_only(name)(operands, attrs)
    return infer


def _fold(b: Builder, name: str, x: Op, axis: int) -> Op:
    return b.emit(name, x, axes=(axis,) if x.type.shape else (), keepdims=True)


def _softmax(b: Builder, operands, attrs):
    """exp(x - max) / sum: a row that is -inf everywhere gives NaN, as in ATen."""
    x = wide(b, operands[0])
    e = b.emit("exp", b.emit("sub", x, _fold(b, "reduce_max", x, attrs["axis"])))
    return b.cast(b.emit("div", e, _fold(b, "reduce_sum", e, attrs["axis"])), operands[0].type.dtype)


def _log_softmax(b: Builder, operands, attrs):
    x = wide(b, operands[0])
    centred = b.emit("sub", x, _fold(b, "reduce_max", x, attrs["axis"]))
    total = _fold(b, "reduce_sum", b.emit("exp", centred), attrs["axis"])
    return b.cast(b.emit("sub", centred, b.emit("log", total)), operands[0].type.dtype)


composite("softmax", _infer_axis("softmax"), _softmax, "exp(x) / sum(exp(x)) along an axis",
          [example("torch.softmax(x, dim=-1)", x="f32[2, 5]"), example("F.softmax(x, dim=0)", x="f32[3, 4]"), example("x.softmax(1)", x="f32[2, 3, 4]"),
           example("torch.softmax(x, 0)", x="f32[]"), example("F.softmax(x, dim=-1, dtype=torch.float32)", x="f16[2, 5]"),
           example("torch.softmax(x, -1)", x="f16[2, 5]"), example("F.softmin(x, dim=1)", x="f32[2, 5]")])
composite("log_softmax", _infer_axis("log_softmax"), _log_softmax, "log(softmax(x)) along an axis, without overflow",
          [example("torch.log_softmax(x, dim=-1)", x="f32[2, 5]"), example("F.log_softmax(x, dim=0)", x="f64[3, 4]")])


@spelled("torch.softmax", "torch.Tensor.softmax", "torch.special.softmax")
def softmax(b: Builder, input, dim, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("softmax", x, axis=b.axis(dim, x))


def _given_axis(b: Builder, x: Op, dim, name: str) -> int:
    if dim is None:
        raise unsupported(f"{name} without dim, which guesses the axis from the rank", "dim=-1")
    return b.axis(dim, x)


@spelled("torch.nn.functional.softmax")
def functional_softmax(b: Builder, input, dim=None, _stacklevel=3, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("softmax", x, axis=_given_axis(b, x, dim, "softmax"))


@spelled("torch.nn.functional.softmin")
def softmin(b: Builder, input, dim=None, _stacklevel=3, dtype=None):
    return functional_softmax(b, b.emit("neg", input), dim, 3, dtype)


@spelled("torch.log_softmax", "torch.Tensor.log_softmax", "torch.special.log_softmax")
def log_softmax(b: Builder, input, dim, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("log_softmax", x, axis=b.axis(dim, x))


@spelled("torch.nn.functional.log_softmax")
def functional_log_softmax(b: Builder, input, dim=None, _stacklevel=3, dtype=None):
    x = b.cast(input, dtype) if dtype is not None else input
    return b.emit("log_softmax", x, axis=_given_axis(b, x, dim, "log_softmax"))
