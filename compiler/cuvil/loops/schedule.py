"""How a nest runs: which loops become one, which is cut among threads, how many elements a step takes.

All of it is decided from the statements and the target's numbers, never from the running machine's load, so the same
function gives the same code and the same order of additions for any number of threads.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..ir.scalar import Apply, Const, Expr, Index, Read, apply, const
from ..ir.types import DType
from ..targets import Target
from .index import affine, build
from .nest import Check, Fold, Let, Load, Local, Loop, Statement, Store, Tile, children

# Primitives that take tens of instructions: worth a thread sooner, and one register wide is enough work in flight.
HEAVY = frozenset(("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "erf", "pow", "atan", "atan2",
                   "sinh", "cosh", "floordiv", "mod"))
HEAVY_COST = 12
# Elements of a piece of a one-dimensional loop: a multiple of every vector width, small enough to share out, large enough
# that waking a thread for it pays.
CHUNK = 8192


@dataclass(frozen=True)
class Axis:
    """A loop to be made: a variable and its number of values."""

    var: str
    size: int


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """What a statement computes itself, without the statements inside it."""
    match statement:
        case Let():
            return (statement.value,)
        case Store():
            return statement.offset, statement.value
        case Check():
            return (statement.condition,)
        case Fold():
            return (statement.value,)
        case Loop():
            return (statement.extent,)
        case Tile():
            return statement.left.offset, statement.right.offset, statement.out.offset
    return ()


def mapped(statement: Statement, change: Callable[[Expr], Expr]) -> Statement:
    """The statement, and those inside it, with every expression changed."""
    match statement:
        case Let():
            return replace(statement, value=change(statement.value))
        case Store():
            return replace(statement, offset=change(statement.offset), value=change(statement.value))
        case Check():
            return replace(statement, condition=change(statement.condition))
        case Fold():
            return replace(statement, value=change(statement.value))
        case Loop():
            return replace(statement, extent=change(statement.extent), body=tuple(mapped(s, change) for s in statement.body))
        case Tile():
            return replace(statement, **{side: replace(matrix, offset=change(matrix.offset)) for side, matrix in
                                         (("left", statement.left), ("right", statement.right), ("out", statement.out))})
    return statement


def walk(body: tuple[Statement, ...] | list[Statement]) -> Iterator[Statement]:
    todo = list(reversed(body))
    while todo:
        statement = todo.pop()
        yield statement
        todo += reversed(children(statement))


# --- merging loops --------------------------------------------------------------------------------------------------

def merge(axes: list[Axis], body: list[Statement]) -> tuple[list[Axis], list[Statement]]:
    """Neighbouring loops become one where every index uses them only as `outer * size + inner`: contiguous memory."""
    axes = [a for a in axes if a.size != 1]
    merged = True
    while merged and len(axes) > 1:
        merged = False
        for i in range(len(axes) - 1):
            outer, inner = axes[i], axes[i + 1]
            if all(_joint(e, outer.var, inner.var, inner.size) for s in walk(body) for e in expressions(s)):
                body = [mapped(s, lambda e: without(e, outer.var)) for s in body]
                axes[i:i + 2] = [Axis(inner.var, outer.size * inner.size)]
                merged = True
                break
    return axes, body


def _joint(expression: Expr, outer: str, inner: str, size: int) -> bool:
    match expression:
        case Const() | Local():
            return True
        case Index(name):
            return name not in (outer, inner)
        case Load():
            return (_joint(expression.offset, outer, inner, size)
                    and (expression.guard is None or _joint(expression.guard, outer, inner, size)))
        case Read():
            return False
    if expression.dtype == DType.I64 and expression.primitive in ("add", "sub", "mul", "neg"):
        form = affine(expression, {})
        if expression not in form.terms:                     # else it is a product of two variables: look at these
            return (form.coefficient(outer) == form.coefficient(inner) * size
                    and all(isinstance(atom, (Index, Local)) or _joint(atom, outer, inner, size) for atom in form.terms))
    return all(_joint(a, outer, inner, size) for a in expression.arguments)


def without(expression: Expr, var: str) -> Expr:
    """The expression where the variable is 0."""
    return rewritten(expression, lambda e: const(0) if e == Index(var) else None)


def rewritten(expression: Expr, leaf: Callable[[Expr], Expr | None]) -> Expr:
    """Leaves replaced, also inside of loads; index arithmetic stays in canonical form."""
    found = leaf(expression)
    if found is not None:
        return found
    match expression:
        case Load():
            return replace(expression, offset=rewritten(expression.offset, leaf),
                           guard=None if expression.guard is None else rewritten(expression.guard, leaf))
        case Apply(primitive, arguments, dtype):
            changed = tuple(rewritten(a, leaf) for a in arguments)
            if changed == arguments:
                return expression
            result = Apply(primitive, changed, dtype)
            return build(affine(result, {})) if dtype == DType.I64 and primitive in ("add", "sub", "mul", "neg") else result
    return expression


# --- cost and width -------------------------------------------------------------------------------------------------

def primitives(expression: Expr) -> Iterator[str]:
    todo = [expression]
    while todo:
        match todo.pop():
            case Apply(primitive, arguments):
                yield primitive
                todo += arguments


def cost(body: tuple[Statement, ...] | list[Statement]) -> int:
    """Element operations of one round of the statements, loops inside multiplied out."""
    total = 0
    for statement in body:
        if isinstance(statement, Loop):
            size = statement.extent.value if isinstance(statement.extent, Const) else CHUNK
            total += size * cost(statement.body)
        elif isinstance(statement, Tile):
            total += statement.rows * statement.columns * statement.depth
        else:
            total += 1 + sum(HEAVY_COST if p in HEAVY else 0 for e in expressions(statement) for p in primitives(e))
    return total


def is_heavy(body: list[Statement]) -> bool:
    return any(p in HEAVY for s in walk(body) for e in expressions(s) for p in primitives(e))


def width(body: list[Statement], size: int, target: Target, registers: int) -> int:
    """Elements of one vector step: `registers` registers of the widest element type that is computed, at most `size`."""
    if target.kind != "cpu":
        return 1
    widest = 1
    for statement in walk(body):
        match statement:
            case Let(value=value) if value.dtype != DType.I64 or not _only_position(value):
                widest = max(widest, _register_bytes(value.dtype), *(_register_bytes(d) for d in _dtypes(value)))
            case Store(value=value) | Fold(value=value):
                widest = max(widest, _register_bytes(value.dtype), *(_register_bytes(d) for d in _dtypes(value)))
    lanes = target.lanes(widest) * (1 if is_heavy(body) else registers)
    while lanes > 1 and lanes // 2 >= size:
        lanes //= 2
    return lanes


def _register_bytes(dtype: DType) -> int:
    return 4 if dtype in (DType.F16, DType.BF16) else dtype.size


def _dtypes(expression: Expr) -> Iterator[DType]:
    todo = [expression]
    while todo:
        e = todo.pop()
        if isinstance(e, Apply):
            if e.dtype != DType.I64:
                yield e.dtype
            todo += e.arguments
        elif isinstance(e, (Load, Local)):
            yield e.dtype


def _only_position(expression: Expr) -> bool:
    return isinstance(expression, (Const, Index)) or isinstance(expression, Apply) and all(map(_only_position, expression.arguments))


# --- loops ----------------------------------------------------------------------------------------------------------

def vector_loop(axis: Axis, body: list[Statement], target: Target, registers: int = 1, origins: tuple[str, ...] = ()) -> Loop:
    return Loop(axis.var, const(axis.size), "vector", tuple(body), width(body, axis.size, target, registers), origins)


def nested(axes: list[Axis], body: list[Statement], origins: tuple[str, ...]) -> list[Statement]:
    for axis in reversed(axes):
        body = [Loop(axis.var, const(axis.size), "serial", tuple(body), origins=origins)]
    return body


def outermost(axes: list[Axis], body: list[Statement], target: Target, origins: tuple[str, ...]) -> list[Statement]:
    """The loops around a body, as one loop cut among threads where the work is worth it.

    Several axes run as one counter, taken apart by division once a round. Without axes a single vector loop is cut into pieces.
    """
    if target.kind != "cpu":
        return _joint_counter([a for a in axes if a.size != 1], body, origins)
    if not axes and len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "vector":
        return _pieces(body[0], target, origins)
    rounds = 1
    for axis in axes:
        rounds *= axis.size
    if not axes or rounds * cost(body) < target.parallel_from:
        return nested(axes, body, origins)
    return _joint_counter(axes, body, origins)


def _joint_counter(axes: list[Axis], body: list[Statement], origins: tuple[str, ...]) -> list[Statement]:
    """One parallel loop over all axes; on a GPU each round of it is a thread."""
    if len(axes) == 1:
        return [Loop(axes[0].var, const(axes[0].size), "parallel", tuple(body), origins=origins)]
    rounds = 1
    for axis in axes:
        rounds *= axis.size
    if not axes:
        return [Loop("p", const(1), "parallel", tuple(body), origins=origins)]
    taken_apart: list[Statement] = []
    rest: Expr = Index("p")
    for axis in reversed(axes[1:]):
        taken_apart.append(Let(axis.var, Apply("mod", (rest, const(axis.size)), DType.I64), origins))
        rest = Apply("floordiv", (rest, const(axis.size)), DType.I64)
    taken_apart.append(Let(axes[0].var, rest, origins))
    return [Loop("p", const(rounds), "parallel", (*taken_apart, *body), origins=origins)]


def _pieces(loop: Loop, target: Target, origins: tuple[str, ...]) -> list[Statement]:
    size = loop.extent.value
    if size < 2 * CHUNK or size * cost(loop.body) < target.parallel_from:
        return [loop]
    pieces = -(-size // CHUNK)
    start = apply("mul", Index("p"), const(CHUNK))
    whole = apply("add", start, Index(loop.var))
    body = tuple(mapped(s, lambda e: rewritten(e, lambda x: whole if x == Index(loop.var) else None)) for s in loop.body)
    extent: Expr = const(CHUNK)
    if size % CHUNK:
        extent = Apply("minimum", (const(CHUNK), build(affine(apply("sub", const(size), start), {}))), DType.I64)
    return [Loop("p", const(pieces), "parallel", (replace(loop, extent=extent, body=body),), origins=origins)]
