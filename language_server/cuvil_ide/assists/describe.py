"""Values and quantities in the few words that fit beside code."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import ExpressionFact
    from cuvil.frontends.python.values import Value

LIMIT = 28                  # characters; longer hints push the code out of sight


def describe(value: Value) -> str:
    """`f32[B, 8, 64]`, `(f32[B], i64[B])`, or "" for what has nothing to say about tensors."""
    from cuvil.frontends.python.values import Sequence, Tensor, Weight
    if isinstance(value, Weight) or isinstance(value, Tensor) and value.library != "python":
        return "" if value.type.shape is None and value.type.dtype is None else str(value.type)
    if isinstance(value, Sequence) and value.items:
        parts = [describe(item) for item in value.items]
        return f"({', '.join(parts)})" if any(parts) and all(parts) else ""
    return ""


def brought_by(fact: ExpressionFact) -> str:
    """Where the type of an expression comes from that the code around it does not say by itself; "" when it does."""
    if "brought" not in getattr(fact.value, "marks", ()):
        return ""
    return f"as called from {os.path.basename(fact.caller.path)}:{fact.caller.line}" if fact.caller is not None else "as documented, or by its defaults"


def shorten(text: str, limit: int = LIMIT) -> str:
    return text if len(text) <= limit else text[:limit - 1] + "…"


def bytes_text(count: int | float) -> str:
    """1234567 -> "1.2 MB" (decimal units, as bandwidths are given)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def flops_text(count: int | float) -> str:
    for unit in ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"):
        if count < 1000 or unit == "TFLOP":
            return f"{count:.0f} FLOP" if unit == "FLOP" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
