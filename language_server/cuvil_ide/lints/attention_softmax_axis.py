"""Attention weights that are normalised along another axis than the one they are summed over.

What: scores q·kᵀ go through a softmax along one axis, and the product with v sums over another.
Why: the weights of a query do not sum to one: each key hands out its share among the queries instead. Shapes are right.
Example: `(q @ k.transpose(-2, -1)).softmax(dim=-2) @ v`
Instead: `(q @ k.transpose(-2, -1)).softmax(dim=-1) @ v`
Fix: unsafe: the result changes, which is the point.

Silent where the weights are divided by their sum afterwards, as slot attention does.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.ops.definition import DEFINITIONS, ELEMENTWISE
from cuvil.source import Edit

from . import flow
from .axes import carried, is_weight
from .rule import Invalid, Rule

if TYPE_CHECKING:
    import libcst as cst

    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op
    from cuvil.source import Span

_START = "import torch\n\ndef attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n    B, T, D = q.shape\n    B, S, D = k.shape\n    B, S, E = v.shape\n"
VALID = (
    _START + "    w = (q @ k.transpose(1, 2)).softmax(dim=-1)\n    return w @ v, w\n",
    _START + "    return (k @ q.transpose(1, 2)).softmax(dim=1).transpose(1, 2) @ v\n",
    # A step of an iteration for the inverse.
    _START + "    w = (q @ q.transpose(1, 2)).softmax(dim=-1)\n    z = w.transpose(1, 2)\n    return z @ (2 * w - w @ z)\n",
    # Slot attention: a softmax over slots, and a mean over what each of them won.
    _START + "    w = (q @ k.transpose(1, 2)).softmax(dim=1) + 1e-8\n    w = w / w.sum(dim=-1, keepdim=True)\n    return w @ v\n",
)
INVALID = (
    Invalid(_START + "    return »(q @ k.transpose(1, 2)).softmax(dim=1)« @ v\n", "axis 1", _START + "    return (q @ k.transpose(1, 2)).softmax(dim=-1) @ v\n"),
    Invalid("import torch\n\ndef attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n    B, T, D = q.shape\n    B, S, D = k.shape\n    B, S, E = v.shape\n"
            "    w = »torch.softmax(torch.einsum(\"btd,bsd->bts\", q, k), dim=1)«\n    return torch.einsum(\"bts,bse->bte\", w, v)\n", "axis 1",
            "import torch\n\ndef attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n    B, T, D = q.shape\n    B, S, D = k.shape\n    B, S, E = v.shape\n"
            "    w = torch.softmax(torch.einsum(\"btd,bsd->bts\", q, k), dim=-1)\n    return torch.einsum(\"bts,bse->bte\", w, v)\n"),
    Invalid(_START + "    scores = q @ k.transpose(1, 2) / D ** 0.5\n    w = »torch.softmax(scores, 0)«\n    return torch.matmul(w, v)\n", "axis 0",
            _START + "    scores = q @ k.transpose(1, 2) / D ** 0.5\n    w = torch.softmax(scores, -1)\n    return torch.matmul(w, v)\n"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "softmax"):
        rank = op.type.rank
        if rank is None or not _scores(function, flow.operand(function, op)):
            continue
        for user, place, axis in carried(function, op, op.attr("axis")):
            last = _summed(function, user, place)
            if last is not None and axis != last and not _of_itself(function, user, place, op):
                span = op.origins[0].span
                yield RULE.finding(f"softmax along axis {op.attr('axis')} of scores {flow.shape(op)}, and the product with the values sums over axis {last}: "
                                   "the weights of a query do not sum to one", span, flow.evidence((user, "sums over the last axis")),
                                   _fix(facts, span) if last == rank - 1 and _unmoved(function, op, user) else None)


def _of_itself(function: Function, user: Op, place: int, op: Op) -> bool:
    """The weights are multiplied with something made of them, as an iteration for their inverse does: no values are summed."""
    todo, seen = [id for at, id in enumerate(user.operands) if at != place], set()
    while todo and len(seen) < 200:
        id = todo.pop()
        if id == op.id:
            return True
        if id not in seen:
            seen.add(id)
            todo += function.by_id[id].operands
    return False


def _summed(function: Function, user: Op, place: int) -> int | None:
    """The one axis of the weights that a product sums over."""
    if user.name == "matmul" and place == 0:
        return len(function.by_id[user.operands[0]].type.shape) - 1
    if user.name == "einsum":
        terms, _, result = str(user.attr("equation")).replace(" ", "").partition("->")
        own = terms.split(",")[place] if place < len(terms.split(",")) else ""
        gone = [at for at, letter in enumerate(own) if letter not in result]
        return gone[0] if len(gone) == 1 and "." not in own else None
    return None


def _scores(function: Function, value: Op) -> bool:
    """A matrix product of two computed values, maybe scaled and masked."""
    for _ in range(32):
        definition = DEFINITIONS.get(value.name)
        if value.name in ("matmul", "einsum"):
            return not any(is_weight(function.by_id[id]) for id in value.operands)
        if not value.operands or definition is None or definition.kind != ELEMENTWISE and value.name not in flow.LAYOUT:
            return False
        at = [o for id in value.operands if (o := function.by_id[id]).type.rank == value.type.rank and o.name not in ("constant", "broadcast")]
        if not at:
            return False
        value = at[0] if value.name != "select" else at[-1]
    return False


def _unmoved(function: Function, op: Op, user: Op) -> bool:
    """The weights go into the product as they are, so that -1 is the axis that is meant."""
    return flow.source(function, function.by_id[user.operands[0]], {"cast"}) is op


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    where = axis_argument(facts, span)
    return Fix("unsafe", "Along the keys: -1", (Edit(facts.module.span(where), "-1"),)) if where is not None else None


def axis_argument(facts: FileFacts, span: Span) -> cst.BaseExpression | None:
    """The number that says the axis in a call such as softmax(x, 1) or x.sum(dim=1)."""
    import libcst as cst

    from .recorded import node_of
    call = node_of(facts, span, cst.Call)
    found = [arg.value for arg in (call.args if call is not None else ()) if arg.keyword is not None and arg.keyword.value in ("dim", "axis")]
    found += [arg.value for arg in (call.args if call is not None else ()) if arg.keyword is None and isinstance(arg.value, (cst.Integer, cst.UnaryOperation))]
    return found[0] if len(found) == 1 and isinstance(found[0], (cst.Integer, cst.UnaryOperation)) else None


RULE = Rule("CUV110", "attention-softmax-axis", kind="wrong-axis", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
