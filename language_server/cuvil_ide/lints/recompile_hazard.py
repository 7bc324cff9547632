"""Compiled code that is compiled anew in each call.

What: a compiled `nn.Module` counts in a Python number of its own (`self.step += 1`), or code that was compiled with `dynamic=False` is called with tensors
of several sizes.
Why: torch.compile guards on both: a number on a module is a constant of the graph, and so is a size without dynamic shapes. Each new value compiles again,
which takes seconds, and after eight times the code runs uncompiled.
Example: `def forward(self, x): self.step += 1; ...` in a module that goes through `torch.compile`
Instead: a buffer, `self.register_buffer("step", torch.zeros((), dtype=torch.long))`, or counting outside of the compiled code; `dynamic=None`, the default
Fix: display: keep the number in a buffer, or outside.

Silent for functions and lambdas that are compiled where they are called (PyTorch finds the compiled code again), for numbers given as arguments (the second
one is made dynamic), and for numbers that do not change.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ir.dims import Poly

from . import flow
from .recorded import around, assigns, calls, node_of
from .rule import Invalid, Rule
from .tensor_branch_in_compiled import evidence, reader

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import AssignFact, FileFacts

_START = "import torch\nfrom torch import nn\n\n"
_NET = (_START + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.step = 0\n        self.scale = 2\n\n    def forward(self, x):\n"
        "        {}\n        return x * self.scale\n\nnet = torch.compile(Net())\nnet(torch.zeros(2, 3))\n")
VALID = (
    _NET.format("x = x + 1"),
    _NET.format("self.step += 1").replace("torch.compile(Net())", "Net()"),
    _START + "def f(x: torch.Tensor):\n    g = torch.compile(lambda t: t * 2)\n    return g(x)\n",
    _START + "def g(x, k):\n    return x * k\n\nfast = torch.compile(g)\n\ndef f(x: torch.Tensor):\n    return [fast(x, k) for k in range(9)]\n",
    _START + "def g(x):\n    return x * 2\n\nfast = torch.compile(g)\n\ndef f():\n    return fast(torch.zeros(3)), fast(torch.zeros(5))\n",
)
INVALID = (
    Invalid(_NET.format("»self.step« += 1"), "buffer"),
    Invalid(_NET.format("»self.step« = self.step + x.shape[0]"), "self.step"),
    Invalid(_START + "def g(x):\n    return x * 2\n\nfast = torch.compile(g, dynamic=False)\n\ndef f():\n    return fast(torch.zeros(3)), »fast(torch.zeros(5))«\n", "dynamic=False"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if "compile" not in facts.source.text:
        return
    modules = {each.name for each in facts.classes if each.module}
    for fact in assigns(facts):
        region = reader(fact.context.regions)
        if region is not None and region.how == "compile" and fact.name.startswith("self.") and _counts(facts, fact, modules):
            yield RULE.finding(f"{fact.name} is a Python number on a compiled module, and changes in each call: torch.compile guards on it and compiles again each time; "
                               f"keep it in a buffer, or count outside", fact.span, evidence(fact.context.callers, region), Fix("display", "register_buffer, or count outside"))
    yield from _sizes(facts)


def _counts(facts: FileFacts, fact: AssignFact, modules: set[str]) -> bool:
    """A number that is bound to something computed from itself."""
    from cuvil.frontends.python.values import Scalar
    definition = facts.module.definition_at(fact.span.line)
    number = isinstance(fact.value, Scalar) and isinstance(fact.value.value, (int, Poly)) and not isinstance(fact.value.value, bool)
    if not number or definition is None or definition.owner not in modules or definition.name.endswith("__init__"):
        return False
    target = node_of(facts, fact.span, cst.Attribute)
    statement = around(facts, target, cst.Assign, cst.AugAssign, cst.AnnAssign) if target is not None else None
    return isinstance(statement, cst.AugAssign) or isinstance(statement, cst.Assign) and fact.name in facts.module.code(statement.value)


def _sizes(facts: FileFacts) -> Iterator[Diagnostic]:
    """Calls of code that was compiled with dynamic=False, with tensors of other sizes than a call before."""
    from cuvil.frontends.python.values import Tensor
    first: dict[str, tuple] = {}
    for call in calls(facts) if "dynamic=False" in facts.source.text.replace(" ", "") else ():
        regions = [region.span for region in getattr(call.receiver, "regions", ())]
        text = facts.source.slice(call.span).partition("(")[0]
        known = next((r for r in (*regions, *_compiled(facts, text)) if r.path == facts.source.path and "dynamic=False" in facts.source.slice(r).replace(" ", "")), None)
        shapes = tuple(arg.type.shape for arg in call.args if isinstance(arg, Tensor))
        if known is None or not shapes or any(s is None or not all(isinstance(size, int) for size in s) for s in shapes):
            continue
        before = first.setdefault(text, (shapes, call.span))
        if before[0] != shapes and len(before[0]) == len(shapes):
            now, then = (", ".join(str(list(shape)) for shape in each) for each in (shapes, before[0]))
            yield RULE.finding(f"code compiled with dynamic=False is compiled again for the sizes {now}, after {then}; leave dynamic=False out", call.span,
                               (Evidence(before[1], "called with other sizes"),))


def _compiled(facts: FileFacts, name: str) -> Iterator:
    """Where a name is bound to torch.compile(...)."""
    return (fact.span for fact in calls(facts) if fact.name == "torch.compile" and facts.source.line(fact.span.line).lstrip().startswith(f"{name} ="))


RULE = Rule("CUV408", "recompile-hazard", kind="graph-break", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
