"""Rewrites: a pattern, a replacement and a one-line reason, applied in one walk over a function.

    @rule("neg(neg(x))", "x", "a sign changed twice is the sign")
    def double_negation(r, op):
        inner = r.made_by(op.operands[0], "neg")
        return inner and r.value(inner.operands[0])

A rule looks at an op whose operands are already rewritten and returns the value that stands for it, or None. Nothing that
an op knew is lost: its origins and its label go over to the value that takes its place.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir.function import Function, Op
from ..lineage import Origin, merge_origins
from ..ops.builder import Builder


@dataclass(frozen=True)
class Rule:
    """pattern and replacement are as people read them; reason says why no result changes, NaN and -0.0 included."""

    name: str
    pattern: str
    replacement: str
    reason: str
    apply: Callable[[Rewriter, Op], Op | None]


def rule(pattern: str, replacement: str, reason: str) -> Callable[[Callable[[Rewriter, Op], Op | None]], Rule]:
    def make(apply: Callable[[Rewriter, Op], Op | None]) -> Rule:
        return Rule(apply.__name__, pattern, replacement, reason, apply)
    return make


class Rewriter(Builder):
    """The function being rebuilt. A value keeps its id when a new op makes it; what is new beside it gets ids never used.

    first_id    no id from here on was ever used; passes.run gives it, so that an id means one value in the whole history
    """

    def __init__(self, function: Function, first_id: int = 0) -> None:
        super().__init__(first_id=max(first_id, unused_id(function)))
        self.function = function
        self.renamed: dict[int, int] = {}
        self._by_id: dict[int, Op] = {}
        self._inherited: dict[int, list[tuple[Origin, ...]]] = {}
        self._labels: dict[int, str] = {}

    def value(self, id: int) -> Op:
        return self._by_id[id]

    def made_by(self, id: int, *names: str) -> Op | None:
        """The op that makes the value, if it is one of these."""
        op = self._by_id[id]
        return op if op.name in names else None

    def number(self, id: int) -> int | float | bool | None:
        """The value of a scalar constant; None for anything else, a symbolic size too."""
        op = self._by_id[id]
        value = op.attr("value") if op.name == "constant" else None
        return value if isinstance(value, (int, float)) else None

    def read_once(self, id: int) -> bool:
        """In the function as it was, one op reads the value and the caller does not get it."""
        return len(self.function.users.get(id, ())) == 1 and id not in self.function.results

    def append(self, name: str, operands: tuple[int, ...], attrs: dict[str, Any], type: Any, label: str = "") -> Op:
        op = super().append(name, operands, attrs, type, label)
        self._by_id[op.id] = op
        return op

    def keep(self, op: Op) -> Op:
        operands = tuple(self.renamed.get(o, o) for o in op.operands)
        op = op if operands == op.operands else replace(op, operands=operands)
        self.ops.append(op)
        self._by_id[op.id] = op
        return op

    def stand_for(self, old: Op, new: Op) -> None:
        """The value `new` takes the place of `old`, and takes over what it knew."""
        if self.ops and new is self.ops[-1] and new.id not in self.function.by_id:   # just made for this: nothing reads it yet
            del self._by_id[new.id]
            new = self.ops[-1] = self._by_id[old.id] = replace(new, id=old.id)
        else:
            self.renamed[old.id] = new.id
        self._inherited.setdefault(new.id, []).append(old.origins)
        if old.label and not new.label:
            self._labels.setdefault(new.id, old.label)

    def finish(self) -> Function:
        for position, op in enumerate(self.ops):
            inherited = self._inherited.get(op.id)
            if inherited:
                self.ops[position] = replace(op, origins=merge_origins(op.origins, *inherited), label=op.label or self._labels.get(op.id, ""))
        return self.function.with_ops(tuple(self.ops), tuple(self.renamed.get(r, r) for r in self.function.results))


def unused_id(function: Function) -> int:
    return max((op.id for op in function.ops), default=-1) + 1


def rewrite(function: Function, rules: Sequence[Rule], first_id: int = 0) -> Function:
    """One walk in order; on each op the first rule that fits, then again on what it made, until none fits."""
    r = Rewriter(function, first_id)
    for op in function.ops:
        current = replace(op, operands=tuple(r.renamed.get(o, o) for o in op.operands))
        with r.at(*op.origins):
            found = _rewrite(r, current, rules)
        if found is None:
            r.keep(op)
        else:
            r.stand_for(op, found)
    return r.finish()


def _rewrite(r: Rewriter, op: Op, rules: Sequence[Rule]) -> Op | None:
    found = None
    for _ in range(16):                    # each rule makes the op simpler, so chains are short; the bound is a guard
        for candidate in rules:
            following = candidate.apply(r, op)
            if following is not None and following.id != op.id:
                break
        else:
            return found
        if following.type != op.type:      # a rule that changes a type would be a wrong compiler, not a wrong program
            raise AssertionError(f"rule {candidate.name} made {following.type} of {op.type}")
        found = op = following
    return found
