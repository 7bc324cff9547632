"""Kernels without sums: every element of every output is computed where it is stored."""
from __future__ import annotations

from ..ir.function import Op
from ..ir.scalar import Index
from ..targets import Target
from .index import simplify
from .nest import Check, Let, Load, Local, Statement, Store, Total
from .place import Place, offset
from .pull import Pull
from .schedule import Axis, expressions, merge, outermost, vector_loop


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
    outer, inner = split(body, axes[-1].var)
    return outermost(axes[:-1], [*outer, vector_loop(axes[-1], inner, target, 2, origins)], target, origins)


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

