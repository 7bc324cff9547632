"""Where the axes of each value come from: which axes of which sources each axis of a result consists of.

An axis is a sequence of pieces. A transpose moves pieces, a reshape that merges neighbours joins their pieces, and one that splits an
axis cuts its piece into numbered parts. An axis that is made new (a matrix product's columns, what a convolution slides over) or that a
reshape mixes is a piece of its own.

    pieces = axes_of(function)[op.id]          # one tuple of pieces for each axis of the op, () for an axis of one element
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuvil.ir.dims import Poly, product, symbols
from cuvil.ops.definition import DEFINITIONS, ELEMENTWISE, REDUCTION

if TYPE_CHECKING:
    from cuvil.ir.dims import Dim
    from cuvil.ir.function import Function, Op


@dataclass(frozen=True, slots=True)
class Piece:
    """An axis of an op's result, or a part of it. part: its place in each split, from the first split on."""

    op: int
    axis: int
    size: Dim
    part: tuple[int, ...] = ()


Axes = tuple[tuple[Piece, ...], ...]
_kept: list[tuple[Function, dict[int, Axes]]] = []          # of the functions that were asked about last
_REDUCTIONS = frozenset(("mean", "var", "std", "logsumexp", "norm", "argmax", "argmin"))
_SAME = frozenset(("tril", "triu", "softmax", "log_softmax", "cumsum", "flip", "layer_norm", "rms_norm", "group_norm", "batch_norm", "checked_divisor"))


def axes_of(function: Function) -> dict[int, Axes]:
    for known, found in _kept:
        if known is function:
            return found
    found: dict[int, Axes] = {}
    for op in function.ops:
        if op.type.shape is not None:
            found[op.id] = _axes(function, op, found)
    _kept.append((function, found))
    del _kept[:-8]
    return found


BATCH_NAMES = frozenset(("b", "batch", "bs", "bsz", "batch_size", "batchsize", "nbatch", "n_batch", "num_batch"))


def batches(function: Function) -> set[Piece]:
    """Axes over independent samples: the first of what convolutions and normalisations of images take, of token ids [B, T] that are
    embedded, and those whose size has a name that says so."""
    found, axes = set(), axes_of(function)
    for op in function.ops:
        first = axes.get(op.operands[0]) if op.operands else None
        if op.name in ("conv2d", "conv_transpose2d", "max_pool2d", "avg_pool2d", "batch_norm") and first:
            found.update(first[0])
        elif op.name == "take" and len(axes.get(op.operands[1]) or ()) == 2 and function.by_id[op.operands[0]].name == "parameter":
            found.update(axes[op.operands[1]][0])
        elif op.name not in ("parameter", "constant"):
            found.update(piece for pieces in axes.get(op.id, ())[:1] for piece in pieces if str(piece.size).lower() in BATCH_NAMES)
    return found


def rows(function: Function) -> set[Piece]:
    """The first axes of matrices that a layer takes: each row goes through it by itself."""
    axes = axes_of(function)
    return {piece for op in function.by_name.get("linear", ()) if len(axes.get(op.operands[0]) or ()) == 2 for piece in axes[op.operands[0]][0]}


def carried(function: Function, op: Op, axis: int) -> Iterator[tuple[Op, int, int]]:
    """(user, place of the operand, axis there) for the ops that read an axis of a value, behind ops that keep its elements apart.
    A value that is divided by a sum of itself is another one."""
    todo, seen = [(op, axis)], {op.id}
    while todo:
        value, at = todo.pop()
        for user in function.users[value.id]:
            place, to = user.operands.index(value.id), None
            definition = DEFINITIONS.get(user.name)
            if user.type.shape is None:
                pass
            elif user.name == "transpose":
                to = user.attr("axes").index(at)
            elif user.name == "reshape":
                to = _kept_axis(value.type.shape, user.type.shape, at)
            elif user.name == "div" and place == 0 and _sums(function, function.by_id[user.operands[1]], value):
                continue
            elif definition is not None and definition.kind == ELEMENTWISE or user.name == "slice":
                to = at + len(user.type.shape) - len(value.type.shape)
            if to is None:
                yield user, place, at
            elif user.id not in seen:
                seen.add(user.id)
                todo.append((user, to))


