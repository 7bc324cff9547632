"""Matmul: register tiles over packed panels, with everything that follows elementwise applied to a tile before it is stored.

    for each batch and each panel of columns:
        pack the right operand's panel: [depth][columns of a tile], zeros beyond the edge   (unless it lies in memory so)
        for each tile of rows: the micro-kernel, then the epilogue on the tile while it is in L1

When the left operand is larger than the second-level cache, all panels are packed first, and pieces of rows that fit go
over them.

Operands are read through their index maps, so a transpose or a slice costs nothing extra. A right operand made of parameters
is packed once, when they are loaded. The left operand is read in place, element by element of each row. Rows that do not fill
the last tile are reached by moving it up, so that there is one micro-kernel; sums do not depend on which tile made them.

Matrix-vector products whose rows lie in memory as they are summed go the way of reductions.
"""
from __future__ import annotations

from dataclasses import replace

from ..diagnostics import CuvilError
from ..ir.function import Function, Op
from ..ir.scalar import Apply, Const, Expr, Index, Read, apply, cast, const
from ..ir.types import DType
from ..ops.definition import CONTRACTION, DEFINITIONS
from . import elementwise
from .index import affine, build, simplify, substitute
from .nest import Accumulator, Buffer, Fold, Let, Load, Local, Loop, Statement, Store, Strided, Tile, Total
from .place import Place, offset
from .pull import Position, Pull
from .schedule import Axis, expressions, mapped, merge, outermost, rewritten

# Rows of one task below which packing a panel for it is not paid back; more tasks than this many are not made by cutting rows.
SHARE_ROWS, SHARE_TASKS = 96, 16
# Rows up to which a matmul is bound by reading the right operand.
FEW_ROWS = 4
# Dot products taken at the same time: rows of the right operand that stream from memory side by side.
DOTS = 4


def lower(place: Place) -> list[Statement]:
    op = root(place, CONTRACTION)
    function = place.function
    *batch, rows, columns = op.type.shape
    a, b = (function.by_id[id] for id in op.operands)
    axes = [*(Axis(f"batch{i}", size) for i, size in enumerate(batch)), Axis("m", rows)]
    at = tuple(Index(x.var) for x in axes[:-1])
    return Product(place, op, axes, Axis("n", columns), Axis("k", a.type.shape[-1]),
                   Read(a.id, (*_batch(at, a), Index("m"), Index("k")), a.type.dtype),
                   Read(b.id, (*_batch(at, b), Index("k"), Index("n")), b.type.dtype),
                   (*at, Index("m"), Index("n"))).loops()


def root(place: Place, kind: str) -> Op:
    """The kernel's op of this kind."""
    return next(op for op in map(place.function.by_id.get, place.kernel.ops) if DEFINITIONS[op.name].kind == kind)


