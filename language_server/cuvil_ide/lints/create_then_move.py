"""A tensor made on the host and moved at once.

What: `torch.zeros(...).to(device)` or `.cuda()` directly on a factory call without `device=`.
Why: the tensor is filled on the host, copied over, and the host's one is thrown away; the device can make it itself.
Example: `mask = torch.zeros(B, T).to(x.device)`
Instead: `mask = torch.zeros(B, T, device=x.device)`
Fix: safe: the same values of the same type, made where they are wanted.

Silent for random values, which differ between generators, for pinned memory, and when `.to` gives an element type or another tensor.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor, device: torch.device):\n"
VALID = (
    _START + "    return torch.zeros(4, 8, device=x.device)\n",
    _START + "    return torch.rand(4, 8).to(device)\n",
    _START + "    return torch.zeros(4, 8).to(torch.float16)\n",
    _START + "    return torch.zeros(4, 8).to(x)\n",
    _START + "    return torch.zeros(4, 8, pin_memory=True).to(device, non_blocking=True)\n",
    _START + "    return torch.zeros(4, 8).relu().to(device)\n",
)
INVALID = (
    Invalid(_START + "    return »torch.zeros(4, 8).to(x.device)«\n", "device=x.device", _START + "    return torch.zeros(4, 8, device=x.device)\n"),
    Invalid(_START + "    return »torch.arange(8).cuda()«\n", "host", _START + '    return torch.arange(8, device="cuda")\n'),
    Invalid(_START + "    return »torch.ones(4, dtype=torch.bool).to(device)«\n", "device=device", _START + "    return torch.ones(4, dtype=torch.bool, device=device)\n"),
)

_FILLED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "full", "arange", "linspace", "eye", "empty"))
_WHERE = re.compile(r"\)\s*\.(?:to|cuda)\(")
_PLACE = re.compile(r"""^(?:[\w.]*device\w*|["'](?:cuda|cpu|mps|xpu)[:\d]*["']|torch\.device\(.*\))$""")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for call in nodes(facts, _WHERE, cst.Call, analysed=True):
        match call:
            case cst.Call(func=cst.Attribute(value=cst.Call() as made, attr=cst.Name(value="to")), args=[cst.Arg(value=given, star="", keyword=keyword)]) \
                    if keyword is None or keyword.value == "device":
                place = facts.module.code(given)
            case cst.Call(func=cst.Attribute(value=cst.Call() as made, attr=cst.Name(value="cuda")), args=[]):
                place = '"cuda"'
            case _:
                continue
        factory = value_of(facts, facts.module.span(made.func))
        if not isinstance(factory, Library) or factory.name not in _FILLED or not _PLACE.match(place) or not made.args:
            continue
        if any(a.star or a.keyword is not None and a.keyword.value in ("device", "pin_memory", "out") for a in made.args):
            continue
        span, inner = facts.module.span(call), facts.module.span(made)
        end = Span(span.path, inner.end_line, inner.end_column - 1, inner.end_line, inner.end_column - 1)
        rest = Span(span.path, inner.end_line, inner.end_column, span.end_line, span.end_column)
        yield RULE.finding(f"{factory.name} fills memory of the host, which is then copied; give it device={place}", span,
                           fix=Fix("safe", f"Make it there: device={place}", (Edit(end, f", device={place}"), Edit(rest, ""))))


RULE = Rule("CUV305", "create-then-move", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
