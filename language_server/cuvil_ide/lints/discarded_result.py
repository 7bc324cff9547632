"""A tensor method whose result nobody takes.

What: a statement that only calls a method which returns a new tensor (`masked_fill`, `clamp`, `unsqueeze`, ...).
Why: such methods leave their tensor as it is, so the line does nothing; the in-place twin ends in an underscore.
Example: `logits.masked_fill(banned, float("-inf"))`
Instead: `logits = logits.masked_fill(banned, float("-inf"))`, or `logits.masked_fill_(...)`
Fix: unsafe: the result is assigned back, which changes what the code does, as it was meant to.

Silent when the receiver is not known to be a tensor, about methods that work in place, about heavy ones (a product may be
called to warm up or to be timed), and where the call is expected to raise.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from .guards import expected_to_fail
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor, m: torch.Tensor):\n"
VALID = (
    _START + "    x = x.masked_fill(m, 0.0)\n    return x\n",
    _START + "    y = x * 2\n    y.masked_fill_(m, 0.0)\n    return y\n",
    _START + "    x.backward()\n    return x\n",
    _START + "    x.item()\n    return x\n",
    _START + "    for _ in range(3):\n        x.matmul(m)\n    return x\n",
    "def f(x):\n    x.clamp(0)\n    return x\n",
    "import numpy as np\n\ndef f():\n    x = np.zeros(3)\n    x.sort()\n    return x\n",
    _START + "    try:\n        x.view(3, 4)\n    except RuntimeError:\n        return None\n    return x\n",
)
INVALID = (
    Invalid(_START + "    »x.masked_fill(m, 0.0)«\n    return x\n", "masked_fill returns a new tensor",
            _START + "    x = x.masked_fill(m, 0.0)\n    return x\n"),
    Invalid(_START + "    »x.clamp(min=0)«\n    return x\n", "the result is unused", _START + "    x = x.clamp(min=0)\n    return x\n"),
    Invalid(_START + "    »(x + 1).unsqueeze(0)«\n    return x\n", "unsqueeze"),
)

_WHERE = re.compile(r"^[ \t]*[\w(][^=\n]*\.[a-z]\w*\(", re.MULTILINE)
# Cheap methods that only make another tensor. A product or a layer may be called to warm up or to be timed; these are not.
_PURE = frozenset("""masked_fill index_fill scatter scatter_add index_add index_copy clamp clamp_min clamp_max clip unsqueeze squeeze transpose
    permute swapaxes reshape flatten ravel repeat clone detach astype add sub mul div neg abs
    exp log sqrt relu sigmoid tanh round floor ceil tril triu""".split())


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for statement in nodes(facts, _WHERE, cst.Expr, analysed=True):
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            continue
        method, receiver = call.func.attr.value, call.func.value
        if method not in _PURE:
            continue
        where, span = facts.module.span(receiver), facts.module.span(call)
        value = value_of(facts, where)
        if not isinstance(value, Tensor) or expected_to_fail(facts, span):
            continue
        fix = None
        if isinstance(receiver, cst.Name):
            place = Span(span.path, span.line, span.column, span.line, span.column)
            fix = Fix("unsafe", f"Assign the result to {receiver.value}", (Edit(place, f"{receiver.value} = "),))
        yield RULE.finding(f"{method} returns a new tensor and leaves {_one_line(facts.source.slice(where))} as it is; the result is unused. "
                           f"Assign it, or use an in-place method", span, (Evidence(where, f"has type {value.type}"),), fix)


def _one_line(text: str) -> str:
    return " ".join(text.split())


RULE = Rule("CUV715", "discarded-result", kind="discarded-result", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
