"""einops: rearrange, reduce and repeat, whose patterns name axes. They become reshape, transpose, a reduction and broadcast.

    "b (h d) n -> b h n d"      names, groups in parentheses, 1, ... for any axes
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from ..ir.dims import Dim, exact_quotient, floordiv, product, proved_different
from ..ir.function import Op
from .builder import Builder
from .definition import TypeRuleError, example, spelled, unsupported
from .reductions import extreme
from .rules import shape_of
from .shape import expanded, reshaped, transposed

REDUCTIONS = {"sum": "reduce_sum", "mean": "mean", "prod": "reduce_prod", "max": "reduce_max", "min": "reduce_min"}
TOKEN = re.compile(r"\s*(\.\.\.|…|\(|\)|[A-Za-z_]\w*|\d+)")


@dataclass(frozen=True)
class Side:
    """One side of a pattern: groups of names, one group for each axis of the tensor."""

    groups: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> list[str]:
        return [name for group in self.groups for name in group]


def _side(text: str, pattern: str, rest: int) -> Side:
    """Read one side. `...` becomes `rest` axes named ...0, ...1; 1 an axis without a name; another number n an axis named n@place."""
    groups: list[tuple[str, ...]] = []
    inner: list[str] | None = None
    place = 0
    text = text.strip()
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            raise TypeRuleError(f"the pattern {pattern!r}: {text[place:].strip()[:1]!r}", "names, numbers, parentheses and ...", "argument")
        token, place = found.group(1), found.end()
        if token in "()":
            if (token == "(") != (inner is None):
                raise TypeRuleError(f"the pattern {pattern!r}: parentheses that do not match or are nested", "( and ) in pairs", "argument")
            if inner is None:
                inner = []
            else:
                groups.append(tuple(inner))
                inner = None
            continue
        names = ([f"...{i}" for i in range(rest)] if token in ("...", "…") else [] if token == "1"
                 else [f"{token}@{place}"] if token.isdigit() else [token])
        if inner is not None:
            inner += names
        else:
            groups += [(name,) for name in names] if names or token != "1" else [()]
    if inner is not None:
        raise TypeRuleError(f"the pattern {pattern!r}: a parenthesis that is not closed", "( and ) in pairs", "argument")
    return Side(tuple(groups))


def _read(pattern: str, rank: int) -> tuple[Side, Side]:
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise TypeRuleError(f"the pattern {pattern!r}", "two sides with -> between them", "argument")
    rest = 0
    if "..." in left or "…" in left:
        rest = rank - len(_side(left, pattern, 0).groups)
    sides = _side(left, pattern, max(rest, 0)), _side(right, pattern, max(rest, 0))
    if len(sides[0].groups) != rank:
        raise TypeRuleError(f"the pattern {pattern!r} for a tensor of {rank} axes: its left side has {len(sides[0].groups)}",
                            f"a left side of {rank} axes")
    for side in sides:
        twice = [n for n in side.names if side.names.count(n) > 1]
        if twice:
            raise TypeRuleError(f"the pattern {pattern!r}: {twice[0]!r} stands twice on one side", "each name once", "argument")
    return sides


def _sizes(x: Op, left: Side, pattern: str, given: dict[str, Dim]) -> dict[str, Dim]:
    """The size of each name: of a group with one unknown name, what is left of the axis."""
    sizes = {**given, **{n: int(n.partition("@")[0]) for n in left.names if "@" in n}}
    for group, dim in zip(left.groups, shape_of(x)):
        unknown = [n for n in group if n not in sizes]
        known = product([sizes[n] for n in group if n in sizes])
        if len(unknown) > 1:
            raise TypeRuleError(f"the pattern {pattern!r}: the sizes of {' and '.join(unknown)} do not follow from {x.type}",
                                "all but one size of a group as arguments", "argument")
        if unknown:
            quotient = exact_quotient(dim, known)
            if quotient is None and isinstance(dim, int) and isinstance(known, int):
                raise TypeRuleError(f"the pattern {pattern!r} for {x.type}: an axis of {dim} does not divide by {known}", f"sizes whose product divides {dim}")
            sizes[unknown[0]] = floordiv(dim, known) if quotient is None else quotient
        elif proved_different(dim, known):
            raise TypeRuleError(f"the pattern {pattern!r} for {x.type}: ({' '.join(group)}) is {known}, the axis has {dim}", f"an axis of {known}")
    return sizes


def _split(b: Builder, x: Op, left: Side, sizes) -> tuple[Op, list[str]]:
    """The tensor with one axis for each name."""
    return reshaped(b, x, [sizes[n] for n in left.names]), left.names


def _merged(b: Builder, x: Op, right: Side, sizes) -> Op:
    return reshaped(b, x, [product([sizes[n] for n in group]) for group in right.groups])


@spelled("einops.rearrange", examples=[
    example("einops.rearrange(x, 'b t (h d) -> b h t d', h=2)", x="f32[2, 3, 8]"), example("einops.rearrange(x, 'b h t d -> b t (h d)')", x="f32[2, 3, 4, 5]"),
    example("einops.rearrange(x, 'b c (h p1) (w p2) -> b (h w) (p1 p2 c)', p1=2, p2=3)", x="f32[1, 3, 4, 6]"),
    example("einops.rearrange(x, '... a b -> ... b a')", x="f32[2, 3, 4, 5]"),
    example("einops.rearrange(x, 'b c -> b 1 c 1')", x="f32[2, 3]"), example("einops.rearrange(x, 'b (n) () -> (b n)')", x="f32[2, 3, 1]")])
def rearrange(b: Builder, /, tensor, pattern, **axes_lengths):
    x = _one(b, tensor)
    left, right = _read(pattern, len(shape_of(x)))
    sizes = _sizes(x, left, pattern, axes_lengths)
    x, names = _split(b, x, left, sizes)
    wanted = right.names
    if set(wanted) != set(names):
        odd = sorted(set(wanted) ^ set(names))[0]
        raise TypeRuleError(f"rearrange with {pattern!r}: {odd.partition('@')[0]!r} stands on one side only", "the same names on both sides", "argument")
    return _merged(b, transposed(b, x, [names.index(n) for n in wanted]), right, sizes)


@spelled("einops.reduce", examples=[
    example("einops.reduce(x, 'b c h w -> b c', 'mean')", x="f32[2, 3, 4, 5]"), example("einops.reduce(x, 'b (t k) -> k b', 'max', k=2)", x="f32[3, 6]"),
    example("einops.reduce(x, '... d -> ... 1', 'sum')", x="f32[2, 3, 4]")])
def reduce(b: Builder, /, tensor, pattern, reduction, **axes_lengths):
    x = _one(b, tensor)
    if reduction not in REDUCTIONS:
        raise unsupported(f"einops.reduce with {reduction!r}", ", ".join(REDUCTIONS))
    left, right = _read(pattern, len(shape_of(x)))
    sizes = _sizes(x, left, pattern, axes_lengths)
    x, names = _split(b, x, left, sizes)
    wanted = right.names
    if not set(wanted) <= set(names):
        raise TypeRuleError(f"reduce with {pattern!r}: {sorted(set(wanted) - set(names))[0]!r} is not on the left", "names of the left side", "argument")
    axes = tuple(i for i, n in enumerate(names) if n not in wanted)
    if axes:
        x = extreme(b, REDUCTIONS[reduction], x, axes, False) if reduction in ("max", "min") else b.emit(REDUCTIONS[reduction], x, axes=axes, keepdims=False)
    kept = [n for n in names if n in wanted]
    return _merged(b, transposed(b, x, [kept.index(n) for n in wanted]), right, sizes)


@spelled("einops.repeat", examples=[
    example("einops.repeat(x, 'h w -> h w c', c=3)", x="f32[2, 3]"), example("einops.repeat(x, 'h w -> (h k) w', k=2)", x="f32[2, 3]"),
    example("einops.repeat(x, 'd -> b n d', b=2, n=1)", x="f32[4]"), example("einops.repeat(x, 'h w -> h 2 w')", x="f32[2, 3]")])
def repeat(b: Builder, /, tensor, pattern, **axes_lengths):
    x = _one(b, tensor)
    left, right = _read(pattern, len(shape_of(x)))
    sizes = _sizes(x, left, pattern, axes_lengths)
    x, names = _split(b, x, left, sizes)
    wanted = right.names
    sizes |= {n: int(n.partition("@")[0]) for n in wanted if "@" in n}
    missing = [n for n in wanted if n not in sizes] or [n for n in names if n not in wanted]
    if missing:
        raise TypeRuleError(f"repeat with {pattern!r}: {missing[0]!r} has no size or is dropped", "a size for each new name", "argument")
    x = transposed(b, x, [names.index(n) for n in wanted if n in names])
    x = reshaped(b, x, [sizes[n] if n in names else 1 for n in wanted])
    return _merged(b, expanded(b, x, [sizes[n] for n in wanted]), right, sizes)


def _one(b: Builder, tensor) -> Op:
    if not isinstance(tensor, Op):
        raise unsupported("einops of a list of tensors", "torch.stack first")
    return tensor
