"""How a tensor's axes lie in memory, read off the graph: which reshapes are views and which need a copy.

    strides(function, op)                 # (T*D, D, 1) as sizes and symbols, None when not known
    splits(strides, shape, target)        # the axes that a view cannot merge, None when it can or nothing is proved

Inputs and weights are taken as contiguous; who passes a transposed tensor makes more views impossible, not fewer.
"""
from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cuvil.ir.dims import Dim, product, proved_different
from cuvil.ops import DEFINITIONS
from cuvil.ops.definition import ELEMENTWISE

if TYPE_CHECKING:
    from cuvil.ir.function import Function, Op

Strides = tuple[Dim, ...]
_FRESH = frozenset(("input", "parameter", "constant", "matmul", "linear", "concat", "iota", "gather", "embedding", "conv1d", "conv2d"))


def strides(function: Function, op: Op, contiguous: Collection[int] = ()) -> Strides | None:
    """contiguous: ops whose value went through `.contiguous()`."""
    chain, at = [], op
    while at.id not in contiguous and at.name not in _FRESH and not _filled(function, at):          # down to what fixes the layout, then back up
        chain.append(at)
        below = _source(function, at)
        if below is None:
            return None
        at = below
    known = dense(at.type.shape)
    for each in reversed(chain):
        if known is None:
            return None
        known = _after(function, each, known)
    return known


def _filled(function: Function, op: Op) -> bool:
    """torch.zeros and the like: one number in each element of new memory."""
    return op.name == "broadcast" and all(function.by_id[id].name == "constant" for id in op.operands)


def dense(shape: tuple[Dim, ...] | None) -> Strides | None:
    return None if shape is None else tuple(product(shape[i + 1:]) for i in range(len(shape)))


def _source(function: Function, op: Op) -> Op | None:
    """The operand whose layout the result takes."""
    operands = [function.by_id[id] for id in op.operands if id in function.by_id]
    if op.name in ("transpose", "slice", "reshape", "broadcast"):
        return operands[0] if operands else None
    definition = DEFINITIONS.get(op.name)
    if definition is not None and definition.kind == ELEMENTWISE:
        shaped = [o for o in operands if o.type.shape == op.type.shape]
        return shaped[0] if len(shaped) == 1 and all(o.type.rank == 0 for o in operands if o is not shaped[0]) else None
    return None


def _after(function: Function, op: Op, known: Strides) -> Strides | None:
    before = function.by_id[op.operands[0]].type.shape if op.operands else None
    match op.name:
        case "transpose":
            return tuple(known[axis] for axis in op.attr("axes"))
        case "slice":
            return tuple(stride * step for stride, step in zip(known, op.attr("steps")))
        case "broadcast":
            return None
        case "reshape":
            return None if before is None or op.type.shape is None else viewed(known, before, op.type.shape)
    return known


def viewed(known: Strides, shape: tuple[Dim, ...], target: tuple[Dim, ...]) -> Strides | None:
    """The strides of a view with another shape; those of a copy where a view is not possible."""
    found: list[Dim] = []
    for old, new in _groups(shape, target) or ():
        sizes = [(shape[i], known[i]) for i in old if shape[i] != 1]
        if any(outer != inner_stride * inner for (_, outer), (inner, inner_stride) in zip(sizes, sizes[1:])):
            return dense(target)
        last = sizes[-1][1] if sizes else 1
        found += [product([target[j] for j in new if j > i]) * last for i in new]
    return tuple(found) if len(found) == len(target) else None


def splits(known: Strides, shape: tuple[Dim, ...], target: tuple[Dim, ...]) -> tuple[int, int] | None:
    """Two neighbouring axes that the target merges although they do not lie together in memory."""
    for old, _ in _groups(shape, target) or ():
        axes = [i for i in old if shape[i] != 1]
        for i, j in zip(axes, axes[1:]):
            if known[i] != known[j] * shape[j] and _differ(known[i], known[j] * shape[j]):
                return i, j
    return None


def _differ(a: Dim, b: Dim) -> bool:
    """Proved different, or of different symbols: then they are the same for odd sizes only."""
    return proved_different(a, b) or not (isinstance(a, int) and isinstance(b, int))


def _groups(shape: tuple[Dim, ...], target: tuple[Dim, ...]) -> list[tuple[list[int], list[int]]] | None:
    """Runs of axes of both shapes with equal products, in order; None when they cannot be told apart."""
    groups, i, j = [], 0, 0
    while i < len(shape) or j < len(target):
        old, new = [], []
        if i < len(shape):
            old.append(i)
            i += 1
        if j < len(target):
            new.append(j)
            j += 1
        while True:
            a, b = product([shape[k] for k in old]), product([target[k] for k in new])
            if a == b:
                break
            if _divides(a, b) and i < len(shape):
                old.append(i)
                i += 1
            elif _divides(b, a) and j < len(target):
                new.append(j)
                j += 1
            else:
                return None
        groups.append((old, new))
    return groups


def _divides(a: Dim, b: Dim) -> bool:
    from cuvil.ir.dims import exact_quotient
    return exact_quotient(b, a) is not None
