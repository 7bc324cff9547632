"""Mean, variance, norms and logsumexp: composites of reductions. attrs as in reductions.py."""
from __future__ import annotations

import math

from ..ir.types import DType
from .arithmetic import float_operand
from .builder import Builder, as_dtype
from .composite import composite
from .definition import example, spelled, unsupported, values
from .reductions import count, fold, narrowed, reduced, wide
from .rules import dtype_of, float_only, shape_of
from .shape import reshaped


def _infer(name: str):
    def infer(operands, attrs):
        return reduced(float_only(name)(operands, attrs), attrs, name, operands[0].dtype)
    return infer


def _mean(b: Builder, operands, attrs):
    x = wide(b, operands[0])
    total = b.emit("reduce_sum", x, axes=attrs["axes"], keepdims=attrs["keepdims"])
    return b.cast(b.emit("div", total, b.constant(count(x, attrs["axes"]), x.type.dtype)), operands[0].type.dtype)


composite("mean", _infer("mean"), _mean, "the arithmetic mean along axes",
          [example("x.mean()", x="f32[2, 3]"), example("x.mean(dim=(1, 2), keepdim=True)", x="f32[2, 3, 4]"), example("np.mean(x, axis=0)", x="i32[2, 3]"),
           example("x.mean(-1)", x="f16[2, 30]"), example("x.mean(0)", x="f32[]"), example("x.mean(1)", x="f32[3, 0]"), example("np.average(x)", x="f32[4]")])


def _var(b: Builder, operands, attrs):
    """Two passes: the mean, then the mean square distance from it; `correction` is taken off the count (Bessel's is 1)."""
    x = wide(b, operands[0])
    axes, n = attrs["axes"], count(x, attrs["axes"])
    distance = b.emit("sub", x, b.emit("mean", x, axes=axes, keepdims=True))
    total = b.emit("reduce_sum", b.emit("mul", distance, distance), axes=axes, keepdims=attrs["keepdims"])
    freedom = n - attrs["correction"]
    freedom = max(freedom, 0) if isinstance(freedom, (int, float)) else freedom
    return b.cast(b.emit("div", total, b.constant(freedom, x.type.dtype)), operands[0].type.dtype)


composite("var", _infer("var"), _var, "the variance along axes, over count - correction",
          [example("x.var()", x="f32[9]"), example("torch.var(x, dim=1, unbiased=False)", x="f32[2, 5]"), example("np.var(x, axis=0)", x="f64[4, 3]"),
           example("x.var(dim=-1, keepdim=True, correction=0)", x="f32[2, 5]"), example("np.var(x, ddof=1)", x="i32[5]")])
composite("std", _infer("std"),
          lambda b, operands, attrs: b.cast(b.emit("sqrt", b.emit("var", wide(b, operands[0]), **attrs)), operands[0].type.dtype),
          "the standard deviation along axes",
          [example("x.std()", x="f32[9]"), example("torch.std(x, 0, True)", x="f32[5, 2]"),
           example("x.std(axis=1)", x="f32[2, 5]"), example("x.std(1, keepdims=True)", x="f64[2, 5]")])


def _logsumexp(b: Builder, operands, attrs):
    """m + log(sum(exp(x - m))), with m = 0 where the maximum is infinite, so that inf - inf does not arise."""
    x = wide(b, operands[0])
    top = b.emit("reduce_max", x, axes=attrs["axes"], keepdims=True)
    top = b.emit("select", b.emit("isinf", top), b.constant(0.0, x.type.dtype), top)
    total = b.emit("reduce_sum", b.emit("exp", b.emit("sub", x, top)), axes=attrs["axes"], keepdims=attrs["keepdims"])
    if not attrs["keepdims"]:
        top = reshaped(b, top, total.type.shape)
    return b.cast(b.emit("add", b.emit("log", total), top), operands[0].type.dtype)


composite("logsumexp", _infer("logsumexp"), _logsumexp, "log(sum(exp(x))) along axes, without overflow",
          [example("torch.logsumexp(x, dim=1)", x="f32[2, 5]"), example("x.logsumexp(0, keepdim=True)", x="f32[3, 2]"),
           example("torch.logsumexp(x, 1)", x="f32[3, 0]"),
           example("torch.logsumexp(x, 0)", x=values("f32", [-math.inf, -math.inf])), example("torch.logsumexp(x, 0)", x="f32[]")])


def _norm(b: Builder, operands, attrs):
    x, p = wide(b, operands[0]), attrs["p"]
    fold = {"axes": attrs["axes"], "keepdims": attrs["keepdims"]}
    if p == 2:
        result = b.emit("sqrt", b.emit("reduce_sum", b.emit("mul", x, x), **fold))
    elif p == 1:
        result = b.emit("reduce_sum", b.emit("abs", x), **fold)
    elif math.isinf(p):
        result = b.emit("reduce_max" if p > 0 else "reduce_min", b.emit("abs", x), **fold)
    else:
        power = b.emit("pow", b.emit("abs", x), b.constant(p, x.type.dtype))
        result = b.emit("pow", b.emit("reduce_sum", power, **fold), b.constant(1 / p, x.type.dtype))
    return b.cast(result, operands[0].type.dtype)


