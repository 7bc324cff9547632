"""A tensor made in inference mode, written to outside it.

What: an in-place change of a tensor that was made under `torch.inference_mode()`, at a place that is not.
Why: such tensors have no version counter, so torch raises: `Inplace update to inference tensor outside InferenceMode`. It meets
caches and scratch buffers that are made lazily in a warm-up.
Example: `with torch.inference_mode(): buffer = torch.zeros(8)`, later `buffer.add_(x)`
Instead: make the buffer outside, or write to it under inference mode, or `clone()` it first
Fix: display: where the buffer is made, or the mode of the second use.

Silent when the whole life of the tensor is inside, and under `no_grad`, which makes ordinary tensors.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from .guards import expected_to_fail
from .recorded import once, tensors, writes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\n"
_SAMPLER = ("class Sampler:\n    def __init__(self):\n        self.scratch = None\n\n    def step(self, x):\n        if self.scratch is None:\n"
            "            self.scratch = torch.empty_like(x)\n        {}\n        return self.scratch\n\ndef main():\n    s = Sampler()\n")
_WRITE = _SAMPLER.format("self.scratch.copy_(x)")
VALID = (
    _START + "def f(x: torch.Tensor):\n    with torch.inference_mode():\n        y = torch.zeros(4)\n        y.add_(1.0)\n    return y\n",
    _START + "def f(x: torch.Tensor):\n    with torch.no_grad():\n        y = torch.zeros(4)\n    y.add_(1.0)\n    return y\n",
    _START + "def f(x: torch.Tensor):\n    with torch.inference_mode():\n        y = torch.zeros(4)\n    y = y.clone()\n    y.add_(1.0)\n    return y\n",
    _START + _WRITE + "    with torch.inference_mode():\n        s.step(torch.zeros(8))\n        return s.step(torch.ones(8))\n",
    # made outside, then used inside: that is allowed
    _START + "def f(x: torch.Tensor):\n    y = torch.zeros(4)\n    with torch.inference_mode():\n        y.add_(1.0)\n    return y\n",
)
INVALID = (
    Invalid(_START + "def f(x: torch.Tensor):\n    with torch.inference_mode():\n        y = torch.zeros(4)\n    »y.add_(1.0)«\n    return y\n", "inference"),
    Invalid(_START + _SAMPLER.format("»self.scratch.copy_(x)«") + "    with torch.inference_mode():\n        s.step(torch.zeros(8))\n"
            "    return s.step(torch.ones(8))\n", "outside"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    lines: set[int] = set()                               # of x.mul_(a).add_(b) the first is enough
    for write in once(w for w in writes(facts) if w.context.grad != "inference" and any(t.inference for t in tensors(w.target))):
        if write.span.line in lines or expected_to_fail(facts, write.span):
            continue
        lines.add(write.span.line)
        target = next(iter(tensors(write.target)))
        name = f"`{write.name}`" if write.name else "this tensor"
        evidence = (*(Evidence(origin.span, "is made here, in inference mode") for origin in target.op.origins[:1]),
                    *(Evidence(span, "called here, outside inference mode") for span in write.context.callers))
        yield RULE.finding(f"{name} was made in inference mode and is changed in place outside it, which raises; make the buffer outside, or clone it",
                           write.span, evidence, Fix("display", "make the buffer outside inference_mode, or write under it"))


RULE = Rule("CUV708", "inference-tensor-write", kind="inference-tensor-write", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