def _kept_axis(before: Sequence[Dim], after: Sequence[Dim], axis: int) -> int | None:
    source, target = ([at for at, size in enumerate(shape) if size != 1] for shape in (before, after))
    for (i, k), (j, m) in _groups([before[a] for a in source], [after[a] for a in target]):
        if axis in source[i:k]:
            return target[j] if k - i == m - j == 1 else None
    return None


def _sums(function: Function, divisor: Op, value: Op) -> bool:
    """The divisor is a sum of the value, maybe with a small number added."""
    todo, steps = [divisor], 0
    while todo and steps < 16:
        steps += 1
        at = todo.pop()
        if at.name in ("reduce_sum", "reduce_max", "norm", "mean"):
            return True
        if at.id != value.id and at.name not in ("softmax", "matmul", "input"):
            todo += [function.by_id[id] for id in at.operands]
    return False


def _axes(function: Function, op: Op, found: dict[int, Axes]) -> Axes:
    shape, operands = op.type.shape, [function.by_id[id] for id in op.operands]
    known = [found.get(id) for id in op.operands]
    new = tuple(_fresh(op, axis) for axis in range(len(shape)))
    if op.name == "opaque":
        return _by_symbol(shape, operands, known, new)
    if not operands or known[0] is None and op.name != "take":
        return new
    first, rank = known[0], len(shape)
    if op.name == "reshape":
        return reshaped(op, operands[0].type.shape, first)
    if op.name == "transpose":
        return tuple(first[axis] for axis in op.attr("axes"))
    if op.name in ("slice", "pad", "gather"):
        return tuple(old if size == before else fresh for size, before, old, fresh in zip(shape, operands[0].type.shape, first, new)) if len(first) == rank else new
    if op.name == "broadcast":
        return _aligned(shape, [operands[0].type.shape], [first], new)
    if op.name == "concat":
        return tuple(new[axis] if axis == op.attr("axis") else first[axis] for axis in range(rank))
    if op.name == "take" and None not in known:
        at = op.attr("axis")
        return (*known[0][:at], *known[1], *known[0][at + 1:])
    if op.name == "matmul" and None not in known and rank >= 2 and len(first) >= 2 and len(known[1]) >= 2:
        batch = _aligned(shape[:-2], [o.type.shape[:-2] for o in reversed(operands)], [k[:-2] for k in reversed(known)], new[:-2])
        return (*batch, first[-2], known[1][-1])
    if op.name == "linear":
        return (*first[:-1], new[-1])
    if op.name == "attention" and None not in known[:3] and len(first) == rank and len(known[2]) == rank:
        heads = tuple(v if v and sv == size else q for q, v, sv, size in zip(first[:-2], known[2], operands[2].type.shape, shape))
        return (*heads, first[-2], known[2][-1])
    if op.name in ("conv2d", "conv_transpose2d", "max_pool2d", "sum_pool2d", "avg_pool2d") and len(first) == rank:
        return (first[0], *new[1:])
    definition = DEFINITIONS.get(op.name)
    if op.name in _REDUCTIONS or definition is not None and definition.kind == REDUCTION:
        gone = set(op.attr("axes") or (op.attr("axis"),))
        if op.attr("keepdims"):
            return tuple(() if axis in gone else pieces for axis, pieces in enumerate(first)) if len(first) == rank else new
        kept = tuple(pieces for axis, pieces in enumerate(first) if axis not in gone)
        return kept if len(kept) == rank else new
    if definition is not None and definition.kind == ELEMENTWISE:
        at = [(o.type.shape, k) for o, k in zip(operands, known) if k is not None]
        return _aligned(shape, [s for s, _ in at], [k for _, k in at], new)
    if len(first) == rank and operands[0].type.shape == shape and (op.name in _SAME or definition is not None and len(operands) == 1):
        return first
    return new


