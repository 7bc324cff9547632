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
    _START + "    y = torch.empty_like(x)\n    torch.clamp(x, 0, 1, out=y)\n    return y\n",
    _START + "    import time\n    start = time.time()\n    torch.softmax(x, -1)\n    return time.time() - start\n",
    "import numpy as np\n\ndef f():\n    x = np.zeros(3)\n    x.sort()\n    return x\n",
    _START + "    try:\n        x.view(3, 4)\n    except RuntimeError:\n        return None\n    return x\n",
)
INVALID = (
    Invalid(_START + "    »x.masked_fill(m, 0.0)«\n    return x\n", "masked_fill returns a new tensor",
            _START + "    x = x.masked_fill(m, 0.0)\n    return x\n"),
    Invalid(_START + "    »x.clamp(min=0)«\n    return x\n", "the result is unused", _START + "    x = x.clamp(min=0)\n    return x\n"),
    Invalid(_START + "    »(x + 1).unsqueeze(0)«\n    return x\n", "unsqueeze"),
    Invalid(_START + "    »torch.relu(x)«\n    return x\n", "relu returns a new tensor"),
    Invalid("import numpy as np\n\ndef f(a: np.ndarray):\n    »np.clip(a, 0, 1)«\n    return a\n", "clip"),
)

_WHERE = re.compile(r"^[ \t]*[\w(][^=\n]*\.[a-z]\w*\(", re.MULTILINE)
# Cheap methods that only make another tensor. A product or a layer may be called to warm up or to be timed; these are not.
_PURE = frozenset("""masked_fill index_fill scatter scatter_add index_add index_copy clamp clamp_min clamp_max clip unsqueeze squeeze transpose
    permute swapaxes reshape flatten ravel repeat clone detach astype add sub mul div neg abs
    exp log sqrt relu sigmoid tanh round floor ceil tril triu""".split())
# Further ones that nobody calls for their cost, and functions that put tensors together.
_CHEAP = frozenset("flip roll expand where nan_to_num softmax log_softmax normalize argsort masked_select index_select gather fliplr flipud".split())
_JOINS = frozenset(("cat", "stack", "concatenate", "vstack", "hstack"))
_MEASURES = re.compile(r"time|bench|profil|warm|trace|compile|\bwith\b.*raises", re.IGNORECASE)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library, Tensor
    for statement in nodes(facts, _WHERE, cst.Expr, analysed=True):
        call = statement.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _PURE | _CHEAP | _JOINS:
            continue
        function = value_of(facts, facts.module.span(call.func))
        if isinstance(function, Library) and function.receiver is None:
            yield from _function(facts, call, function.name)
            continue
        method, receiver = call.func.attr.value, call.func.value
        if method not in _PURE and method not in _CHEAP:
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


def _function(facts: FileFacts, call: cst.Call, name: str) -> Iterator[Diagnostic]:
    """`torch.relu(x)` or `np.clip(a, 0, 1)` as a statement."""
    from cuvil.frontends.python.values import Tensor
    home, _, last = name.rpartition(".")
    if home not in ("torch", "numpy", "torch.nn.functional") or last not in _PURE | _CHEAP | _JOINS or not call.args:
        return
    if any(a.star or a.keyword is not None and a.keyword.value in ("out", "inplace") for a in call.args) or _measured(facts, call):
        return
    span, where = facts.module.span(call), facts.module.span(call.args[0].value)
    value = value_of(facts, where)
    if expected_to_fail(facts, span) or last not in _JOINS and not isinstance(value, Tensor):
        return
    evidence = (Evidence(where, f"has type {value.type}"),) if isinstance(value, Tensor) else ()
    yield RULE.finding(f"{last} returns a new tensor and leaves {_one_line(facts.source.slice(where))} as it is; the result is unused. Assign it", span, evidence)


def _measured(facts: FileFacts, call: cst.Call) -> bool:
    """In code that times or warms up, calls are made for their own sake."""
    return _MEASURES.search(facts.module.owner(call).text) is not None


def _one_line(text: str) -> str:
    return " ".join(text.split())


RULE = Rule("CUV715", "discarded-result", kind="discarded-result", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
