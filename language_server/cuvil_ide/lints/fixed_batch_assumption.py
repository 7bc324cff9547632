"""A reshape to a fixed number of samples.

What: `view(32, -1)` or `reshape(BATCH, ...)` with a number as the first size, of a tensor whose first size is the batch.
Why: the last batch of a data set, or a single request, has another size: the line raises, or -1 takes up the difference and rows mix samples.
Example: `x.view(32, -1)` for x [batch, channels, height, width]
Instead: `x.view(x.size(0), -1)`, or `x.flatten(1)`
Fix: unsafe: with another batch size the result changes, which is the point.

Silent when the batch has a known size, when the first size comes from the tensor, and where the loader drops the last batch.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.ir.dims import Poly, symbols
from cuvil.source import Edit

from ..lookup import value_of
from .axes import axes_of, batches, is_symbol, shown
from .recorded import node_of
from .reshape_as_transpose import came_from, reshapes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_NET = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.conv = nn.Conv2d(3, 8, 3)\n\n    def forward(self, x):\n        h = self.conv(x)\n"
VALID = (
    _NET + "        return h.view(h.size(0), -1)\n",
    _NET + "        return h.view(-1, 8)\n",
    _NET + "        return h.view(1, *h.shape)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    T, C = x.shape\n    return x.view(4, -1)\n",
    _NET + "        return h.sum().view(1, 1)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    B, C, H, W = x.shape\n    return x.reshape(2, B * C, -1)\n",
)
INVALID = (
    Invalid(_NET + "        return »h.view(32, -1)«\n", "32", _NET + "        return h.view(h.size(0), -1)\n"),
    Invalid("import torch\n\nBATCH = 16\n\ndef f(x: torch.Tensor):\n    B, C, H, W = x.shape\n    return »x.reshape(BATCH, C, -1)«\n", "batch",
            "import torch\n\nBATCH = 16\n\ndef f(x: torch.Tensor):\n    B, C, H, W = x.shape\n    return x.reshape(x.size(0), C, -1)\n"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if "drop_last=True" in facts.source.text:
        return
    for function, op, source in reshapes(facts):
        before, after, origin = source.type.shape, op.type.shape, op.origins[0]
        if len(before) < 2 or len(after) < 2 or origin.callers or not is_symbol(before[0]) or not isinstance(after[0], int) or after[0] <= 1:
            continue
        if not set(axes_of(function.function)[source.id][0]) & batches(function.function):
            continue
        call = node_of(facts, origin.span, cst.Call)
        if call is None or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("view", "reshape") or not call.args:
            continue
        first = call.args[0].value
        if not isinstance(first, (cst.Integer, cst.Name, cst.Attribute)):
            continue
        if any(str(before[0]) in _sizes_in(facts, arg) for arg in call.args[1:]):
            continue                                       # the samples go into another axis: what comes first is something else
        base = facts.module.code(call.func.value)
        fix = Fix("unsafe", "The batch's own size", (Edit(facts.module.span(first), f"{base}.size(0)"),)) if base.isidentifier() else None
        yield RULE.finding(f"a reshape of {shown(before)} to {after[0]} samples: the batch has {before[0]}, and the last batch may be smaller. Take the size from the tensor",
                           origin.span, came_from(source), fix)


def _sizes_in(facts: FileFacts, arg: cst.Arg) -> set[str]:
    from cuvil.frontends.python.values import Scalar
    value = value_of(facts, facts.module.span(arg.value))
    return symbols(value.value) if isinstance(value, Scalar) and isinstance(value.value, Poly) else set()


RULE = Rule("CUV117", "fixed-batch-assumption", kind="shape-mismatch", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
