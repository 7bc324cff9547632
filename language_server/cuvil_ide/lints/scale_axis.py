"""A scale per row that lines up with the columns.

What: one number per row (or channel) of a tensor meets that tensor without an axis for the columns: the scales [O] of a weight [O, I], or what
`w.abs().amax(dim=1)` gives.
Why: axes line up from the last one on, so each column is scaled by the number of a row. It raises when the sizes differ, and for a square matrix
nothing fails and all values are wrong.
Example: `codes.float() * scale` for codes [O, I] and scale [O]
Instead: `codes.float() * scale[:, None]`, or `keepdim=True` where the scale is computed
Fix: unsafe: the missing axes are added; the result changes, which is the point.

Silent where the numbers belong to the last axis, where the axis is written (`[:, None]`, `view`, `keepdim=True`), and where it is not known to which axis they belong.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from . import flow
from .axes import axes_of, is_symbol, shown
from .recorded import around, node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import torch\n\ndef f(w: torch.Tensor):\n    O, I = w.shape\n"
_SAID = 'import torch\n\ndef f(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor):\n    """codes int8 [O, I]; scale and zero [I]: per input channel"""\n'
VALID = (
    _START + "    scale = w.abs().amax(dim=1, keepdim=True) / 127\n    return w / scale\n",
    _START + "    scale = w.abs().amax(dim=0) / 127\n    return w / scale\n",
    _START + "    scale = w.abs().amax(dim=1) / 127\n    return w / scale[:, None], (w.T / scale).T\n",
    "import torch\n\ndef f(w: torch.Tensor):\n    return w / w.norm(dim=-1), w - w.mean(0), w / w.amax(dim=1, keepdim=True), w / w.max(), w.amax(1) / w.sum(1)\n",
    # Each row meets each: norms of both sides of a table.
    _START + "    square = (w * w).sum(1)\n    return square[:, None] + square - 2 * w @ w.T\n",
    _SAID + "    return (codes.float() - zero) * scale\n",
)
INVALID = (
    Invalid(_START + "    scale = w.abs().amax(dim=1) / 127\n    return »w / scale«\n", "[O]",
            _START + "    scale = w.abs().amax(dim=1) / 127\n    return w / scale[:, None]\n"),
    Invalid(_START + "    scale = torch.ones(O)\n    return »w * scale«\n", "axis 0", _START + "    scale = torch.ones(O)\n    return w * scale[:, None]\n"),
    # However many axes there are.
    Invalid("import torch\n\ndef f(w: torch.Tensor):\n    scale = w.abs().amax(dim=1) / 127\n    return torch.round(»w / scale«)\n", "keepdim"),
    # A square matrix: nothing fails.
    Invalid("import torch\n\ndef f():\n    w = torch.randn(64, 64)\n    return »w / w.norm(dim=1)«\n", "[64, 64]",
            "import torch\n\ndef f():\n    w = torch.randn(64, 64)\n    return w / w.norm(dim=1)[:, None]\n"),
    Invalid(_SAID.replace("scale and zero [I]: per input", "scale [O]: per output") + "    return »codes.float() * scale«\n", "scale[:, None]",
            _SAID.replace("scale and zero [I]: per input", "scale [O]: per output") + "    return codes.float() * scale[:, None]\n"),
)

_OPERATIONS = ("mul", "div", "sub", "add")
_BINARY = (cst.Multiply, cst.Divide, cst.Subtract, cst.Add)
_SHAPED = re.compile(r"\b(\w+)\b[^\[\]\n;.]{0,40}?\[\s*([A-Za-z_]\w*(?:\s*,\s*\w+)*)\s*\]")
_WHERE = re.compile(r"\[\s*[A-Za-z_]\w*\s*\][\s\S]*[*/-]|[*/-][\s\S]*\[\s*[A-Za-z_]\w*\s*\]")
_REDUCED = frozenset(("reduce_max", "reduce_min", "reduce_sum", "norm", "mean", "std", "var"))
_ALIKE = frozenset(("cast", "abs", "neg", "mul", "exp", "sqrt"))
_SCALARS = frozenset(("div", "mul", "cast", "maximum", "add", "sqrt"))
_CASTS = frozenset(("float", "double", "half", "to", "astype", "type", "int", "long"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, *_OPERATIONS):
        found = _misplaced(function, op)
        if found is None and (reduced := _of_first_axis(function, op)) is not None:
            yield RULE.finding("what is left after a reduction over later axes starts with axis 0, and lines up with the last ones of the tensor itself; keepdim=True keeps the axes",
                               flow.span(op), flow.evidence((reduced, f"is reduced over axis {', '.join(map(str, reduced.attr('axes')))} without keepdim")))
        elif found is not None:
            table, scale, axis = found
            back = len(table.type.shape) - 1 - axis
            yield RULE.finding(f"{shown(scale.type.shape)} meets {shown(table.type.shape)}: its numbers belong to axis {axis}, and line up with "
                               f"axis {len(table.type.shape) - 1}; {'keepdim=True, or ' if scale.type.rank == 1 else ''}add the missing axes: [:{', None' * back}]",
                               flow.span(op), flow.evidence((table, f"has shape {shown(table.type.shape)}"), (scale, f"has shape {shown(scale.type.shape)}")),
                               _fix(facts, flow.span(op), scale, back))
    yield from _said(facts)


def _misplaced(function: Function, op: Op) -> tuple[Op, Op, int] | None:
    """(table, scale, axis of the table that the scale's last axis is)."""
    a, b = (flow.operand(function, op, place) for place in (0, 1)) if len(op.operands) == 2 else (None, None)
    if a is None or not a.type.shape or not b.type.shape or a.type.rank == b.type.rank:
        return None
    table, scale = (a, b) if a.type.rank > b.type.rank else (b, a)
    axes = axes_of(function)
    own, pieces = axes.get(table.id), axes.get(scale.id)
    if not own or not pieces or not pieces[-1] or not own[-1]:
        return None
    if pieces[-1] in own[:-1] and pieces[-1] != own[-1]:
        return table, scale, own.index(pieces[-1])
    size, sizes = scale.type.shape[-1], list(table.type.shape)
    if scale.type.rank == 1 and is_symbol(size) and sizes.count(size) == 1 and sizes[-1] != size and is_symbol(sizes[-1]):
        return table, scale, sizes.index(size)
    return None


def _of_first_axis(function: Function, op: Op) -> Op | None:
    """The reduction of a tensor over axes behind the first, without keepdim, that meets the tensor itself, however many axes that has."""
    for place in (0, 1) if len(op.operands) == 2 else ():
        scale, table = flow.operand(function, op, place), flow.operand(function, op, 1 - place)
        while scale.name in _SCALARS and scale.operands and scale.type.shape is None:
            scale = flow.operand(function, scale)
        axes = scale.attr("axes") if scale.name in _REDUCED and not scale.attr("keepdims") else None
        if axes and all(axis > 0 for axis in axes) and scale.type.shape is None and table.type.shape is None:
            before = {each.id for each in flow.sources(function, flow.operand(function, scale), _ALIKE)}
            if before & {each.id for each in flow.sources(function, table, _ALIKE)}:
                return scale
    return None


def _said(facts: FileFacts) -> Iterator[Diagnostic]:
    """Shapes of parameters that the docstring tells."""
    for node in nodes(facts, _WHERE, cst.BinaryOperation, analysed=True):
        if not isinstance(node.operator, _BINARY):
            continue
        function = around(facts, node, cst.FunctionDef)
        text = function.get_docstring(clean=False) if function is not None else None
        left, right = _name(node.left), _name(node.right)
        if not text or not left or not right:
            continue
        shapes = {name: [size.strip() for size in sizes.split(",")] for name, sizes in _SHAPED.findall(text)}
        table, scale, side = (shapes.get(left), shapes.get(right), node.right)
        if table is not None and scale is not None and len(table) < len(scale):
            table, scale, side = scale, table, node.left
        if table is None or scale is None or len(scale) != 1 or len(table) < 2 or scale[0] not in table[:-1] or scale[0] == table[-1]:
            continue
        if _rebound(facts, function, left) or _rebound(facts, function, right):
            continue
        axis, where = table.index(scale[0]), facts.module.span(side)
        said = facts.source.slice(where)
        fixed = f"{said}[:{', None' * (len(table) - 1 - axis)}]"
        yield RULE.finding(f"[{scale[0]}] meets [{', '.join(table)}]: its numbers belong to axis {axis}, and line up with axis {len(table) - 1}; {fixed}",
                           facts.module.span(node), (Evidence(facts.module.span(function.name), "its docstring tells the shapes"),),
                           Fix("unsafe", "Add the missing axes", (Edit(where, fixed),)) if isinstance(side, (cst.Name, cst.Call)) else None)


def _name(node: cst.BaseExpression) -> str:
    """The name that a side is, behind casts and the difference to a zero point."""
    while not isinstance(node, cst.Name):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _CASTS:
            node = node.func.value
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
            node = node.left
        else:
            return ""
    return node.value


def _rebound(facts: FileFacts, function: cst.FunctionDef, name: str) -> bool:
    """The name is bound to something other than a cast of itself, or is no parameter."""
    if all(p.name.value != name for p in (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)):
        return True
    text = facts.module.code(function)
    return any(not re.match(rf"{name}\.(?:{'|'.join(_CASTS)})\(", value) for value in re.findall(rf"^\s*{name}\s*[-+*/]?=\s*(.*)$", text, re.MULTILINE))


def _fix(facts: FileFacts, where: Span, scale: Op, back: int) -> Fix | None:
    from cuvil.frontends.python.values import Tensor

    from ..lookup import value_of
    node = node_of(facts, where, cst.BinaryOperation)
    for side in (node.left, node.right) if node is not None and scale.type.rank == 1 else ():
        at = facts.module.span(side)
        value = value_of(facts, at)
        if isinstance(value, Tensor) and value.type.rank == 1 and isinstance(side, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
            return Fix("unsafe", "Add the missing axes", (Edit(at, f"{facts.source.slice(at)}[:{', None' * back}]"),))
    return None


RULE = Rule("CUV934", "scale-axis", kind="silent-broadcast", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
