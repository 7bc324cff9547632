"""A guard constant that rounds to zero in the tensor's element type.

What: a small number is added to a tensor of float16 (or another narrow type) in which it is exactly zero.
Why: the guard against a division by zero is not there: where the rest is zero the result is inf or NaN. In float32 the same
line works, so it passes every test until the model is served in half precision.
Example: `x.half() / (spread.half() + 1e-8)`: the smallest float16 above zero is 6e-8
Instead: compute the guarded part in float32 (`spread.float() + 1e-8`), or choose a guard that the type can hold (1e-4).
Fix: none; which of the two is right depends on the code around.

Silent for bfloat16 and float32 guards of usual size, for guards that are constants of the module, and when the element type
is unknown.
"""
from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence
from cuvil.ir.types import DType

from ..lookup import value_of
from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_HALF = "import torch\n\ndef f(x: torch.Tensor):\n    x = x.half()\n"
VALID = (
    _HALF + "    return x / (x + 1e-4)\n",
    _HALF + "    return x / (x.float() + 1e-8)\n",
    _HALF + "    return x + 0.0\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return x / (x + 1e-8)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return x.bfloat16() + 1e-8\n",
)
INVALID = (
    Invalid(_HALF + "    return x / (»x + 1e-8«)\n", "1e-08 is zero in float16"),
    Invalid(_HALF + "    guard = 1e-12\n    return x / (»guard + x«)\n", "1e-12 is zero in float16"),
    Invalid("import torch\n\ndef f(x: torch.Tensor):\n    return 1 / (»x.float() + 1e-60«)\n", "float32"),
)

_WHERE = re.compile(r"\de-\d|\.0{5}", re.IGNORECASE)           # the guard is written in the function, or is its default
_FORMATS = {DType.F16: "e", DType.F32: "f", DType.BF16: "f"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Scalar, Tensor
    for node in nodes(facts, _WHERE, cst.BinaryOperation, analysed=True):
        if not isinstance(node.operator, (cst.Add, cst.Subtract)):
            continue
        sides = [(where, value_of(facts, where)) for where in map(facts.module.span, (node.left, node.right))]
        tensors = [s for s in sides if isinstance(s[1], Tensor)]
        numbers = [s for s in sides if isinstance(s[1], Scalar) and isinstance(s[1].value, float)]
        if len(tensors) != 1 or len(numbers) != 1:
            continue
        (where, tensor), (_, number) = tensors[0], numbers[0]
        if _vanishes(number.value, tensor.type.dtype):
            yield RULE.finding(
                f"{number.value!r} is zero in {tensor.type.dtype.numpy}, so this eps guards against nothing",
                facts.module.span(node), (Evidence(where, f"has type {tensor.type}"),))


def _vanishes(value: float, dtype: DType | None) -> bool:
    format = _FORMATS.get(dtype)
    return format is not None and value != 0 and abs(value) < 1 and struct.unpack(format, struct.pack(format, value))[0] == 0


RULE = Rule("CUV209", "eps-vanishes", kind="eps-underflow", severity="warning", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
