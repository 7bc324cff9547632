"""From a number to a place on a colour scale: score -> scale -> position in 0..1, as pure functions.

    scale = fit([0.2, 3.0, 41.0], "diverging", centre=10.7)
    position(scale, 41.0)                  # 1.0
    position(scale, None)                  # None: unknown is not a colour

Every float has a defined place: missing and NaN have none, infinities take the ends, zero (and below) takes the low end of a log
scale, and values that are all equal stand in the middle. The panel draws positions and never computes them.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["linear", "log", "diverging"]
TINY = 1e-300                                # a log scale's smallest value: below it is zero for every purpose here


@dataclass(frozen=True, slots=True)
class Scale:
    """low, high: the extremes of the finite values, of those above zero on a log or diverging scale (0.0 when there are none).
    centre: of a diverging scale, > 0."""

    kind: Kind
    low: float
    high: float
    centre: float | None = None


def fit(values: Iterable[float | None], kind: Kind, centre: float | None = None) -> Scale:
    """The scale that these values span. A diverging scale without a usable centre is a log scale."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    if kind == "diverging" and not (centre and math.isfinite(centre) and centre > 0):
        kind, centre = "log", None
    if kind != "linear":                     # zero has no logarithm: it stands at the low end, and panels give it a sign of its own
        finite = [v for v in finite if v > TINY]
    return Scale(kind, min(finite, default=0.0), max(finite, default=0.0), centre if kind == "diverging" else None)


def position(scale: Scale, value: float | None) -> float | None:
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        return 1.0 if value > 0 else 0.0
    if scale.kind == "diverging":
        return _diverging(scale, value)
    if scale.low == scale.high:
        return 0.5 if value == scale.low else 0.0 if value < scale.low else 1.0
    if scale.kind == "linear":
        part = 1 if math.isfinite(scale.high - scale.low) else 2          # halves where the range itself overflows; of the smallest floats they would be 0
        return _clamp((value / part - scale.low / part) / (scale.high / part - scale.low / part))
    if value <= TINY:
        return 0.0
    low, high = math.log(scale.low), math.log(scale.high)
    return _clamp((math.log(value) - low) / (high - low)) if high > low else 0.5


def _diverging(scale: Scale, value: float) -> float:
    """Ratios to the centre, the same distance to both sides: half and double of it stand equally far from the middle."""
    if value <= TINY:
        return 0.0
    reach = max((abs(math.log(v / scale.centre)) for v in (scale.low, scale.high) if v > TINY), default=0.0)
    offset = math.log(value / scale.centre)
    if reach == 0.0:
        return 0.5 if offset == 0.0 else 0.0 if offset < 0 else 1.0
    return _clamp(0.5 + 0.5 * offset / reach)


def _clamp(x: float) -> float:
    return min(max(x, 0.0), 1.0)


PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def label(value: float | None, unit: str) -> str:
    """A number as people read it: three digits, SI prefix, unit. "1.23 GFLOP", "34.1 FLOP/B", "2.6 ms", "0 B", "unknown"."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}∞ {unit}"
    if unit == "s":
        for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
            if abs(value) >= factor * 0.9995:
                return f"{_digits(value / factor)} {prefix}s"
    elif "/" not in unit:
        for factor, prefix in PREFIXES:
            if abs(value) >= factor * 0.9995:
                return f"{_digits(value / factor)} {prefix}{unit}"
    return f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value == int(value) and abs(value) < 1000 else f"{value:.3g}"
