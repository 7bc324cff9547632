"""A zero point taken off in the narrow type of the codes.

What: `codes - zero_point` is computed in the 8-bit type of the codes, and the difference is then scaled.
Why: a code below the zero point wraps around: 100 - 128 is 228 in uint8. Every negative value comes out large and positive.
Example: `(codes - np.uint8(128)) * scale` for uint8 codes
Instead: `(codes.astype(np.int32) - 128) * scale`
Fix: none; where to widen depends on the layout of the code around.

Silent where the codes are widened first, and where the interval of the codes proves that nothing wraps.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import numpy as np\n\ndef f(codes: np.ndarray):\n    codes = codes.astype(np.uint8)\n"
VALID = (
    _START + "    return (codes.astype(np.int32) - 128) * np.float32(0.1)\n",
    _START + "    return (codes.astype(np.float32) - 128.0) * np.float32(0.1)\n",
    _START + "    return (codes - np.uint8(0)) * np.float32(0.1)\n",
    "import torch\n\ndef f(codes: torch.Tensor):\n    return (codes.to(torch.int8).to(torch.int32) - 3) * 0.1\n",
)
INVALID = (
    Invalid(_START + "    zero = np.uint8(128)\n    return (»codes - zero«) * np.float32(0.1)\n", "uint8"),
    Invalid(_START + "    return 0.1 * (»codes - 128«)\n", "wraps"),
    Invalid("import torch\n\ndef f(codes: torch.Tensor):\n    return (»codes.to(torch.int8) - 3«) * 0.1\n", "int8"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.rounding import limits
    from cuvil.ir.types import DType
    for function, op in flow.ops(facts, "sub"):
        if op.type.dtype not in (DType.U8, DType.I8) or flow.operand(function, op, 1).type.shape != ():
            continue
        codes, zero = (flow.ranges(function)[id] for id in op.operands)
        low, high = limits(op.type.dtype)
        if (codes.lo - zero.hi < low or codes.hi - zero.lo > high) and flow.dequantised(function, op) is not None:
            yield RULE.finding(f"the difference of {op.type.dtype.numpy} codes and their zero point wraps around before it is scaled; widen the codes to int32 first",
                               flow.span(op), flow.evidence((flow.operand(function, op), f"has type {op.type}")))


RULE = Rule("CUV932", "zero-point-wrap", kind="integer-wrap", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
