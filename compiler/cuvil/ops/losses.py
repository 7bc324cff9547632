"""Losses, as validation code computes them: torch.nn.functional.*_loss, cross_entropy and their reductions."""
from __future__ import annotations

from ..ir.dims import proved_different
from ..ir.function import Op
from ..ir.types import TensorType
from .arithmetic import arithmetic
from .builder import Builder
from .definition import TypeRuleError, example, spelled, unsupported, values
from .reductions import fold
from .rules import dtype_of, shape_of
from .shape import reshaped

_CLASSES = values("i64", [2, 0, 1, 3])


def reduced_loss(b: Builder, loss: Op, reduction: str) -> Op:
    if reduction not in ("mean", "sum", "none"):
        raise TypeRuleError(f"a loss with reduction {reduction!r}", "'mean', 'sum' or 'none'", "argument")
    return loss if reduction == "none" else fold(b, "mean" if reduction == "mean" else "reduce_sum", loss, None, False)


def _old_style(size_average, reduce, weight=None, full: TensorType | None = None, reduction: str = "") -> None:
    """full: the type of the loss before its reduction, where that is known."""
    if size_average is not None or reduce is not None or weight is not None:
        plain = full is not None and size_average is None and reduce is None
        raise unsupported("a loss with weight, size_average or reduce", "the argument reduction",
                          (full if reduction == "none" else TensorType((), full.dtype),) if plain else ())


def _of_classes(input: Op, target: Op, what: str) -> TensorType:
    """The type of an unreduced loss of scores (N, C, ...) for classes (N, ...)."""
    own, wanted = shape_of(input), shape_of(target)
    places = own[:0] if len(own) == 1 else (own[0], *own[2:])
    if len(places) != len(wanted) or any(proved_different(a, c) for a, c in zip(places, wanted)):
        raise TypeRuleError(f"{what} of scores {input.type} for classes {target.type}", f"classes of shape {tuple(places)}")
    if input.type.dtype is not None and not input.type.dtype.is_float:
        raise TypeRuleError(f"{what} of scores {input.type}", "floating-point scores", "dtype-mismatch")
    return TensorType(places, input.type.dtype)


@spelled("torch.nn.functional.mse_loss",
         examples=[example("F.mse_loss(x, y)", x="f32[2, 3]", y="f32[2, 3]"), example("F.mse_loss(x, y, reduction='none')", x="f32[4]", y="f32[4]")])
