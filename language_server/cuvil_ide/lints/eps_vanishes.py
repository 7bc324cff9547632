"""A guard constant that rounds to zero in the tensor's element type.

What: a small number is added to a tensor of float16 (or another narrow type), or is its lower bound, in which it is exactly zero. The
number may be a default: `F.normalize` guards with 1e-12.
Why: the guard against a division by zero is not there: where the rest is zero the result is inf or NaN. In float32 the same
line works, so it passes every test until the model is served in half precision.
Example: `x.half() / (spread.half() + 1e-8)`: the smallest float16 above zero is 6e-8
Instead: compute the guarded part in float32 (`spread.float() + 1e-8`), or choose a guard that the type can hold (1e-4).
Fix: none; which of the two is right depends on the code around.

Silent for bfloat16 and float32 guards of usual size, for layers that compute in float32 inside (LayerNorm, RMSNorm), inside
autocast, and when the element type is unknown.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_HALF = "import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor):\n    x = x.half()\n"
VALID = (
    _HALF + "    return x / (x + 1e-4)\n",
    _HALF + "    return x / (x.float() + 1e-8)\n",
    _HALF + "    return x + 0.0\n",
    _HALF + "    return F.normalize(x.float(), dim=-1)\n",
    _HALF + "    return F.normalize(x, dim=-1, eps=1e-4)\n",
    _HALF + "    return F.layer_norm(x, (8,), eps=1e-8)\n",
    _HALF + "    return x.masked_fill(x > 0, 1e-9)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return x / (x + 1e-8)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return x.bfloat16() + 1e-8\n",
)
INVALID = (
    Invalid(_HALF + "    return x / (»x + 1e-8«)\n", "1e-08 is zero in float16"),
    Invalid(_HALF + "    guard = 1e-12\n    return x / (»guard + x«)\n", "1e-12 is zero in float16"),
    Invalid(_HALF + "    return x / »x.clamp_min(1e-8)«\n", "1e-08 is zero in float16"),
    Invalid(_HALF + "    return x / »torch.clamp(x, min=1e-9)«\n", "1e-09 is zero in float16"),
    Invalid(_HALF + "    return »F.normalize(x, dim=-1)«\n", "1e-12 is zero in float16"),
    Invalid("import torch\n\nclass Norm(torch.nn.Module):\n    def __init__(self, eps: float = 1e-8):\n        super().__init__()\n        self.eps = eps\n\n"
            "    def forward(self, x: torch.Tensor):\n        x = x.half()\n        return x * torch.rsqrt(»x.pow(2).mean(-1, keepdim=True) + self.eps«)\n",
            "1e-08 is zero in float16"),
    Invalid("import torch\n\ndef f(x: torch.Tensor):\n    return 1 / (»x.float() + 1e-60«)\n", "float32"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "add", "sub", "maximum"):
        found = _vanishing(function, op)
        if found is not None and not flow.autocast(facts, flow.span(op)):
            value, guarded = found
            yield RULE.finding(f"eps {value!r} is zero in {op.type.dtype.numpy}: it guards against nothing, and the result can be inf or NaN",
                               flow.span(op), flow.evidence((guarded, f"has type {guarded.type}")))


def _vanishing(function: Function, op: Op) -> tuple[float, Op] | None:
    """(the number, what it was to guard) when it rounds to zero."""
    from cuvil.ir.rounding import nearest
    if op.type.dtype is None or not op.type.dtype.is_float:
        return None
    for place in (1, 0) if op.name != "sub" else (1,):
        value = flow.number(function, flow.operand(function, op, place))
        if isinstance(value, float) and 0 < abs(value) < 1 and nearest(value, op.type.dtype) == 0:
            return value, flow.operand(function, op, 1 - place)
    return None


RULE = Rule("CUV209", "eps-vanishes", kind="eps-underflow", severity="warning", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
