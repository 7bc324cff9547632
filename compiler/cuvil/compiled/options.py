"""The keyword options of cu.compile, checked when they are given."""
from __future__ import annotations

from ..diagnostics import CuvilError


class Options:
    """CuvilError for what cannot be honoured."""

    def __init__(self, target: str, opt_level: int, enable_fp16: bool, input_shapes: dict, input_dtypes: dict, frontend: str,
                 fallback: str) -> None:
        if opt_level not in (0, 1, 2):
            raise CuvilError(f"opt_level is {opt_level!r}", expected="0 (no fusion), 1 (no epilogues) or 2 (all)")
        if fallback not in ("error", "eager"):
            raise CuvilError(f"fallback is {fallback!r}", expected='"error" or "eager"')
        if frontend not in ("auto", "python"):
            raise CuvilError(f"frontend is {frontend!r}", expected='"auto" or "python"; ONNX and torch.export files cannot be read yet')
        if enable_fp16:
            raise CuvilError("enable_fp16 cannot be honoured: half precision kernels with a measured error are not there yet",
                             hint="leave enable_fp16 out; inputs that are float16 already are compiled as they are")
        self.target, self.opt_level, self.fallback = target, opt_level, fallback
        self.input_shapes, self.input_dtypes = input_shapes, input_dtypes
