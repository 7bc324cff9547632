"""Resizing of images: nearest, (bi)linear and bicubic, one axis after the other.

Each axis is a few gathers at constant positions, weighted by constants. Positions and weights are ATen's, which computes
them in f32: nearest takes floor(i * scale); the others map pixel centres unless `align_corners`; cubic uses a = -0.75.
"""
from __future__ import annotations

from ..ir.dims import Dim, Poly, floordiv
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .array import np
from .builder import Builder
from .definition import TypeRuleError, example, not_known, spelled, unsupported
from .reductions import wide
from .rules import dtype_of, shape_of

MODES = {"nearest": (1, 2, 3), "linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,)}


@spelled("torch.nn.functional.interpolate", "torch.nn.functional.upsample",
         examples=[example("F.interpolate(x, size=(1, 64))", x="f32[1, 1, 1, 26]"),
                   example("F.interpolate(x, scale_factor=2, mode='nearest')", x="f32[1, 2, 3, 4]"),
                   example("F.interpolate(x, scale_factor=(1.0, 0.6), mode='nearest')", x="f32[1, 1, 1, 26]"),
                   example("F.interpolate(x, size=5)", x="f32[1, 2, 3]"),
                   example("F.interpolate(x, scale_factor=2, mode='bilinear')", x="f32[1, 2, 3, 4]"),
                   example("F.interpolate(x, size=7, mode='linear')", x="f32[1, 2, 5]"),
                   example("F.interpolate(x, size=(5, 3), mode='bilinear', align_corners=True)", x="f32[1, 2, 3, 7]"),
                   example("F.interpolate(x, size=(11, 9), mode='bicubic', align_corners=True)", x="f32[1, 1, 8, 8]"),
                   example("F.interpolate(x, scale_factor=0.5, mode='bicubic')", x="f32[1, 1, 8, 8]"),
                   example("F.interpolate(x, size=(4, 6), mode='bicubic')", x="f32[1, 2, 3, 8]"),
                   example("F.interpolate(x, scale_factor=1.5, mode='bilinear', recompute_scale_factor=True)", x="f32[1, 1, 5, 5]")])
def interpolate(b: Builder, input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    own = shape_of(input)[2:]
    known = {**MODES, "area": (1, 2, 3), "nearest-exact": (1, 2, 3)}
    if mode not in known:
        raise TypeRuleError(f"interpolate with mode {mode!r}", f"one of {', '.join(known)}", "argument")
    if len(own) not in known[mode]:
        raise TypeRuleError(f"interpolate of {input.type} with mode {mode!r}, which resizes {known[mode][0]} axes", f"an input of {known[mode][0] + 2} axes")
    if (size is None) == (scale_factor is None):
        raise TypeRuleError("interpolate with both or none of size and scale_factor", "one of them", "argument")
    wanted = _each(size, own) if size is not None else [_scaled(d, f) for d, f in zip(own, _each(scale_factor, own))]
    if mode not in MODES or antialias or any(isinstance(d, Poly) for d in (*own, *wanted)):
        raise unsupported(f"interpolate with mode {mode!r}{' and antialias' if antialias else ''}" if mode not in MODES or antialias else
                          "interpolate of symbolic sizes", "", (TensorType((*shape_of(input)[:2], *wanted), input.type.dtype),))
    given = [None] * len(own) if size is not None or recompute_scale_factor else _each(scale_factor, own)
    x = input if mode == "nearest" else wide(b, input)
    for axis in reversed(range(len(own))):
        old, new = own[axis], wanted[axis]
        if old == new and given[axis] in (None, 1, 1.0):
            continue
        scale = _scale(old, new, given[axis], bool(align_corners))
        if mode == "nearest":
            rows = np.minimum(np.floor(np.arange(new, dtype=np.float32) * scale).astype(np.int64), old - 1)
            x = _taken(b, x, rows, axis + 2)
        else:
            x = _weighted(b, x, axis + 2, *(_cubic if mode == "bicubic" else _linear)(old, new, scale, bool(align_corners)))
    return b.cast(x, dtype_of(input))


def _scaled(size: Dim, factor) -> Dim:
    """floor(size * factor); of a symbolic size for whole factors and their reciprocals."""
    if isinstance(size, int) and isinstance(factor, (int, float)):
        return int(np.floor(float(size) * factor))
    if isinstance(factor, (int, float)) and float(factor).is_integer():
        return size * int(factor)
    if isinstance(factor, (int, float)) and factor > 0 and float(1 / factor).is_integer():
        return floordiv(size, int(1 / factor))
    raise not_known("interpolate of a symbolic size by such a factor")


def _each(value, own) -> list:
    values = list(value) if isinstance(value, (tuple, list)) else [value] * len(own)
    if len(values) != len(own):
        raise TypeRuleError(f"interpolate of {len(own)} axes with {len(values)} sizes or factors", f"{len(own)} numbers", "argument")
    return values


def _scale(old: int, new: int, factor, align_corners: bool) -> np.float32:
    """Source pixels for each pixel of the result."""
    if align_corners:
        return np.float32(old - 1) / np.float32(new - 1) if new > 1 else np.float32(0)
    return np.float32(1.0 / factor) if factor is not None else np.float32(old) / np.float32(new)


def _places(new: int, scale: np.float32, align_corners: bool) -> np.ndarray:
    i = np.arange(new, dtype=np.float32)
    return i * scale if align_corners else (i + np.float32(0.5)) * scale - np.float32(0.5)


def _linear(old: int, new: int, scale, align_corners: bool):
    """The two neighbours of each place and how much of each."""
    place = np.maximum(_places(new, scale, align_corners), 0)
    first = np.minimum(place.astype(np.int64), old - 1)
    far = np.clip(place - first.astype(np.float32), 0, 1)
    return [first, np.minimum(first + 1, old - 1)], [1 - far, far]


def _cubic(old: int, new: int, scale, align_corners: bool):
    """Four neighbours, clamped at the border. Source: Keys, 1981, with a = -0.75."""
    place = _places(new, scale, align_corners)
    first = np.floor(place).astype(np.int64)
    t, a = place - first.astype(np.float32), np.float32(-0.75)
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    outer = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return [np.clip(first + n, 0, old - 1) for n in (-1, 0, 1, 2)], [outer(t + 1), near(t), near(1 - t), outer(2 - t)]


def _taken(b: Builder, x: Op, rows: np.ndarray, axis: int) -> Op:
    return b.emit("take", x, b.emit("constant", value=tuple(int(r) for r in rows), dtype=DType.I64), axis=axis, negative=False)


def _weighted(b: Builder, x: Op, axis: int, places, weights) -> Op:
    shape = tuple(-1 if a == axis else 1 for a in range(len(x.type.shape)))
    total = None
    for rows, weight in zip(places, weights):
        factor = b.emit("constant", value=tuple(float(w) for w in weight), dtype=x.type.dtype)
        factor = b.emit("reshape", factor, shape=tuple(len(rows) if s == -1 else 1 for s in shape))
        term = b.emit("mul", _taken(b, x, rows, axis), factor)
        total = term if total is None else b.emit("add", total, term)
    return total
