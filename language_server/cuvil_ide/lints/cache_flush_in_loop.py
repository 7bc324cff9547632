"""A memory cache is emptied in every round of a loop.

What: `torch.cuda.empty_cache()` or `gc.collect()` unconditionally inside a loop.
Why: emptying gives the memory back to the driver and waits for the device, and the next round asks for the same memory again; the caching
allocator would have reused it. A collection walks every Python object of the program.
Example: `for batch in loader: out = net(batch); torch.cuda.empty_cache()`
Instead: nothing, or once behind the loop
Fix: unsafe: the statement is removed; peak memory as other programs see it may change.

Silent under a condition (every n rounds, when memory is short) and in handlers of an out-of-memory error.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import gc\nimport torch\n\ndef run(net, loader):\n    for x in loader:\n        net(x)\n"
VALID = (
    _START + "    torch.cuda.empty_cache()\n",
    _START + "        if x.shape[0] > 100:\n            torch.cuda.empty_cache()\n",
    "import torch\n\ndef run(net, loader):\n    for x in loader:\n        try:\n            net(x)\n        except torch.cuda.OutOfMemoryError:\n            torch.cuda.empty_cache()\n",
    # Measuring, with the cache emptied between the runs.
    "import torch\n\ndef free(models):\n    for model in models:\n        del model\n        torch.cuda.empty_cache()\n",
)
INVALID = (
    Invalid(_START + "        »torch.cuda.empty_cache()«\n", "in each round", _START),
    Invalid(_START + "        »gc.collect()«\n", "every Python object", _START),
)

_WHERE = re.compile(r"\b(?:empty_cache|collect)\(\)")
_CALLS = {"torch.cuda.empty_cache": "waits for the device and asks the driver for the same memory again",
          "gc.collect": "walks every Python object of the program"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for node in nodes(facts, _WHERE, cst.Expr):
        if not isinstance(node.value, cst.Call) or (name := facts.source.slice(facts.module.span(node.value.func))) not in _CALLS:
            continue
        around, below = facts.module.parent(node), node
        while isinstance(around, (cst.SimpleStatementLine, cst.IndentedBlock, cst.With)):
            around, below = facts.module.parent(around), around
        if isinstance(around, (cst.For, cst.While)) and below is around.body and not _frees(around.body):
            where = facts.module.span(node.value)
            line = facts.source.line(where.line)
            fix = Fix("unsafe", f"Remove {name}()", (Edit(Span(where.path, where.line, 0, where.line + 1, 0), ""),)) if line.strip() == f"{name}()" else None
            yield RULE.finding(f"{name}() in each round {_CALLS[name]}", where, fix=fix)


def _frees(body: cst.BaseSuite) -> bool:
    """The loop drops objects on purpose: the flush belongs to that."""
    return any(isinstance(small, cst.Del) for line in body.body if isinstance(line, cst.SimpleStatementLine) for small in line.body)


RULE = Rule("CUV812", "cache-flush-in-loop", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
