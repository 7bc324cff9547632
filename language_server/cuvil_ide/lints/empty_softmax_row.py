"""A softmax over scores that may all be -inf.

What: scores are filled with -inf by a mask that may leave nothing of a row: lengths of which one is 0, a triangle without its diagonal, a padding mask
over the queries as well as the keys.
Why: the softmax of a row of -inf is NaN, and NaN in one row reaches all others in the next layer. It happens only with such a row, so tests pass.
Example: `scores.masked_fill(torch.arange(T) >= lengths[:, None], float("-inf")).softmax(-1)` where a length is 0
Instead: `torch.nan_to_num(weights)`, a fill of `torch.finfo(scores.dtype).min`, or `F.scaled_dot_product_attention`, which gives zeros (torch 2.5 and newer)
Fix: display: what an empty row should give is not in the code.

Silent when the fill is a finite number, when it is not known that a row can be empty, when a length that is 0 is asked for, and where NaN is replaced
afterwards.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..lookup import value_of
from . import flow
from .evaluated import evaluated
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_READ = ("import torch\n\ndef read(scores: torch.Tensor, lengths: torch.Tensor):\n    B, T = scores.shape\n"
         "    valid = torch.arange(T, device=scores.device)[None, :] < lengths[:, None]\n")
_RUN = "\ndef run():\n    return read(torch.ones(2, 3), torch.tensor([2, 0]))\n"
_SQUARE = "import torch\n\ndef attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n    B, T, D = q.shape\n    s = q @ k.transpose(-2, -1)\n"
VALID = (
    # Nothing says that a length is 0.
    _READ + "    return scores.masked_fill(~valid, float('-inf')).softmax(-1)\n",
    _READ + "    return scores.masked_fill(~valid, float('-inf')).softmax(-1)\n" + _RUN.replace("0]", "3]"),
    # Finite.
    _READ + "    return scores.masked_fill(~valid, torch.finfo(scores.dtype).min).softmax(-1)\n" + _RUN,
    _READ + "    return torch.nan_to_num(scores.masked_fill(~valid, float('-inf')).softmax(-1))\n" + _RUN,
    _READ + "    weights = scores.masked_fill(~valid, float('-inf')).softmax(-1)\n    return weights.masked_fill(~valid, 0.0)\n" + _RUN,
    _READ + "    weights = scores.masked_fill(~valid, float('-inf')).softmax(-1)\n    weights[lengths == 0] = 0.0\n    return weights\n" + _RUN,
    _READ + "    weights = scores.masked_fill(~valid, float('-inf')).softmax(-1)\n    return weights[lengths > 0]\n" + _RUN,
    _READ.replace("lengths[:, None]", "lengths.clamp(min=1)[:, None]") + "    return scores.masked_fill(~valid, float('-inf')).softmax(-1)\n" + _RUN,
    _READ + "    if (lengths == 0).any():\n        raise ValueError('nothing to read')\n    return scores.masked_fill(~valid, float('-inf')).softmax(-1)\n" + _RUN,
    _SQUARE + "    return s.masked_fill(torch.ones(T, T).triu(1).bool(), float('-inf')).softmax(-1)\n",
    _SQUARE + "    return s.masked_fill(torch.ones(T, T).tril() == 0, float('-inf')).softmax(-1)\n",
    _SQUARE + "    i = torch.arange(T)\n    return s.masked_fill(i[:, None] < i[None], float('-inf')).softmax(-1)\n",
    # The rows of a column are another matter.
    _SQUARE + "    return s.masked_fill(torch.ones(T, T).triu().bool(), float('-inf')).softmax(-2)\n",
)
INVALID = (
    Invalid(_READ + "    return »scores.masked_fill(~valid, float('-inf')).softmax(-1)«\n" + _RUN, "NaN"),
    Invalid(_READ + "    scores = torch.where(valid, scores, -torch.inf)\n    return »torch.log_softmax(scores, dim=1)«\n" + _RUN, "nothing is left of a row"),
    Invalid(_READ + "    bias = torch.zeros(B, T).masked_fill(~valid, float('-inf'))\n    return »torch.softmax(scores + bias, dim=1)«\n" + _RUN, "NaN"),
    Invalid("import numpy as np\n\ndef read(scores, lengths):\n    valid = np.arange(scores.shape[1]) < lengths[:, None]\n    scores = np.where(valid, scores, -np.inf)\n"
            "    e = np.exp(»scores - scores.max(axis=1, keepdims=True)«)\n    return e / e.sum(axis=1, keepdims=True)\n\n"
            "def run():\n    return read(np.random.rand(2, 3), np.array([2, 0]))\n", "NaN"),
    Invalid(_READ.replace("shape\n", "shape          # lengths may be 0: nothing was found\n") + "    return »scores.masked_fill(~valid, float('-inf')).softmax(-1)«\n", "lengths"),
    # Left padding under a causal mask: the first words see padding alone.
    Invalid("import torch\n\ndef attend(scores: torch.Tensor, keep: torch.Tensor):\n    T = scores.shape[-1]\n    causal = torch.ones(T, T, dtype=torch.bool).tril()\n"
            "    return »scores.masked_fill(~(causal & keep[:, None]), -torch.inf).softmax(-1)«\n\n"
            "def run():\n    return attend(torch.zeros(2, 3, 3), torch.tensor([[False, True, True], [True, True, True]]))\n", "NaN"),
    Invalid(_SQUARE + "    s = s.masked_fill(torch.triu(torch.ones(T, T)).bool(), float('-inf'))\n    return »s.softmax(-1)« @ v\n", "first row"),
    Invalid(_SQUARE + "    i = torch.arange(T)\n    return »torch.where(i[:, None] > i, s, float('-inf')).softmax(-1)« @ v\n", "first row"),
    Invalid(_SQUARE + "    i = torch.arange(T)\n    return »torch.where(i[:, None] < i, s, float('-inf')).softmax(-1)« @ v\n", "last row"),
    Invalid("import torch\nfrom torch import nn\n\nattend = nn.MultiheadAttention(8, 2, batch_first=True)\n\ndef f(x: torch.Tensor, lengths: torch.Tensor):\n"
            "    pad = torch.arange(x.shape[1]) >= lengths[:, None]\n    return »attend(x, x, x, key_padding_mask=pad)«[0]\n\ndef run():\n"
            "    return f(torch.ones(2, 3, 8), torch.tensor([3, 0]))\n", "NaN"),
)

_SOFTMAX = ("softmax", "log_softmax", "sub")
_INVERSE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_COUNTED = re.compile(r"(?:torch|np|numpy)\.arange\([^(),]+(?:,\s*(?:device|dtype)\s*=[^,()]*)*\)")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    found = [(function, op, why) for function, op in flow.ops(facts, *_SOFTMAX, "attention", "opaque") if (why := _empty(facts, function, op)) is not None]
    repaired = {flow.span(op) for function, op in flow.ops(facts, *_SOFTMAX, "opaque") if flow.nan_replaced(facts, function, op)} if found else ()
    for _, op, (mask, what) in found:
        if flow.span(op) not in repaired:
            yield RULE.finding(f"{what}: all of its scores are -inf, and their softmax is NaN. Fill with torch.finfo(dtype).min, or replace the NaN",
                               flow.span(op), flow.evidence((mask, "the mask is made here")), Fix("display", "weights = torch.nan_to_num(weights)"))


def _empty(facts: FileFacts, function: Function, op: Op) -> tuple[Op, str] | None:
    """(mask, in words which row is empty) where the masks of a softmax leave nothing of a row."""
    excluded = None
    for mask, axis, keeps in _masks(facts, function, op):
        parts = list(_conjuncts(function, mask, axis, keeps))
        known = evaluated(function, mask)
        if known is not None:
            known = ~known if keeps else known
            excluded = known if excluded is None or op.name not in _SOFTMAX else excluded | known
            if excluded.ndim >= -axis and excluded.size and excluded.all(axis).any() and not any(_asked(facts, part, _text(facts, part, side)) for part, *_ in parts
                                                                                                for side in (0, 1)):
                return mask, f"with the data of this file's own call nothing is left of a row of {flow.shape(mask)}"
        for part, along, kept in parts:
            what = _triangle(part, along, kept) or _compared(facts, function, part, along, kept)
            if what:
                return part, what
    return None


def _masks(facts: FileFacts, function: Function, op: Op) -> Iterator[tuple[Op, int, bool]]:
    """(mask, axis of the softmax counted from the last, True: it says what stays) of all masks that fill the scores with -inf."""
    if op.name == "attention":
        if len(op.operands) > 3 and facts.targets.torch < (2, 5) and _flags(mask := flow.operand(function, op, 3)):
            yield mask, -1, True
        return
    if op.name == "opaque":
        if op.attr("call") == "torch.nn.MultiheadAttention":           # with need_weights, as by default: without it empty rows may give zeros
            yield from ((mask, -1, False) for mask in map(function.by_id.__getitem__, op.operands[3:]) if _flags(mask))
        return
    value, axis = flow.operand(function, op), op.attr("axis")
    if op.name == "sub":                                              # the shift of a softmax that is written out: -inf less -inf
        most = flow.source(function, flow.operand(function, op, 1))
        axes = most.attr("axes") or ()
        if most.name != "reduce_max" or len(axes) != 1 or flow.operand(function, most) is not value:
            return
        axis = axes[0]
    axis = axis if axis < 0 else axis - value.type.rank if value.type.rank is not None else 0
    todo, seen = [(value, axis)] if axis else [], set()
    while todo:
        value, axis = todo.pop()
        if value.id in seen:
            continue
        seen.add(value.id)
        inner = [function.by_id[id] for id in value.operands]
        if value.name in ("add", "cast", "broadcast"):
            todo += [(each, axis) for each in inner]
        elif value.name == "select":
            fills = [flow.number(function, each) == float("-inf") for each in inner[1:]]
            if fills[0] != fills[1]:
                yield inner[0], axis, fills[1]
                todo.append((inner[1 + fills[0]], axis))


def _flags(op: Op) -> bool:
    return op.type.dtype is not None and op.type.dtype.name == "BOOL"


def _conjuncts(function: Function, mask: Op, axis: int, keeps: bool) -> Iterator[tuple[Op, int, bool]]:
    """The parts of a mask that all have to let a place through, each with its own axis."""
    todo, seen = [(mask, axis, keeps)], set()
    while todo:
        op, axis, keeps = todo.pop()
        if op.id in seen:
            continue
        seen.add(op.id)
        inner = [function.by_id[id] for id in op.operands]
        if op.name == "not":
            todo.append((inner[0], axis, not keeps))
        elif op.name == ("and" if keeps else "or"):
            todo += [(each, axis, keeps) for each in inner]
        elif op.name in ("eq", "ne") and flow.number(function, inner[1]) == 0:
            todo.append((inner[0], axis, keeps == (op.name == "ne")))
        elif op.name in flow.LAYOUT:
            at, axis = _behind(function, op, axis)
            if at is not op:
                todo.append((at, axis, keeps))
        else:
            yield op, axis, keeps


def _behind(function: Function, op: Op, axis: int) -> tuple[Op, int]:
    """A value before ops that only move it, and where its axis (counted from the last) was; as far as that is known."""
    while op.name in ("cast", "broadcast", "reshape", "transpose"):
        before = flow.operand(function, op)
        if op.name == "transpose":
            axis = op.attr("axes")[axis] - len(op.attr("axes"))
        elif op.name == "reshape":
            was, now = before.type.shape, op.type.shape
            if was is None or now is None or not -len(now) <= axis:
                break
            old, new = ([at - len(sizes) for at, size in enumerate(sizes) if size != 1] for sizes in (was, now))
            if [was[at] for at in old] != [now[at] for at in new]:
                break
            axis = old[new.index(axis)] if axis in new else -1 - len(was)          # an axis of one element was none before
        op = before
    return op, axis


def _triangle(op: Op, axis: int, keeps: bool) -> str:
    """A square of ones, cut so that nothing is left of its first or last row."""
    diagonal = op.attr("diagonal")
    if op.name not in ("tril", "triu") or axis != -1 or not isinstance(diagonal, int):
        return ""
    if op.name == ("tril" if keeps else "triu"):
        return "nothing is left of the first row, for the triangle takes the diagonal too" if diagonal < 0 or not keeps and diagonal == 0 else ""
    shape = op.type.shape
    square = shape is not None and len(shape) > 1 and shape[-1] == shape[-2]
    return "nothing is left of the last row, for the triangle takes the diagonal too" if square and diagonal >= (1 if keeps else 0) else ""


def _compared(facts: FileFacts, function: Function, op: Op, axis: int, keeps: bool) -> str:
    """Places that are compared with lengths that may be 0, or with places, themselves left out."""
    written = op.attr("call", "").removeprefix("operator.") if op.name == "opaque" else op.name
    if written not in _INVERSE:
        return ""
    kind = written if keeps else _INVERSE[written]
    bound = _text(facts, op, 1 if kind in ("lt", "le") else 0)
    if kind in ("lt", "gt") and _may_be_zero(facts, op, keeps, bound):
        return f"nothing is left of a row where {bound} is 0, which may be"
    sides = [_behind(function, function.by_id[id], axis) for id in op.operands]
    counted = [_places(facts, *side) for side in sides]
    if counted not in ([True, False], [False, True]):
        return ""
    (places, _), (other, along) = sides if counted[0] else sides[::-1]
    kind = kind if counted[0] else _MIRRORED[kind]
    if kind in ("lt", "gt") and along != -1 and _places(facts, other, -1) and other.type.shape == places.type.shape:
        return f"nothing is left of the {'first' if kind == 'lt' else 'last'} row: no place is {'before' if kind == 'lt' else 'after'} it"
    return ""


def _places(facts: FileFacts, op: Op, axis: int) -> bool:
    """It counts 0, 1, 2, ... along this axis."""
    if op.type.rank != 1 or axis != -1 or not op.origins:
        return False
    span = op.origins[0].span
    return op.name == "iota" or op.name == "opaque" and span.path == facts.source.path and _COUNTED.fullmatch(facts.source.slice(span)) is not None


def _may_be_zero(facts: FileFacts, op: Op, keeps: bool, bound: str) -> bool:
    """Lengths that the function's words say may be 0."""
    from cuvil.frontends.python.values import Tensor
    span = flow.span(op)
    value = value_of(facts, span) if span is not None and span.path == facts.source.path else None
    if not bound or not isinstance(value, Tensor) or value.mask is None or value.mask.origin != "length" or value.mask.keep is not keeps:
        return False
    words = rf"\b{re.escape(bound)}\b[^\n.]*(?:\b(?:may|might|can|could)\b[^\n.;]*(?:\b0\b|\bzeros?\b|\bempty\b)|\b(?:0|zero) (?:if|when|where|for)\b)"
    return re.search(words, facts.module.owner(facts.module.node_at(span.line, span.column)).text) is not None and not _asked(facts, op, bound)


def _text(facts: FileFacts, op: Op, side: int) -> str:
    """The name on the left (0) or right (1) of a comparison."""
    span = flow.span(op)
    node = node_of(facts, span, cst.Comparison) if span is not None and span.path == facts.source.path else None
    if node is None or len(node.comparisons) != 1:
        return ""
    name = re.match(r"[\w.]+", facts.module.code(node.comparisons[0].comparator if side else node.left))
    return name.group().rpartition(".")[2] if name is not None and "(" not in name.group() else ""


def _asked(facts: FileFacts, op: Op, name: str) -> bool:
    """The function asks how long they are before it goes on."""
    span = flow.span(op)
    text = facts.module.owner(facts.module.node_at(span.line, span.column)).text
    return bool(name) and re.search(rf"\b(?:if|assert|while)\b[^\n]*\b{re.escape(name)}\b[^\n]*(?:[=!<>]=|[<>]|\bmin\b|\bany\b|\ball\b)", text) is not None


RULE = Rule("CUV505", "empty-softmax-row", kind="nan-risk", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
