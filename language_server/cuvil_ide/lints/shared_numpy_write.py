"""A write into memory that a NumPy array and a tensor share.

What: an in-place change of what `torch.from_numpy`, `as_tensor` or `.numpy()` gave, while the other side belongs to the caller or is
used later.
Why: these calls copy nothing; the caller's frame, or the tensor that the array came from, changes too.
Example: `t = torch.from_numpy(frame); t.sub_(mean)`
Instead: `t = torch.from_numpy(frame).clone()`, or `t = t - mean`
Fix: display: a copy where the memory is shared.

Silent when a copy was made between, when the other side was made here and is not used again, and in functions whose name says that
they change their argument.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from .argument_mutated import MEANT, SAYS_SO
from .carried import inside
from .recorded import tensors
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts, FunctionFacts, WriteFact

_START = "import numpy as np\nimport torch\n\n"
VALID = (
    _START + "def f(frame: np.ndarray):\n    t = torch.from_numpy(frame).clone()\n    t.sub_(0.5)\n    return t\n",
    _START + "def f(frame: np.ndarray):\n    t = torch.from_numpy(frame)\n    return t - 0.5\n",
    _START + "def f():\n    t = torch.from_numpy(np.zeros(4, dtype=np.float32))\n    t.sub_(0.5)\n    return t\n",
    _START + "def f(frame: np.ndarray):\n    t = torch.tensor(frame)\n    t.sub_(0.5)\n    return t\n",
    _START + "def scale_(frame: np.ndarray):\n    torch.from_numpy(frame).mul_(0.5)\n",
    _START + "def f(frame: np.ndarray):\n    t = torch.from_numpy(frame.astype(np.float32))\n    t.sub_(0.5)\n    return t\n",
)
INVALID = (
    Invalid(_START + "def f(frame: np.ndarray):\n    t = torch.from_numpy(frame)\n    »t.sub_(0.5)«.div_(2.0)\n    return t[None]\n", "from_numpy"),
    Invalid(_START + "def f(x: torch.Tensor):\n    a = x.numpy()\n    »a -= 0.5«\n    return a\n", "shares"),
    Invalid(_START + "def f():\n    a = np.zeros(4, dtype=np.float32)\n    t = torch.from_numpy(a)\n    »t.sub_(0.5)«\n    return t, a.sum()\n", "used"),
)

_SHARES = frozenset(("torch.from_numpy", "torch.as_tensor", "torch.asarray", "torch.Tensor.numpy", "numpy.asarray", "torch.from_dlpack"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function in facts.functions:
        if SAYS_SO.search(function.name.rpartition(".")[2]):
            continue
        shared = [c for c in function.calls if not c.context.callers and c.name in _SHARES and c.args and any(tensors(c.result))]
        seen: set[Span] = set()
        for write in function.writes if shared else ():
            if write.context.callers or any(span.line == write.span.line for span in seen):
                continue
            found = _sharing(facts, function, write, shared)
            if found is not None:
                seen.add(write.span)
                yield _finding(write, *found)


def _sharing(facts: FileFacts, function: FunctionFacts, write: WriteFact, shared: list[CallFact]) -> tuple[CallFact, str] | None:
    """The call that shares the written memory, and who else has it."""
    target = next(iter(tensors(write.target)), None)
    if target is None or "shared" not in target.marks:
        return None
    for call in shared:
        one, other = next(iter(tensors(call.args[0])), None), next(iter(tensors(call.result)), None)
        if one is None or other is None or target.storage not in (one.storage, other.storage):
            continue
        name = next((name for name, value in function.parameters for t in tensors(value) if t.storage == one.storage), None)
        if name is not None:
            return None if MEANT.search(name) else (call, f"the caller's `{name}`")
        kept = next((a.name for a in function.assigns if not a.context.callers and a.name != write.name and any(t is one or t.op is one.op for t in tensors(a.value))), None)
        if kept is not None and _read_after(facts, function, kept, write.span):
            return call, f"`{kept}`, which is used later"
    return None


def _read_after(facts: FileFacts, function: FunctionFacts, name: str, span: Span) -> bool:
    definition = facts.module.by_name.get(function.name)
    if definition is None or not isinstance(definition.node, cst.FunctionDef):
        return False
    return any(n.value == name and facts.module.span(n).line > span.end_line for n in inside(facts, definition.node, cst.Name))


def _finding(write: WriteFact, call: CallFact, other: str) -> Diagnostic:
    how = call.name.rpartition(".")[2]
    return RULE.finding(f"{how} shares its memory with {other}: this in-place change shows there, too; clone it first", write.span,
                        (Evidence(call.span, "shares the memory"),), Fix("display", "copy where the memory is shared: .clone() or .copy()"))


RULE = Rule("CUV713", "shared-numpy-write", kind="aliasing-mutation", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
