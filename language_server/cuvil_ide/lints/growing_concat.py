"""A result that is joined anew in every round of a loop.

What: `x = torch.cat([x, part])` (or `np.concatenate`, `np.append`, `torch.vstack` and the like) in a loop that reads `x` for nothing else.
Why: each round copies all that was gathered before, so the loop moves memory that grows with the square of its rounds; every
copy is a new allocation.
Example: `for batch in loader: labels = torch.cat((labels, net(batch)))`
Instead: append to a list in the loop and join once behind it: `labels = torch.cat(parts)`
Fix: display: the list has to be made before the loop.

Silent where the loop needs the joined value in each round (token ids in a decode loop), where the joined part is cut back to a
bounded length, and for loops that are known to run a few times.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.cst.shown import below
from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from ..lookup import value_of
from ..syntax import nodes
from .recorded import around
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef gather(net, loader):\n    out = torch.empty(0)\n"
VALID = (
    "import torch\n\ndef gather(net, loader):\n    parts = []\n    for x in loader:\n        parts.append(net(x))\n    return torch.cat(parts)\n",
    # The loop needs what was joined so far.
    "import torch\n\ndef decode(net, ids):\n    for _ in range(100):\n        step = net(ids).argmax(-1)\n        ids = torch.cat([ids, step], dim=1)\n    return ids\n",
    "import torch\n\ndef window(net, loader):\n    last = torch.zeros(8)\n    for x in loader:\n        last = torch.cat([last, net(x)])[-8:]\n    return last\n",
    _START + "    for i in range(3):\n        out = torch.cat([out, net(loader[i])])\n    return out\n",
    # Not the value of the round before.
    _START + "    for x in loader:\n        out = torch.cat([x, net(x)])\n    return out\n",
)
INVALID = (
    Invalid(_START + "    for x in loader:\n        out = »torch.cat([out, net(x)])«\n    return out\n", "copies all of `out`"),
    Invalid(_START + "    for x in loader:\n        out = »torch.cat((out, net(x).cpu()), dim=0)«\n    return out\n", "quadratic"),
    Invalid("import numpy as np\n\ndef gather(files):\n    out = np.zeros((0, 3))\n    for f in files:\n        out = »np.append(out, np.load(f), axis=0)«\n    return out\n",
            "np.append"),
)

_JOINS = {f"torch.{n}" for n in ("cat", "concat", "concatenate", "vstack", "hstack", "row_stack", "column_stack", "dstack")} | {
    f"numpy.{n}" for n in ("concatenate", "append", "vstack", "hstack", "row_stack", "column_stack", "dstack", "r_")}
_WHERE = re.compile(r"\b(?:for|while)\b[\s\S]*\.(?:cat|concat|concatenate|append|[vhd]stack|row_stack|column_stack)\(")
FEW = 4


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for node in nodes(facts, _WHERE, cst.Assign, analysed=True):
        call = node.value
        if not isinstance(call, cst.Call) or len(node.targets) != 1 or not isinstance(node.targets[0].target, cst.Name) or not call.args:
            continue
        name = node.targets[0].target.value
        if not _holds(call.args[0].value, name):
            continue
        callee = value_of(facts, facts.module.span(call.func))
        if not isinstance(callee, Library) or callee.name not in _JOINS:
            continue
        loop = around(facts, node, cst.For, cst.While, cst.FunctionDef, cst.Lambda)
        if not isinstance(loop, (cst.For, cst.While)) or _few(loop) or _reads(loop.body, name) > 1:
            continue
        shown = facts.source.slice(facts.module.span(call.func))
        yield RULE.finding(f"{shown} copies all of `{name}` in each round: the loop moves quadratic memory. Append the parts to a list and join once behind the loop",
                           facts.module.span(call), (Evidence(_header(facts, loop), "in this loop"),),
                           Fix("display", f"{name}_parts.append(...) in the loop, {name} = {shown}({name}_parts) behind it"))


def _header(facts: FileFacts, loop: cst.For | cst.While) -> Span:
    """The line of `for` or `while`, up to its block."""
    whole, test = facts.module.span(loop), facts.module.span(loop.iter if isinstance(loop, cst.For) else loop.test)
    return Span(whole.path, whole.line, whole.column, test.end_line, test.end_column)


def _holds(node: cst.BaseExpression, name: str) -> bool:
    """The first argument is the name itself (np.append) or a list or tuple with it."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(isinstance(e.value, cst.Name) and e.value.value == name for e in node.elements)
    return isinstance(node, cst.Name) and node.value == name


def _few(loop: cst.For | cst.While) -> bool:
    """`for i in range(3)`, `for x in (a, b)`."""
    if not isinstance(loop, cst.For):
        return False
    match loop.iter:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=cst.Integer(value=count))]):
            return int(count, 0) <= FEW
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return len(elements) <= FEW
    return False


def _reads(body: cst.CSTNode, name: str) -> int:
    """How often a name is read in a block."""
    count, todo = 0, [body]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.Name):
            count += node.value == name
        elif isinstance(node, cst.Assign):
            todo.append(node.value)
            todo += [t.target for t in node.targets if not isinstance(t.target, cst.Name)]
        elif isinstance(node, cst.Attribute):
            todo.append(node.value)
        elif isinstance(node, cst.Arg):
            todo.append(node.value)
        else:
            todo += below(node)
    return count


RULE = Rule("CUV802", "growing-concat", kind="quadratic-growth", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
