"""A decision that a trace makes once and for all.

What: `torch.jit.trace`, `torch.onnx.export` or the like over code that decides on the content or the size of a tensor.
Why: a trace keeps the operations of the one way that the example took. Other inputs go the same way, without a word.
Example: `if scores.size(0) > self.keep: ...` in a model given to `torch.jit.trace`
Instead: `torch.jit.script` for that part, `torch.export` with dynamic shapes, or operations that are right for both ways
Fix: display: script the function, or write it without the branch.

Silent about code that no tracer reads, and tests of types, None, modes and numbers of dimensions.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from .recorded import branches, once, owner
from .rule import Invalid, Rule
from .tensor_branch_in_compiled import of_content

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import BranchFact, FileFacts
    from cuvil.source import Span

_START = ("import torch\nfrom torch import nn\n\nclass Top(nn.Module):\n    def __init__(self, keep=100):\n        super().__init__()\n"
          "        self.keep = keep\n\n    def forward(self, scores: torch.Tensor):\n")
_TRACE = "\ndef export():\n    return torch.jit.trace(Top(), torch.rand(10))\n"
VALID = (
    _START + "        if scores.dim() == 2:\n            scores = scores[0]\n        return scores.topk(5).values\n" + _TRACE,
    _START + "        if self.training:\n            scores = scores * 2\n        return scores\n" + _TRACE,
    _START + "        if scores.size(0) > self.keep:\n            scores = scores[:self.keep]\n        return scores\n",
    _START + "        return scores[:self.keep]\n" + _TRACE,
)
INVALID = (
    Invalid(_START + "        if »scores.size(0) > self.keep«:\n            scores = scores.topk(self.keep).values\n        return scores\n" + _TRACE, "trace"),
    Invalid(_START + "        if »scores.sum() > 1«:\n            scores = scores / scores.sum()\n        return scores\n" + _TRACE, "content"),
    Invalid(_START + "        kept = []\n        for i in »range(scores.size(0))«:\n            kept.append(scores[i] * 2)\n"
            "        return torch.stack(kept)\n" + _TRACE, "rounds"),
)


_SIZE = re.compile(r"\.size\(\s*-?\w|\.shape\s*\[|\.numel\(\)|\blen\(")
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    traced = [b for b in branches(facts) if any(region.how == "trace" for region in b.context.regions)]
    for branch in once(b for b in traced if _on(facts, b)):
        region = next(region for region in branch.context.regions if region.how == "trace")
        on = _on(facts, branch)
        if not _inside_another(facts, branch, traced):
            what = f"the number of rounds hangs on the {'sizes' if on == 'sizes' else on}" if branch.kind == "for" else f"this branch hangs on the {on}"
            yield RULE.finding(f"{what} of a tensor, and the trace keeps what the example gave as a constant; use torch.jit.script or torch.export here",
                               branch.span, (*(Evidence(span, "called here") for span in branch.context.callers), Evidence(region.span, "is traced here")),
                               Fix("display", "script this function, or write it without the branch"))


def _on(facts: FileFacts, branch: BranchFact) -> str:
    """What of a tensor a branch hangs on: "content", "sizes", or "" for neither."""
    return "content" if branch.kind != "for" and of_content(branch) else "sizes" if on_sizes(facts, branch) else ""


def _inside_another(facts: FileFacts, branch: BranchFact, traced: list[BranchFact]) -> bool:
    """Of `a and b` the whole test is said; the parts are quiet."""
    return any(other.span != branch.span and other.span.encloses(branch.span) and other.kind in ("if", "while", "assert") and other.context == branch.context
               and _on(facts, other) for other in traced)


def on_sizes(facts: FileFacts, branch: BranchFact) -> bool:
    """A test or a range whose outcome hangs on sizes that are not known while walking, by the text: `x.size(0)`, `x.shape[1]`, `len(x)`,
    and names that were given such."""
    from cuvil.frontends.python.values import Scalar
    if isinstance(branch.test, Scalar) or branch.context.callers:
        return False
    function = owner(facts, branch.span)
    sizes = {a.name for a in function.assigns if not a.context.callers and _SIZE.search(_assigned(facts, a.span))} if function is not None else set()
    text = facts.source.slice(branch.span)
    if branch.kind == "for":
        return text.startswith("range(") and _mentions(text, sizes)
    return _mentions(text, sizes)


def _mentions(text: str, sizes: set[str]) -> bool:
    return _SIZE.search(text) is not None or any(word in sizes for word in _WORD.findall(text))


def _assigned(facts: FileFacts, target: Span) -> str:
    """The text of what a name is given, when it is one expression of its own."""
    node = facts.module.node_at(target.line, target.column)
    while node is not None and not isinstance(node, cst.Assign):
        node = facts.module.parent(node)
    return facts.module.code(node.value) if node is not None and isinstance(node.value, (cst.Call, cst.Subscript, cst.Attribute, cst.BinaryOperation)) else ""


RULE = Rule("CUV407", "trace-freezes-branch", kind="trace-constant", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
