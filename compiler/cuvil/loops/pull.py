"""The value of an op at an index, pulled through everything that is fused into the kernel: a list of Lets ending in a Local.

An elementwise op applies its primitive to its operands at the same index, a movement op reads an operand at another index,
a value in memory is loaded. Each op gives one Let, shared by everyone who reads it at the same index, so a statement says
which op it came from. A read that only one arm of a select makes is guarded by that arm's condition unless its index is
proved to be inside. Works off a list instead of recursing: chains may be thousands of ops long.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..diagnostics import CuvilError
from ..ir.function import Function, Op
from ..ir.scalar import Apply, Const, Expr, Index, Read, apply, cast, const
from ..ir.types import DType
from ..ops.definition import DEFINITIONS, ELEMENTWISE
from .index import interval, simplify, within
from .nest import Buffer, Check, Let, Load, Local, Statement

LARGEST_POSITION = 1 << 53
Position = tuple[Expr, ...]
Key = tuple[int, Position, Expr | None]            # an op, the index, and the condition under which its memory may be read


@dataclass
class Pull:
    """Collects the Lets of one place in a nest.

    function  the optimised function
    buffers   values that lie in memory here: op id -> Buffer
    ranges    loop variables in scope
    bound     values that are there already: op id -> index -> Expr (finished reductions, a template's sum, row buffers)
    prefix    of the names it gives
    """

    function: Function
    buffers: Mapping[int, Buffer]
    ranges: dict[str, int]
    bound: Mapping[int, Callable[[Position], Expr | None]] = field(default_factory=dict)
    prefix: str = "v"
    statements: list[Statement] = field(default_factory=list)
    _values: dict[Key, Expr] = field(default_factory=dict)
    _forms: dict[Key, tuple[Expr, Expr | None]] = field(default_factory=dict)
    _names: dict[int, int] = field(default_factory=dict)

    def value(self, id: int, index: Iterable[Expr], guard: Expr | None = None) -> Expr:
        """The element of a value; statements grow by what computes it."""
        root = self._key(id, index, guard)
        todo = [root]
        while todo:
            key = todo[-1]
            if key in self._values:
                todo.pop()
                continue
            if key not in self._forms:
                self._forms[key] = self._form(key)
            form, check = self._forms[key]
            missing: list[Key] = []
            value = self._resolve(form, key[2], missing)
            condition = None if check is None else self._resolve(check, key[2], missing)
            if missing:
                todo += reversed(missing)
                continue
            todo.pop()
            self._check(key, condition)
            self._values[key] = self._named(key, value)
        return self._values[root]

    def resolve(self, form: Expr) -> Expr:
        """An expression over Reads with every read pulled."""
        while True:
            missing: list[Key] = []
            value = self._resolve(form, None, missing)
            if not missing:
                return value
            for id, index, guard in missing:
                self.value(id, index, guard)

    def forget(self, variables: Iterable[str]) -> None:
        """Values that change with these loop variables are not there any more: the loop they were computed in is over."""
        gone = frozenset(variables)
        for known in (self._values, self._forms):
            for key in [k for k in known if any(mentions(i, gone) for i in (*k[1], k[2]) if i is not None)]:
                del known[key]

    # --- one op -----------------------------------------------------------------------------------------------------

    def _key(self, id: int, index: Iterable[Expr], guard: Expr | None) -> Key:
        shape = self.function.by_id[id].type.shape
        position = tuple(const(0) if size == 1 else simplify(i, self.ranges) for i, size in zip(index, shape, strict=True))
        if guard is not None and all(within(i, size, self.ranges) for i, size in zip(position, shape)):
            guard = None
        return id, position, guard

    def _form(self, key: Key) -> tuple[Expr, Expr | None]:
        """What the op is at the index, over Reads of its operands, and what must be true there."""
        id, index, guard = key
        op = self.function.by_id[id]
        if id in self.bound and (bound := self.bound[id](index)) is not None:
            return bound, None
        if id in self.buffers:
            return self._load(op, index, guard), None
        definition = DEFINITIONS[op.name]
        operands = [self.function.by_id[o] for o in op.operands]
        if definition.kind == ELEMENTWISE:
            reads = [Read(o.id, broadcast(index, o), o.type.dtype) for o in operands]
            return (cast(reads[0], op.type.dtype) if op.name == "cast" else Apply(op.name, tuple(reads), op.type.dtype)), None
        if definition.at is not None:
            def read(i: int, at: Iterable[Expr]) -> Expr:
                return Read(operands[i].id, tuple(at), operands[i].type.dtype)
            types, attributes = [o.type for o in operands], dict(op.attrs)
            check = definition.guard and definition.guard(op.type, types, attributes, index, read)
            return definition.at(op.type, types, attributes, index, read), check
        raise CuvilError(f"{op.name} %{op.id} : {op.type} cannot be computed inside another kernel",
                         op.origins[0].span if op.origins else None)

    def _load(self, op: Op, index: Position, guard: Expr | None) -> Expr:
        offset: Expr = const(0)
        for i, size in zip(index, op.type.shape):
            offset = apply("add", apply("mul", offset, const(size)), i)
        return Load(self.buffers[op.id], simplify(offset, self.ranges), op.type.dtype, guard)

    def _check(self, key: Key, condition: Expr | None) -> None:
        if condition is None or condition == Const(True, DType.BOOL):
            return
        op = self.function.by_id[key[0]]
        if key[2] is not None:
            condition = Apply("or", (Apply("not", (key[2],), DType.BOOL), condition), DType.BOOL)
        place = f" at {op.origins[0].span}" if op.origins else ""
        self.statements.append(Check(condition, f"{op.name}: {DEFINITIONS[op.name].fails}{place}", (f"ir:%{op.id}",)))

    def _named(self, key: Key, value: Expr) -> Expr:
        """Names a computed value by a Let; constants, names and index arithmetic stay as they are."""
        if isinstance(value, (Const, Local)) or self._is_position(value):
            return value
        id = key[0]
        count = self._names[id] = self._names.get(id, -1) + 1
        name = f"{self.prefix}{id}" + (f"_{count}" if count else "")
        self.statements.append(Let(name, value, (f"ir:%{id}",)))
        return Local(name, value.dtype)

    def _is_position(self, value: Expr) -> bool:
        """Arithmetic on loop variables that cannot wrap, so that it may be put in canonical form as a whole."""
        if value.dtype != DType.I64 or not is_index(value):
            return False
        low, high = interval(value, self.ranges)
        return low is not None and high is not None and -LARGEST_POSITION < low and high < LARGEST_POSITION

    # --- reads ------------------------------------------------------------------------------------------------------

    def _resolve(self, expression: Expr, guard: Expr | None, missing: list[Key]) -> Expr:
        """The expression with its Reads replaced by values; keys without a value yet are added to `missing`."""
        match expression:
            case Read():
                before = len(missing)
                index = [self._resolve(i, guard, missing) for i in expression.index]
                if len(missing) > before:
                    return expression
                key = self._key(expression.value, index, guard)
                value = self._values.get(key)
                if value is None:
                    missing.append(key)
                    return expression
                return value
            case Apply("select", (condition, yes, no)):
                before = len(missing)
                condition = simplify(self._resolve(condition, guard, missing), self.ranges)
                if len(missing) > before:
                    return expression
                if isinstance(condition, Const):
                    return self._resolve(yes if condition.value else no, guard, missing)
                otherwise = Apply("not", (condition,), DType.BOOL)
                yes = self._resolve(yes, condition if guard is None else Apply("and", (guard, condition), DType.BOOL), missing)
                no = self._resolve(no, otherwise if guard is None else Apply("and", (guard, otherwise), DType.BOOL), missing)
                return Apply("select", (condition, yes, no), expression.dtype)
            case Apply(primitive, arguments, dtype):
                arguments = tuple(self._resolve(a, guard, missing) for a in arguments)
                resolved = Apply(primitive, arguments, dtype)
                return simplify(resolved, self.ranges) if dtype in (DType.I64, DType.BOOL) else resolved
        return expression


def broadcast(index: Position, operand: Op) -> Position:
    """The operand's index for a result's index: its axes are the last ones, axes of size 1 stay at 0."""
    shape = operand.type.shape
    return tuple(const(0) if size == 1 else i for i, size in zip(index[len(index) - len(shape):], shape))


def is_index(expression: Expr) -> bool:
    """Only loop variables, constants and arithmetic: nothing is read."""
    match expression:
        case Const() | Index():
            return True
        case Apply(_, arguments):
            return all(is_index(a) for a in arguments)
    return False


def mentions(expression: Expr, variables: frozenset[str]) -> bool:
    match expression:
        case Index(name):
            return name in variables
        case Apply(_, arguments):
            return any(mentions(a, variables) for a in arguments)
        case Load():
            return mentions(expression.offset, variables)
    return False
