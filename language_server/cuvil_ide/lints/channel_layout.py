"""Pictures with their channels last go where channels are first.

What: a batch [N, H, W, C] reaches `F.interpolate`, a pooling or a resize of torch, which take [N, C, H, W].
Why: the sizes that are changed are width and channels: the colours of neighbouring pixels are mixed. Nothing fails.
Example: `F.interpolate(torch.from_numpy(frames).float(), size=(224, 224))` for frames [N, H, W, 3]
Instead: `F.interpolate(torch.from_numpy(frames).float().permute(0, 3, 1, 2), size=(224, 224))`
Fix: unsafe: the result changes, which is the point.

Silent when the axes may be in order: a last axis that is not of 1, 3 or 4, or sizes before it that may be channels. (A convolution of
such a batch raises; CUV101 tells that and what to permute.)
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from .axes import shown
from .flow import once
from .recorded import calls, node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.types import TensorType
    from cuvil.source import Span

_START = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n\ndef f():\n"
VALID = (
    _START + "    x = torch.zeros(2, 480, 640, 3).permute(0, 3, 1, 2)\n    return F.interpolate(x, size=(224, 224))\n",
    _START + "    return F.interpolate(torch.zeros(2, 3, 480, 640), size=(224, 224))\n",
    _START + "    return F.interpolate(torch.zeros(2, 64, 8, 4), scale_factor=2)\n",
    "import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor):\n    N, C, H, W = x.shape\n    return F.interpolate(x, size=(8, 8))\n",
)
INVALID = (
    Invalid(_START + "    x = torch.zeros(2, 480, 640, 3)\n    return »F.interpolate(x, size=(224, 224))«\n", "permute(0, 3, 1, 2)",
            _START + "    x = torch.zeros(2, 480, 640, 3)\n    return F.interpolate(x.permute(0, 3, 1, 2), size=(224, 224))\n"),
    Invalid("import cv2\nimport torch\nimport torch.nn.functional as F\n\ndef f(path):\n    x = torch.from_numpy(cv2.imread(path)).float()[None]\n"
            "    return »F.adaptive_avg_pool2d(x, 8)«\n", "channels",
            "import cv2\nimport torch\nimport torch.nn.functional as F\n\ndef f(path):\n    x = torch.from_numpy(cv2.imread(path)).float()[None]\n"
            "    return F.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 8)\n"),
)

_TAKE_FIRST = frozenset(("interpolate", "upsample", "adaptive_avg_pool2d", "adaptive_max_pool2d", "max_pool2d", "avg_pool2d", "grid_sample",
                         "Upsample", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d", "MaxPool2d", "AvgPool2d"))
_WIDE = 32                                     # fewer rows than that may be channels


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for call in calls(facts):
        if call.name.startswith("torch.nn.") and call.name.rpartition(".")[2] in _TAKE_FIRST:
            image = call.argument(0, "input")
            if isinstance(image, Tensor) and (_last(image.type) or "hwc" in image.marks and image.type.rank == 4):
                where = (Evidence(image.op.origins[0].span, f"has type {image.type}"),) if image.op.origins else ()
                yield RULE.finding(f"{shown(image.type.shape)} has its channels last, and {call.name.rpartition('.')[2]} takes [N, C, H, W]: permute(0, 3, 1, 2) first",
                                   call.span, where, _fix(facts, call.span))


def _last(type: TensorType) -> bool:
    """[N, H, W, C] by its sizes: rows and columns of a picture, and then colours."""
    if type.shape is None or len(type.shape) != 4 or type.shape[3] not in (1, 3, 4):
        return False
    rows, columns = type.shape[1:3]
    if isinstance(rows, int) and isinstance(columns, int):
        return rows >= _WIDE and columns >= _WIDE and type.shape[3] == 3
    return str(rows).lower().startswith(("h", "height")) and str(columns).lower().startswith(("w", "width"))


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    call = node_of(facts, span, cst.Call)
    first = call.args[0] if call is not None and call.args and call.args[0].star == "" else None
    if first is None or not isinstance(first.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        return None
    where = facts.module.span(first.value)
    return Fix("unsafe", "Channels first", (Edit(where, f"{facts.source.slice(where)}.permute(0, 3, 1, 2)"),))


RULE = Rule("CUV113", "channel-layout", kind="layout-scramble", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
