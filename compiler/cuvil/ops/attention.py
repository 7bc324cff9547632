"""Scaled dot-product attention, as torch.nn.functional.scaled_dot_product_attention computes it.

    softmax(q @ k^T * scale + mask) @ v

q (..., L, E), k (..., S, E), v (..., S, Ev). A causal mask is anchored at the top left: query i sees keys 0..i, also when
L and S differ. A query that a mask leaves no key gives zeros. With grouped queries (`gqa`) axis -3 of k and v is repeated.
"""
from __future__ import annotations

import math

from ..ir.dims import Dim, exact_quotient, proved_different
from ..ir.types import DType, TensorType
from .builder import Builder
from .composite import composite
from .definition import TypeRuleError, example, spelled, unsupported
from .reductions import wide
from .rules import broadcast, broadcastable, common, dtype_of, shapes
from .shape import repeat_interleave, transpose


def _infer(operands, attrs):
    q, k, v, *mask = operands
    dtype = common([q, k, v], "attention")
    if any(t.shape is None for t in (q, k, v)):
        return TensorType(None, dtype)
    for t in (q, k, v):
        if len(t.shape) < 2:
            raise TypeRuleError(f"attention of {shapes([q, k, v])}", "tensors of at least 2 axes (..., length, features)")
    if proved_different(q.shape[-1], k.shape[-1]):
        raise TypeRuleError(f"attention of queries {q} with keys {k}: {q.shape[-1]} and {k.shape[-1]} features", "equal last axes")
    if proved_different(k.shape[-2], v.shape[-2]):
        raise TypeRuleError(f"attention of keys {k} with values {v}: {k.shape[-2]} keys and {v.shape[-2]} values", "equal lengths")
    if attrs["gqa"] and len(q.shape) >= 3 and len(k.shape) >= 3:
        repeats(q, k)
        lead = [TensorType((*t.shape[:-3], *((q.shape[-3],) if t is not q else t.shape[-3:-2])), dtype) for t in (q, k, v)]
    else:
        lead = [TensorType(t.shape[:-2], dtype) for t in (q, k, v)]
    batch = broadcast(lead, "attention")
    if mask and mask[0].shape is not None and not broadcastable(mask[0].shape, (*batch, q.shape[-2], k.shape[-2])):
        raise TypeRuleError(f"attention mask {mask[0]} for scores of ({', '.join(map(str, (*batch, q.shape[-2], k.shape[-2])))})",
                            "a mask that broadcasts to the scores")
    return TensorType((*batch, q.shape[-2], v.shape[-1]), dtype)


def repeats(q: TensorType, k: TensorType) -> Dim:
    """How many query heads share a key head."""
    times = exact_quotient(q.shape[-3], k.shape[-3])
    if times is None and isinstance(q.shape[-3], int) and isinstance(k.shape[-3], int):
        raise TypeRuleError(f"grouped attention of queries {q} with keys {k}: {q.shape[-3]} heads are not a multiple of {k.shape[-3]}",
                            "a number of query heads that is a multiple of the key heads")
    return q.shape[-3] // k.shape[-3] if times is None else times


def _attention(b: Builder, operands, attrs):
    q, k, v, *mask = operands
    dtype = q.type.dtype
    q, k, v = wide(b, q), wide(b, k), wide(b, v)
    if attrs["gqa"] and len(q.type.shape) >= 3:
        k, v = (repeat_interleave(b, x, repeats(q.type, x.type), -3) for x in (k, v))
    scale = attrs["scale"]
    if scale is None:
        width = q.type.shape[-1]
        scale = b.constant(1 / math.sqrt(width) if width else 1.0, q.type.dtype) if isinstance(width, int) else b.emit("rsqrt", b.constant(width, q.type.dtype))
    else:
        scale = b.constant(scale, q.type.dtype)
    scores = b.emit("mul", b.emit("matmul", q, transpose(b, k, -1, -2)), scale)
    never = b.constant(-math.inf, q.type.dtype)
    if attrs["causal"]:
        rows, columns = q.type.shape[-2], k.type.shape[-2]
        seen = b.emit("ge", b.emit("iota", shape=(rows, 1), axis=0, dtype=DType.I64), b.emit("iota", shape=(1, columns), axis=1, dtype=DType.I64))
        scores = b.emit("select", seen, scores, never)
    if not mask:
        return b.cast(b.emit("matmul", b.emit("softmax", scores, axis=len(scores.type.shape) - 1), v), dtype)
    if mask[0].type.dtype == DType.BOOL:
        scores = b.emit("select", mask[0], scores, never)
    else:
        scores = b.emit("add", scores, b.cast(mask[0], q.type.dtype))
    axis = len(scores.type.shape) - 1
    weights = b.emit("softmax", scores, axis=axis)
    empty = b.emit("eq", b.emit("reduce_max", scores, axes=(axis,), keepdims=True), never)          # ATen's _safe_softmax
    weights = b.emit("select", empty, b.constant(0.0, q.type.dtype), weights)
    return b.cast(b.emit("matmul", weights, v), dtype)


composite("attention", _infer, _attention, "softmax(q @ k.T * scale + mask) @ v",
          [example("F.scaled_dot_product_attention(q, k, v)", q="f32[2, 3, 4, 8]", k="f32[2, 3, 5, 8]", v="f32[2, 3, 5, 6]"),
           example("F.scaled_dot_product_attention(q, k, v, is_causal=True)", q="f32[1, 2, 3, 4]", k="f32[1, 2, 5, 4]", v="f32[1, 2, 5, 4]"),
           example("F.scaled_dot_product_attention(q, q, q, attn_mask=m)", q="f32[1, 2, 4, 8]", m="bool[4, 4]"),
           example("F.scaled_dot_product_attention(q, q, q, attn_mask=m, scale=0.5)", q="f32[2, 2, 3, 4]", m="f32[2, 1, 3, 3]"),
           example("F.scaled_dot_product_attention(q, k, k, enable_gqa=True)", q="f32[1, 4, 3, 8]", k="f32[1, 2, 5, 8]"),
           example("F.scaled_dot_product_attention(q, q, q, is_causal=True)", q="f16[1, 2, 3, 4]"),
           example("F.scaled_dot_product_attention(q, q, q, attn_mask=(q.sum(-1, keepdim=True) > 100))", q="f32[1, 1, 3, 4]")], arity=None)


@spelled("torch.nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(b: Builder, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if dropout_p:
        raise unsupported("attention with dropout, which is random", "dropout_p=0.0")
    if is_causal and attn_mask is not None:
        raise TypeRuleError("attention with both attn_mask and is_causal", "one of them", "argument")
    if attn_mask is not None and dtype_of(attn_mask) not in (DType.BOOL, dtype_of(query)):
        if attn_mask.type.dtype == DType.F32:
            raise unsupported("attention with a mask of float32 and queries of another type", "a mask of the queries' element type", (query.type,))
        raise TypeRuleError(f"attention with queries {query.type} and a mask of {attn_mask.type}",
                            "a mask of bool or of the queries' element type", "dtype-mismatch")
    return b.emit("attention", query, key, value, *(() if attn_mask is None else (attn_mask,)), causal=bool(is_causal),
                  scale=None if scale is None else float(scale), gqa=bool(enable_gqa))
