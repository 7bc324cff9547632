"""A probability that may be zero times its own logarithm.

What: `p * log(p)` where p comes from softmax or sigmoid, is a relu, or otherwise may be exactly zero.
Why: 0 times -inf is NaN, although the limit is 0: one confident row (or one masked by -inf) makes the whole entropy NaN, and every comparison
with it false.
Example: `-(p * p.log()).sum(-1)` with p from softmax
Instead: `-torch.xlogy(p, p).sum(-1)`, or `torch.special.entr(p).sum(-1)`
Fix: display: `torch.xlogy(p, p)` in its place.

Silent where p is clamped or something is added before the logarithm, and where p is not known to reach zero.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor):\n    p = torch.softmax(x, dim=-1)\n"
VALID = (
    _START + "    return -torch.xlogy(p, p).sum(-1)\n",
    _START + "    return -(p * (p + 1e-9).log()).sum(-1)\n",
    _START + "    p = p.clamp_min(1e-8)\n    return -(p * p.log()).sum(-1)\n",
    _START + "    return -(p * torch.log_softmax(x, dim=-1)).sum(-1)\n",
    "import torch\n\ndef f(p: torch.Tensor):\n    return -(p * p.log()).sum(-1)\n",
)
INVALID = (
    Invalid(_START + "    return -(»p * p.log()«).sum(-1)\n", "NaN"),
    Invalid(_START + "    return -(»torch.log(p) * p«).sum(-1)\n", "xlogy"),
    Invalid(_START + "    plogp = »p * torch.log2(p)«\n    return -plogp.sum(-1) > 0.5\n", "zero"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "mul"):
        term = flow.zero_times_log(function, op)
        if term is not None:
            yield RULE.finding("0 * log(0) is NaN: where the probability is exactly zero the product is not 0 but NaN; torch.xlogy(p, p) gives 0", flow.span(op),
                               flow.evidence((term, f"reaches zero: {flow.ranges(function)[term.id]}")), Fix("display", "torch.xlogy(p, p)"))


RULE = Rule("CUV504", "zero-times-log", kind="nan-risk", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
