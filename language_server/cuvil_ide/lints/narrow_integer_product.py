"""A product of bytes that does not fit into a byte.

What: a uint8 or int8 array is multiplied by a whole number, squared or raised to a power, or a whole number is added to it, and the
result can leave the type.
Why: the array's type wins over a Python number, so 200 * 2 is 144: bright pixels become dark ones. Dividing or casting afterwards is too late.
Example: `img * 120 / 100` for a uint8 image
Instead: `img.astype(np.float32) * 1.2`, then clip and cast back
Fix: none; how wide the numbers must be depends on what follows.

Silent where the interval proves that the product fits, for products of two arrays (one is mostly a mask of 0 and 1), and where the array is widened first.
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

_START = "import numpy as np\n\ndef f(img: np.ndarray, keep: np.ndarray):\n    img = img.astype(np.uint8)\n"
VALID = (
    _START + "    return img.astype(np.uint16) * 2\n",
    _START + "    return img * 1.2\n",
    _START + "    return (img // 2) * 2\n",
    _START + "    return (img > 128).astype(np.uint8) * 255\n",
    _START + "    return img * keep.astype(np.uint8)\n",
    _START + "    return img + 1, (img + 9) & 15\n",
    _START + "    return np.clip(img.astype(np.int16) + 40, 0, 255)\n",
)
INVALID = (
    Invalid(_START + "    return (»img * 120« / 100).astype(np.uint8)\n", "uint8"),
    Invalid(_START + "    return 2 * img.mean() + (»img * 3«).mean()\n", "wraps"),
    Invalid(_START + "    return np.clip(»img + 40«, 0, 255)\n", "uint8"),
    Invalid("import torch\n\ndef f(img: torch.Tensor):\n    return »img.byte() * 4«\n", "uint8"),
    Invalid("import torch\n\ndef f(img: torch.Tensor):\n    img = img.byte()\n    return (»img * img«).float().mean()\n", "uint8"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.rounding import limits
    from cuvil.ir.types import DType
    for function, op in flow.ops(facts, "mul", "add", "pow"):
        if op.type.dtype not in (DType.U8, DType.I8) or op.type.shape == ():
            continue
        bounds = _bounds(function, op)
        low, high = limits(op.type.dtype)
        if bounds is not None and (bounds[0] < low or bounds[1] > high) and not _bits(function, op):
            what = {"mul": "product", "add": "sum", "pow": "power"}[op.name]
            yield RULE.finding(f"the {what} is computed in {op.type.dtype.numpy} and wraps around: it may be as large as {bounds[1]}, the type ends at {high}",
                               flow.span(op), flow.evidence((flow.operand(function, op), f"has type {flow.operand(function, op).type}")))


def _bits(function: Function, op: Op) -> bool:
    """Of the result only some bits are read: a sum modulo 256 has the same ones."""
    uses = [user for user, _ in flow.uses(function, op, flow.LAYOUT - {"cast"} | {"select", "slice"})]
    return bool(uses) and all(user.name in ("and", "shl") for user in uses)


def _bounds(function: Function, op: Op) -> tuple[int, int] | None:
    """Between which numbers the exact result lies; None where it is no question."""
    ranges, sides = flow.ranges(function), [flow.operand(function, op, i) for i in (0, 1)]
    if op.name == "mul" and op.operands[0] == op.operands[1]:
        side = ranges[op.operands[0]]
        return 0, max(side.lo ** 2, side.hi ** 2)
    numbers = [flow.number(function, side) if side.type.shape == () or side.name == "constant" else None for side in sides]
    place = 0 if numbers[0] is not None else 1
    factor, other = numbers[place], ranges[op.operands[1 - place]]
    if numbers[1 - place] is not None or not isinstance(factor, int) or isinstance(factor, bool):
        return None
    if op.name == "pow":
        return (0, max(other.hi, -other.lo) ** factor) if place == 1 and 2 <= factor < 64 else None
    if op.name == "mul":
        return min(other.lo * factor, other.hi * factor), max(other.lo * factor, other.hi * factor)
    return (other.lo + factor, other.hi + factor) if abs(factor) >= 8 else None          # `labels + 1` is no picture


RULE = Rule("CUV205", "narrow-integer-product", kind="integer-wrap", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
