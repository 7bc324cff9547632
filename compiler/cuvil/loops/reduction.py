"""Kernels that fold rows: one nest goes over each row as often as it has reductions that wait for each other.

For every row (an index of the axes that stay), for each reduction in turn, a loop over the columns (the axes that go) folds
into an accumulator; a last pass stores values of the rows' own shape. When the last axis is folded, lanes of a vector are
columns, each lane folds every width-th one, and the lanes are joined pairwise at the end: the same order of operations for
any number of threads. When the last axis stays, lanes are neighbouring rows and each folds its own columns from first to last.
"""
from __future__ import annotations

from dataclasses import replace

from ..diagnostics import CuvilError
from ..ir.function import Function, Op
from ..ir.scalar import Expr, Index, Read, apply, const
from ..ops.definition import DEFINITIONS, REDUCTION
from ..targets import Target
from .elementwise import depends, rest_of
from .index import simplify
from .nest import Accumulator, Buffer, Fold, Let, Load, Local, Loop, Statement, Store, Total
from .place import Place, offset
from .pull import Position, Pull
from .schedule import HEAVY, Axis, expressions, mapped, merge, nested, outermost, rewritten, vector_loop, width

# A row kept on the stack between two passes, so that heavy functions are computed once: well within a thread's stack.
ROW_BYTES = 64 * 1024
# Sums of more elements are taken in pieces, and pieces of pieces, so that the rounding error grows with the logarithm of the
# length instead of the length (cascade summation: Higham, "The accuracy of floating point summation", 1993).
PIECE, FAN = 1024, 16
COLUMNS = "columns"                          # the kind of a loop over columns that is not made yet


def lower(place: Place) -> list[Statement]:
    function, kernel = place.function, place.kernel
    folds = [function.by_id[id] for id in kernel.ops if DEFINITIONS[function.by_id[id].name].kind == REDUCTION]
    shape, folded = function.by_id[folds[0].operands[0]].type.shape, folds[0].attr("axes")
    for op in folds:
        if function.by_id[op.operands[0]].type.shape != shape or op.attr("axes") != folded:
            raise CuvilError(f"{op.name} %{op.id} folds other rows than {folds[0].name} %{folds[0].id} in one kernel",
                             op.origins[0].span if op.origins else None)
    axes = [Axis(f"i{a}", size) for a, size in enumerate(shape)]
    row = _Row(place, axes, frozenset(axes[a].var for a in folded))
    outputs = [function.by_id[id] for id in kernel.outputs]
    position = {op.id: row.reduced(op.attr("keepdims")) for op in folds}
    # Values of the rows' own shape; one that a reduction folds is stored in its pass, the others in a pass of their own.
    large = [op for op in outputs if op.id not in position and op.type.shape == shape]
    small = [op for op in outputs if op not in large]
    row.keep_heavy([op.operands[0] for op in folds] + [op.id for op in large])
    for op in folds:
        behind = members_behind(function, kernel.ops, op.operands[0])
        early = [o for o in large if o.id in behind]
        large = [o for o in large if o not in early]
        row.fold(op, Read(op.operands[0], row.full, op.type.dtype), position[op.id], early)
    if large:
        row.pass_over([], large, tuple(f"ir:%{op.id}" for op in large))
    for op in small:
        row.store_reduced(op, position.get(op.id) or row.reduced(len(op.type.shape) == len(shape)))
    return row.loops(place.target, tuple(f"ir:%{op.id}" for op in folds))


def members_behind(function: Function, members: tuple[int, ...], root: int) -> set[int]:
    """Members that the root is computed from, itself included."""
    inside, found, todo = set(members), set(), [root]
    while todo:
        id = todo.pop()
        if id in inside and id not in found:
            found.add(id)
            todo += function.by_id[id].operands
    return found


