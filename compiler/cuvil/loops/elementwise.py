"""Kernels without sums: every element of every output is computed where it is stored."""
from __future__ import annotations

from ..ir.function import Op
from ..ir.scalar import Index
from .index import simplify
from .nest import Let, Load, Local, Statement, Store
from .place import Place, offset
from .pull import Pull
from .schedule import Axis, expressions, merge, nested, outermost, vector_loop


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
    axes, body = merge(axes, [*pull.statements, store])
    if not axes:
        return body
    outer, inner = split(body, axes[-1].var)
    loops = [*outer, vector_loop(axes[-1], inner, place.target, 2, origins)]
    return outermost(axes[:-1], loops, place.target, origins)


def split(body: list[Statement], var: str) -> tuple[list[Statement], list[Statement]]:
    """Statements that do not change with the loop variable come out of its loop."""
    outer: list[Statement] = []
    inner: list[Statement] = []
    changing: set[str] = set()
    for statement in body:
        if isinstance(statement, Store) or any(depends(e, var, changing) for e in expressions(statement)):
            inner.append(statement)
            if isinstance(statement, Let):
                changing.add(statement.name)
        else:
            outer.append(statement)
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

