"""The logarithm of a softmax or sigmoid that was computed before.

What: `torch.log` of what `softmax` or `sigmoid` gave, or of 1 less it, through variables and calls.
Why: a small probability rounds to zero, and its logarithm is -inf (its gradient NaN), although the logarithm itself is an ordinary number;
`log_softmax` and `logsigmoid` never form the probability.
Example: `torch.log(torch.softmax(scores, dim=-1))`
Instead: `F.log_softmax(scores, dim=-1)`, `F.logsigmoid(scores)`
Fix: display: the probability may be read elsewhere too.

Silent where something is added or clamped in between, for sums of several distributions, and in `p * log(p)`: that is zero-times-log.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor):\n"
VALID = (
    _START + "    return F.log_softmax(x, dim=-1)\n",
    _START + "    return torch.log(torch.softmax(x, dim=-1) + 1e-6)\n",
    _START + "    return torch.softmax(x, dim=-1).clamp_min(1e-6).log()\n",
    _START + "    return torch.log(0.5 * torch.softmax(x, dim=-1) + 0.5 * torch.softmax(-x, dim=-1))\n",
    _START + "    return torch.log(x.exp())\n",
    # what the loop makes of it is no softmax
    "import torch\n\ndef f(x: torch.Tensor, g: torch.Tensor):\n    p = torch.softmax(x, dim=1)\n    for i in range(g.shape[2]):\n"
    "        p = p * (1 + g[:, :, i] - (g[:, :, i] * p).sum(1, keepdim=True))\n    return torch.log(p)\n",
)
INVALID = (
    Invalid(_START + "    return »torch.log(1 - torch.sigmoid(x))«\n", "logsigmoid(-x)"),
    Invalid(_START + "    return »torch.log(torch.softmax(x, dim=-1))«\n", "log_softmax"),
    Invalid(_START + "    p = torch.sigmoid(x)\n    return »p.log()«\n", "logsigmoid"),
    Invalid(_START + "    p = F.softmax(x, dim=-1)[:, 1:]\n    return »p.log()«\n", "-inf"),
)

_INSTEAD = {"softmax": "log_softmax(x)", "sigmoid": "logsigmoid(x)"}
_REST = {"softmax": "log1p(-p) of a clamped p", "sigmoid": "logsigmoid(-x)"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "log", "log2"):
        made = flow.source(function, flow.operand(function, op), flow.PARTS - {"concat", "gather", "take"})
        rest = made.name == "sub" and flow.number(function, flow.operand(function, made)) == 1
        if rest:
            made = flow.source(function, flow.operand(function, made, 1))
        if made.name in _INSTEAD and not any(flow.zero_times_log(function, user) for user, _ in flow.uses(function, op)):
            instead = (_REST if rest else _INSTEAD)[made.name]
            yield RULE.finding(f"the logarithm of {'1 less ' if rest else ''}a {made.name}: a probability that rounds to {'one' if rest else 'zero'} gives -inf; {instead} does not",
                               flow.span(op), flow.evidence((made, f"the {made.name}")), Fix("display", f"F.{instead}"))


RULE = Rule("CUV501", "log-of-softmax", kind="unstable-numerics", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
