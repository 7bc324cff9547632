"""Numbers between 0 and 1 cast to an integer.

What: a value that is proved to lie in [0, 1] (sigmoid, softmax, pixels divided by 255) is cast to an integer type as it is.
Why: the cast cuts the fraction off, so all but the exact 1.0 becomes 0: a black image, an empty mask.
Example: `torch.sigmoid(logits).numpy().astype(np.uint8)`
Instead: `(torch.sigmoid(logits) * 255).round().to(torch.uint8)`, or a threshold: `(p > 0.5).to(torch.uint8)`
Fix: none; a scale or a threshold is meant, and only the code around tells which.

Silent after a comparison, a rounding or a threshold, for casts to bool, and for values that were integers before.
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

_START = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor):\n"
VALID = (
    _START + "    return (torch.sigmoid(x) * 255).to(torch.uint8)\n",
    _START + "    return (torch.sigmoid(x) > 0.5).to(torch.uint8)\n",
    _START + "    return torch.sigmoid(x).round().to(torch.int64)\n",
    _START + "    return torch.sigmoid(x).bool()\n",
    _START + "    return (x > 0).float().to(torch.uint8)\n",
    _START + "    return x.argmax(-1).to(torch.uint8)\n",
    _START + "    return (torch.sigmoid(x) + 0.5).long()\n",
    _START + "    return x.to(torch.uint8)\n",
)
INVALID = (
    Invalid(_START + "    return »torch.sigmoid(x).to(torch.uint8)«\n", "255"),
    Invalid(_START + "    p = torch.softmax(x, dim=-1)[0]\n    return »p.long()«\n", "softmax"),
    Invalid(_START + "    p = 1 - torch.sigmoid(x)\n    return »p.numpy().astype(np.uint8)«\n", "truncates"),
    Invalid("import numpy as np\n\ndef f(img: np.ndarray):\n    img = img.astype(np.uint8) / 255\n    return »img.astype(np.uint8)«\n", "255"),
)

_WHOLE = frozenset(("round", "floor", "ceil", "trunc", "sign", "constant", "select", "reduce_prod"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "cast"):
        if op.type.dtype is None or not op.type.dtype.is_int:
            continue
        value = flow.operand(function, op)
        if value.type.dtype is not None and not value.type.dtype.is_float or not flow.ranges(function)[value.id].within(0, 1):
            continue
        origin = flow.source(function, value, flow.PARTS - {"concat"})
        if _fractional(function, origin):
            yield RULE.finding(f"values between 0 and 1 ({origin.name}) are cast to {op.type.dtype.numpy}, which truncates all of them to 0 but the exact 1.0; "
                               f"scale by 255, or compare with a threshold", flow.span(op), flow.evidence((origin, "lies in [0, 1]")))


def _fractional(function: Function, op: Op) -> bool:
    """It is computed and not whole by what it is made of."""
    made = list(flow.sources(function, op, flow.MASKING | {"mul", "sub", "add", "maximum", "minimum", "abs", "neg"}))
    if any(op.name in _WHOLE and op.name != "constant" for op in made):
        return False
    return any(each.name in ("sigmoid", "softmax", "div", "exp", "hardsigmoid", "mean", "tanh") for each in made)


RULE = Rule("CUV207", "unit-range-to-integer", kind="lossy-cast", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
