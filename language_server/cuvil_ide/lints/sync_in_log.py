"""A device tensor printed or put into a log line in a loop.

What: `print(f"{loss}")`, an eager log line, or `print(x)` with a tensor that lives on an accelerator, in each round of a loop.
Why: to write the number the host waits for all work on the device, in every round, also where the log level throws the line away: an f-string is
built before the logger is asked.
Example: `for i in range(n): x = step(x); logger.debug(f"norm {x.norm()}")`
Instead: `if logger.isEnabledFor(logging.DEBUG): ...`, a line every hundred rounds, or one after the loop
Fix: display: guard the line, or write it once after the loop.

Silent under a test that holds only now and then or asks for the level, for lazy arguments (`logger.debug("%s", x)`), for host tensors, in loops that train,
and for loops of at most two rounds.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..syntax import last_name, nodes
from . import flow
from .carried import inside
from .recorded import around, owner
from .rule import Invalid, Rule
from .sync_in_loop import given_devices, on_device

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import logging\nimport torch\n\nlogger = logging.getLogger(__name__)\n\ndef f(n: int):\n    x = torch.rand(100, device=\"cuda\")\n    for i in range(n):\n        x = x * 0.5\n"
VALID = (
    _START + "    print(f'{x.sum()}')\n    return x\n",
    _START + "        if i % 100 == 0:\n            print(f'{x.sum()}')\n    return x\n",
    _START + "        if logger.isEnabledFor(logging.DEBUG):\n            logger.debug(f'{x.sum()}')\n    return x\n",
    _START + "        logger.debug('%s', x)\n        print(f'{i} {x.shape} {x.dtype}')\n    return x\n",
    _START.replace('device="cuda"', 'device="cpu"') + "        print(f'{x.sum()}')\n    return x\n",
)
INVALID = (
    Invalid(_START + "        logger.debug(f'norm {»x.norm()«:.3f}')\n    return x\n", "waits"),
    Invalid(_START + "        print('mean', »x.mean()«)\n    return x\n", "print"),
    Invalid(_START + "        logger.info('norm {}'.format(»x.norm()«))\n    return x\n", "loop"),
)

_WHERE = re.compile(r"\b(?:for|while)\b[\s\S]*(?:\{|print\(|\.format\()")
_RARELY = re.compile(r"%|isEnabledFor|debug|verbose|level|\blog_?every|rank|is_main", re.IGNORECASE)
_TRAINS = re.compile(r"\.backward\(")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if facts.targets.device == "cpu" or "torch" not in facts.source.text:
        return
    for node in nodes(facts, _WHERE, cst.FunctionDef, analysed=True):
        function = owner(facts, facts.module.span(node.name))
        if function is None or _TRAINS.search(facts.module.code(node)):
            continue
        given = None
        for loop in inside(facts, node, cst.For, cst.While):
            if isinstance(loop, cst.For) and re.fullmatch(r"range\([012]\)", facts.module.code(loop.iter)):
                continue
            for shown in _shown(facts, loop):
                if _rarely(facts, shown, loop):
                    continue
                given = given_devices(facts, function, node) if given is None else given
                device = on_device(facts, function, shown, given)
                if device is not None and _is_tensor(facts, shown):
                    yield RULE.finding("to print this the host waits for the device in each round of the loop (a sync); guard the line, or write it once after the loop",
                                       facts.module.span(shown), (device,), Fix("display", "guard the line, or move it behind the loop"))


def _shown(facts: FileFacts, loop: cst.For | cst.While) -> Iterator[cst.BaseExpression]:
    """What is turned into text in the loop."""
    for field in inside(facts, loop, cst.FormattedStringExpression):
        yield field.expression
    for call in inside(facts, loop, cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value in ("print", "str", "repr") or last_name(call.func) == "format" and isinstance(
                call.func.value if isinstance(call.func, cst.Attribute) else None, (cst.SimpleString, cst.ConcatenatedString)):
            yield from (arg.value for arg in call.args if arg.keyword is None)


def _rarely(facts: FileFacts, shown: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
    """Under a test in the loop that holds now and then, or where an error is told."""
    at = around(facts, shown, cst.If, cst.Raise, cst.Assert, cst.For, cst.While)
    while at is not None and at is not loop:
        if not isinstance(at, cst.If) or _RARELY.search(facts.module.code(at.test)):
            return not isinstance(at, (cst.For, cst.While))
        at = around(facts, at, cst.If, cst.Raise, cst.Assert, cst.For, cst.While)
    return False


def _is_tensor(facts: FileFacts, shown: cst.BaseExpression) -> bool:
    from cuvil.frontends.python.values import Tensor

    from ..lookup import value_of
    return isinstance(value_of(facts, facts.module.span(shown)), Tensor)


RULE = Rule("CUV943", "sync-in-log", kind="host-sync-in-loop", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
