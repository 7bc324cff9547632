"""A tensor made from a list of arrays, element by element.

What: `torch.tensor([...])`, `torch.as_tensor` or `torch.FloatTensor` of a list whose items are NumPy arrays.
Why: the list is read through Python, one element at a time, which takes many times as long as one copy of the joined array;
PyTorch warns about it once, at run time.
Example: `torch.tensor([frame.astype(np.float32) for frame in frames])`
Instead: `torch.from_numpy(np.stack(frames))`
Fix: unsafe: np.stack is put around the list; arrays of different lengths, which failed in other words before, fail there.

Silent for lists of numbers, of 0-d arrays, and of what is not known to be an array.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from . import flow, recorded
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.frontends.python.values import Tensor

_START = "import numpy as np\nimport torch\n\ndef f():\n    a, b = np.zeros(4), np.ones(4)\n"
VALID = (
    _START + "    return torch.tensor(np.stack([a, b]))\n",
    _START + "    return torch.tensor([a.sum(), b.sum()])\n",
    "import torch\n\ndef f(values):\n    return torch.tensor([v for v in values])\n",
    "import torch\n\ndef f():\n    return torch.tensor([[1, 2], [3, 4]])\n",
)
INVALID = (
    Invalid(_START + "    return »torch.tensor([a, b])«\n", "2 arrays of shape [4]",
            _START + "    return torch.tensor(np.stack([a, b]))\n"),
    Invalid("import torch\nimport numpy\n\ndef f():\n    rows = [numpy.zeros((2, 3)) for _ in range(5)]\n    return »torch.as_tensor(rows)«\n", "5 arrays of shape [2, 3]",
            "import torch\nimport numpy\n\ndef f():\n    rows = [numpy.zeros((2, 3)) for _ in range(5)]\n    return torch.as_tensor(numpy.stack(rows))\n"),
)

_MAKERS = {"torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.LongTensor", "torch.Tensor"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Sequence, Tensor
    for call in recorded.once(recorded.calls(facts)):
        if call.name not in _MAKERS or not call.args or not isinstance(call.args[0], Sequence) or call.args[0].kind != "list":
            continue
        items = call.args[0].items
        if not items or not all(isinstance(item, Tensor) and item.library == "numpy" and item.type.rank for item in items):
            continue
        yield RULE.finding(f"a list of {len(items)} arrays of shape {flow.shape(items[0])} is read element by element in Python; join them with np.stack first",
                           call.span, _evidence(items), _fix(facts, call))


def _evidence(items: list[Tensor]) -> tuple[Evidence, ...]:
    first = items[0].op.origins[:1]
    return tuple(Evidence(origin.span, f"the first array: {items[0].type}") for origin in first)


def _fix(facts: FileFacts, call: CallFact) -> Fix | None:
    node = recorded.node_of(facts, call.span, cst.Call)
    named = re.search(r"^\s*import numpy(?: as (\w+))?\s*$", facts.source.text, re.MULTILINE)
    if node is None or named is None or not node.args or node.args[0].keyword is not None or node.args[0].star:
        return None
    where = facts.module.span(node.args[0].value)
    return Fix("unsafe", "Join the arrays first", (Edit(where, f"{named[1] or 'numpy'}.stack({facts.source.slice(where)})"),))


RULE = Rule("CUV801", "tensor-from-array-list", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
