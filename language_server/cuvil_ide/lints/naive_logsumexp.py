"""The logarithm of a sum of exponentials, written out.

What: `x.exp().sum(dim).log()`, as methods or functions, of numbers that nothing keeps small.
Why: in float32 the exponential of more than 88.7 is inf (float16: 11.1), and all terms are 0 below -104, which gives -inf: `logsumexp` gives the number itself.
Example: `torch.log(torch.sum(torch.exp(logits), dim=-1))`
Instead: `torch.logsumexp(logits, dim=-1)`; for NumPy `scipy.special.logsumexp(logits, axis=-1)`
Fix: display: the exponentials may be read elsewhere too.

Silent for a sum over everything (`torch.logsumexp` asks for an axis), where the maximum is taken off before, and for numbers that are known to stay small.
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

_START = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor, mask: torch.Tensor):\n"
VALID = (
    _START + "    return torch.logsumexp(x, dim=-1)\n",
    _START + "    m = x.max(dim=-1, keepdim=True).values\n    return (x - m).exp().sum(-1, keepdim=True).log() + m\n",
    _START + "    return x.exp().sum().log()\n",
    _START + "    return torch.log((x.exp() * mask).sum(-1))\n",
    _START + "    return torch.sigmoid(x).exp().sum(-1).log()\n",
    "import torch\n\ndef mix(log_p: torch.Tensor):\n    return log_p.exp().sum(0).log()\n",
)
INVALID = (
    Invalid(_START + "    return »torch.log(torch.sum(torch.exp(x), dim=-1))«\n", "logsumexp"),
    Invalid(_START + "    total = x.exp().sum(-1, keepdim=True)\n    return x - »total.log()«\n", "88.7"),
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return »np.log(np.exp(x).sum(axis=1))«\n", "inf"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "log"):
        total = flow.source(function, flow.operand(function, op), flow.LAYOUT)
        argument = exponent(function, flow.operand(function, total)) if total.name == "reduce_sum" and total.attr("axes") is not None else None
        if argument is not None and len(total.attr("axes")) != argument.type.rank:
            yield RULE.finding(f"the logarithm of a sum of exponentials: exp is inf from {limit(flow.operand(function, total)):.3g} on; logsumexp gives the number itself",
                               flow.span(op), flow.evidence((argument, "nothing keeps this small"), (total, "the sum")), Fix("display", "torch.logsumexp(x, dim=-1)"))


RULE = Rule("CUV503", "naive-logsumexp", kind="unstable-numerics", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
