"""Convolution: the matmul template with the image read through the window's index map, so no unfolded image is ever stored.

For every image and group, rows are output channels, columns output positions, and the depth is (input channel, kernel row,
kernel column). A panel of columns is packed straight from the image. Columns are the positions of one output row where that
wastes few lanes (the image is then read in runs), else all positions of the image in one line.
Groups with few outputs (depthwise) fold their windows directly.
"""
from __future__ import annotations

from ..ir.scalar import Const, Expr, Index, Read, apply, const
from ..ops.definition import CONVOLUTION
from .contraction import Product, root
from .nest import Statement
from .place import Place
from .pull import Position
from .schedule import Axis, rewritten
from .window import fold_windows, read

# Outputs of one group from which packing a panel pays.
FEW_OUTPUTS = 4


def lower(place: Place) -> list[Statement]:
    op = root(place, CONVOLUTION)
    image, weight = (place.function.by_id[id] for id in op.operands)
    batch, outputs, height, width = op.type.shape
    _, inputs, kh, kw = weight.type.shape
    groups = op.attr("groups")
    each = outputs // groups
    if each < FEW_OUTPUTS:
        return _direct(place)
    depth = Axis("k", inputs * kh * kw)
    channel, r, s = _unravel(Index("k"), (inputs, kh, kw))
    row = apply("add", apply("mul", Index("g"), const(each)), Index("m"))
    left = Read(weight.id, (row, channel, r, s), op.type.dtype)
    lanes = place.target.lanes(4)
    by_row = _padded(width, lanes) * height <= 1.25 * _padded(height * width, lanes)
    axes = [Axis("image", batch), Axis("g", groups)]
    if by_row:
        axes.append(Axis("y", height))
        y, x, column = Index("y"), Index("n"), Axis("n", width)
    else:
        (y, x), column = _unravel(Index("n"), (height, width)), Axis("n", height * width)
    source = apply("add", apply("mul", Index("g"), const(inputs)), channel)
    element = read(place, op, image.id, Index("image"), source, y, x, Const(0, op.type.dtype))
    right = _placed(element, {"r": r, "s": s})
    return Product(place, op, [*axes, Axis("m", each)], column, depth, left, right, (Index("image"), row, y, x)).loops()


def _direct(place: Place) -> list[Statement]:
    op = root(place, CONVOLUTION)
    image, weight = op.operands
    _, inputs, kh, kw = place.function.by_id[weight].type.shape
    each = op.type.shape[1] // op.attr("groups")

    def element(at: Position) -> Expr:
        batch, output, y, x = at
        group = apply("floordiv", output, const(each))
        source = apply("add", apply("mul", group, const(inputs)), Index("c"))
        value = read(place, op, image, batch, source, y, x, Const(0, op.type.dtype))
        return apply("mul", Read(weight, (output, Index("c"), Index("r"), Index("s")), op.type.dtype), value)
    return fold_windows(place, op, [Axis("c", inputs), Axis("r", kh), Axis("s", kw)], element, "add", 0)


def _unravel(index: Expr, shape: tuple[int, ...]) -> tuple[Expr, ...]:
    found: list[Expr] = []
    for size in reversed(shape[1:]):
        found.append(apply("mod", index, const(size)))
        index = apply("floordiv", index, const(size))
    return (index, *reversed(found))


def _padded(size: int, lanes: int) -> int:
    return -(-size // lanes) * lanes


def _placed(expression: Expr, values: dict[str, Expr]) -> Expr:
    """Window variables replaced, also in the index of a Read."""
    def leaf(e: Expr) -> Expr | None:
        if isinstance(e, Index):
            return values.get(e.name)
        if isinstance(e, Read):
            return Read(e.value, tuple(rewritten(i, leaf) for i in e.index), e.dtype)
        return None
    return rewritten(expression, leaf)
