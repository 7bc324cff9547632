"""Loop IR: a kernel as loops over scalar assignments to memory, each statement with an id and the ops it came from.

    loop:k0.0   parallel i0 in 4096:
    loop:k0.1     acc6: f32 = -inf, to maximum in 16 lanes
    loop:k0.2     vector i1 in 512 by 16:
    loop:k0.3       v5: f32 = x[i0 * 512 + i1] * 0.125
    loop:k0.4       acc6 folds v5

Memory is flat: a buffer is a row of elements and an offset is an index expression in canonical form (index.py). Inside a
`vector` loop every value is `width` neighbouring elements; which of them are uniform is found when code is emitted.
Statements are frozen; a Nest is numbered once it is finished.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Union

from ..ir.scalar import Apply, Const, Expr, Index, Read
from ..ir.types import DType


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory for the elements of one CIR value.

    value   id of the op whose result it holds
    name    as people read it: the user's name or %id
    role    "value": an input, a parameter, a result or a planned temporary
            "stack":  a short array on the stack of the thread that runs the loop
            "packed": a constant matmul operand in panels, filled once when parameters are loaded
            "copy", "panels": an operand written out in order, or in panels, for the kernel that reads it
            "panel":  a panel of a matmul operand, in memory of the thread that makes and uses it
    """

    value: int
    name: str
    dtype: DType
    numel: int
    role: str = "value"


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a buffer. guard: it is read only where this holds; elsewhere its value is 0 and is not used."""

    buffer: Buffer
    offset: Expr
    dtype: DType
    guard: Expr | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """A value named by a Let, an accumulator's total, or the sum a template makes for its epilogue."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class Let:
    name: str
    value: Expr
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Store:
    buffer: Buffer
    offset: Expr
    value: Expr
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Check:
    """The call fails with an error that names the op unless the condition holds (a gathered position inside its tensor)."""

    condition: Expr
    what: str
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Accumulator:
    """Declares a running fold, started from `identity`. lanes: how many partial results it keeps, one for each lane of the
    vector loop it is folded in; Total joins them in a fixed order. 0: it is one value where it is declared (inside a vector
    loop, one for each element)."""

    name: str
    combine: str
    dtype: DType
    identity: int | float | bool
    lanes: int = 0
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Fold:
    """name = combine(name, value)."""

    name: str
    value: Expr
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Total:
    """let: the finished fold of an accumulator, its lanes joined, or (join False) as they are."""

    let: str
    name: str
    dtype: DType
    join: bool = True
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Loop:
    """var runs over 0..extent. kind: "serial", "parallel" (outermost only) or "vector": width elements a step, the last step
    masked. A width of several registers gives that many independent chains of instructions."""

    var: str
    extent: Expr
    kind: str
    body: tuple[Statement, ...]
    width: int = 1
    origins: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Strided:
    """A matrix in memory: the buffer, the offset of its first element, and how far apart rows and columns are."""

    buffer: Buffer
    offset: Expr
    row: int
    column: int


@dataclass(frozen=True)
class Tile:
    """The matmul micro-kernel: out[i, j] = sum over k < depth of left[i, k] * right[k, j], for i < rows and j < columns.

    All sums stay in registers while k runs; each is one chain of (fused, where the target has it) multiply-adds in the order
    of k. columns is a multiple of the target's lanes, and right and out have that many in memory (right.column == out.column == 1).
    """

    rows: int
    columns: int
    depth: int
    dtype: DType
    left: Strided
    right: Strided
    out: Strided
    origins: tuple[str, ...] = ()
    id: str = ""


Statement = Union[Let, Store, Check, Accumulator, Fold, Total, Loop, Tile]


