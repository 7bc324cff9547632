"""Work on the device timed by a clock that does not wait for it.

What: a wall clock (`time.time()`, `time.perf_counter()`) is read before and after work on an accelerator, and nothing between waits for the
device.
Why: a call only queues its kernels and returns. What is measured is the queueing, often a hundredth of the work.
Example: `t0 = time.perf_counter(); y = model(x.cuda()); took = time.perf_counter() - t0`
Instead: `torch.cuda.synchronize()` before each reading of the clock, or `torch.cuda.Event(enable_timing=True)`
Fix: unsafe: a `torch.cuda.synchronize()` before the second reading.

Silent when something between reads a result on the host (`.item()`, `.cpu()`, `print`), with events, and when nothing says that
the work is on an accelerator.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .accelerators import accelerator, moved
from .carried import inside
from .recorded import owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts

_START = "import time\nimport torch\n\ndef bench(model, x):\n"
_MOVE = "    model = model.cuda()\n    x = x.cuda()\n"
VALID = (
    _START + _MOVE + "    t0 = time.perf_counter()\n    y = model(x)\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n",
    _START + "    t0 = time.perf_counter()\n    y = model(x)\n    return time.perf_counter() - t0\n",
    _START + _MOVE + "    t0 = time.perf_counter()\n    y = model(x).cpu()\n    return time.perf_counter() - t0\n",
    _START + _MOVE + "    t0 = time.perf_counter()\n    y = model(x).sum().item()\n    return time.perf_counter() - t0\n",
    _START + _MOVE + "    t0 = time.perf_counter()\n    rows = sorted([3, 1, 2])\n    return time.perf_counter() - t0, model(x)\n",
    _START + '    model = model.to("cpu")\n    t0 = time.perf_counter()\n    y = model(x)\n    return time.perf_counter() - t0\n',
    # a deadline is no measurement
    _START + _MOVE + "    start = time.time()\n    while time.time() - start < 5.0:\n        y = model(x)\n    return y\n",
)
INVALID = (
    Invalid(_START + _MOVE + "    t0 = time.perf_counter()\n    y = model(x)\n    return »time.perf_counter() - t0«\n", "synchronize",
            _START + _MOVE + "    t0 = time.perf_counter()\n    y = model(x)\n    torch.cuda.synchronize()\n    return time.perf_counter() - t0\n"),
    Invalid('import time\nimport torch\n\ndef bench(n: int):\n    x = torch.rand(64, 64, device="cuda")\n    start = time.time()\n    for _ in range(n):\n        x = x @ x\n'
            "    end = time.time()\n    return »end - start«\n", "queue",
            'import time\nimport torch\n\ndef bench(n: int):\n    x = torch.rand(64, 64, device="cuda")\n    start = time.time()\n    for _ in range(n):\n        x = x @ x\n'
            "    torch.cuda.synchronize()\n    end = time.time()\n    return end - start\n"),
)

_WHERE = re.compile(r"\btime\.(?:time|perf_counter|monotonic|perf_counter_ns|time_ns)\(\)|\bperf_counter\(\)")
_CLOCK = re.compile(r"^(?:time\.)?(?:time|perf_counter|monotonic|perf_counter_ns|time_ns|default_timer)\(\)$|^timeit\.default_timer\(\)$")
_WAITS = re.compile(r"synchronize|\.item\(|\.cpu\(|\.tolist\(|\.numpy\(|\bprint\(|\bfloat\(|\bint\(|elapsed_time|block_until_ready|\bdo_bench\b|generate\(|decode\(|\bsync\w*\(|\bwait\w*\(")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if facts.targets.device == "cpu" or "torch" not in facts.source.text:
        return
    for node in nodes(facts, _WHERE, cst.FunctionDef):
        function = owner(facts, facts.module.span(node.name))
        clocks = {t.target.value: facts.module.span(a) for a in inside(facts, node, cst.Assign) if _CLOCK.match(facts.module.code(a.value))
                  for t in a.targets if isinstance(t.target, cst.Name)}
        for took in inside(facts, node, cst.BinaryOperation) if clocks and function is not None else ():
            if isinstance(took.operator, cst.Subtract) and isinstance(took.right, cst.Name) and took.right.value in clocks:
                yield from _timed(facts, function, node, took, clocks)


def _timed(facts: FileFacts, function: FunctionFacts, node: cst.FunctionDef, took: cst.BinaryOperation, clocks: dict[str, Span]) -> Iterator[Diagnostic]:
    span, left = facts.module.span(took), facts.module.code(took.left)
    start = clocks[took.right.value]
    end = clocks.get(left) if isinstance(took.left, cst.Name) else span if _CLOCK.match(left) else None
    above = facts.module.parent(took)
    if end is None or start.line >= end.line or isinstance(above, (cst.Comparison, cst.While)):
        return
    between = Span(span.path, start.end_line, start.end_column, end.line, end.column)
    if _WAITS.search(facts.source.slice(between)):
        return
    work = _work(facts, function, node, between)
    if work is None:
        return
    statement = end if end is not span else _statement(facts, took)
    column = statement.column
    place = Span(span.path, statement.line, 0, statement.line, 0)
    fix = Fix("unsafe", "Wait for the device first", (Edit(place, " " * column + "torch.cuda.synchronize()\n"),)) if "cuda" in facts.source.text else None
    yield RULE.finding("this times how fast the work is queued, not the work: nothing waits for the device; call torch.cuda.synchronize() before reading the clock",
                       span, (Evidence(start, "the clock starts here"), work), fix)


def _work(facts: FileFacts, function: FunctionFacts, node: cst.FunctionDef, between: Span) -> Evidence | None:
    """Work on an accelerator in a stretch of code."""
    from cuvil.frontends.python.values import Instance, Tensor
    for expression in function.expressions:
        value = expression.value
        if between.encloses(expression.span) and isinstance(value, Tensor) and value.device is not None and accelerator(value.device.kind) \
                and expression.node in ("Call", "BinaryOperation"):
            return Evidence(expression.span, f"runs on {value.device.kind}")
    for call in function.calls:
        device = getattr(call.receiver, "device", None) if isinstance(call.receiver, Instance) else None
        if between.encloses(call.span) and not call.context.callers and device is not None and accelerator(device.kind):
            return Evidence(call.span, f"runs on {device.kind}")
    names = set(moved(facts, node))
    for call in inside(facts, node, cst.Call):
        span = facts.module.span(call)
        words = set(re.findall(r"[A-Za-z_]\w*", facts.module.code(call)))
        if between.encloses(span) and words & names and isinstance(call.func, (cst.Name, cst.Attribute)) and facts.module.code(call.func) not in ("len", "range"):
            return Evidence(span, "runs on an accelerator")
    return None


def _statement(facts: FileFacts, node: cst.CSTNode) -> Span:
    while node is not None and not isinstance(node, cst.SimpleStatementLine):
        node = facts.module.parent(node)
    return facts.module.span(node)


RULE = Rule("CUV409", "unsynchronised-timing", kind="untimed-async", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
