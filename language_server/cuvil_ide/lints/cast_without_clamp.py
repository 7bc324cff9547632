"""Floats cast to bytes that may lie outside of them.

What: a float value whose interval reaches below 0 or above 255 (or is what a network computed, times 255) is cast to uint8 or int8.
Why: a byte wraps: 256.4 becomes 0 and -1 becomes 255, so the brightest spots turn black; C leaves the result open, so it also differs
between machines.
Example: `(img.astype(np.float32) * 1.3 + 20).astype(np.uint8)`
Instead: `np.clip(img.astype(np.float32) * 1.3 + 20, 0, 255).astype(np.uint8)`
Fix: none; where to clip depends on the code around.

Silent after clamp and clip, for sigmoid * 255 and whatever else is proved to fit, for labels from argmax, and for values of which nothing is known.
"""
from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import numpy as np\n\ndef f(img: np.ndarray):\n    img = img.astype(np.uint8)\n"
_NET = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.out = nn.Conv2d(3, 3, 1)\n\n"
VALID = (
    _START + "    return np.clip(img.astype(np.float32) * 1.3, 0, 255).astype(np.uint8)\n",
    _START + "    return (img.astype(np.float32) * 0.5).astype(np.uint8)\n",
    _START + "    return (img / 255 * 255).astype(np.uint8)\n",
    "import numpy as np\n\ndef f(x: np.ndarray):\n    return (x * 255).astype(np.uint8)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return (torch.sigmoid(x) * 255).to(torch.uint8)\n",
    _NET + "    def forward(self, x):\n        return (self.out(x).clamp(0, 1) * 255).to(torch.uint8)\n",
    _NET + "    def forward(self, x):\n        return self.out(x).argmax(1).to(torch.uint8)\n",
)
INVALID = (
    Invalid(_START + "    return »(img.astype(np.float32) * 1.3 + 20).astype(np.uint8)«\n", "351"),
    Invalid("import torch\n\ndef f(x: torch.Tensor):\n    return »(torch.tanh(x) * 255).to(torch.uint8)«\n", "-255"),
    Invalid(_NET + "    def forward(self, x):\n        return »(self.out(x) * 255).to(torch.uint8)«\n", "clamp"),
)

_COMPUTED = frozenset(("linear", "conv2d", "conv_transpose2d", "matmul", "layer_norm", "batch_norm", "group_norm"))
_ELEMENTWISE = flow.PARTS | {"add", "sub", "mul", "div", "neg", "round", "floor", "relu", "permute"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.rounding import limits
    from cuvil.ir.types import DType
    for function, op in flow.ops(facts, "cast"):
        value = flow.operand(function, op)
        if op.type.dtype not in (DType.U8, DType.I8) or (value.type.dtype is not None and not value.type.dtype.is_float):
            continue
        low, high = limits(op.type.dtype)
        x = flow.ranges(function)[value.id]
        outside = -inf < x.lo < low - 1 or high + 1 <= x.hi < inf
        if x.within(low - 1, high + 0.999) or not (outside or (x.lo == -inf and _network(function, value))):
            continue
        known = f"reaches from {x.lo:g} to {x.hi:g}" if outside else "is what a layer computed, scaled, and has no bounds"
        yield RULE.finding(f"the value {known}, and {op.type.dtype.numpy} wraps what is outside {low} to {high}; clamp it before the cast",
                           flow.span(op), flow.evidence((value, known)))


def _network(function: Function, value: Op) -> bool:
    """The output of a layer times 255 or 127: a picture."""
    made = list(flow.sources(function, value, _ELEMENTWISE))
    scaled = any(flow.number(function, op) in (255, 127, 127.5, 128) for op in made)
    return scaled and any(op.name in _COMPUTED for op in made)


RULE = Rule("CUV206", "cast-without-clamp", kind="lossy-cast", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
