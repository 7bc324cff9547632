"""Algebra of index expressions: sums of multiples of atoms, with floor division and remainder decided by ranges.

Reshapes and transposes come as `(i*12 + j) // 12` and the like; in canonical form these are `i`, so that loads are seen to
be contiguous, loops can be merged, and bounds can be proved. An atom is a loop variable, a value read from memory, or an
operation that does not simplify. Ranges give each loop variable its number of values. Shapes are static here.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..ir.scalar import Apply, Const, Expr, Index, const
from ..ir.types import DType

Ranges = Mapping[str, int]                   # loop variable -> how many values, from 0


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * atom; no coefficient is 0."""

    constant: int
    terms: Mapping[Expr, int]

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient
        return _joined(Affine(self.constant + other.constant, {a: c for a, c in terms.items() if c}))

    def scaled(self, factor: int) -> Affine:
        return Affine(self.constant * factor, {a: c * factor for a, c in self.terms.items()} if factor else {})

    def coefficient(self, name: str) -> int:
        """Of a loop variable."""
        return self.terms.get(Index(name), 0)

    def without(self, name: str) -> Affine:
        return Affine(self.constant, {a: c for a, c in self.terms.items() if a != Index(name)})


def affine(expression: Expr, ranges: Ranges) -> Affine:
    """The canonical form. Everything that is not index arithmetic becomes an atom."""
    match expression:
        case Const(value):
            return Affine(int(value), {})
        case Index(name) if ranges.get(name) == 1:
            return Affine(0, {})
        case Index():
            return Affine(0, {expression: 1})
        case Apply("add", (a, b)):
            return affine(a, ranges) + affine(b, ranges)
        case Apply("sub", (a, b)):
            return affine(a, ranges) + affine(b, ranges).scaled(-1)
        case Apply("neg", (a,)):
            return affine(a, ranges).scaled(-1)
        case Apply("mul", (a, b)):
            left, right = affine(a, ranges), affine(b, ranges)
            if not right.terms:
                return left.scaled(right.constant)
            if not left.terms:
                return right.scaled(left.constant)
            return _atom(Apply("mul", (build(left), build(right)), DType.I64))
        case Apply("floordiv", (a, b)):
            divisor = affine(b, ranges)
            if not divisor.terms and divisor.constant > 0:
                return _divide(affine(a, ranges), divisor.constant, ranges)
        case Apply("mod", (a, b)):
            divisor = affine(b, ranges)
            if not divisor.terms and divisor.constant > 0:
                dividend = affine(a, ranges)
                quotient = _divide(dividend, divisor.constant, ranges)
                if not any(isinstance(atom, Apply) and atom.primitive == "floordiv" for atom in quotient.terms):
                    return dividend + quotient.scaled(-divisor.constant)
                return _remainder(dividend, divisor.constant, ranges)
        case Apply(primitive, arguments, dtype) if dtype == DType.I64:
            return _atom(Apply(primitive, tuple(simplify(x, ranges) for x in arguments), dtype))
    return _atom(expression)


def simplify(expression: Expr, ranges: Ranges) -> Expr:
    """An equal expression in canonical form; comparisons and selections of indices are decided where ranges allow it."""
    if expression.dtype == DType.I64 and not isinstance(expression, Apply):
        return build(affine(expression, ranges))
    if not isinstance(expression, Apply):
        return expression
    if expression.dtype == DType.I64:
        if expression.primitive in ("select", "minimum", "maximum"):
            return _choose(expression, ranges)
        return build(affine(expression, ranges))
    if expression.dtype == DType.BOOL:
        return _condition(expression, ranges)
    return Apply(expression.primitive, tuple(simplify(a, ranges) for a in expression.arguments), expression.dtype)


def build(form: Affine) -> Expr:
    """The expression of a canonical form: atoms in a fixed order, the constant last."""
    total: Expr | None = None
    for atom, coefficient in sorted(form.terms.items(), key=lambda t: (-abs(t[1]), repr(t[0]))):
        term = atom if coefficient == 1 else Apply("mul", (atom, const(coefficient)), DType.I64)
        total = term if total is None else Apply("add", (total, term), DType.I64)
    if total is None:
        return const(form.constant)
    return total if form.constant == 0 else Apply("add", (total, const(form.constant)), DType.I64)


