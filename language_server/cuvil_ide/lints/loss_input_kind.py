"""A loss on logits is given probabilities.

What: `cross_entropy` or `binary_cross_entropy_with_logits` (also as modules) of what softmax or sigmoid gave.
Why: the loss applies the softmax itself; of probabilities it makes nearly equal ones, so the loss hardly falls and a perplexity is near the
number of classes whatever the model says.
Example: `F.cross_entropy(torch.softmax(logits, dim=-1), labels)`
Instead: `F.cross_entropy(logits, labels)`
Fix: display: logits may have to be returned from elsewhere.

Silent about the second argument: soft labels are probabilities.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n"
VALID = (
    _START + "    return F.cross_entropy(x, y)\n",
    _START + "    return F.cross_entropy(x, torch.softmax(y, dim=-1))\n",
    _START + "    return F.binary_cross_entropy(torch.sigmoid(x), y)\n",
    _START + "    return F.nll_loss(F.log_softmax(x, dim=-1), y)\n",
)
INVALID = (
    Invalid(_START + "    return »F.cross_entropy(torch.softmax(x, dim=-1), y)«\n", "takes logits"),
    Invalid(_START + "    p = x.sigmoid()\n    return »F.binary_cross_entropy_with_logits(p, y)«\n", "sigmoid"),
    Invalid("import torch\nfrom torch import nn\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    loss = nn.CrossEntropyLoss()\n    return »loss(x.softmax(-1), y)«\n", "softmax"),
)

_LOSSES = {"torch.nn.functional.cross_entropy": "softmax", "torch.nn.CrossEntropyLoss": "softmax", "torch.nn.BCEWithLogitsLoss": "sigmoid",
           "torch.nn.functional.binary_cross_entropy_with_logits": "sigmoid"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for home in facts.functions:
        for call in home.calls if home.function is not None else ():
            given = call.argument(0, "input") if call.name in _LOSSES else None
            if not isinstance(given, Tensor) or given.op.id not in home.function.by_id or call.span.path != facts.source.path:
                continue
            made = flow.source(home.function, home.function.by_id[given.op.id], flow.PARTS - {"concat"})
            if made.name in ("softmax", "sigmoid"):
                yield RULE.finding(f"{call.name.rpartition('.')[2]} takes logits and applies the {_LOSSES[call.name]} itself; here it is given probabilities ({made.name})",
                                   call.span, flow.evidence((made, f"made probabilities by {made.name}")), Fix("display", "give the logits"))


RULE = Rule("CUV508", "loss-input-kind", kind="double-activation", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
