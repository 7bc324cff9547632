"""Questions about the graph of a function that several rules ask: what a value comes from, what becomes of it, between which numbers it lies.

Every answer takes one walk along the edges. What the graph does not show (a call that is known by name only, an input) ends the walk.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.frontends.python.values import Tensor
    from cuvil.ir.function import Function, Op
    from cuvil.ir.ranges import Interval
    from cuvil.ir.types import TensorType
    from cuvil.source import Span

LAYOUT = frozenset(("broadcast", "reshape", "transpose", "cast", "flip"))            # the same numbers, maybe in another place or type
PARTS = LAYOUT | {"slice", "gather", "take", "concat"}                                # some of the same numbers
_FINDS_NAN = frozenset(("nan_to_num", "isnan", "isinf", "isfinite", "nanmean", "nansum", "masked_fill", "masked_select", "index_put", "index_fill"))
_NAN = re.compile(r"\bnan_to_num|\bisnan\b|\bisfinite\b")
MASKING = LAYOUT | {"slice", "select", "tril", "triu"}


def once(check: Callable[[FileFacts], Iterator[Diagnostic]]) -> Callable[[FileFacts], Iterator[Diagnostic]]:
    """At most one finding at a place: a function that is reached through several calls is read several times."""
    @wraps(check)
    def first(facts: FileFacts) -> Iterator[Diagnostic]:
        seen: set[Span] = set()
        for finding in check(facts):
            if finding.span not in seen:
                seen.add(finding.span)
                yield finding
    return first


def ops(facts: FileFacts, *names: str) -> Iterator[tuple[Function, Op]]:
    """Ops of these names that stand in this file, in all graphs of the file."""
    for facts_of in facts.functions:
        function = facts_of.function
        if function is not None:
            for name in names:
                for op in function.by_name.get(name, ()):
                    if op.origins and op.origins[0].span.path == facts.source.path:
                        yield function, op


def calls(facts: FileFacts, *names: str) -> Iterator[tuple[Function, Op]]:
    """Ops of calls that are known by name only."""
    return ((function, op) for function, op in ops(facts, "opaque") if op.attr("call") in names)


def span(op: Op) -> Span | None:
    return op.origins[0].span if op.origins else None


def depth(op: Op) -> int:
    """Through how many calls the op came into the graph."""
    return len(op.origins[0].callers) if op.origins else 0


def operand(function: Function, op: Op, place: int = 0) -> Op:
    return function.by_id[op.operands[place]]


def source(function: Function, op: Op, through: Container[str] = LAYOUT) -> Op:
    """What a value is, before ops that only move or convert it."""
    while op.operands and (op.name in through or op.attr("call") == "operator.getitem" and "slice" in through):
        op = function.by_id[op.operands[0]]
    return op


def sources(function: Function, op: Op, through: Container[str]) -> Iterator[Op]:
    """Everything that a value is made of through ops of these names."""
    todo, seen = [op], {op.id}
    while todo:
        op = todo.pop()
        if op.name not in through:
            yield op
            continue
        for id in op.operands:
            if id not in seen:
                seen.add(id)
                todo.append(function.by_id[id])


def uses(function: Function, op: Op, through: Container[str] = LAYOUT) -> Iterator[tuple[Op, Op]]:
    """(user, the operand by which it reads) for every op that reads the value, also behind ops of these names."""
    todo, seen = [op], {op.id}
    while todo:
        value = todo.pop()
        for user in function.users[value.id]:
            if user.name not in through:
                yield user, value
            elif user.id not in seen:
                seen.add(user.id)
                todo.append(user)


def leaves(function: Function, op: Op, through: Container[str] = LAYOUT) -> bool:
    """The value, or one that is it behind ops of these names, is a result of the function."""
    results, todo, seen = set(function.results), [op], {op.id}
    while todo:
        value = todo.pop()
        if value.id in results:
            return True
        for user in function.users[value.id]:
            if user.name in through and user.id not in seen:
                seen.add(user.id)
                todo.append(user)
    return False


def nan_replaced(facts: FileFacts, function: Function, op: Op) -> bool:
    """Something that comes of a value, however far, is chosen by a condition, written to in part, or looked through for NaN."""
    where = span(op)
    if where is not None and where.path == facts.source.path and _NAN.search(facts.module.owner(facts.module.node_at(where.line, where.column)).text):
        return True
    todo, seen = [op], {op.id}
    while todo:
        for user in function.users[todo.pop().id]:
            if user.name in ("select", "isnan", "isinf") or user.name == "opaque" and _chooses(function, user):
                return True
            if user.id not in seen:
                seen.add(user.id)
                todo.append(user)
    return False


def _chooses(function: Function, op: Op) -> bool:
    call = str(op.attr("call", ""))
    flags = (function.by_id[id].type.dtype for id in op.operands[1:])
    return call == "[]=" or call.rpartition(".")[2].rstrip("_") in _FINDS_NAN or call == "indexing" and any(d is not None and d.name == "BOOL" for d in flags)


def number(function: Function, op: Op) -> float | int | None:
    """The number of a constant whose elements are all the same."""
    op = source(function, op)
    value = op.attr("value") if op.name == "constant" else None
    return value if isinstance(value, (bool, int, float)) else None


def shape(typed: Op | Tensor | TensorType) -> str:
    """The sizes of an op, a tensor or a type, for messages."""
    sizes = getattr(typed, "type", typed).shape
    return f"[{', '.join(map(str, sizes))}]" if sizes is not None else "[...]"


def read_again(facts: FileFacts, home: FunctionFacts, op: Op) -> bool:
    """A name that holds the value is read more than once, in whatever way: returned in an object, stored or printed, which the graph does not show."""
    return bool(op.label) and len(re.findall(rf"\b{re.escape(op.label)}\b", facts.source.slice(home.span))) > 2


def evidence(*parts: tuple[Op, str]) -> tuple[Evidence, ...]:
    """What the facts say of ops, each at its place."""
    return tuple(dict.fromkeys(Evidence(op.origins[0].span, what) for op, what in parts if op.origins))


def ranges(function: Function) -> dict[int, Interval]:
    """The intervals of a graph by its code. Data that a caller hands over as a literal (`torch.zeros(2, 3)` in an example) stands for
    any other of its type: what a function does to it must hold for those too."""
    kept = function.__dict__.get("ranges")                   # kept with the function, as its cached properties are
    if kept is None:
        from cuvil.ir.ranges import intervals, of_dtype
        literal: dict[int, bool] = {}
        for op in function.ops:
            literal[op.id] = op.name in ("constant", "broadcast", "cast", "reshape", "concat") and all(literal[id] for id in op.operands)
        given = {op.id: replace(of_dtype(op.type.dtype), nan=False) for op in function.ops
                 if literal[op.id] and op.type.shape != () and any(depth(user) > depth(op) for user in function.users[op.id])}
        kept = function.__dict__["ranges"] = intervals(function, given)
    return kept


def zero_times_log(function: Function, op: Op) -> Op | None:
    """p of a product `p * log(p)` whose p comes close to zero without being known to stay away from it."""
    for place in (0, 1) if op.name == "mul" and len(op.operands) == 2 else ():
        log = source(function, operand(function, op, place), {"cast", "broadcast"})
        if log.name in ("log", "log2"):
            p, of = (source(function, each, {"cast", "broadcast"}) for each in (operand(function, op, 1 - place), operand(function, log)))
            known = ranges(function)[p.id]
            if p is of and known.lo == 0 and known.hi <= 1:
                return p
    return None


def autocast(facts: FileFacts, where: Span) -> bool:
    """The place stands in a `with torch.autocast(...)`: what the ops in it compute in is decided there."""
    import libcst as cst
    found = facts.module.node_at(where.line, where.column)
    while found is not None:
        if isinstance(found, cst.With) and any("autocast" in facts.source.slice(facts.module.span(item.item)) for item in found.items):
            return True
        found = facts.module.parent(found)
    return False


def dequantised(function: Function, op: Op) -> Op | None:
    """The product or quotient by which a difference of codes is scaled, if it is."""
    for user, _ in uses(function, op, LAYOUT | {"slice"}):
        if user.name in ("mul", "div") and (user.type.dtype is None or user.type.dtype.is_float):
            return user
    return None
