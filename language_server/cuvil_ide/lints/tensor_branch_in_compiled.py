"""A decision on the content of a tensor, in code that torch.compile or torch.export reads.

What: `if`, `while`, `and`, `or` or `not` on a tensor in a function that is compiled or exported, or an `assert` whose message is worked out.
Why: the value is only known when the graph runs, so the compiler breaks the graph here (torch's GB0170, data-dependent branching), and
with `fullgraph=True` or `torch.export` it raises.
Example: `if not mask.all(): x = x * mask`
Instead: `torch.where(condition, a, b)` or `torch.cond`; a plain `assert condition`, which the compiler keeps in the graph
Fix: display: what replaces the branch hangs on what it does.

Silent about tests of shapes, types, None and modes, about a plain `assert`, and about code that no compiler reads.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from .guards import expected_to_fail
from .recorded import branches, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import BranchFact, FileFacts, Region

_START = "import torch\n\n"
VALID = (
    _START + "@torch.compile\ndef f(x: torch.Tensor, mask: torch.Tensor | None = None):\n    if mask is not None:\n        x = x * mask\n"
    "    if x.shape[0] > 1 and x.dtype == torch.float16:\n        x = x.float()\n    return x\n",
    _START + "def f(x: torch.Tensor):\n    if x.sum() > 0:\n        return x\n    return -x\n",
    _START + "@torch.compile\ndef f(x: torch.Tensor):\n    return torch.where(x.sum() > 0, x, -x)\n",
    _START + "@torch.compiler.disable\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        return x\n    return -x\n",
    # torch.compile makes a plain assert an operation of the graph
    _START + "@torch.compile\ndef f(x: torch.Tensor):\n    assert (x > 0).all()\n    return x.log()\n",
    # isinstance and the number of dimensions are known to the compiler
    _START + "@torch.compile\ndef f(x: torch.Tensor):\n    if isinstance(x, torch.Tensor) and x.dim() == 2:\n        return x\n    return -x\n",
)
INVALID = (
    Invalid(_START + "@torch.compile(fullgraph=True)\ndef f(x: torch.Tensor, mask: torch.Tensor):\n    if not »mask.bool().all()«:\n        x = x * mask\n"
            "    return x\n", "GB0170"),
    Invalid(_START + "def f(x: torch.Tensor):\n    while »x.sum() > 1«:\n        x = x / 2\n    return x\n\nfast = torch.compile(f)\n", "graph"),
    Invalid(_START + "@torch.compile\ndef f(x: torch.Tensor):\n    assert »(x > 0).all()«, f\"not positive: {x}\"\n    return x.log()\n", "assert"),
    Invalid(_START + "def positive(x: torch.Tensor):\n    if »x.min() > 0«:\n        return x.log()\n    return x\n\n"
            "@torch.compile\ndef f(x: torch.Tensor):\n    return positive(x)\n", "data-dependent"),
)

READERS = {"compile": "compiled", "export": "exported", "cudagraph": "captured into a CUDA graph"}
_SAID = {"not": "if not", "ternary": "conditional expression"}
_INSTEAD = {"assert": "a constant message keeps the check in the graph", "while": "torch.while_loop keeps it in the graph",
            "for": "a loop of a fixed number of rounds keeps it in the graph"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for branch in once(_of_content(facts)):
        region = reader(branch.context.regions)
        if not expected_to_fail(facts, branch.span) and not (branch.kind == "assert" and _plain(facts, branch.span)):
            kind = branch.kind if branch.kind in ("assert", "while", "for") else "if"
            instead = _INSTEAD.get(kind, "torch.where or torch.cond keeps both ways in the graph")
            yield RULE.finding(f"this {_SAID.get(branch.kind, branch.kind)} hangs on the content of a tensor: a data-dependent branch breaks the graph (GB0170); "
                               f"{instead}", branch.span, evidence(branch.context.callers, region), Fix("display", instead))


def _of_content(facts: FileFacts) -> Iterator[BranchFact]:
    """Each place once: of `not mask.all()` in an `if`, the inner expression."""
    found = [b for b in branches(facts) if b.kind != "for" and reader(b.context.regions) is not None and of_content(b)]
    spans = {b.span for b in found}
    for branch in found:
        if not any(other != branch.span and branch.span.encloses(other) for other in spans):
            yield branch


def _plain(facts: FileFacts, span: Span) -> bool:
    """An assertion with no message or a constant one."""
    node = facts.module.node_at(span.line, span.column)
    while node is not None and not isinstance(node, cst.Assert):
        node = facts.module.parent(node)
    return node is None or node.msg is None or isinstance(node.msg, (cst.SimpleString, cst.ConcatenatedString))


def of_content(branch: BranchFact) -> bool:
    from cuvil.frontends.python.values import Tensor, Weight
    value = branch.test
    return isinstance(value, Weight) or isinstance(value, Tensor) and value.library == "torch"


def reader(regions: tuple[Region, ...]) -> Region | None:
    return next((region for region in regions if region.how in READERS), None)


def evidence(callers: tuple[Span, ...], region: Region) -> tuple[Evidence, ...]:
    return (*(Evidence(span, "called here") for span in callers), Evidence(region.span, f"is {READERS.get(region.how, region.how + 'd')} here"))


RULE = Rule("CUV403", "tensor-branch-in-compiled", kind="graph-break", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
