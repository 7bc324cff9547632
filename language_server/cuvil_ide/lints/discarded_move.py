"""A tensor that is moved or cast, and the moved one is dropped.

What: a statement that only calls `.to(...)`, `.cuda()`, `.cpu()`, `.half()`, `.float()` or the like on a tensor.
Why: a module moves in place, a tensor does not: the call returns another tensor, and this one stays where and what it was.
Example: `x.to(device)`
Instead: `x = x.to(device)`
Fix: unsafe: the result is assigned back, which changes what the code does, as it was meant to.

Silent for modules, for batches of tokenizers, which move in place, when the receiver is not known to be a tensor, and where the call is
expected to raise.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .guards import expected_to_fail
from .recorded import calls, node_of, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nfrom torch import nn\n\ndef f(x: torch.Tensor, net: nn.Module, device: str):\n"
VALID = (
    _START + "    x = x.to(device)\n    return x\n",
    _START + "    net.to(device)\n    net.half()\n    return net(x.to(device))\n",
    _START + "    nn.Linear(4, 4).cuda()\n    return x\n",
    _START + "    x.requires_grad_()\n    return x\n",
    "def f(x, device):\n    x.to(device)\n    return x\n",
)
INVALID = (
    Invalid(_START + "    »x.to(device)«\n    return net(x)\n", "returns another tensor", _START + "    x = x.to(device)\n    return net(x)\n"),
    Invalid(_START + "    »x.cuda()«\n    return net(x)\n", "stays", _START + "    x = x.cuda()\n    return net(x)\n"),
    Invalid(_START + "    »x.half()«\n    return net(x)\n", "assign", _START + "    x = x.half()\n    return net(x)\n"),
)

_MOVES = frozenset("to cuda cpu half float double bfloat16 type long int short bool pin_memory contiguous type_as".split())


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for call in once(c for c in calls(facts) if c.discarded and c.name.startswith("torch.Tensor.") and c.name.rpartition(".")[2] in _MOVES):
        node = node_of(facts, call.span, cst.Call)
        receiver = call.args[0] if call.args else None
        if not isinstance(receiver, Tensor) or receiver.library != "torch" or node is None or not isinstance(node.func, cst.Attribute):
            continue
        if expected_to_fail(facts, call.span):
            continue
        where, fix, span = facts.module.span(node.func.value), None, call.span
        text = facts.source.slice(where)
        if isinstance(node.func.value, (cst.Name, cst.Attribute)):
            place = Span(span.path, span.line, span.column, span.line, span.column)
            fix = Fix("unsafe", f"Assign the result to {text}", (Edit(place, f"{text} = "),))
        method = node.func.attr.value
        yield RULE.finding(f"{method} returns another tensor, and {' '.join(text.split())} stays as it is; the result is unused: assign it", span,
                           (Evidence(where, f"has type {receiver.type}"),), fix)


RULE = Rule("CUV310", "discarded-move", kind="discarded-result", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
