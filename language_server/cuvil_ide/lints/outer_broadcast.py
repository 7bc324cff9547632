"""A column meets a vector and silently becomes a table that is then reduced.

What: a tensor of shape [N, 1] and one of shape [N] are combined elementwise, which gives [N, N], and all of that goes into
a reduction.
Why: the result has the right type and no error is raised, but it averages N*N differences, of which only N were meant: a loss or
a metric that is wrong by the pairs that do not belong together.
Example: `(model(x) - target).abs().mean()` where the model's last layer has one output and target is [N]
Instead: `(model(x).squeeze(-1) - target).abs().mean()`
Fix: unsafe: squeezing the column changes the result, which is the point.

Silent when the single axis is written out (`[:, None]`, `unsqueeze`, `view`), when an axis of the table survives to its use
(pairwise distances), and when N is not proved to be the same on both sides.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ops.definition import DEFINITIONS, ELEMENTWISE, REDUCTION
from cuvil.source import Edit, Span

from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\nimport torch.nn as nn\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    N, C = x.shape\n"
VALID = (
    # Pairs on purpose: the axis is written.
    "import torch\n\ndef f():\n    a, b = torch.zeros(8), torch.zeros(8)\n    return (a[:, None] - b).abs().mean()\n",
    "import torch\n\ndef f():\n    a, b = torch.zeros(8), torch.zeros(8)\n    return (a.unsqueeze(1) - b).abs().mean()\n",
    # The table is the result, or is reduced along one axis only.
    "import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return a - b\n",
    "import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return (a - b).abs().min(dim=1).values\n",
    # Different sizes: a table can only be meant.
    "import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(5)\n    return (a - b).mean()\n",
    "import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return (a.squeeze(-1) - b).mean()\n",
    # A mean difference of all pairs of one vector.
    "import torch\n\ndef f(x: torch.Tensor):\n    N, = x.shape\n    a = x.view(-1, 1)\n    return (a - x).abs().mean()\n",
    "import torch\n\na, b = torch.zeros(8, 1), torch.zeros(8)\ntable = a - b\nprint(table.shape, table.mean())\n",
)
INVALID = (
    Invalid("import torch\n\na, b = torch.zeros(8, 1), torch.zeros(8)\nprint((»a - b«).abs().mean())\n", "[8, 8]",
            "import torch\n\na, b = torch.zeros(8, 1), torch.zeros(8)\nprint((a.squeeze(-1) - b).abs().mean())\n"),
    Invalid("import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    N, = x.shape\n    y = torch.zeros(N).view(-1, 1)\n    return (»x - y«).abs().mean()\n", "N*N",
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    N, = x.shape\n    y = torch.zeros(N).view(-1, 1)\n    return (x - y.squeeze(-1)).abs().mean()\n"),
    Invalid("import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return (»a - b«).abs().mean()\n",
            "[8, 1] with [8] broadcasts to [8, 8]",
            "import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return (a.squeeze(-1) - b).abs().mean()\n"),
    Invalid("import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return (»(a * 2) - b«).abs().mean()\n", "[8, 8]",
            "import torch\n\ndef f():\n    a, b = torch.zeros(8, 3)[:, :1], torch.zeros(8)\n    return (((a * 2).squeeze(-1)) - b).abs().mean()\n"),
    Invalid("import torch\nfrom torch import nn\n\nclass Head(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.out = nn.Linear(24, 1)\n\n    def forward(self, x):\n        return self.out(x)\n\n"
            "def error(target):\n    guess = Head()(torch.zeros(16, 24))\n    gap = »torch.zeros(16) - guess«\n    return (gap * gap).mean()\n",
            "[16, 1] with [16] broadcasts to [16, 16]",
            "import torch\nfrom torch import nn\n\nclass Head(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.out = nn.Linear(24, 1)\n\n    def forward(self, x):\n        return self.out(x)\n\n"
            "def error(target):\n    guess = Head()(torch.zeros(16, 24))\n    gap = torch.zeros(16) - guess.squeeze(-1)\n    return (gap * gap).mean()\n"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    seen: set[Span] = set()
    yield from _of_module(facts)
    for function in facts.functions:
        if function.function is None:
            continue
        for op, column, vector in _tables(function.function):
            origin = op.origins[0] if op.origins else None
            if origin is None or origin.span in seen or origin.span.path != facts.source.path:
                continue
            if _written_out(function.function, op, column, vector) or not _only_reduced(function.function, op):
                continue
            seen.add(origin.span)
            size = column.type.shape[0]
            evidence = tuple(Evidence(side.origins[0].span, f"has shape {flow.shape(side)}") for side in (column, vector) if side.origins)
            yield RULE.finding(
                f"{flow.shape(column)} with {flow.shape(vector)} broadcasts to {flow.shape(op)}: all {size}*{size} pairs are reduced, not {size} of them",
                origin.span, evidence, _fix(facts, origin.span, column))


def _of_module(facts: FileFacts) -> Iterator[Diagnostic]:
    """The same in statements of the module, which have values and no graph."""
    from cuvil.frontends.python.values import Tensor
    shapes = {fact.span: fact.value for fact in facts.expressions if isinstance(fact.value, Tensor) and fact.value.type.rank in (1, 2)}
    for span, value in shapes.items():
        rows = value.type.shape
        if len(rows) != 2 or rows[0] != rows[1] or rows[0] == 1:
            continue
        node = node_of(facts, span, cst.BinaryOperation, cst.Comparison)
        sides = (node.left, node.right if isinstance(node, cst.BinaryOperation) else node.comparisons[0].comparator) if node is not None else ()
        ops = [found.op for side in sides if (found := shapes.get(facts.module.span(side))) is not None]
        column = next((op for op in ops if op.type.shape == (rows[0], 1)), None)
        vector = next((op for op in ops if op.type.shape == rows[:1]), None)
        if column is None or vector is None or column.name == "reshape" or not _reduced_in_text(facts, node):
            continue
        evidence = tuple(Evidence(op.origins[0].span, f"has shape {flow.shape(op)}") for op in (column, vector) if op.origins)
        yield RULE.finding(f"{flow.shape(column)} with {flow.shape(vector)} broadcasts to {flow.shape(value.op)}: all {rows[0]}*{rows[0]} pairs are reduced, not {rows[0]} of them",
                           span, evidence, _fix(facts, span, column))


def _reduced_in_text(facts: FileFacts, node: cst.CSTNode) -> bool:
    """`(a - b).abs().mean()`, on the spot or by a name that is bound to it and reduced behind."""
    above = facts.module.parent(node)
    while isinstance(above, (cst.Attribute, cst.Call, cst.BinaryOperation)):
        if isinstance(above, cst.Call) and isinstance(above.func, cst.Attribute) and above.func.attr.value in ("mean", "sum"):
            return not above.args
        above = facts.module.parent(above)
    if not isinstance(above, cst.Assign) or not isinstance(above.targets[0].target, cst.Name):
        return False
    name, behind = above.targets[0].target.value, facts.source.text[facts.source.index.offset(facts.module.span(node).end_line + 1, 0):]
    return len(re.findall(rf"\b{name}\b", behind)) == len(re.findall(rf"\b{name}(?:\.(?:abs|square|float|sqrt)\(\)|\.pow\(2\)| ?\*\* ?2\))*\.(?:mean|sum)\(\)", behind)) > 0


def _tables(function: Function) -> Iterator[tuple[Op, Op, Op]]:
    """(op, its [N, 1] operand, its [N] operand) for ops whose result is [N, N]."""
    for op in function.body:
        definition = DEFINITIONS.get(op.name)
        if definition is None or definition.kind != ELEMENTWISE or op.type.rank != 2 or op.type.shape[0] != op.type.shape[1]:
            continue
        operands = [function.by_id[id] for id in op.operands]
        size = op.type.shape[0]
        column = next((o for o in operands if o.type.shape == (size, 1)), None)
        vector = next((o for o in operands if o.type.shape == (size,)), None)
        if size != 1 and column is not None and vector is not None:
            yield op, column, vector


def _written_out(function: Function, table: Op, column: Op, vector: Op) -> bool:
    """The single axis of the column was made by a reshape, which is what `[:, None]`, `unsqueeze` and `view` are: pairs are meant. One that
    was made in another statement is meant for something else, when the table is a difference or comparison with other data."""
    while True:
        if column.name == "reshape":
            apart = table.origins and column.origins and not table.origins[0].span.encloses(column.origins[0].span)
            return not (apart and table.name in ("sub", "eq", "ne") and _source(function, column) is not _source(function, vector))
        definition = DEFINITIONS.get(column.name)
        if definition is None or definition.kind != ELEMENTWISE:
            return False
        shaped = [o for id in column.operands if (o := function.by_id[id]).type.shape == column.type.shape]
        if not shaped:
            return False
        column = shaped[0]


def _source(function: Function, op: Op) -> Op:
    return flow.source(function, op, {"reshape", "cast", "transpose"})


def _only_reduced(function: Function, table: Op) -> bool:
    """Every use of the table ends, after elementwise steps, in a reduction over both of its axes."""
    todo, reduced, seen = [table], False, {table.id}
    while todo:
        value = todo.pop()
        if value.id in function.results:
            return False
        for user in function.users[value.id]:
            definition = DEFINITIONS.get(user.name)
            if definition is None:
                return False
            if user.type.rank == 0 and (definition.kind == REDUCTION or user.attr("axes") is not None or user.attr("axis") is not None):
                reduced = True
            elif (definition.kind == ELEMENTWISE or user.name == "pow") and user.type.shape == table.type.shape:
                if user.id not in seen:
                    seen.add(user.id)
                    todo.append(user)
            elif definition.kind == REDUCTION and set(user.attr("axes", ())) == {0, 1}:      # keepdims
                reduced = True
            else:
                return False
    return reduced


def _fix(facts: FileFacts, span: Span, column: Op) -> Fix | None:
    """`.squeeze(-1)` behind the side that is the column, where the code shows it as one expression."""
    node = node_of(facts, span, cst.BinaryOperation)
    if node is None:
        return None
    from cuvil.frontends.python.values import Tensor

    from ..lookup import value_of
    for side in (node.left, node.right):
        where = facts.module.span(side)
        value = value_of(facts, where)
        if isinstance(value, Tensor) and value.type.shape == column.type.shape:
            text = facts.source.slice(where)
            simple = isinstance(side, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
            return Fix("unsafe", "Drop the single axis: .squeeze(-1)",
                       (Edit(where, f"{text}.squeeze(-1)" if simple else f"({text}).squeeze(-1)"),))
    return None


RULE = Rule("CUV108", "outer-broadcast", kind="silent-broadcast", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
