"""The versions and the device that code is checked for: what a call means, and whether it exists, hangs on them."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Targets:
    """Versions as tuples of numbers, (2, 13). device: "cpu", "cuda", "mps", or "" when nothing is said: then code may run on any."""

    python: tuple[int, ...] = (3, 11)
    torch: tuple[int, ...] = (2, 13)
    numpy: tuple[int, ...] = (2, 3)
    onnxruntime: tuple[int, ...] = (1, 23)
    transformers: tuple[int, ...] = (5, 0)
    device: str = ""


DEFAULT_TARGETS = Targets()
