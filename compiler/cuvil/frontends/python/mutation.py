"""Changes in place, made functional: the memory of a tensor made here gets a new value, under all names it has.

What belongs to the caller (inputs, weights) and what other tensors look into (views) is refused with the reason: a compiled
function has no other effect than its results.
"""
from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ...ir.dims import proved_different
from ...ops import SPELLINGS
from . import records
from .library import apply
from .values import Tensor, Value, describe
from .walk import Walk

_CATEGORY = {"bool": 0, "int": 1, "float": 2}


RESHAPING = frozenset(("unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "resize_"))      # the tensor itself gets another shape


def in_place(walk: Walk, target: Value, result: Value, node: cst.CSTNode, shown: str, into: cst.CSTNode | None = None) -> Value:
    """`target` now holds `result`, as after `target += ...` or `target.relu_()`. into: the expression that is written to, if node hides it."""
    records.written(walk, target, shown, result, node, into)
    if not isinstance(target, Tensor):
        return result
    if not isinstance(result, Tensor):
        return overwritten(walk, target, result, node, shown)
    why = refusal(walk, target)
    if why:
        walk.refuse(f"{shown} changes a tensor in place, and {why}", node, "a tensor that this function made and that nothing else looks into",
                    "write it out of place: y = x + ...")
    wrong = "" if shown in RESHAPING else _does_not_fit(target, result)
    if wrong:
        return walk.problem("shape-mismatch" if "shape" in wrong else "dtype-mismatch", f"{shown}: {wrong}", describe(target), node, shown)
    op = result.op
    if target.type.dtype is not None and op.type.dtype is not None:
        walk.builder.origins = (walk.origin(node),)
        op = walk.builder.cast(op, target.type.dtype)
    grad = True if True in (target.grad, result.grad) else target.grad if target.grad == result.grad else None
    changed = replace(target, op=op, grad=grad, mask=result.mask)
    if target.view:
        _base_changes(walk, target, changed, node)
    else:
        walk.changed[target.storage], walk.stamps[target.storage] = changed, op.id
    return changed


def overwritten(walk: Walk, target: Tensor, value: Value, node: cst.CSTNode, shown: str) -> Tensor:
    """`target` with elements that are not known: of its type still."""
    walk.builder.origins = (walk.origin(node),)
    operands = (target.op.id, value.op.id) if isinstance(value, Tensor) else (target.op.id,)
    op = walk.builder.append("opaque", operands, {"call": shown.strip("`")}, target.type)
    changed = replace(target, op=op, mask=None, grad=True if True in (target.grad, getattr(value, "grad", None)) else target.grad)
    if target.view:
        _base_changes(walk, target, changed, node)
    else:
        walk.changed[target.storage], walk.stamps[target.storage] = changed, op.id
    return changed


def reshaped(walk: Walk, target: Tensor, result: Value, node: cst.CSTNode, shown: str) -> Value:
    """`x.unsqueeze_(0)`: `x` has another shape, its elements stay what they are."""
    walk.refuse(f"{shown} changes the shape of a tensor in place, which is not compiled", node, hint="use its result: x = x.unsqueeze(0)")
    if not isinstance(result, Tensor):
        walk.changed[target.storage] = result
        return result
    changed = replace(target, op=result.op)
    if not target.view:
        walk.changed[target.storage] = changed
    return changed


def _base_changes(walk: Walk, view: Tensor, written: Tensor, node: cst.CSTNode) -> None:
    """The tensor that a view looks into has other elements after a write through the view, which itself shows what was written."""
    base = walk.changed.get(view.storage, walk.bases.get(view.storage))
    if not isinstance(base, Tensor):
        return
    walk.builder.origins = (walk.origin(node),)
    op = walk.builder.append("opaque", (base.op.id, written.op.id), {"call": "a write through a view"}, base.type)
    walk.changed[view.storage], walk.stamps[view.storage] = replace(base, op=op, mask=None), op.id
    for shown in (view, written):
        walk.fresh[shown.op.id, op.id] = written


def refusal(walk: Walk, target: Tensor) -> str:
    """Why a tensor's memory cannot be given a new value; "" if it can."""
    if target.storage in walk.fixed:
        return f"{walk.fixed[target.storage]}: the caller would see the change"
    if target.view:
        return "it is a view: the tensor it looks into would change too"
    if target.storage in walk.shared:
        return "another tensor is a view of it and would change too"
    return ""


def _does_not_fit(target: Tensor, result: Tensor) -> str:
    a, b = target.type, result.type
    if a.shape is not None and b.shape is not None:
        if len(b.shape) > len(a.shape) or any(proved_different(p, q) for p, q in zip(reversed(a.shape), reversed(b.shape))):
            return f"the result has shape {b}, which does not fit into {a}"
    if a.dtype is not None and b.dtype is not None and _CATEGORY[b.dtype.value[2]] > _CATEGORY[a.dtype.value[2]]:
        return f"the result is {b}, which cannot be stored as {a.dtype}"
    return ""


def augmented(walk: Walk, target: Value, operator: str, sign: str, right: Value, node: cst.CSTNode) -> Value:
    """`target <op>= right` where one is a tensor."""
    if isinstance(target, Tensor):
        if operator == "matmul" or operator == "pow" and f"operator.{operator}" not in SPELLINGS:
            return walk.refuse(f"`{sign}=` on tensors is not compiled", node, hint=f"write x = x {sign} y")
        return in_place(walk, target, apply(walk, f"operator.{operator}", [target, right], {}, node, sign + "="), node, f"`{sign}=`")
    return apply(walk, f"operator.{operator}", [target, right], {}, node, sign)


def write_into(walk: Walk, target: Tensor, index: Value, new: Value, node: cst.CSTNode) -> None:
    """`x[index] = new`: refused for now; of what `x` holds the type is known after it."""
    records.written(walk, target, "[]=", new, node)
    walk.refuse("a part of a tensor is assigned to, which is not compiled", node, "tensors that are made once",
                "build the value with torch.where, torch.cat or torch.stack")
    overwritten(walk, target, new, node, "[]=")
