"""A call that torch.compile cannot follow, in compiled code.

What: `.item()`, `int()` or `float()` of a tensor, `copy.deepcopy`, `.backward()` or `.requires_grad_()` in a function that is compiled or exported.
Why: the compiler breaks the graph here (torch's GB0124 for `.item()`, GB4198 for `deepcopy`, GB0123 for `backward`, GB0125 for `requires_grad_`).
Example: `scale = x.max().item()` in a compiled function
Instead: a 0-d tensor (`x.max()`), `clone()`, the backward call outside
Fix: display: what replaces it hangs on what follows.

Silent with `capture_scalar_outputs`, `fullgraph=True` and `torch.export`, which capture numbers, and about code that no compiler reads.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from .compiled_code import captures, compiled_calls
from .rule import Invalid, Rule
from .tensor_branch_in_compiled import evidence

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts

_START = "import copy\nimport torch\n\n"
_COMPILED = _START + "@torch.compile\ndef f(x: torch.Tensor):\n"
VALID = (
    _COMPILED + "    return x / x.max()\n",
    _START + "def f(x: torch.Tensor):\n    return x / x.max().item()\n",
    _START + "@torch.compile(fullgraph=True)\ndef f(x: torch.Tensor):\n    return x / x.max().item()\n",
    _COMPILED + "    return x / float(x.shape[0])\n",
    _COMPILED + "    return x.clone()\n",
)
INVALID = (
    Invalid(_COMPILED + "    return x / »x.max().item()«\n", "GB0124"),
    Invalid(_COMPILED + "    return x / »float(x.max())«\n", "GB0124"),
    Invalid(_COMPILED + "    y = »copy.deepcopy(x)«\n    return y.add_(1)\n", "GB4198"),
    Invalid(_COMPILED + "    loss = x.sum()\n    »loss.backward()«\n    return loss\n", "GB0123"),
)

_CALLS = {"torch.Tensor.item": ("GB0124", "keep it as a 0-d tensor"), "torch.Tensor.backward": ("GB0123", "call backward outside the compiled function"),
          "torch.Tensor.requires_grad_": ("GB0125", "set it before the compiled call"), "copy.deepcopy": ("GB4198", "use clone()")}
_NUMBERS = frozenset(("builtins.int", "builtins.float", "builtins.bool"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call, region in compiled_calls(facts):
        id, instead = _breaks(call)
        if not id or id == "GB0124" and captures(facts, region, "capture_scalar_outputs"):
            continue
        text = facts.source.slice(call.span)
        what = call.name.rpartition(".")[2] if len(text) > 40 else text
        yield RULE.finding(f"{what} cannot be traced, and breaks the graph of compiled code here ({id}); {instead}", call.span,
                           evidence(call.context.callers, region), Fix("display", instead))


def _breaks(call: CallFact) -> tuple[str, str]:
    from cuvil.frontends.python.values import Tensor
    tensor = bool(call.args) and isinstance(call.args[0], Tensor) and call.args[0].library == "torch"
    if call.name in _NUMBERS:
        return _CALLS["torch.Tensor.item"] if tensor else ("", "")
    if call.name == "copy.deepcopy" and not tensor:
        return "", ""
    return _CALLS.get(call.name, ("", ""))


RULE = Rule("CUV406", "untraceable-call-in-compiled", kind="graph-break", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
