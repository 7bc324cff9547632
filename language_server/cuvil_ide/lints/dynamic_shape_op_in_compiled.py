"""An operation whose result's size hangs on data, in compiled code.

What: `nonzero`, `masked_select`, `unique`, `torch.where(condition)`, a read with a boolean index, or `one_hot` without `num_classes`, in a function that
torch.compile reads.
Why: the size of the result is only known when it runs, so the graph breaks here (torch's GB0036; GB0246 for `one_hot`).
Example: `kept = scores[scores > 0.5]`
Instead: a mask (`torch.where(mask, x, 0)`), `topk` with a fixed k, `torch.nonzero_static(x, size=n)`, `one_hot(x, num_classes)`
Fix: display: what replaces it hangs on what follows.

Silent with `capture_dynamic_output_shape_ops`, with `fullgraph=True` and `torch.export`, which capture such sizes, and about code that no
compiler reads. `one_hot` breaks in all of them.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..lookup import value_of
from ..syntax import nodes
from .compiled_code import captures, compiled_calls
from .recorded import owner
from .rule import Invalid, Rule
from .tensor_branch_in_compiled import evidence, reader

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts

_START = "import torch\nimport torch.nn.functional as F\n\n"
_COMPILED = _START + "@torch.compile\ndef f(x: torch.Tensor):\n"
VALID = (
    _COMPILED + "    return torch.where(x > 0, x, 0.0)\n",
    _COMPILED + "    return F.one_hot(x.long(), 10)\n",
    _COMPILED + "    return F.one_hot(x.long(), num_classes=10)\n",
    _START + "def f(x: torch.Tensor):\n    return x[x > 0]\n",
    _START + "@torch.compile(fullgraph=True)\ndef f(x: torch.Tensor):\n    return x[x > 0]\n",
    "import torch\n\ntorch._dynamo.config.capture_dynamic_output_shape_ops = True\n\n@torch.compile\ndef f(x: torch.Tensor):\n    return x.nonzero()\n",
    # a write through a mask has a fixed size
    _COMPILED + "    y = x.clone()\n    y[y > 0] = 0.0\n    return y\n",
)
INVALID = (
    Invalid(_COMPILED + "    return »x[x > 0]«.sum()\n", "GB0036"),
    Invalid(_COMPILED + "    return »x.nonzero()«\n", "GB0036"),
    Invalid(_COMPILED + "    return »torch.unique(x)«\n", "size"),
    Invalid(_COMPILED + "    return »F.one_hot(x.long())«\n", "GB0246"),
)

_OPS = frozenset(("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"))
_WHERE = re.compile(r"\[")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call, region in compiled_calls(facts):
        id = _breaks(call)
        if id and (id == "GB0246" or not captures(facts, region, "capture_dynamic_output_shape_ops")):
            yield _finding(call.name.rpartition(".")[2], id, call.span, call.context.callers, region)
    if "compile" in facts.source.text:
        yield from _masked(facts)


def _breaks(call: CallFact) -> str:
    home, _, last = call.name.rpartition(".")
    if last == "one_hot" and home == "torch.nn.functional" and call.argument(1, "num_classes") is None:
        return "GB0246"
    if home in ("torch", "torch.Tensor") and (last in _OPS or last == "where" and len(call.args) == 1 and not call.keywords):
        return "GB0036"
    return ""


def _masked(facts: FileFacts) -> Iterator[Diagnostic]:
    """Reads with a boolean index."""
    from cuvil.frontends.python.values import Tensor
    from cuvil.ir.types import DType
    for node in nodes(facts, _WHERE, cst.Subscript, analysed=True):
        if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
            continue
        span = facts.module.span(node)
        function = owner(facts, span)
        mask = value_of(facts, facts.module.span(node.slice[0].slice.value)) if function is not None else None
        if not isinstance(mask, Tensor) or mask.library != "torch" or mask.type.dtype != DType.BOOL or _written(facts, node):
            continue
        region = next((r for c in (*function.calls, *function.branches) if not c.context.callers and (r := reader(c.context.regions))), None)
        if region is not None and not captures(facts, region, "capture_dynamic_output_shape_ops"):
            yield _finding("a boolean index", "GB0036", span, (), region)


def _written(facts: FileFacts, node: cst.Subscript) -> bool:
    return isinstance(facts.module.parent(node), (cst.AssignTarget, cst.AugAssign, cst.Del))


def _finding(what: str, id: str, span, callers, region) -> Diagnostic:
    instead = "give num_classes" if id == "GB0246" else "use a mask with torch.where, topk, or nonzero_static"
    return RULE.finding(f"the size of what {what} gives hangs on data, which breaks the graph of compiled code here ({id}); {instead}", span,
                        evidence(callers, region), Fix("display", instead))


RULE = Rule("CUV405", "dynamic-shape-op-in-compiled", kind="graph-break", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