def _by_symbol(shape: Sequence[Dim], operands: list[Op], known: list[Axes | None], new: Axes) -> Axes:
    """Of a call whose meaning is not known in full: an axis has the size of just one axis of the operands, and that is a symbol."""
    sizes = [(size, pieces) for o, k in zip(operands, known) if k is not None for size, pieces in zip(o.type.shape, k) if is_symbol(size)]
    result = []
    for size, fresh in zip(shape, new):
        same = {pieces for other, pieces in sizes if other == size}
        result.append(same.pop() if len(same) == 1 and list(shape).count(size) == 1 else fresh)
    return tuple(result)


def _fresh(op: Op, axis: int) -> tuple[Piece, ...]:
    size = op.type.shape[axis]
    return () if size == 1 else (Piece(op.id, axis, size),)


def _aligned(shape: Sequence[Dim], shapes: Sequence[Sequence[Dim]], known: Sequence[Axes], new: Axes) -> Axes:
    """As broadcasting lines axes up, from the last on: each axis is that of the first operand that has it in full."""
    result = []
    for axis in range(len(shape)):
        back = len(shape) - axis
        result.append(next((k[-back] for s, k in zip(shapes, known) if len(k) >= back and s[-back] == shape[axis] and k[-back]), new[axis]))
    return tuple(result)


def reshaped(op: Op, before: Sequence[Dim], pieces: Axes) -> Axes:
    after = op.type.shape
    source = [axis for axis, size in enumerate(before) if size != 1]
    target = [axis for axis, size in enumerate(after) if size != 1]
    result: list[tuple[Piece, ...]] = [()] * len(after)
    for (i, k), (j, m) in _groups([before[a] for a in source], [after[a] for a in target]):
        if m - j == 1:
            result[target[j]] = tuple(piece for axis in source[i:k] for piece in pieces[axis])
        elif k - i == 1:
            for axis, parts in zip(target[j:m], _split(pieces[source[i]], [after[a] for a in target[j:m]])):
                result[axis] = parts
        else:
            for axis in target[j:m]:
                result[axis] = _fresh(op, axis)
    return tuple(result)


def _split(pieces: tuple[Piece, ...], sizes: list[Dim]) -> list[tuple[Piece, ...]]:
    if len(pieces) == len(sizes) and all(piece.size == size for piece, size in zip(pieces, sizes)):
        return [(piece,) for piece in pieces]
    if len(pieces) == 1:
        whole = pieces[0]
        return [(Piece(whole.op, whole.axis, size, (*whole.part, at)),) for at, size in enumerate(sizes)]
    return [()] * len(sizes)


def _groups(before: list[Dim], after: list[Dim]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Runs of axes on both sides that hold the same elements, as short as can be proved."""
    heads = {product(before[:i]): i for i in range(len(before) + 1)}
    tails = {product(before[i:]): i for i in range(len(before) + 1)}
    i = j = 0
    for m in range(1, len(after) + 1):
        k = len(before) if m == len(after) else heads.get(product(after[:m]), tails.get(product(after[m:])))
        if k is not None and k > i:
            yield (i, k), (j, m)
            i, j = k, m


def moved(before: Sequence[Dim], after: Sequence[Dim]) -> Iterator[tuple[int, int]]:
    """Axes (of the source, of the target) that have one symbol as their size and no other axis has it, and whose elements a reshape of
    these shapes deals out anew: neither what stands before the axis nor what stands behind it has the same number of elements."""
    for i, size in enumerate(before):
        if not is_symbol(size) or list(before).count(size) != 1 or list(after).count(size) != 1:
            continue
        j = list(after).index(size)
        if product(before[:i]) != product(after[:j]) and product(before[i + 1:]) != product(after[j + 1:]):
            yield i, j


def is_weight(op: Op) -> bool:
    """A parameter of a module; random data drawn in the function are parameters of its graph too."""
    return op.name == "parameter" and not str(op.attr("name")).startswith("drawn")


def is_symbol(size: Dim) -> bool:
    return isinstance(size, Poly) and len(symbols(size)) == 1 and str(size) in symbols(size)


def shown(shape: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, shape))}]"
