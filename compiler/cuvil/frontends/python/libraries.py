"""Whose rules a tensor lives by, torch's or NumPy's, where its type does not say: a choice for inputs, from what the code around them calls."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .walk import Frame, Walk


def library_of(walk: Walk, declared: str | None) -> str:
    """torch or NumPy, whose rules an input lives by: what is given decides, then what is declared, then a guess.

    Arrays given to code that calls torch, which would fail uncompiled, are taken as the tensors it asks for."""
    if walk.given == "torch":
        return "torch"
    if walk.given == "numpy" and declared != "torch" and not _CALLS_TORCH.search(_COMMENT.sub("", walk.frame.definition.text)):
        return "numpy"
    return declared or guessed_library(walk.frame)


_CALLS_TORCH = re.compile(r"(?<![\w.])(torch|F|nn)\.\w")
_COMMENT = re.compile(r"#.*")


def guessed_library(frame: Frame) -> str:
    """torch or NumPy, for a parameter without a type: what its function mentions, else what its file imports."""
    text = frame.definition.text if frame.definition is not None else ""
    if ("np." in text or "numpy." in text) and "torch" not in text and "F." not in text:
        return "numpy"
    return frame.namespace.library
