"""A search on the device in each round of a loop.

What: `nonzero`, `unique`, `masked_select` or a read with a boolean index of a tensor that lives on an accelerator, inside a loop.
Why: the size of the result is only known on the device, so the CPU waits for it in every round.
Example: `for expert in range(8): rows = x[index == expert]`
Instead: one `argsort` or `bincount` before the loop, whose result is read once; or masks, whose sizes are fixed
Fix: display: work the indices out before the loop.

Silent for tensors on the host or of which nothing is known, outside loops, for loops of at most two rounds, and when the project's target
is the CPU.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from ..lookup import value_of
from ..syntax import nodes
from .accelerators import NAMED, accelerator
from .recorded import calls, once, owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.frontends.python.values import Value

_START = 'import torch\n\ndef f(n: int):\n    x = torch.rand(64, 8, device="cuda")\n    index = torch.zeros(64, dtype=torch.int64, device="cuda")\n    found = []\n'
VALID = (
    _START + "    rows = x[index == 1]\n    return rows\n",
    _START + "    for e in range(n):\n        found.append(torch.where((index == e)[:, None], x, 0.0))\n    return found\n",
    _START.replace(', device="cuda"', "") + "    for e in range(n):\n        found.append(x[index == e])\n    return found\n",
    _START + "    for e in range(2):\n        found.append((index == e).nonzero())\n    return found\n",
    _START + "    for e in range(n):\n        x[index == e] = 0.0\n    return x\n",
)
INVALID = (
    Invalid(_START + "    for e in range(n):\n        found.append(»(index == e).nonzero()«)\n    return found\n", "waits"),
    Invalid(_START + "    for e in range(n):\n        found.append(»x[index == e]«)\n    return found\n", "boolean index"),
    Invalid(_START + "    while n > 0:\n        found.append(»torch.unique(index)«)\n        n -= 1\n    return found\n", "unique"),
)

_OPS = frozenset(f"{home}.{name}" for home in ("torch", "torch.Tensor") for name in ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"))
_WHERE = re.compile(r"\b(?:for|while)\b")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if facts.targets.device == "cpu" or not facts.module.mentions(NAMED):
        return
    for call in once(c for c in calls(facts) if c.name in _OPS and c.args and _away(c.args[0])):
        rounds = [loop.rounds for loop in call.context.loops]
        if rounds and (None in rounds or _product(rounds) > 2):
            yield _finding(call.name.rpartition(".")[2], call.span, call.context.loops[0].span, call.args[0])
    yield from _masked(facts)


def _masked(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.types import DType
    if not any(_away(fact.value) and fact.value.type.dtype == DType.BOOL for function in facts.functions for fact in function.expressions):
        return
    loops: dict[Span, Span] = {}                           # a call, an assignment in a loop of many rounds -> the loop
    for function in facts.functions:
        for fact in (*function.calls, *function.assigns, *function.branches):
            rounds = [loop.rounds for loop in fact.context.loops]
            if rounds and not fact.context.callers and (None in rounds or _product(rounds) > 2):
                loops[fact.context.loops[0].span] = fact.context.loops[0].span
    for node in nodes(facts, _WHERE, cst.Subscript, analysed=True) if loops else ():
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index) or isinstance(facts.module.parent(node), (cst.AssignTarget, cst.AugAssign, cst.Del)):
            continue
        span = facts.module.span(node)
        loop = next((each for each in loops if each.encloses(span)), None)
        if loop is None or owner(facts, span) is None:
            continue
        mask = value_of(facts, facts.module.span(node.slice[0].slice.value))
        if _away(mask) and mask.type.dtype == DType.BOOL:
            yield _finding("a boolean index", span, loop, mask)


def _away(value: Value | None) -> bool:
    from cuvil.frontends.python.values import Tensor
    return isinstance(value, Tensor) and value.library == "torch" and value.device is not None and accelerator(value.device.kind)


def _product(rounds: list[int]) -> int:
    total = 1
    for each in rounds:
        total *= each
    return total


def _finding(what: str, span: Span, loop: Span, tensor) -> Diagnostic:
    head = Span(loop.path, loop.line, loop.column, loop.line, loop.column + 3)
    return RULE.finding(f"each round of the loop waits for the device: the size of what {what} gives is only known there; work the indices out before the loop",
                        span, (Evidence(head, "the loop"), *(Evidence(o.span, f"lives on {tensor.device.kind}") for o in tensor.op.origins[:1])),
                        Fix("display", "one sort or count before the loop"))


RULE = Rule("CUV402", "device-search-in-loop", kind="host-sync-in-loop", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
