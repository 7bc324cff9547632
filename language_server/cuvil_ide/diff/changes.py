"""Which ops differ between two functions, told so that one edit is one change and not everything that follows from it.

Ops that compute the same value are set aside. The rest are aligned in order by what they are, and what is aligned but works
on other operands than its counterpart's is a change of operands; then by name alone, which are changes of attributes or
type; what is left was added or removed.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from cuvil.source import Span

from .fingerprint import COMMUTATIVE, anonymous, fingerprints, shallow

if TYPE_CHECKING:
    from cuvil.ir.function import Function, Op


@dataclass(frozen=True)
class Change:
    """before, after: the op as text and its place, None where it does not exist; what: what is different about a changed op."""

    before: str = ""
    after: str = ""
    before_span: Span | None = None
    after_span: Span | None = None
    what: str = ""

    def to_json(self) -> dict:
        def side(text: str, span: Span | None) -> dict | None:
            return {"op": text, "path": span.path if span else "", "range": span and span.to_json()} if text else None
        return {"before": side(self.before, self.before_span), "after": side(self.after, self.after_span), "what": self.what}


def changes(a: Function, b: Function) -> tuple[tuple[Change, ...], tuple[Change, ...], tuple[Change, ...]]:
    """(added, removed, changed)"""
    a, b = anonymous(a), anonymous(b)
    partner: dict[int, int] = {}                     # id in a -> id in b
    left, right = _differing(a, b, partner)
    pairs: list[tuple[Op, Op]] = []
    for key in (shallow, lambda op: op.name):
        aligned, left, right = _align(left, right, key)
        pairs += aligned
    partner.update((x.id, y.id) for x, y in pairs)
    changed = [change for x, y in pairs if (change := _compare(x, y, partner)) is not None]
    if not (changed or left or right) and [partner.get(r) for r in a.results] != list(b.results):
        changed.append(Change("return", "return", a.origin and a.origin.span, b.origin and b.origin.span, "other values are returned"))
    return (tuple(Change(after=_text(op), after_span=_span(op)) for op in right),
            tuple(Change(before=_text(op), before_span=_span(op)) for op in left),
            tuple(changed))


def _differing(a: Function, b: Function, partner: dict[int, int]) -> tuple[list[Op], list[Op]]:
    """The ops of each that have no counterpart computing the same value; the others are entered as partners."""
    prints_a, prints_b = fingerprints(a), fingerprints(b)
    waiting: dict[str, list[int]] = {}
    for op in b.ops:
        waiting.setdefault(prints_b[op.id], []).append(op.id)
    left = []
    for op in a.ops:
        same = waiting.get(prints_a[op.id])
        if same:
            partner[op.id] = same.pop(0)
        else:
            left.append(op)
    found = Counter(partner.values())
    return left, [op for op in b.ops if op.id not in found]


def _align(left: list[Op], right: list[Op], key: Callable[[Op], str]) -> tuple[list[tuple[Op, Op]], list[Op], list[Op]]:
    matcher = SequenceMatcher(None, [key(op) for op in left], [key(op) for op in right], autojunk=False)
    pairs = [(left[i + k], right[j + k]) for i, j, size in matcher.get_matching_blocks() for k in range(size)]
    taken_left, taken_right = {x.id for x, _ in pairs}, {y.id for _, y in pairs}
    return pairs, [op for op in left if op.id not in taken_left], [op for op in right if op.id not in taken_right]


def _compare(x: Op, y: Op, partner: dict[int, int]) -> Change | None:
    differences = [f"{key}: {_attr(x, key)} -> {_attr(y, key)}" for key in sorted({*x.attributes, *y.attributes})
                   if repr(x.attr(key)) != repr(y.attr(key)) and not (x.name == "input" and key == "name")]
    if x.type != y.type:
        differences.append(f"type: {x.type} -> {y.type}")
    ours, theirs = [partner.get(o) for o in x.operands], list(y.operands)
    if x.name in COMMUTATIVE:
        ours, theirs = sorted(ours, key=str), sorted(theirs, key=str)
    # An operand that was added or removed is told by itself; one that stands elsewhere now is told here.
    if len(ours) == len(theirs) and None not in ours and ours != theirs and set(theirs) <= set(partner.values()):
        differences.append("works on other operands")
    if not differences:
        return None
    return Change(_text(x), _text(y), _span(x), _span(y), "; ".join(differences))


def _attr(op: Op, key: str) -> str:
    return repr(op.attr(key)) if key in op.attributes else "not given"


def _text(op: Op) -> str:
    attrs = ", ".join(f"{key} = {value!r}" for key, value in op.attrs)
    operands = ", ".join(f"%{o}" for o in op.operands)
    label = f' "{op.label}"' if op.label else ""
    return f"%{op.id}{label} = {op.name}{f' {operands}' if operands else ''}{f' {{{attrs}}}' if attrs else ''} : {op.type}"


def _span(op: Op) -> Span | None:
    return op.origins[0].span if op.origins else None
