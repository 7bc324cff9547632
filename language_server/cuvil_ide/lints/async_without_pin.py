"""An asynchronous copy from memory that is not page-locked.

What: `.to("cuda", non_blocking=True)` of a host tensor that is made here and not pinned.
Why: the driver must first copy pageable memory to a page-locked buffer, and the call waits for that: nothing overlaps.
Example: `torch.tensor(rows).to("cuda", non_blocking=True)`
Instead: `torch.tensor(rows).pin_memory().to("cuda", non_blocking=True)`, or `DataLoader(pin_memory=True)`
Fix: unsafe: `.pin_memory()` is put in; it costs a copy of its own, which pays only when something runs meanwhile.

Silent for pinned tensors, for those that come from elsewhere (a loader may pin them), and between devices.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .accelerators import accelerator
from .recorded import calls, node_of, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor):\n"
VALID = (
    _START + '    return torch.ones(4, 8).pin_memory().to("cuda", non_blocking=True)\n',
    _START + '    return torch.ones(4, 8, pin_memory=True).to("cuda", non_blocking=True)\n',
    _START + '    return x.to("cuda", non_blocking=True)\n',
    _START + '    return torch.tensor([[1.0, 2.0]]).to("cuda")\n',
)
INVALID = (
    Invalid(_START + '    rows = torch.tensor([[1.0, 2.0]])\n    return »rows.to("cuda", non_blocking=True)«\n', "pin_memory",
            _START + '    rows = torch.tensor([[1.0, 2.0]])\n    return rows.pin_memory().to("cuda", non_blocking=True)\n'),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Scalar, Tensor
    for call in once(c for c in calls(facts) if c.name in ("torch.Tensor.to", "torch.Tensor.cuda")):
        flag = dict(call.keywords).get("non_blocking")
        source, moved = call.args[0] if call.args else None, call.result
        if not (isinstance(flag, Scalar) and flag.value is True and isinstance(source, Tensor) and isinstance(moved, Tensor)):
            continue
        if source.device is None or not source.device.default or "pinned" in source.marks or moved.device is None or not accelerator(moved.device.kind):
            continue
        node, fix = node_of(facts, call.span, cst.Call), None
        if node is not None and isinstance(node.func, cst.Attribute):
            where = facts.module.span(node.func.value)
            end = Span(where.path, where.end_line, where.end_column, where.end_line, where.end_column)
            fix = Fix("unsafe", "Pin the memory first", (Edit(end, ".pin_memory()"),))
        yield RULE.finding("non_blocking=True gains nothing here: the tensor is in pageable memory, so the call waits; use pin_memory()", call.span,
                           tuple(Evidence(o.span, "is made here, in pageable memory") for o in source.op.origins[:1]), fix)


RULE = Rule("CUV308", "async-without-pin", kind="untimed-async", severity="info", certainty="hint", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
