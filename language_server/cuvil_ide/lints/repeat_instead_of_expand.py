"""A tensor is copied to the size that broadcasting would give it anyway.

What: `repeat` (or `np.tile`) along axes of size 1, and every use of the result is an elementwise operation with a tensor that already has that size.
Why: `repeat` writes every copy to memory and the next operation reads them again; broadcasting reads the one that is there.
Example: `x + bias.repeat(x.shape[0], 1)` where bias is [1, C]
Instead: `x + bias`, or `bias.expand(...)`, which is a view
Fix: display: which of the two reads better is a matter of the place.

Silent where the result is written to, returned, kept, or used by anything but elementwise operations, and where a size is not known.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ops.definition import DEFINITIONS, ELEMENTWISE

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts

_START = "import torch\n\ndef f():\n    x, bias = torch.zeros(8, 4), torch.zeros(1, 4)\n"
VALID = (
    _START + "    return x + bias\n",
    _START + "    return bias.repeat(8, 1)\n",
    _START + "    return bias.repeat(8, 1) @ x.T\n",
    _START + "    return x + bias.repeat(8, 1).relu() if False else x\n",
    # Twice four columns: nothing that broadcasting does.
    "import torch\n\ndef f():\n    x, bias = torch.zeros(8, 8), torch.zeros(1, 4)\n    return x + bias.repeat(1, 2)\n",
    _START + "    b = bias.repeat(8, 1)\n    b[0] = 1\n    return x + b\n",
)
INVALID = (
    Invalid(_START + "    return x + »bias.repeat(8, 1)«\n", "[1, 4] to [8, 4]"),
    Invalid("import torch\n\ndef f(x: torch.Tensor):\n    B, C = x.shape\n    scale = torch.ones(1, C)\n    return x * »scale.repeat(B, 1)«\n", "broadcasting"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for function in facts.functions:
        written = {write.target.storage for write in function.writes if isinstance(write.target, Tensor)}
        for call in function.calls:
            if call.name not in ("torch.Tensor.repeat", "torch.tile", "torch.Tensor.tile", "numpy.tile") or call.context.callers or not call.args:
                continue
            before, after = call.args[0], call.result
            if isinstance(before, Tensor) and isinstance(after, Tensor) and after.storage not in written and _only_broadcast(before, after) \
                    and _used_elementwise(facts, function, after):
                yield RULE.finding(f"repeat copies {flow.shape(before)} to {flow.shape(after)}, which broadcasting does without a copy in the operation that reads it",
                                   call.span, tuple(Evidence(o.span, f"has shape {flow.shape(before)}") for o in before.op.origins[:1]),
                                   Fix("display", "leave the repeat out, or use expand"))


def _only_broadcast(before, after) -> bool:
    """Same rank, and only axes of size 1 grew."""
    a, b = before.type.shape, after.type.shape
    return a is not None and b is not None and len(a) == len(b) and a != b and all(p == q or p == 1 for p, q in zip(a, b))


def _used_elementwise(facts: FileFacts, function: FunctionFacts, tensor) -> bool:
    graph = function.function
    if graph is None or tensor.op.id not in graph.by_id or tensor.op.id in graph.results:
        return False
    if flow.read_again(facts, function, graph.by_id[tensor.op.id]):
        return False
    users = graph.users[tensor.op.id]
    return bool(users) and all(_broadcasts(graph, user, tensor) for user in users)


def _broadcasts(graph, user, tensor) -> bool:
    """An elementwise operation of several operands, of which another one has the full shape."""
    definition = DEFINITIONS.get(user.name)
    return definition is not None and definition.kind == ELEMENTWISE and any(
        id != tensor.op.id and graph.by_id[id].type.shape == tensor.type.shape for id in user.operands)


RULE = Rule("CUV806", "repeat-instead-of-expand", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
