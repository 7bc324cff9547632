"""Functions of torch.nn.functional that are neither activations nor layers: dropout, normalize, similarity, one_hot, pixel_shuffle."""
from __future__ import annotations

from ..ir.dims import exact_quotient, floordiv
from ..ir.types import DType, TensorType
from .builder import Builder
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .reductions import fold
from .rules import broadcast, dtype_of, shape_of
from .shape import expanded, reshaped


@spelled("torch.nn.functional.dropout", "torch.dropout")
def dropout(b: Builder, input, p=0.5, training=True, inplace=False):
    if training and p != 0:
        raise unsupported("dropout while training, which is random", "training=False, or model.eval()", (input.type,))
    return input


@spelled("torch.nn.functional.normalize", examples=[example("F.normalize(x, dim=-1)", x="f32[2, 3]")])
def normalize(b: Builder, input, p=2.0, dim=1, eps=1e-12):
    length = fold(b, "norm", input, dim, True, p=float(p))
    return b.emit("div", input, b.emit("maximum", length, b.constant(eps, dtype_of(input))))


@spelled("torch.nn.functional.cosine_similarity", "torch.cosine_similarity", examples=[example("F.cosine_similarity(x, y)", x="f32[2, 5]", y="f32[2, 5]"),
                                                                                      example("F.cosine_similarity(x, y, dim=-1)", x="f32[3, 5]", y="f32[5]")])
def cosine_similarity(b: Builder, x1, x2, dim=1, eps=1e-08):
    """dot / (max(|x1|, eps) max(|x2|, eps)), after broadcasting."""
    x, y = b.promote(x1, x2)
    shape = broadcast([x.type, y.type], "cosine_similarity")
    if shape is None:
        raise not_known("cosine_similarity of unknown ranks")
    x, y = expanded(b, x, shape), expanded(b, y, shape)
    fix = lambda v: b.emit("maximum", fold(b, "norm", v, dim, True, p=2.0), b.constant(eps, dtype_of(v)))
    return fold(b, "reduce_sum", b.emit("mul", b.emit("div", x, fix(x)), b.emit("div", y, fix(y))), dim, False)


@spelled("torch.nn.functional.one_hot", examples=[example("F.one_hot(x.abs(), 9)", x="i64[4]")])
def one_hot(b: Builder, tensor, num_classes=-1):
    if tensor.type.dtype not in (None, DType.I64):
        raise TypeRuleError(f"one_hot of {tensor.type}", "int64 elements; cast with .long() first", "dtype-mismatch")
    if num_classes == -1:
        raise unsupported("one_hot without num_classes, whose size hangs on data", "num_classes=...",
                          (TensorType((*shape_of(tensor), b.unbacked()), DType.I64),))
    classes = b.emit("iota", shape=(num_classes,), axis=0, dtype=dtype_of(tensor))
    return b.cast(b.emit("eq", reshaped(b, tensor, (*shape_of(tensor), 1)), classes), DType.I64)


@spelled("torch.nn.functional.pixel_shuffle", "torch.pixel_shuffle", examples=[example("F.pixel_shuffle(x, 2)", x="f32[1, 8, 2, 3]")])
def pixel_shuffle(b: Builder, input, upscale_factor):
    *lead, c, h, w = shape_of(input)
    r, n = upscale_factor, len(lead)
    channels = exact_quotient(c, r * r)
    if channels is None and not (isinstance(c, int) and isinstance(r, int)):
        raise unsupported(f"pixel_shuffle of {input.type}, whose channels are symbolic", "", (TensorType((*lead, floordiv(c, r * r), h * r, w * r), input.type.dtype),))
    if channels is None:
        raise TypeRuleError(f"pixel_shuffle of {input.type} by {r}", f"a number of channels that {r * r} divides")
    x = reshaped(b, input, (*lead, channels, r, r, h, w))
    x = b.emit("transpose", x, axes=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshaped(b, x, (*lead, channels, h * r, w * r))
