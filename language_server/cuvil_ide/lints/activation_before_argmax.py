"""An activation whose values nobody reads before argmax.

What: softmax, log_softmax, sigmoid, exp or another increasing function whose result goes into `argmax` and nowhere else.
Why: an increasing function leaves the largest element where it is, so its exponentials and its pass over memory are computed for nothing.
Example: `torch.softmax(logits, dim=-1).argmax(dim=-1)`
Instead: `logits.argmax(dim=-1)`
Fix: unsafe: where rounding had made two probabilities equal, the first of them won; now the larger logit does.

Silent when the activation is used elsewhere, and for a softmax along another axis than argmax takes.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor):\n    B, C = x.shape\n"
VALID = (
    _START + "    return x.argmax(dim=-1)\n",
    _START + "    p = x.softmax(dim=-1)\n    return p, p.argmax(dim=-1)\n",
    _START + "    return x[:, None].softmax(dim=2).argmax(dim=1)\n",
    _START + "    p = x.softmax(-1)\n    best = p.argmax(-1)\n    return {'p': p, 'best': best}\n",
    _START + "    return x.cos().argmax(dim=-1)\n",
    _START + "    return x.softmax(dim=-1).max(dim=-1)\n",
)
INVALID = (
    Invalid(_START + "    return »torch.softmax(x, dim=-1)«.argmax(dim=-1)\n", "softmax is increasing", _START + "    return x.argmax(dim=-1)\n"),
    Invalid(_START + "    p = »F.log_softmax(x, -1)«\n    return torch.argmax(p, dim=1)\n", "log_softmax", _START + "    p = x\n    return torch.argmax(p, dim=1)\n"),
    Invalid(_START + "    return »(x + 1).sigmoid()«.argmax(dim=0)\n", "sigmoid", _START + "    return (x + 1).argmax(dim=0)\n"),
)

_INCREASING = frozenset(("sigmoid", "exp", "log", "log1p", "log2", "expm1", "exp2", "tanh", "softplus", "logsigmoid", "atan", "sqrt", "erf"))
_ROWS = frozenset(("softmax", "log_softmax"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function in facts.functions:
        graph = function.function
        for op in graph.ops if graph is not None else ():
            if op.name != "argmax" or not op.origins:
                continue
            activation = graph.by_id[op.operands[0]]
            if activation.name not in _INCREASING and not (activation.name in _ROWS and activation.attr("axis") == op.attr("axis")):
                continue
            origin = activation.origins[0] if activation.origins else None
            if origin is None or origin.callers or graph.users[activation.id] != (op,) or activation.id in graph.results or flow.read_again(facts, function, activation):
                continue
            yield RULE.finding(f"{activation.name} is increasing: argmax finds the same place without it, and its values are used for nothing else",
                               origin.span, (Evidence(op.origins[0].span, "argmax is all that reads it"),), _fix(facts, origin.span))


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    """The call is replaced by what it is called on."""
    node = node_of(facts, span, cst.Call)
    if node is None:
        return None
    module = isinstance(node.func, cst.Attribute) and node.args and node.args[0].keyword is None and not re.fullmatch(
        r"-?\d+", facts.source.slice(facts.module.span(node.args[0].value)))
    inner = node.args[0].value if module or isinstance(node.func, cst.Name) and node.args else node.func.value if isinstance(node.func, cst.Attribute) else None
    if inner is None:
        return None
    text = facts.source.slice(facts.module.span(inner))
    return Fix("unsafe", "Leave the activation out", (Edit(span, f"({text})" if inner.lpar else text),))


RULE = Rule("CUV807", "activation-before-argmax", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