class _Row:
    """The statements of one row, growing pass by pass. Loops over columns are made at the end, when axes are merged."""

    def __init__(self, place: Place, axes: list[Axis], columns: frozenset[str]) -> None:
        self.place, self.axes, self.columns = place, axes, columns
        self.full: Position = tuple(Index(a.var) for a in axes)
        written = set(place.kernel.outputs)
        self.pull = Pull(place.function, {id: b for id, b in place.buffers.items() if id not in written}, {a.var: a.size for a in axes})
        self.done: list[Statement] = []
        self.kept_rows: dict[int, Buffer] = {}
        self._full = tuple(simplify(i, self.pull.ranges) for i in self.full)

    @property
    def gone(self) -> list[Axis]:
        return [a for a in self.axes if a.var in self.columns]

    @property
    def lanes_are_columns(self) -> bool:
        real = [a.var for a in self.axes if a.size != 1]
        return bool(real) and (real[-1] in self.columns or not set(real) - self.columns)

    def reduced(self, keepdims: bool) -> Position:
        return tuple(const(0) if a.var in self.columns else Index(a.var) for a in self.axes if keepdims or a.var not in self.columns)

    # --- passes -----------------------------------------------------------------------------------------------------

    def keep_heavy(self, sinks: list[int]) -> None:
        """Heavy values that more than one pass needs are kept in a buffer of one row on the stack."""
        if not self.lanes_are_columns or self.place.target.kind != "cpu":
            return
        size = 1
        for axis in self.gone:
            size *= axis.size
        function, needed, room = self.place.function, {}, ROW_BYTES
        for sink in dict.fromkeys(sinks):
            for id in members_behind(function, self.place.kernel.ops, sink):
                needed[id] = needed.get(id, 0) + 1
        for id, count in needed.items():
            op = function.by_id[id]
            if count > 1 and op.name in HEAVY and op.type.shape == tuple(a.size for a in self.axes) and size * op.type.dtype.size <= room:
                self.kept_rows[id] = Buffer(id, f"row of %{id}", op.type.dtype, size, "stack")
                room -= size * op.type.dtype.size

    def fold(self, op: Op, element: Expr, at: Position, early: list[Op]) -> None:
        definition, origins, dtype = DEFINITIONS[op.name], (f"ir:%{op.id}",), op.type.dtype
        self.flush()
        self.done.append(Accumulator(f"acc{op.id}", definition.combine, dtype, definition.identity(dtype), 1, origins))
        value = self.pull.resolve(element)
        self.pass_over([Fold(f"acc{op.id}", value, origins)], early, origins)
        self.done.append(Total(f"v{op.id}", f"acc{op.id}", dtype, origins))
        wanted = tuple(simplify(i, self.pull.ranges) for i in at)
        self.bind(op.id, lambda index: Local(f"v{op.id}", dtype) if index == wanted else self._elsewhere(op))

    def pass_over(self, last: list[Statement], stored: list[Op], origins: tuple[str, ...]) -> None:
        """One pass over the columns: what is pulled so far, stores of `stored`, then `last`."""
        values = {op.id: self.pull.value(op.id, self.full) for op in stored}
        body: list[Statement] = []
        changing: set[str] = set()
        for statement in self._take():
            if not any(depends(e, var, changing) for e in expressions(statement) for var in self.columns):
                self.done.append(statement)
                continue
            body.append(statement)
            if isinstance(statement, Let):
                changing.add(statement.name)
                id = int(statement.origins[0].removeprefix("ir:%"))
                if id in self.kept_rows and statement.name == f"v{id}":
                    body.append(Store(self.kept_rows[id], self._column_offset(), Local(statement.name, statement.value.dtype), statement.origins))
                    self._read_back(id, self.kept_rows.pop(id), self._column_offset())
        for op in stored:
            at = simplify(offset(op, self.full), self.pull.ranges)
            body.append(Store(self.place.buffers[op.id], at, values[op.id], (f"ir:%{op.id}",)))
            self._read_back(op.id, self.place.buffers[op.id], at)
        self.done.append(Loop("", const(0), COLUMNS, (*body, *last), origins=origins))
        self.pull.forget(self.columns)

    def store_reduced(self, op: Op, at: Position) -> None:
        value = self.pull.value(op.id, at)
        self.flush()
        self.done.append(Store(self.place.buffers[op.id], simplify(offset(op, at), self.pull.ranges), value, (f"ir:%{op.id}",)))

    def bind(self, id: int, value) -> None:
        self.pull.bound = {**self.pull.bound, id: value}

    def flush(self) -> None:
        self.done += self._take()

    def _take(self) -> list[Statement]:
        statements, self.pull.statements = self.pull.statements, []
        return statements

    def _read_back(self, id: int, buffer: Buffer, at: Expr) -> None:
        self.bind(id, lambda index: Load(buffer, at, buffer.dtype) if index == self._full else None)

    def _column_offset(self) -> Expr:
        total: Expr = const(0)
        for axis in self.gone:
            total = apply("add", apply("mul", total, const(axis.size)), Index(axis.var))
        return simplify(total, self.pull.ranges)

    def _elsewhere(self, op: Op):
        raise CuvilError(f"{op.name} %{op.id} is read at another row inside its own kernel", op.origins[0].span if op.origins else None)

    # --- loops ------------------------------------------------------------------------------------------------------

    def loops(self, target: Target, origins: tuple[str, ...]) -> list[Statement]:
        kept, body = merge([a for a in self.axes if a.var not in self.columns], self.done)
        gone, body = merge(self.gone, body)
        if self.lanes_are_columns:
            columns = [s for s in body if isinstance(s, Loop)]
            lanes = width([s for loop in columns for s in loop.body], gone[-1].size, target, 4)
            body = [part for s in body for part in self._lanes(s, gone, lanes)]
            return outermost(kept, body, target, origins)
        body = [replace(s, lanes=0) if isinstance(s, Accumulator) else s for s in body]
        body = [part for s in body for part in (self._columns(s, gone) if isinstance(s, Loop) else [s])]
        if not kept or target.kind != "cpu":
            return outermost(kept, body, target, origins) if target.kind != "cpu" else body
        loop = vector_loop(kept[-1], body, target, 2, origins)
        return outermost(kept[:-1], [loop], target, origins)

    def _columns(self, statement: Loop, gone: list[Axis]) -> list[Statement]:
        if not gone:
            return list(statement.body)
        return nested(gone[:-1], self._line(statement, gone[-1], "serial", 1), statement.origins)

    def _lanes(self, statement: Statement, gone: list[Axis], lanes: int) -> list[Statement]:
        match statement:
            case Accumulator():
                return [replace(statement, lanes=lanes)]
            case Loop():
                return nested(gone[:-1], self._line(statement, gone[-1], "vector", lanes), statement.origins)
        return [statement]

    def _line(self, statement: Loop, axis: Axis, kind: str, lanes: int) -> list[Statement]:
        """The loop over the last axis that goes; a long float sum is taken in pieces, each added as a whole, level by level."""
        fold = statement.body[-1]
        declared = isinstance(fold, Fold) and next(s for s in self.done if isinstance(s, Accumulator) and s.name == fold.name)
        if not declared or declared.combine != "add" or not declared.dtype.is_float or axis.size <= 2 * PIECE:
            return [Loop(axis.var, const(axis.size), kind, statement.body, lanes, statement.origins)]
        pieces = [-(-axis.size // PIECE)]                # how many there are of each level, the smallest first
        while pieces[-1] > FAN:
            pieces.append(-(-pieces[-1] // FAN))
        at: Expr = const(0)
        levels = []                                      # (variable, how many rounds), the outermost first
        for level, count in reversed(list(enumerate(pieces))):
            var = Index(f"{axis.var}_piece{level or ''}")
            first = apply("mul", at, const(FAN))
            levels.append((var, rest_of(count, first, FAN) if levels else const(count)))
            at = apply("add", first, var)
        start = apply("mul", at, const(PIECE))
        place = apply("add", start, Index(axis.var))
        body: tuple[Statement, ...] = tuple(
            mapped(s, lambda e: rewritten(e, lambda x: place if x == Index(axis.var) else None))
            for s in (*statement.body[:-1], replace(fold, name=f"part of {fold.name}")))
        inner: Statement = Loop(axis.var, rest_of(axis.size, start, PIECE), kind, body, lanes, statement.origins)
        for level, (var, rounds) in enumerate(reversed(levels)):
            part, piece = f"part{level or ''} of {fold.name}", f"piece{level or ''}"
            into = fold.name if level == len(levels) - 1 else f"part{level + 1} of {fold.name}"
            inner = Loop(var.name, rounds, "serial", (
                replace(declared, name=part, lanes=lanes if kind == "vector" else 0), inner,
                Total(piece, part, declared.dtype, False, fold.origins), Fold(into, Local(piece, declared.dtype), fold.origins)),
                origins=statement.origins)
        return [inner]
