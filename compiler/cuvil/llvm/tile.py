"""The matmul micro-kernel: a block of sums kept in registers while the summed index runs.

Each step loads the columns of one row of `right` as vectors and, for every row of `left`, one element that goes to all
lanes. Strides are constants, so rows cost no address registers.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..loops.nest import Tile
from .writer import MEMORY, REGISTER, Value, Writer, constant, vector

if TYPE_CHECKING:
    from .statements import Phase


def write_tile(phase: Phase, tile: Tile) -> None:
    w, dtype = phase.w, tile.dtype
    element, size = REGISTER[dtype], dtype.size
    lanes = min(phase.lanes_of(size), tile.columns)
    vectors = tile.columns // lanes
    left, right, out = (phase.w.address(phase.pointer(m.buffer), MEMORY[dtype], phase.value(m.offset)) for m in (tile.left, tile.right, tile.out))
    zero = constant(0, element, lanes)
    if tile.depth == 0:
        _store(phase, tile, out, [[zero] * vectors] * tile.rows)
        return
    head, done, before = w.label("sums"), w.label("summed"), w.block
    following, later = w.name(), [[w.name() for _ in range(vectors)] for _ in range(tile.rows)]
    w.jump(head)
    w.start(head)
    k = w.phi(constant(0, "i64"), before, following, head)
    sums = [[w.phi(zero, before, name, head) for name in row] for row in later]
    a = w.address(left, element, w.op("mul", k, tile.left.column))
    b = w.address(right, element, w.op("mul", k, tile.right.row))
    columns = [_load(w, b, element, j * lanes, lanes, size) for j in range(vectors)]
    for i in range(tile.rows):
        one = w.splat(_load(w, a, element, i * tile.left.row, 0, size), lanes)
        for j in range(vectors):
            after = w.muladd(one, columns[j], sums[i][j]) if dtype.is_float else w.op("add", sums[i][j], w.op("mul", one, columns[j]))
            w.rename(after, later[i][j])
    w.put(f"{following} = add nsw {k}, 1")
    w.branch(w.compare("slt", Value(following, "i64"), tile.depth), head, done)
    w.start(done)
    _store(phase, tile, out, [[Value(name, element, lanes) for name in row] for row in later])


def _store(phase: Phase, tile: Tile, out: str, sums: list[list[Value]]) -> None:
    for i, row in enumerate(sums):
        for j, total in enumerate(row):
            place = phase.w.address(out, total.element, Value(str(i * tile.out.row + j * total.lanes), "i64"))
            phase.w.put(f"store {total}, ptr {place}, align {tile.dtype.size}")


def _load(w: Writer, base: str, element: str, offset: int, lanes: int, size: int) -> Value:
    place = w.address(base, element, Value(str(offset), "i64"))
    return w.make(f"load {vector(element, lanes)}, ptr {place}, align {size}", element, lanes)
