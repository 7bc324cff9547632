"""`cu.compile`: functions and modules that compile themselves."""
from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..diagnostics import CuvilError
from .function import Compiled
from .options import Options


def compile(function: Any = None, *, target: str = "cpu", opt_level: int = 2, enable_fp16: bool = False,
            input_shapes: Mapping[str, Sequence[int | str]] | None = None, input_dtypes: Mapping[str, Any] | None = None,
            frontend: str = "auto", fallback: str = "error") -> Any:
    """Compile a function, or an nn.Module: as a decorator, with or without options, or as a call.

    target        "cpu" is this machine; names of others as in `cuvil compile --target`
    opt_level     0: no fusion, 1: no epilogues, 2: all
    enable_fp16   compute in half precision where it is faster; not available yet, refused when asked for
    input_shapes  sizes of tensor parameters: numbers, or names for sizes that vary
    input_dtypes  element types of parameters where they are not float32
    frontend      "auto" or "python"
    fallback      what to do with what cannot be compiled: "error" or "eager"
    """
    options = Options(target, opt_level, enable_fp16, dict(input_shapes or {}), dict(input_dtypes or {}), frontend, fallback)
    if function is None:
        return lambda decorated: compile_with(decorated, options)
    return compile_with(function, options)


def compile_with(function: Any, options: Options) -> Any:
    if isinstance(function, Compiled):
        return Compiled(function.__wrapped__, options)
    if inspect.isfunction(function):
        return Compiled(function, options)
    if callable(getattr(function, "forward", None)) and callable(getattr(function, "state_dict", None)):
        from .module import CompiledModule
        return CompiledModule(function, options)
    if isinstance(function, (str, Path)) or type(function).__name__ in ("ModelProto", "ExportedProgram", "RecursiveScriptModule"):
        raise CuvilError(f"{function if isinstance(function, (str, Path)) else type(function).__name__} cannot be compiled: only Python "
                         "source is read in this version", expected="a Python function or an nn.Module instance")
    raise CuvilError(f"{function!r} cannot be compiled", expected="a Python function or an nn.Module instance")