def mse_loss(b: Builder, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    _old_style(size_average, reduce, weight)
    distance = arithmetic(b, "sub", input, target)
    return reduced_loss(b, b.emit("mul", distance, distance), reduction)


@spelled("torch.nn.functional.l1_loss", examples=[example("F.l1_loss(x, y, reduction='sum')", x="f32[2, 3]", y="f32[2, 3]")])
def l1_loss(b: Builder, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    _old_style(size_average, reduce, weight)
    return reduced_loss(b, b.emit("abs", arithmetic(b, "sub", input, target)), reduction)


@spelled("torch.nn.functional.smooth_l1_loss", examples=[example("F.smooth_l1_loss(x, y, beta=0.5)", x="f32[2, 3]", y="f32[2, 3]")])
def smooth_l1_loss(b: Builder, input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d^2 / (2 beta) where d = |x - y| is below beta, d - beta / 2 elsewhere."""
    _old_style(size_average, reduce)
    if beta == 0:
        return l1_loss(b, input, target, reduction=reduction)
    d = b.emit("abs", arithmetic(b, "sub", input, target))
    near = arithmetic(b, "mul", b.emit("mul", d, d), 0.5 / beta)
    return reduced_loss(b, b.emit("select", b.emit("lt", d, b.constant(beta, dtype_of(d))), near, arithmetic(b, "sub", d, 0.5 * beta)), reduction)


@spelled("torch.nn.functional.binary_cross_entropy_with_logits",
         examples=[example("F.binary_cross_entropy_with_logits(x * 30, y.sigmoid())", x="f32[2, 3]", y="f32[2, 3]")])
def binary_cross_entropy_with_logits(b: Builder, input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """(1 - t) x - log(sigmoid(x))"""
    _old_style(size_average, reduce, weight if weight is not None else pos_weight)
    away = b.emit("mul", b.emit("sub", b.constant(1.0, dtype_of(target)), target), input)
    return reduced_loss(b, b.emit("sub", away, b.emit("logsigmoid", input)), reduction)


@spelled("torch.nn.functional.nll_loss", examples=[example("F.nll_loss(F.log_softmax(x, 1), i)", x="f32[4, 5]", i=_CLASSES)])
def nll_loss(b: Builder, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Minus the log-probability of each target class, on axis 1; targets that are ignored count neither in the sum nor in the mean."""
    _old_style(size_average, reduce, weight, _of_classes(input, target, "nll_loss"), reduction)
    axis = 0 if len(shape_of(input)) == 1 else 1
    kept = b.emit("ne", target, b.constant(ignore_index, dtype_of(target)))
    safe = b.emit("select", kept, target, b.constant(0, dtype_of(target)))
    own = shape_of(target)
    picked = b.emit("gather", input, reshaped(b, safe, (*own[:axis], 1, *own[axis:])), axis=axis, negative=False)
    zero = b.constant(0.0, dtype_of(input))
    loss = b.emit("select", kept, b.emit("neg", reshaped(b, picked, own)), zero)
    if reduction != "mean":
        return reduced_loss(b, loss, reduction)
    count = fold(b, "reduce_sum", b.cast(kept, dtype_of(input)), None, False)
    return b.emit("div", fold(b, "reduce_sum", loss, None, False), count)


@spelled("torch.nn.functional.cross_entropy",
         examples=[example("F.cross_entropy(x, i)", x="f32[4, 5]", i=_CLASSES),
                   example("F.cross_entropy(x, i, ignore_index=0, reduction='sum')", x="f32[4, 5]", i=_CLASSES),
                   example("F.cross_entropy(x, i, ignore_index=-1)", x="f32[2, 3, 4]", i=values("i64", [[0, 2, -1, 1], [1, -1, 0, 2]])),
                   example("F.cross_entropy(x, torch.softmax(y, 1))", x="f32[2, 3]", y="f32[2, 3]")])
def cross_entropy(b: Builder, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    axis = 0 if len(shape_of(input)) == 1 else 1
    if dtype_of(target).is_float:
        full = TensorType(tuple(d for a, d in enumerate(shape_of(input)) if a != axis), dtype_of(input))
    else:
        full = _of_classes(input, target, "cross_entropy")
    _old_style(size_average, reduce, weight, full, reduction)
    if label_smoothing:
        raise unsupported("cross_entropy with label_smoothing", "", (full if reduction == "none" else TensorType((), full.dtype),))
    logs = b.emit("log_softmax", input, axis=axis)
    if not dtype_of(target).is_float:
        return nll_loss(b, logs, target, ignore_index=ignore_index, reduction=reduction)
    loss = b.emit("neg", fold(b, "reduce_sum", b.emit("mul", logs, target), axis, False))
    return reduced_loss(b, loss, reduction)


@spelled("torch.nn.functional.kl_div", examples=[example("F.kl_div(x, y.sigmoid(), reduction='batchmean')", x="f32[2, 3]", y="f32[2, 3]")])
def kl_div(b: Builder, input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """t (log t - x), 0 where t is 0."""
    _old_style(size_average, reduce)
    if log_target:
        loss = b.emit("mul", b.emit("exp", target), b.emit("sub", target, input))
    else:
        from .special import xlogy
        loss = b.emit("sub", xlogy(b, target, target), b.emit("mul", target, input))
    if reduction == "batchmean":
        return arithmetic(b, "div", reduced_loss(b, loss, "sum"), shape_of(input)[0])
    return reduced_loss(b, loss, reduction)