class Product:
    """out[at] = epilogue(sum over k of left[batch, m, k] * right[batch, k, n]), the operands as expressions over Reads.

    axes      batch axes, then the axis m of rows; column and depth: the axes n and k
    at        the index of op's result at (batch, m, n)

    Halves are multiplied and summed in f32 and rounded once.
    """

    def __init__(self, place: Place, op: Op, axes: list[Axis], column: Axis, depth: Axis, left: Expr, right: Expr, at: Position) -> None:
        self.place, self.op = place, op
        self.axes, self.row, self.column, self.depth = axes, axes[-1], column, depth
        self.origins = (f"ir:%{op.id}",)
        self.dtype = DType.F32 if op.type.dtype in (DType.F16, DType.BF16) else op.type.dtype
        if self.dtype == DType.BOOL:
            raise CuvilError(f"{op.name} of bool elements is not compiled", op.origins[0].span if op.origins else None,
                             hint="cast to a number type first")
        self.ranges = {a.var: a.size for a in (*axes, column, depth)}
        readable = {id: b for id, b in place.buffers.items() if id in place.kernel.inputs}
        pulled = Pull(place.function, readable, self.ranges, prefix="a")
        self.left_value = pulled.resolve(left)
        self.left = pulled.statements
        pulled = Pull(place.function, readable, self.ranges, prefix="b")
        self.right_value = pulled.resolve(right)
        self.right = pulled.statements
        self.finish = epilogue(place, op, at, self.ranges)
        self.source = _read_of(right)
        self.constant = made_of_parameters(place.function, self.source)
        self.name = place.function.by_id[self.source].label or f"%{self.source}"

    def loops(self) -> list[Statement]:
        if any(a.size == 0 for a in (*self.axes, self.column)):
            return []
        before = self._left_in_memory()
        self._merge()
        return [*before, *(self._dots() if self._are_dots() else self._tiles())]

    def _left_in_memory(self) -> list[Statement]:
        """The left operand is read in place; one that is not a plain view of memory is written out in order first."""
        if strided(self.left, self.left_value, self.row.var, self.depth.var, self.dtype) is not None:
            return []
        axes = [a for a in (*self.axes, self.depth) if _mentioned([*self.left], self.left_value, a.var)]
        at: Expr = const(0)
        size = 1
        for axis in axes:
            at = apply("add", apply("mul", at, const(axis.size)), Index(axis.var))
            size *= axis.size
        at = simplify(at, self.ranges)
        id = self.op.operands[0]
        copy = Buffer(id, f"{self.place.function.by_id[id].label or f'%{id}'} in order", self.dtype, size, "copy")
        body = [*self.left, Store(copy, at, cast(self.left_value, self.dtype), self.origins)]
        loops = elementwise.loops(axes, body, self.place.target, self.origins)
        self.left, self.left_value = [Let(f"a{id}", Load(copy, at, self.dtype), self.origins)], Local(f"a{id}", self.dtype)
        return loops

    def _merge(self) -> None:
        """Batch axes that only the left operand has become rows."""
        sides = [Let("left", self.left_value), Let("right", self.right_value)]
        axes, body = merge(self.axes, [*sides, *self.left, *self.right, *self.finish])
        self.left_value, self.right_value = body[0].value, body[1].value
        first, second = 2 + len(self.left), 2 + len(self.left) + len(self.right)
        self.left, self.right, self.finish = body[2:first], body[first:second], body[second:]
        if axes and not _mentioned(self.right, self.right_value, axes[-1].var):
            self.axes, self.row = axes[:-1], axes[-1]
        else:
            self.axes, self.row = axes, Axis("m", 1)

    # --- dot products -----------------------------------------------------------------------------------------------

    def _are_dots(self) -> bool:
        """Few rows, and both operands lie in memory along the summed axis: packing the right one would cost more than reading it."""
        left = strided(self.left, self.left_value, self.row.var, self.depth.var, self.dtype)
        right = strided(self.right, self.right_value, self.depth.var, self.column.var, self.dtype)
        few = 1 if self.constant else FEW_ROWS
        return self.row.size <= few and right is not None and left.column == 1 and right.row == 1 and right.column != 1

    def _dots(self) -> list[Statement]:
        """A sum for each element, its lanes along the summed axis; a few at a time."""
        target, origins = self.place.target, self.origins
        lanes = target.lanes(self.dtype.size)
        while lanes > 1 and lanes // 2 >= self.depth.size:
            lanes //= 2
        together = next(u for u in (DOTS, 2, 1) if self.column.size % u == 0)
        first = apply("mul", Index(self.column.var), const(together)) if self.column.size > together else const(0)
        body: list[Statement] = []
        inner: list[Statement] = [*self.left]
        for u in range(together):
            at = {self.column.var: apply("add", first, const(u))}
            names = {s.name: f"{s.name}.{u}" for s in self.right if isinstance(s, Let)} if u else {}
            lets = [_renamed(mapped(s, lambda e: _at(e, at)), names) for s in self.right]
            right = _renamed(Let("", _at(self.right_value, at)), names).value
            acc = f"acc{u}"
            body.append(Accumulator(acc, "add", self.dtype, 0, lanes, origins))
            inner += [*lets, Fold(acc, Apply("mul", (self.left_value, right), self.dtype), origins)]
        body.append(Loop(self.depth.var, const(self.depth.size), "vector", tuple(inner), lanes, origins))
        for u in range(together):
            at = {self.column.var: apply("add", first, const(u))}
            names = {s.name: f"{s.name}.{u}" for s in self.finish if isinstance(s, Let)} | {"sum": f"sum{u}"}
            body += [Total(f"sum{u}", f"acc{u}", self.dtype, True, origins), *(_renamed(mapped(s, lambda e: _at(e, at)), names) for s in self.finish)]
        axes, body = merge([*self.axes, self.row, Axis(self.column.var, self.column.size // together)], body)
        return outermost(axes, body, target, origins)

    # --- tiles ------------------------------------------------------------------------------------------------------

    def _tiles(self) -> list[Statement]:
        target, dtype, origins = self.place.target, self.dtype, self.origins
        lanes = target.lanes(dtype.size)
        most_rows, vectors = self._shape(lanes)
        width = vectors * lanes
        tiles = -(-self.row.size // most_rows)
        rows = -(-self.row.size // tiles)
        panels = -(-self.column.size // width)
        large = self.row.size * self.depth.size * dtype.size > target.l2 // 2
        shares = self._shares(tiles, rows, panels, large)
        left = strided(self.left, self.left_value, self.row.var, self.depth.var, dtype)
        panel, share, tile = Axis("panel", panels), Axis("share", shares), Axis("tile", -(-tiles // shares))
        first_column = apply("mul", Index(panel.var), const(width)) if panels > 1 else const(0)
        before, setup, right = self._right(width, panels, first_column, large)
        number: Expr = Index(tile.var) if tile.size > 1 else const(0)
        if shares > 1:
            number = apply("add", apply("mul", Index(share.var), const(tile.size)), number)
        first_row: Expr = apply("mul", number, const(rows))
        if tiles * rows > self.row.size or shares * tile.size > tiles:
            first_row = Apply("minimum", (first_row, const(self.row.size - rows)), DType.I64)
        first = Local("row0", DType.I64)
        sums = Buffer(self.op.id, "sums", dtype, rows * width, "stack")
        at = {self.row.var: first}
        start = Strided(left.buffer, _at(left.offset, at | {self.depth.var: const(0)}), left.row, left.column)
        body: list[Statement] = [Let("row0", first_row, origins),
                                 Tile(rows, width, self.depth.size, dtype, start, right, Strided(sums, const(0), width, 1), origins),
                                 *self._finish(rows, width, first_column, sums)]
        loop = body if tile.size == 1 else [Loop(tile.var, const(tile.size), "serial", tuple(body), origins=origins)]
        axes = (*self.axes, panel, share) if setup else (*self.axes, share, panel)
        return [*before, *outermost([a for a in axes if a.size != 1], [*setup, *loop], target, origins)]

    def _shape(self, lanes: int) -> tuple[int, int]:
        """Rows and vectors of the register tile: the one that wastes the fewest columns; few rows take as many vectors as fit,
        for a sum waits for the one before it."""
        tiles, rows = self.place.target.tiles, self.row.size
        if rows <= FEW_ROWS:
            return rows, min(8, (self.place.target.registers - 2) // (rows + 1), -(-self.column.size // lanes))
        # One vector needs a load for each multiply-add, which then takes longer than the arithmetic.
        return min(tiles, key=lambda t: (_up(self.column.size, t[1] * lanes) * (1.3 if t[1] == 1 else 1), tiles.index(t)))

    def _shares(self, tiles: int, rows: int, panels: int, large: bool) -> int:
        """Pieces the rows are cut into: so that a piece stays in the second-level cache while panels go over it, or to have
        something for every thread when there are few panels."""
        if large:
            return min(tiles, -(-self.row.size * self.depth.size * self.dtype.size // (self.place.target.l2 // 2)))
        tasks = panels
        for axis in self.axes:
            tasks *= axis.size
        most = max(1, min(SHARE_TASKS // tasks, self.row.size // SHARE_ROWS))
        return min(most, tiles)

    def _right(self, width: int, panels: int, first_column: Expr, large: bool) -> tuple[list[Statement], list[Statement], Strided]:
        """(what packs all panels before, what packs a panel in each task, where the micro-kernel finds the panel)."""
        dtype, depth = self.dtype, self.depth.size
        there = strided(self.right, self.right_value, self.depth.var, self.column.var, dtype)
        few = self.row.size <= 8 and not self.constant
        if there is not None and there.column == 1 and self.column.size % width == 0 and (panels <= 2 or few):
            at = {self.column.var: first_column, self.depth.var: const(0)}
            return [], [], replace(there, offset=_at(there.offset, at))
        id = self.op.operands[1]
        if not self.constant and not large:
            panel = Buffer(id, f"panel of {self.name}", dtype, depth * width, "panel")
            return [], self._pack(panel, const(0), width, first_column), Strided(panel, const(0), width, 1)
        # All panels, one after the other; batch axes that the operand does not have are not repeated.
        axes = [a for a in self.axes if _mentioned(self.right, self.right_value, a.var)]
        batches, place = 1, const(0)
        for axis in axes:
            batches *= axis.size
            place = apply("add", apply("mul", place, const(axis.size)), Index(axis.var))
        place = apply("add", apply("mul", place, const(panels)), Index("panel") if panels > 1 else const(0))
        packed = Buffer(id, f"{self.name} in panels", dtype, batches * panels * depth * width, "packed" if self.constant else "panels")
        base = build(affine(apply("mul", place, const(depth * width)), {}))
        axes = [a for a in (*axes, Axis("panel", panels)) if a.size != 1]
        loops = outermost(axes, self._pack(packed, base, width, first_column), self.place.target, self.origins)
        if self.constant:
            self.place.prepare.extend(loops)
        return [] if self.constant else loops, [], Strided(packed, base, width, 1)

    def _pack(self, panel: Buffer, base: Expr, width: int, first_column: Expr) -> list[Statement]:
        column = apply("add", first_column, Index("j"))
        inside = Apply("lt", (build(affine(column, {})), const(self.column.size)), DType.BOOL) if self.column.size % width else None
        body = [mapped(s, lambda e: _guarded(_at(e, {self.column.var: column}), inside)) for s in self.right]
        value = cast(_at(self.right_value, {self.column.var: column}), panel.dtype)
        if inside is not None:
            value = Apply("select", (inside, value, Const(0, panel.dtype)), panel.dtype)
        to = build(affine(apply("add", base, apply("add", apply("mul", Index(self.depth.var), const(width)), Index("j"))), {}))
        body.append(Store(panel, to, value, self.origins))
        inner = Loop("j", const(width), "vector", tuple(body), width, self.origins)
        return [Loop(self.depth.var, const(self.depth.size), "serial", (inner,), origins=self.origins)]

    def _finish(self, rows: int, width: int, first_column: Expr, sums: Buffer) -> list[Statement]:
        """The epilogue over one tile: its rows one after the other, all columns at once."""
        column = apply("add", first_column, Index("j"))
        total = Load(sums, build(affine(apply("add", apply("mul", Index("i"), const(width)), Index("j")), {})), sums.dtype)
        row = apply("add", Local("row0", DType.I64), Index("i"))
        at = {self.row.var: row, self.column.var: column}
        body = [mapped(s, lambda e: _at(e, at)) for s in self.finish]
        extent: Expr = const(width)
        if self.column.size % width:
            extent = build(affine(apply("sub", const(self.column.size), first_column), {}))
            if self.column.size > width:
                extent = Apply("minimum", (const(width), extent), DType.I64)
        body = [Let("sum", cast(total, self.op.type.dtype), self.origins), *body]
        inner = Loop("j", extent, "vector", tuple(body), width, self.origins)
        return [Loop("i", const(rows), "serial", (inner,), origins=self.origins)]


# --- parts other templates use --------------------------------------------------------------------------------------

def epilogue(place: Place, op: Op, at: Position, ranges: dict[str, int]) -> list[Statement]:
    """Statements that compute and store the kernel's outputs at an index of op's result, with the result as Local("sum")."""
    function = place.function
    wanted = tuple(simplify(i, ranges) if size != 1 else const(0) for i, size in zip(at, op.type.shape))

    def finished(index: Position) -> Expr:
        if index != wanted:
            raise CuvilError(f"{op.name} %{op.id} is read at another place inside its own kernel", op.origins[0].span if op.origins else None)
        return Local("sum", op.type.dtype)

    written = set(place.kernel.outputs)
    pull = Pull(function, {id: b for id, b in place.buffers.items() if id not in written}, ranges, {op.id: finished})
    stores = []
    for id in place.kernel.outputs:
        value = pull.value(id, at)
        stores.append(Store(place.buffers[id], simplify(offset(function.by_id[id], at), ranges), value, (f"ir:%{id}",)))
    return [*pull.statements, *stores]


def strided(lets: list[Statement], value: Expr, row: str, column: str, dtype: DType) -> Strided | None:
    """The matrix as it lies in memory, when its element is a plain load whose offset grows evenly along both indices."""
    if len(lets) != 1 or not isinstance(lets[0], Let) or not isinstance(lets[0].value, Load) or value != Local(lets[0].name, value.dtype):
        return None
    load = lets[0].value
    form = affine(load.offset, {})
    if load.guard is not None or load.dtype != dtype:
        return None
    if any(elementwise.depends(atom, v, set()) for atom in form.terms if not isinstance(atom, Index) for v in (row, column)):
        return None
    return Strided(load.buffer, load.offset, form.coefficient(row), form.coefficient(column))


def _read_of(expression: Expr) -> int:
    """The value that an operand's element is read from: of a convolution's columns that is the image, not the weight."""
    found: list[int] = []
    substitute(expression, lambda e: found.append(e.value) if isinstance(e, Read) else None)
    return found[0]


def made_of_parameters(function: Function, id: int) -> bool:
    todo, seen = [id], set()
    while todo:
        op = function.by_id[todo.pop()]
        if op.name == "input":
            return False
        if op.id not in seen:
            seen.add(op.id)
            todo += op.operands
    return True


def _mentioned(lets: list[Statement], value: Expr, variable: str) -> bool:
    return any(elementwise.depends(e, variable, set()) for e in (value, *(e for s in lets for e in expressions(s))))


def _batch(at: Position, operand: Op) -> Position:
    """The batch index of an operand: its axes are the last ones, axes of size 1 stay at 0."""
    shape = operand.type.shape[:-2]
    return tuple(const(0) if size == 1 else i for i, size in zip(at[len(at) - len(shape):], shape))


def _at(expression: Expr, values: dict[str, Expr]) -> Expr:
    return rewritten(expression, lambda e: values.get(e.name) if isinstance(e, Index) else None)


def _guarded(expression: Expr, inside: Expr | None) -> Expr:
    if inside is None or not isinstance(expression, Load):
        return expression
    guard = inside if expression.guard is None else Apply("and", (inside, expression.guard), DType.BOOL)
    return replace(expression, guard=guard)


def _renamed(statement: Statement, names: dict[str, str]) -> Statement:
    """The statement with the values it names and reads under other names."""
    def leaf(e: Expr) -> Expr | None:
        return Local(names[e.name], e.dtype) if isinstance(e, Local) and e.name in names else None
    statement = mapped(statement, lambda e: rewritten(e, leaf))
    return replace(statement, name=names.get(statement.name, statement.name)) if isinstance(statement, Let) else statement


def _up(size: int, step: int) -> int:
    return -(-size // step) * step
