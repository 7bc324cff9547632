"""A difference of unsigned numbers that wraps around.

What: two uint8 arrays are subtracted as they are, and the result is read as a signed number: its absolute value, its square, its
mean, a comparison, a float.
Why: 3 - 5 is 254. Every pixel that got darker becomes one that got much brighter; `np.abs` of it changes nothing.
Example: `np.abs(frame - previous).mean()` for uint8 frames
Instead: `np.abs(frame.astype(np.int16) - previous)`, or `cv2.absdiff(frame, previous)`
Fix: none; how wide the numbers must be depends on what follows.

Silent where one side is widened first, where the first is proved to be at least the second (`255 - x`, `x - x.min()`), and for
results that stay bytes (checksums, modular arithmetic).
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

_START = "import numpy as np\n\ndef f(a: np.ndarray, b: np.ndarray):\n    a, b = a.astype(np.uint8), b.astype(np.uint8)\n"
VALID = (
    _START + "    return np.abs(a.astype(np.int16) - b).mean()\n",
    _START + "    return np.abs(a.astype(np.float32) - b.astype(np.float32))\n",
    _START + "    return (255 - a).mean()\n",
    _START + "    return a - b\n",
    _START + "    return (a ^ b).mean()\n",
    _START + "    return np.maximum(a, b) > b\n",
    "import torch\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n    return (a.byte().int() - b.byte().int()).abs()\n",
)
INVALID = (
    Invalid(_START + "    return np.abs(»a - b«).mean()\n", "uint8"),
    Invalid(_START + "    d = »a - b«\n    return d ** 2\n", "wraps"),
    Invalid(_START + "    return (»a - b«).astype(np.float32)\n", "uint8"),
    Invalid(_START + "    return (»a - b«) > 30\n", "uint8"),
    Invalid("import torch\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n    return (»a.byte() - b.byte()«).float().abs()\n", "uint8"),
)

_READ = {"abs": "its absolute value is taken", "mul": "it is multiplied", "pow": "it is raised to a power", "lt": "it is compared", "le": "it is compared",
         "gt": "it is compared", "ge": "it is compared", "mean": "its mean is taken", "reduce_sum": "it is summed", "reduce_max": "its maximum is taken",
         "div": "it is divided", "norm": "its norm is taken", "std": "its spread is taken", "var": "its spread is taken", "sqrt": "its root is taken"}
_STAY = flow.LAYOUT - {"cast"} | {"slice"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.types import DType
    for function, op in flow.ops(facts, "sub"):
        if op.type.dtype != DType.U8 or flow.number(function, flow.operand(function, op, 0)) is not None:
            continue
        left, right = (flow.ranges(function)[id] for id in op.operands)
        use = _read_as_signed(function, op) if left.lo < right.hi and not _scalar(function, op) else None
        if use is not None:
            yield RULE.finding(f"a uint8 difference wraps around where the second is larger (3 - 5 is 254), and then {use}; widen one side first",
                               flow.span(op), flow.evidence(*((flow.operand(function, op, i), "has unsigned type uint8") for i in (0, 1))))


def _scalar(function: Function, op: Op) -> bool:
    """codes - zero_point: that is zero-point-wrap."""
    return flow.operand(function, op, 1).type.shape == () and flow.dequantised(function, op) is not None


def _read_as_signed(function: Function, op: Op) -> str | None:
    for user, _ in flow.uses(function, op, _STAY):
        if user.name == "cast" and user.type.dtype is not None and (user.type.dtype.is_float or user.type.dtype.size > 1):
            after = next((_READ[u.name] for u, _ in flow.uses(function, user) if u.name in _READ), None)
            return after or f"it is read as {user.type.dtype.numpy}"
        if user.name in _READ:
            return _READ[user.name]
    return None


RULE = Rule("CUV204", "unsigned-difference", kind="integer-wrap", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
