"""An nn.Module that is compiled with its weights: `forward` is captured, parameters and buffers are written beside the library.

The weights are those of the moment a shape is compiled; later changes to the module are not seen.
"""
from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..diagnostics import CuvilError
from .arguments import check_shapes
from .function import Compiled
from .options import Options
from .source import source_of

if TYPE_CHECKING:
    from ..artifact.build import Built
    from ..ir.function import Function
    from ..pipeline import Stages


class CompiledModule(Compiled):
    """`model` is the module; `__wrapped__` its forward."""

    def __init__(self, model: Any, options: Options) -> None:
        if not inspect.isfunction(getattr(type(model), "forward", None)):
            raise CuvilError(f"{type(model).__name__} has no forward in Python", expected="an nn.Module whose forward is a method")
        super().__init__(type(model).forward, options)
        self.model = model
        self.__wrapped__ = model.forward

    def _capture(self, types: Mapping[str, Any] | None, library: str | None = None) -> tuple[Function, str]:
        from ..frontends.python import Workspace
        from ..frontends.python.live import capture_module, is_layer, package_root, source_around
        source = source_around(self.model) if is_layer(self.model) else source_of(type(self.model).forward)
        if types is None and self.options.input_shapes:
            types = self._types_of(self.options.input_shapes)
        elif types is not None:
            check_shapes(self.__qualname__, self.options.input_shapes, types)
        workspace = Workspace(package_root(source.path))
        return capture_module(self.model, source, dict(types) if types is not None else None, workspace), source.text

    def _build(self, stages: Stages) -> Built:
        from ..artifact.build import build
        return build(stages, {**dict(self.model.named_buffers(remove_duplicate=False)), **dict(self.model.named_parameters(remove_duplicate=False))})
