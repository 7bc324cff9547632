"""Cuvil compiles PyTorch and NumPy inference functions to native libraries, and shows what their lines become.

    import cuvil as cu

    @cu.compile
    def f(x, w): ...

    y = f(x, w)                  # torch in, torch out; NumPy in, NumPy out
    f.save("libf.so")            # with f.h, f.json
    g = cu.load("libf.so")

Importing this loads nothing heavy: each name comes with its module on first use.
"""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["CuvilError", "__version__", "compile", "load"]

if TYPE_CHECKING:
    from .artifact.load import load
    from .compiled import compile
    from .diagnostics import CuvilError

_HOMES = {"compile": ".compiled", "load": ".artifact.load", "CuvilError": ".diagnostics"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
    return value