def interval(value: Affine | Expr, ranges: Ranges) -> tuple[int | None, int | None]:
    """Bounds that hold for all values of the loop variables; None on a side that is not known."""
    form = value if isinstance(value, Affine) else affine(value, ranges)
    low: int | None = form.constant
    high: int | None = form.constant
    for atom, coefficient in form.terms.items():
        least, most = _atom_interval(atom, ranges)
        if coefficient < 0:
            least, most = most, least
        low = None if low is None or least is None else low + coefficient * least
        high = None if high is None or most is None else high + coefficient * most
    return low, high


def within(expression: Expr, size: int, ranges: Ranges) -> bool:
    """Proved: 0 <= expression < size."""
    low, high = interval(expression, ranges)
    return low is not None and high is not None and low >= 0 and high < size


def substitute(expression: Expr, leaf: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with leaves and reads replaced where `leaf` gives something."""
    found = leaf(expression)
    if found is not None:
        return found
    if isinstance(expression, Apply):
        arguments = tuple(substitute(a, leaf) for a in expression.arguments)
        return expression if arguments == expression.arguments else Apply(expression.primitive, arguments, expression.dtype)
    return expression


def _atom(expression: Expr) -> Affine:
    return Affine(0, {expression: 1})


def _joined(form: Affine) -> Affine:
    """x % c + (x // c) * c is x: what is left of a reshape that another one undoes."""
    for atom, coefficient in form.terms.items():
        if isinstance(atom, Apply) and atom.primitive == "mod":
            inner, size = atom.arguments
            whole = Apply("floordiv", (inner, size), DType.I64)
            if isinstance(inner, Apply) and inner.primitive == "floordiv":
                whole = Apply("floordiv", (inner.arguments[0], const(inner.arguments[1].value * size.value)), DType.I64)
            if form.terms.get(whole) == coefficient * size.value:
                rest = Affine(form.constant, {a: c for a, c in form.terms.items() if a not in (atom, whole)})
                return rest + affine(inner, {}).scaled(coefficient)
    return form


def _divide(form: Affine, divisor: int, ranges: Ranges) -> Affine:
    """form // divisor: the multiples of the divisor come out, the rest is nothing if it stays within one step."""
    if divisor == 1:
        return form
    whole = Affine(form.constant // divisor, {a: c // divisor for a, c in form.terms.items() if c % divisor == 0})
    rest = Affine(form.constant % divisor, {a: c for a, c in form.terms.items() if c % divisor})
    low, high = interval(rest, ranges)
    if low is not None and high is not None and low // divisor == high // divisor:
        return whole + Affine(low // divisor, {})
    if len(rest.terms) == 1 and rest.constant == 0:          # (x // a) // b is x // (a*b)
        (atom, coefficient), = rest.terms.items()
        if coefficient == 1 and isinstance(atom, Apply) and atom.primitive == "floordiv" and isinstance(atom.arguments[1], Const):
            return whole + _divide(affine(atom.arguments[0], ranges), atom.arguments[1].value * divisor, ranges)
    common = _common_factor(rest, divisor)
    if common > 1:                                           # (4*i + 2) // 8 is (2*i + 1) // 4
        rest = Affine(rest.constant // common, {a: c // common for a, c in rest.terms.items()})
        return whole + _divide(rest, divisor // common, ranges)
    split = _split(rest, divisor, ranges)
    if split is not None:
        return whole + split
    return whole + _atom(Apply("floordiv", (build(rest), const(divisor)), DType.I64))


def _remainder(form: Affine, divisor: int, ranges: Ranges) -> Affine:
    """form % divisor, over the same rest that _divide leaves, so that the two can be joined again."""
    rest = Affine(form.constant % divisor, {a: c for a, c in form.terms.items() if c % divisor})
    low, high = interval(rest, ranges)
    if low is not None and high is not None and 0 <= low and high < divisor:
        return rest
    common = _common_factor(rest, divisor)
    if common > 1:                                           # (4*i + 2) % 8 is 2 * ((2*i + 1) % 4)
        rest = Affine(rest.constant // common, {a: c // common for a, c in rest.terms.items()})
        return _remainder(rest, divisor // common, ranges).scaled(common)
    return _atom(Apply("mod", (build(rest), const(divisor)), DType.I64))


def _split(form: Affine, divisor: int, ranges: Ranges) -> Affine | None:
    """(g*big + small) // (g*d) is big // d when small stays in [0, g): a row of a smaller matrix read as part of a larger."""
    for step in sorted({abs(c) for c in form.terms.values()}, reverse=True):
        if step < 2 or divisor % step:
            continue
        big = Affine(form.constant // step, {a: c // step for a, c in form.terms.items() if c % step == 0})
        small = Affine(form.constant % step, {a: c for a, c in form.terms.items() if c % step})
        low, high = interval(small, ranges)
        if big.terms and small.terms and low is not None and high is not None and 0 <= low and high < step:
            return _divide(big, divisor // step, ranges)
    return None


def _common_factor(form: Affine, divisor: int) -> int:
    from math import gcd
    factor = gcd(divisor, form.constant)
    for coefficient in form.terms.values():
        factor = gcd(factor, coefficient)
    return factor


def _atom_interval(atom: Expr, ranges: Ranges) -> tuple[int | None, int | None]:
    match atom:
        case Index(name) if name in ranges:
            return 0, max(ranges[name] - 1, 0)
        case Apply("floordiv", (a, Const(divisor))) if divisor > 0:
            low, high = interval(a, ranges)
            return None if low is None else low // divisor, None if high is None else high // divisor
        case Apply("mod", (_, Const(divisor))) if divisor > 0:
            return 0, divisor - 1
        case Apply("minimum" | "maximum" as name, (a, b)):
            (a0, a1), (b0, b1) = interval(a, ranges), interval(b, ranges)
            pick, other = (min, max) if name == "minimum" else (max, min)
            sure = [x for x in ((a1, b1) if name == "minimum" else (a0, b0)) if x is not None]
            bound = pick(sure) if sure else None
            low = None if a0 is None or b0 is None else pick(a0, b0)
            high = None if a1 is None or b1 is None else pick(a1, b1)
            return (low, bound) if name == "minimum" else (bound, high)
        case Apply("select", (_, a, b)):
            (a0, a1), (b0, b1) = interval(a, ranges), interval(b, ranges)
            return None if a0 is None or b0 is None else min(a0, b0), None if a1 is None or b1 is None else max(a1, b1)
        case Apply("cast", (a,)) if a.dtype == DType.BOOL:
            return 0, 1
    return None, None


def _choose(expression: Apply, ranges: Ranges) -> Expr:
    arguments = tuple(simplify(a, ranges) for a in expression.arguments)
    if expression.primitive == "select":
        condition, yes, no = arguments
        if isinstance(condition, Const):
            return yes if condition.value else no
        return yes if yes == no else Apply("select", arguments, DType.I64)
    low, high = interval(affine(arguments[0], ranges) + affine(arguments[1], ranges).scaled(-1), ranges)
    least, greatest = arguments if expression.primitive == "minimum" else arguments[::-1]
    if high is not None and high <= 0:
        return least
    if low is not None and low >= 0:
        return greatest
    return Apply(expression.primitive, arguments, DType.I64)


_DECIDED = {"lt": lambda low, high: (high is not None and high < 0, low is not None and low >= 0),
            "le": lambda low, high: (high is not None and high <= 0, low is not None and low > 0),
            "gt": lambda low, high: (low is not None and low > 0, high is not None and high <= 0),
            "ge": lambda low, high: (low is not None and low >= 0, high is not None and high < 0),
            "eq": lambda low, high: (low == 0 and high == 0, low is not None and low > 0 or high is not None and high < 0),
            "ne": lambda low, high: (low is not None and low > 0 or high is not None and high < 0, low == 0 and high == 0)}


def _condition(expression: Apply, ranges: Ranges) -> Expr:
    arguments = tuple(simplify(a, ranges) for a in expression.arguments)
    name = expression.primitive
    if name in _DECIDED and arguments[0].dtype == DType.I64:
        low, high = interval(affine(arguments[0], ranges) + affine(arguments[1], ranges).scaled(-1), ranges)
        yes, no = _DECIDED[name](low, high)
        if yes or no:
            return Const(bool(yes), DType.BOOL)
    if name in ("and", "or") and all(a.dtype == DType.BOOL for a in arguments):
        neutral = name == "and"
        for a, b in (arguments, arguments[::-1]):
            if isinstance(a, Const):
                return b if bool(a.value) == neutral else a
    if name == "not" and isinstance(arguments[0], Const):
        return Const(not arguments[0].value, DType.BOOL)
    return Apply(name, arguments, DType.BOOL)