@dataclass(frozen=True)
class Nest:
    """One kernel's statements. Each one at the top is a phase: it is finished before the next starts.

    kernel   the name of its ir.kernel.Kernel; number: its place in the order of running
    prepare  what runs once, when parameters are loaded: packing of constant operands
    work     estimated element operations
    """

    kernel: str
    number: int
    body: tuple[Statement, ...]
    origins: tuple[str, ...] = ()
    prepare: tuple[Statement, ...] = ()
    work: int = 0

    @property
    def statements(self) -> Iterator[tuple[int, Statement]]:
        """Every statement with its depth, in reading order."""
        todo: list[tuple[int, Statement]] = [(0, s) for s in reversed((*self.prepare, *self.body))]
        while todo:
            depth, statement = todo.pop()
            yield depth, statement
            todo += [(depth + 1, s) for s in reversed(children(statement))]

    @property
    def text(self) -> str:
        return "\n".join([f"kernel {self.kernel}:", *(f"{'  ' * (depth + 1)}{line(statement)}" for depth, statement in self.statements)])


def children(statement: Statement) -> tuple[Statement, ...]:
    return statement.body if isinstance(statement, Loop) else ()


def numbered(nest: Nest) -> Nest:
    """The finished nest: every statement gets its id in reading order."""
    count = 0

    def number_all(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        nonlocal count
        done = []
        for statement in statements:
            id = f"loop:k{nest.number}.{count}"
            count += 1
            if isinstance(statement, Loop):
                statement = replace(statement, body=number_all(statement.body))
            done.append(replace(statement, id=id))
        return tuple(done)

    return replace(nest, prepare=number_all(nest.prepare), body=number_all(nest.body))


def line(statement: Statement) -> str:
    """One statement as people read it."""
    match statement:
        case Let():
            return f"{statement.name}: {statement.value.dtype} = {show(statement.value)}"
        case Store():
            return f"{statement.buffer.name}[{show(statement.offset)}] = {show(statement.value)}"
        case Check():
            return f"check {show(statement.condition)}: {statement.what}"
        case Accumulator():
            lanes = f" in {statement.lanes} lanes" if statement.lanes else ""
            return f"{statement.name}: {statement.dtype} = {statement.identity}, to {statement.combine}{lanes}"
        case Fold():
            return f"{statement.name} folds {show(statement.value)}"
        case Total():
            return f"{statement.let}: {statement.dtype} = {'total' if statement.join else 'lanes'} of {statement.name}"
        case Loop():
            by = f" by {statement.width}" if statement.width > 1 else ""
            return f"{statement.kind} {statement.var} in {show(statement.extent)}{by}:"
        case Tile():
            return (f"{_strided(statement.out)} = {statement.rows}x{statement.columns} tile of {_strided(statement.left)} * "
                    f"{_strided(statement.right)} over {statement.depth}")
    raise TypeError(statement)


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">",
          "ge": ">=", "eq": "==", "ne": "!="}


def show(expression: Expr) -> str:
    """An expression in Python's notation."""
    match expression:
        case Const(value):
            return str(value)
        case Index(name) | Local(name):
            return name
        case Load():
            guard = f" if {show(expression.guard)}" if expression.guard is not None else ""
            return f"{expression.buffer.name}[{show(expression.offset)}]{guard}"
        case Read():
            return f"%{expression.value}[{', '.join(map(show, expression.index))}]"
        case Apply("cast", (a,)):
            return f"{expression.dtype}({show(a)})"
        case Apply("select", (condition, yes, no)):
            return f"({show(yes)} if {show(condition)} else {show(no)})"
        case Apply(name, (a, b)) if name in _INFIX:
            return f"{_inner(a)} {_INFIX[name]} {_inner(b)}"
        case Apply(name, arguments):
            return f"{name}({', '.join(map(show, arguments))})"
    raise TypeError(expression)


def _strided(matrix: Strided) -> str:
    return f"{matrix.buffer.name}[{show(matrix.offset)} + i*{matrix.row} + j{'' if matrix.column == 1 else f'*{matrix.column}'}]"


def _inner(expression: Expr) -> str:
    text = show(expression)
    return f"({text})" if isinstance(expression, Apply) and expression.primitive in _INFIX else text
