"""A softmax written out without its shift by the maximum.

What: `exp(x) / exp(x).sum()` of numbers that nothing keeps small.
Why: in float32 the exponential of more than 88.7 is inf (float16: 11.1), and inf / inf is NaN. `softmax` takes the maximum off before, which changes nothing
else.
Example: `e = torch.exp(scores); e / e.sum(-1, keepdim=True)`
Instead: `torch.softmax(scores, dim=-1)`; in NumPy `e = np.exp(x - x.max(-1, keepdims=True))`, or `scipy.special.softmax(x, axis=-1)`
Fix: display: the exponentials may be read elsewhere too.

Silent where something is subtracted, clamped, negated or normalised before, and for numbers that are known to stay small.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .overflow import exponent, limit
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n"
VALID = (
    _START + "    e = torch.exp(x - x.max(dim=-1, keepdim=True).values)\n    return e / e.sum(-1, keepdim=True)\n",
    _START + "    e = torch.exp(x - torch.amax(x, 1)[:, None])\n    return e / e.sum(1, keepdim=True)\n",
    _START + "    e = x.clamp(max=50).exp()\n    return e / e.sum(-1, keepdim=True)\n",
    _START + "    e = torch.tanh(x).mul(10).exp()\n    return e / e.sum(-1, keepdim=True)\n",
    # A kernel is at most 1, cosines at most 1 by their temperature.
    _START + "    e = torch.exp(-x ** 2 / (2 * y ** 2))\n    return e / e.sum(-1, keepdim=True)\n",
    _START + "    e = torch.exp(F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T / 0.1)\n    return e / e.sum(-1, keepdim=True)\n",
    _START + "    return x.exp() / y.exp().sum(-1, keepdim=True)\n",
    "import torch\n\ndef f(log_p: torch.Tensor):\n    return log_p.exp() / log_p.exp().sum(-1, keepdim=True)\n",
)
INVALID = (
    Invalid(_START + "    e = torch.exp(x)\n    return »e / e.sum(dim=-1, keepdim=True)«\n", "88.7"),
    Invalid(_START + "    s = x @ y.transpose(-2, -1) * 0.125\n    return »s.exp() / torch.sum(s.exp(), -1, keepdim=True)«\n", "softmax"),
    Invalid(_START + "    e = x.half().exp()\n    return »e / e.sum(-1, keepdim=True)«\n", "11.1"),
    Invalid("import numpy as np\n\ndef softmax(x):\n    x = np.asarray(x)\n    return »np.exp(x) / np.exp(x).sum(axis=-1)[:, None]«\n", "NaN"),
    Invalid("import numpy as np\n\ndef softmax(x):\n    e = np.exp(x)\n    return »e / e.sum(axis=-1, keepdims=True)«\n\n"
            "def run():\n    return softmax(np.array([[-5.0, 1.0]]))\n", "710"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "div"):
        argument = exponent(function, flow.operand(function, op))
        total = _behind(function, flow.operand(function, op, 1))
        if argument is not None and total.name == "reduce_sum" and exponent(function, flow.operand(function, total)) is argument:
            yield RULE.finding(f"a softmax without its shift by the maximum: exp is inf from {limit(flow.operand(function, op)):.3g} on, and inf / inf is NaN; use softmax",
                               flow.span(op), flow.evidence((argument, "nothing keeps this small"), (total, "the sum")), Fix("display", "torch.softmax(x, dim=-1)"))


def _behind(function: Function, op: Op) -> Op:
    """A sum before it is given its axis again."""
    return flow.source(function, op, flow.LAYOUT | {"slice"})


RULE = Rule("CUV502", "naive-softmax", kind="unstable-numerics", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
