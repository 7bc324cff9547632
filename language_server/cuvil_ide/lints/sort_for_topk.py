"""Everything is sorted for the first few.

What: `torch.sort` or `argsort` whose result is only cut to its first k elements.
Why: a full sort does n log n work and moves all elements; `topk` finds the k largest in one pass, and gives values and indices at once.
Example: `scores.argsort(descending=True)[:10]`
Instead: `scores.topk(10).indices`
Fix: display: topk gives no fixed order among equal elements.

Silent with stable=True, for NumPy (it has no topk), and where the cut is not from the start.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..lookup import value_of
from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor, k: int):\n"
VALID = (
    _START + "    return x.topk(k).indices\n",
    _START + "    return x.argsort()\n",
    _START + "    return x.argsort(descending=True, stable=True)[:k]\n",
    _START + "    return torch.sort(x)[0][k:]\n",
    _START + "    return torch.sort(x)[0]\n",
    "import numpy as np\n\ndef f(x):\n    return np.argsort(x)[:10]\n",
)
INVALID = (
    Invalid(_START + "    return »x.argsort(descending=True)[:k]«\n", "topk"),
    Invalid(_START + "    return »torch.sort(x, descending=True)[0][:5]«\n", "topk(5)"),
    Invalid(_START + "    return »torch.sort(x, dim=-1, descending=True).values[..., :k]«\n", "largest"),
    Invalid(_START + "    return »x.argsort()[:k]«\n", "smallest"),
)

_WHERE = re.compile(r"\b(?:arg)?sort\(")
_SORTS = ("torch.sort", "torch.argsort", "torch.Tensor.sort", "torch.Tensor.argsort")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for node in nodes(facts, _WHERE, cst.Subscript, analysed=True):
        count = _first(node)
        call = _sorted(node.value)
        if count is None or call is None:
            continue
        callee = value_of(facts, facts.module.span(call.func))
        given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        if not isinstance(callee, Library) or callee.name not in _SORTS or "stable" in given:
            continue
        descending = isinstance(given.get("descending"), cst.Name) and given["descending"].value == "True"
        if "descending" in given and not descending and not (isinstance(given["descending"], cst.Name) and given["descending"].value == "False"):
            continue
        k = facts.source.slice(facts.module.span(count))
        how = f"topk({k})" if descending else f"topk({k}, largest=False)"
        yield RULE.finding(f"all elements are sorted for the {k} {'largest' if descending else 'smallest'}; {how} finds them in one pass", facts.module.span(node),
                           fix=Fix("display", how))


def _first(node: cst.Subscript) -> cst.BaseExpression | None:
    """k of `[:k]` or `[..., :k]`."""
    last = node.slice[-1].slice
    before = [element.slice for element in node.slice[:-1]]
    if not isinstance(last, cst.Slice) or last.lower is not None or last.upper is None or last.step is not None or isinstance(last.upper, cst.UnaryOperation):
        return None
    whole = all(isinstance(b, cst.Index) and isinstance(b.value, cst.Ellipsis) or isinstance(b, cst.Slice) and b.lower is b.upper is b.step is None for b in before)
    return last.upper if whole else None


def _sorted(node: cst.BaseExpression) -> cst.Call | None:
    """The call of `x.argsort(...)`, `torch.sort(...)[0]`, `x.sort(...).indices`."""
    match node:
        case cst.Attribute(value=inner, attr=cst.Name(value="values" | "indices")):
            node = inner
        case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0" | "1")))]):
            node = inner
    if isinstance(node, cst.Call):
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        return node if name in ("sort", "argsort") else None
    return None


RULE = Rule("CUV809", "sort-for-topk", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
