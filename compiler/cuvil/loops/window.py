"""Pooling, and convolutions with few outputs for each group of inputs: every output folds its own window, lanes are neighbours."""
from __future__ import annotations

from functools import reduce

from ..ir.function import Op
from ..ir.scalar import Apply, Const, Expr, Index, Read, apply, const
from ..ir.types import DType
from ..ops.definition import DEFINITIONS, WINDOW
from . import elementwise
from .contraction import epilogue, root
from .nest import Accumulator, Fold, Let, Local, Statement, Total
from .place import Place
from .pull import Position, Pull
from .schedule import Axis, nested


def lower(place: Place) -> list[Statement]:
    op = root(place, WINDOW)
    (kh, kw), image = op.attr("kernel"), op.operands[0]
    window = [Axis("r", kh), Axis("s", kw)]
    definition = DEFINITIONS[op.name]
    identity = definition.identity(op.type.dtype)

    def element(at: Position) -> Expr:
        batch, channel, y, x = at
        return read(place, op, image, batch, channel, y, x, Const(identity, op.type.dtype))
    return fold_windows(place, op, window, element, definition.combine, identity)


def fold_windows(place: Place, op: Op, window: list[Axis], element, combine: str, identity) -> list[Statement]:
    """For each output at (batch, channel, y, x), the fold of `element` over the axes of the window."""
    if op.type.numel == 0:
        return []
    axes = [Axis(v, size) for v, size in zip(("image", "o", "y", "x"), op.type.shape)]
    at = tuple(Index(a.var) for a in axes)
    ranges = {a.var: a.size for a in (*axes, *window)}
    held = DType.F32 if op.type.dtype in (DType.F16, DType.BF16) else op.type.dtype
    origins = (f"ir:%{op.id}",)
    pull = Pull(place.function, {id: b for id, b in place.buffers.items() if id in place.kernel.inputs}, ranges, prefix="w")
    value = pull.resolve(element(at))
    body = [*pull.statements, Fold("acc", value if value.dtype == held else Apply("cast", (value,), held), origins)]
    finish = epilogue(place, op, at, ranges)
    total: list[Statement] = [Total("sum", "acc", held, origins)]
    if held != op.type.dtype:
        total = [Total("wide", "acc", held, origins), Let("sum", Apply("cast", (Local("wide", held),), op.type.dtype), origins)]
    statements = [Accumulator("acc", combine, held, identity, 0, origins),
                  *nested([a for a in window if a.size != 1], body, origins), *total, *finish]
    return elementwise.loops(axes, statements, place.target, origins)


def read(place: Place, op: Op, image: int, batch: Expr, channel: Expr, y: Expr, x: Expr, outside: Expr) -> Expr:
    """The image's element under position (r, s) of the window at (y, x), or `outside` in the padding."""
    shape = place.function.by_id[image].type.shape
    inside: list[Expr] = []
    at: list[Expr] = []
    for axis, (window, out) in enumerate((("r", y), ("s", x))):
        low, high = op.attr("padding")[axis]
        i = apply("sub", apply("add", apply("mul", out, const(op.attr("stride")[axis])),
                               apply("mul", Index(window), const(op.attr("dilation")[axis]))), const(low))
        at.append(i)
        if low > 0 or high > 0:
            inside += [apply("ge", i, const(0)), apply("lt", i, const(shape[2 + axis]))]
    value = Read(image, (batch, channel, *at), op.type.dtype)
    if not inside:
        return value
    return Apply("select", (reduce(lambda a, b: Apply("and", (a, b), DType.BOOL), inside), value, outside), op.type.dtype)
