"""The matmul micro-kernel: a block of sums kept in registers while the summed index runs.

Each step loads the columns of one row of `right` as vectors and, for every row of `left`, one element that goes to all
lanes. Strides are constants, so rows cost no address registers.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..loops.nest import Tile
from .writer import MEMORY, REGISTER, Value, constant, vector

if TYPE_CHECKING:
    from .statements import Phase


def write_tile(phase: Phase, tile: Tile) -> None:
    w, dtype = phase.w, tile.dtype
    element, size = REGISTER[dtype], dtype.size
    lanes = min(phase.lanes_of(size), tile.columns)
    vectors = tile.columns // lanes
    left, right, out = (phase.w.address(phase.pointer(m.buffer), MEMORY[dtype], phase.value(m.offset)) for m in (tile.left, tile.right, tile.out))
    zero = constant(0, element, lanes)
    sums = [[w.alloca(zero.type) for _ in range(vectors)] for _ in range(tile.rows)]
    for row in sums:
        for place in row:
            w.put(f"store {zero}, ptr {place}")
    with phase.loop(constant(0, "i64"), constant(tile.depth, "i64"), 1) as k:
        a = w.address(left, element, w.op("mul", k, tile.left.column))
        b = w.address(right, element, w.op("mul", k, tile.right.row))
        columns = [_load(w, b, element, j * lanes, lanes, size) for j in range(vectors)]
        for i in range(tile.rows):
            one = w.splat(_load(w, a, element, i * tile.left.row, 0, size), lanes)
            for j in range(vectors):
                before = w.make(f"load {zero.type}, ptr {sums[i][j]}", element, lanes)
                if dtype.is_float:
                    after = w.muladd(one, columns[j], before)
                else:
                    after = w.op("add", before, w.op("mul", one, columns[j]))
                w.put(f"store {after}, ptr {sums[i][j]}")
    for i in range(tile.rows):
        for j in range(vectors):
            total = w.make(f"load {zero.type}, ptr {sums[i][j]}", element, lanes)
            w.put(f"store {total}, ptr {w.address(out, element, Value(str(i * tile.out.row + j * lanes), 'i64'))}, align {size}")


def _load(w, base: str, element: str, offset: int, lanes: int, size: int) -> Value:
    place = w.address(base, element, Value(str(offset), "i64"))
    return w.make(f"load {vector(element, lanes)}, ptr {place}, align {size}", element, lanes)
