"""Kernels without sums: every element of every output is computed where it is stored."""
from __future__ import annotations

from dataclasses import replace

from ..ir.function import Op
from ..ir.scalar import Apply, Expr, Index, apply, const
from ..ir.types import DType
from ..targets import Target
from .index import affine, build, simplify
from .nest import Check, Let, Load, Local, Loop, Statement, Store, Total
from .place import Place, offset
from .pull import Pull
from .schedule import Axis, expressions, mapped, merge, outermost, rewritten, vector_loop, walk


def lower(place: Place) -> list[Statement]:
    done: list[Statement] = []
    for id in place.kernel.outputs:
        done += one(place, place.function.by_id[id])
    return done


def one(place: Place, op: Op) -> list[Statement]:
    """The loops that fill one value."""
    if op.type.numel == 0:
        return []
    axes = [Axis(f"i{a}", size) for a, size in enumerate(op.type.shape)]
    index = tuple(Index(a.var) for a in axes)
    buffers = {id: b for id, b in place.buffers.items() if id != op.id}
    pull = Pull(place.function, buffers, {a.var: a.size for a in axes})
    value = pull.value(op.id, index)
    origins = (f"ir:%{op.id}",)
    store = Store(place.buffers[op.id], simplify(offset(op, index), pull.ranges), value, origins)
    return loops(axes, [*pull.statements, store], place.target, origins)


def loops(axes: list[Axis], body: list[Statement], target: Target, origins: tuple[str, ...]) -> list[Statement]:
    """Loops over axes around statements of one element, the last axis as vectors."""
    axes, body = merge(axes, body)
    if target.kind != "cpu":
        return outermost(axes, body, target, origins)
    if not axes:
        return body
    across = read_across(axes, body)
    if across is not None:
        return in_blocks(axes, across, body, target, origins)
    outer, inner = split(body, axes[-1].var)
    return outermost(axes[:-1], [*outer, vector_loop(axes[-1], inner, target, 2, origins)], target, origins)


# Rows and columns of a block of a transposed read: each cache line that is touched is used up before the next block.
BLOCK = 16, 64


def read_across(axes: list[Axis], body: list[Statement]) -> Axis | None:
    """The axis along which memory is read in a line while the last axis jumps from row to row; None when nothing is."""
    for statement in walk(body):
        for load in (load for e in expressions(statement) for load in loads(e)):
            form = affine(load.offset, {})
            if abs(form.coefficient(axes[-1].var)) < BLOCK[0]:
                continue
            for axis in axes[:-1]:
                if abs(form.coefficient(axis.var)) == 1 and axis.size >= BLOCK[0] and axes[-1].size >= BLOCK[0]:
                    return axis
    return None


def in_blocks(axes: list[Axis], across: Axis, body: list[Statement], target: Target, origins: tuple[str, ...]) -> list[Statement]:
    """Loops over blocks of two axes, and inside each over its rows and, as vectors, its columns."""
    last = axes[-1]
    outer: list[Axis] = []
    for axis in axes:
        size = {across: BLOCK[0], last: BLOCK[1]}.get(axis)
        outer.append(axis if size is None else Axis(f"{axis.var}_block", -(-axis.size // size)))
    starts = {axis.var: apply("mul", Index(f"{axis.var}_block"), const(size)) for axis, size in ((across, BLOCK[0]), (last, BLOCK[1]))}
    places = {var: apply("add", start, Index(var)) for var, start in starts.items()}
    body = [mapped(s, lambda e: rewritten(e, lambda x: places.get(x.name) if isinstance(x, Index) else None)) for s in body]
    step = vector_loop(last, body, target, 1, origins)
    step = replace(step, extent=rest_of(last.size, starts[last.var], BLOCK[1]))
    rows = Loop(across.var, rest_of(across.size, starts[across.var], BLOCK[0]), "serial", (step,), origins=origins)
    return outermost([a for a in outer if a.size != 1], [_single_blocks(rows, outer)], target, origins)


def rest_of(size: int, start: Expr, most: int) -> Expr:
    """How many there are from `start` on, up to a block's."""
    if size % most == 0:
        return const(most)
    return Apply("minimum", (const(most), build(affine(apply("sub", const(size), start), {}))), DType.I64)


def _single_blocks(loop: Loop, outer: list[Axis]) -> Statement:
    """Block counters that have one value are 0."""
    single = {a.var for a in outer if a.size == 1}
    return mapped(loop, lambda e: rewritten(e, lambda x: const(0) if isinstance(x, Index) and x.name in single else None))


def loads(expression: Expr) -> list[Load]:
    found, todo = [], [expression]
    while todo:
        e = todo.pop()
        if isinstance(e, Load):
            found.append(e)
        todo += getattr(e, "arguments", ())
    return found


def split(body: list[Statement], var: str) -> tuple[list[Statement], list[Statement]]:
    """Statements that do not change with the loop variable come out of its loop."""
    outer: list[Statement] = []
    inner: list[Statement] = []
    changing: set[str] = set()
    for statement in body:
        if isinstance(statement, (Let, Check)) and not any(depends(e, var, changing) for e in expressions(statement)):
            outer.append(statement)
            continue
        inner.append(statement)
        if isinstance(statement, (Let, Total)):
            changing.add(statement.name if isinstance(statement, Let) else statement.let)
    return outer, inner


def depends(expression, var: str, changing: set[str]) -> bool:
    todo = [expression]
    while todo:
        e = todo.pop()
        match e:
            case Index(name) if name == var:
                return True
            case Local(name) if name in changing:
                return True
            case Load():
                todo.append(e.offset)
                if e.guard is not None:
                    todo.append(e.guard)
            case _:
                todo += getattr(e, "arguments", ())
    return False