composite("norm", _infer("norm"), _norm, "the p-norm of vectors along axes",
          [example("x.norm(dim=-1, keepdim=True)", x="f32[2, 3]"), example("torch.norm(x)", x="f32[2, 3]"),
           example("torch.linalg.vector_norm(x, 1, 0)", x="f32[2, 3]"),
           example("np.linalg.norm(x, axis=1)", x="f64[2, 3]"), example("torch.linalg.norm(x, dim=0, ord=float('inf'))", x="f32[2, 3]"),
           example("np.linalg.norm(x)", x="f32[2, 3]")])


# --- spellings ------------------------------------------------------------------------------------------------------

@spelled("torch.mean", "torch.Tensor.mean")
def torch_mean(b: Builder, input, dim=None, keepdim=False, dtype=None, axis=None, keepdims=False):
    if dtype is not None:
        input = b.cast(input, dtype)
    return fold(b, "mean", input, axis if dim is None else dim, keepdim or keepdims)


@spelled("numpy.mean", "numpy.ndarray.mean", "numpy.average")
def numpy_mean(b: Builder, a, axis=None, dtype=None, keepdims=False):
    dtype = as_dtype(dtype) if dtype else a.type.dtype if a.type.dtype is None or a.type.dtype.is_float else DType.F64
    return fold(b, "mean", narrowed(b, a, dtype), axis, keepdims)


def _spread(name: str):
    def spell(b: Builder, input, dim=None, unbiased=None, keepdim=False, correction=None, axis=None, keepdims=False):
        if isinstance(dim, bool):                                    # x.var(False): the first argument is `unbiased`
            dim, unbiased = None, dim
        correction = (1 if unbiased is None else int(unbiased)) if correction is None else correction
        return fold(b, name, input, axis if dim is None else dim, keepdim or keepdims, correction=correction)
    return spell


for _name in ("var", "std"):
    spelled(f"torch.{_name}", f"torch.Tensor.{_name}")(_spread(_name))
    spelled(f"numpy.{_name}", f"numpy.ndarray.{_name}")(
        lambda b, a, axis=None, dtype=None, ddof=0, keepdims=False, *, _name=_name: fold(
            b, _name, b.cast(a, as_dtype(dtype) if dtype else dtype_of(a) if dtype_of(a).is_float else DType.F64), axis, keepdims, correction=ddof))


@spelled("torch.var_mean")
def var_mean(b: Builder, input, dim=None, unbiased=None, keepdim=False, correction=None):
    return _spread("var")(b, input, dim, unbiased, keepdim, correction), fold(b, "mean", input, dim, keepdim)


@spelled("torch.logsumexp", "torch.Tensor.logsumexp", "torch.special.logsumexp")
def logsumexp(b: Builder, input, dim, keepdim=False):
    return fold(b, "logsumexp", float_operand(b, input), dim, keepdim)


def _norm_order(p, default=2):
    if p in (None, "fro"):
        return float(default)
    if isinstance(p, (int, float)) and p != 0:
        return float(p)
    raise unsupported(f"the norm of order {p!r}", "a number other than 0")


@spelled("torch.norm", "torch.Tensor.norm")
def norm(b: Builder, input, p="fro", dim=None, keepdim=False, dtype=None):
    x = input if dtype is None else b.cast(input, dtype)
    if p == 0 or p == "nuc":
        raise unsupported(f"the norm of order {p!r}", "a number other than 0", (fold(b, "norm", x, dim, keepdim, p=2.0).type,))
    return fold(b, "norm", x, dim, keepdim, p=_norm_order(p))


@spelled("torch.linalg.vector_norm")
def vector_norm(b: Builder, x, ord=2, dim=None, keepdim=False, dtype=None):
    return norm(b, x, ord, dim, keepdim, dtype)


@spelled("torch.linalg.norm")
def linalg_norm(b: Builder, A, ord=None, dim=None, keepdim=False, dtype=None):
    return _linalg_norm(b, A, ord, dim, keepdim)


@spelled("numpy.linalg.norm")
def numpy_norm(b: Builder, x, ord=None, axis=None, keepdims=False):
    return _linalg_norm(b, x if dtype_of(x).is_float else b.cast(x, DType.F64), ord, axis, keepdims)


def _linalg_norm(b: Builder, x, ord, dim, keepdim):
    many = len(shape_of(x)) if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord is not None and many != 1 and ord != "fro":
        whole = fold(b, "norm", x, dim, keepdim, p=2.0)
        raise unsupported(f"the matrix norm of order {ord!r}", "vector norms: one axis, or the Frobenius norm", (whole.type,))
    return fold(b, "norm", x, dim, keepdim, p=_norm_order(ord))
