"""Sizes of tensors: integers, or polynomials over named symbols.

A dim is a plain int or a Poly. Poly arithmetic is exact and kept in one canonical form, so two dims are equal exactly
if `==` says so for all polynomials; division that does not come out even stays as an opaque atom `(a // b)`.
A symbol stands for any size >= 1. What cannot be decided for all sizes is answered with "not proved".
"""
from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Union

Dim = Union[int, "Poly"]
LONGEST = 2000                               # characters of a quotient, remainder, minimum or maximum: a loop over windows doubles them in each round
PRODUCTS, POWER = 4096, 256                    # of a product: squaring a size in each round doubles them
Monomial = tuple["Atom", ...]                # sorted, with repeats: (B, T, T) is B*T*T


@dataclass(frozen=True, slots=True)
class Apply:
    """An opaque atom: floor division, remainder, minimum or maximum of two dims."""

    operator: str                            # "//", "%", "min", "max"
    left: Dim
    right: Dim
    _text: str = field(default="", init=False, compare=False, repr=False)      # worked out once: sizes nest as deep as a network does
    _hash: int = field(default=0, init=False, compare=False, repr=False)

    def __str__(self) -> str:
        if not self._text:
            text = f"{self.operator}({self.left}, {self.right})" if self.operator in ("min", "max") else \
                f"({_operand(self.left)} {self.operator} {_operand(self.right)})"
            object.__setattr__(self, "_text", text)
        return self._text

    def __hash__(self) -> int:
        if not self._hash:
            object.__setattr__(self, "_hash", hash((self.operator, self.left, self.right)))
        return self._hash

    def __reduce__(self):                        # hashes are of one process
        return Apply, (self.operator, self.left, self.right)


Atom = Union[str, Apply]


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of integer multiples of monomials, never constant: constants are plain ints. Build with `symbol` and operators."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        return _collect([*self.terms, *_terms(other)])

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _collect([(m, -c) for m, c in self.terms])

    def __sub__(self, other: Dim) -> Dim:
        return _collect([*self.terms, *((m, -c) for m, c in _terms(other))])

    def __rsub__(self, other: Dim) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        terms = _terms(other)
        if len(self.terms) * len(terms) > PRODUCTS or len(self.terms[0][0]) > POWER:
            raise TooLong(f"a size of more than {PRODUCTS} products")
        return _collect([(_monomial(m + n), c * d) for m, c in self.terms for n, d in terms])

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return modulo(self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return modulo(other, self)

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms, key=lambda t: (-len(t[0]), [str(a) for a in t[0]])):
            factors = [str(atom) for atom in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {'*'.join(factors)}" if text else ("-" if coefficient < 0 else "") + "*".join(factors)
        return text

    __repr__ = __str__


class TooLong(ValueError):
    """A size that is known, and of no use: nobody would read it, and each step with it takes longer than the last."""


def symbol(name: str) -> Poly:
    return Poly((((name,), 1),))


def floordiv(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    quotient = exact_quotient(a, b)
    if quotient is not None:
        return quotient
    if isinstance(b, int) and isinstance(a, Poly) and b > 0:    # (4*B + 3) // 2 = 2*B + 1: take the even part out
        even = _collect([(m, c // b) for m, c in a.terms if m and c % b == 0])
        rest = _collect([(m, c) for m, c in a.terms if not m or c % b])
        if even != 0:
            return even + floordiv(rest, b)
    return _opaque("//", a, b)


def modulo(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b == 1 or exact_quotient(a, b) is not None:
        return 0
    return _opaque("%", a, b)


def minimum(a: Dim, b: Dim) -> Dim:
    difference = a - b
    if isinstance(difference, int) or at_least(difference, 0) or at_most(difference, 0):
        return b if at_least(difference, 0) else a
    return _opaque("min", a, b)


def maximum(a: Dim, b: Dim) -> Dim:
    difference = a - b
    if isinstance(difference, int) or at_least(difference, 0) or at_most(difference, 0):
        return a if at_least(difference, 0) else b
    return _opaque("max", a, b)


def _opaque(operator: str, a: Dim, b: Dim) -> Poly:
    made = Apply(operator, a, b)
    if len(str(made)) > LONGEST:
        raise TooLong(f"a size that takes more than {LONGEST} characters to write")
    return Poly((((made,), 1),))


def exact_quotient(a: Dim, b: Dim) -> Dim | None:
    """a / b if it is a polynomial for all sizes, else None. Divides by single terms, and by sums that are a's own factor."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if a == 0:
        return 0
    divisor = _terms(b)
    lead, factor = divisor[0]
    rest, quotient = a, 0
    for _ in range(64):                      # polynomial long division; real sizes need two or three rounds
        if rest == 0:
            return quotient
        for monomial, coefficient in _terms(rest):
            left = _without(monomial, lead)
            if left is not None and coefficient % factor == 0:
                step = _collect([(left, coefficient // factor)])
                break
        else:
            return None
        quotient, rest = quotient + step, rest - step * b
    return None


def product(dims: tuple[Dim, ...] | list[Dim]) -> Dim:
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def bounds(dim: Dim) -> tuple[int | None, int | None]:
    """The least and the greatest value whatever the symbols are, from the bounds of each term; None where there is none."""
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in _terms(dim):
        least, most = _monomial_bounds(monomial)
        if coefficient < 0:
            least, most = most, least
        low = None if low is None or least is None else low + coefficient * least
        high = None if high is None or most is None else high + coefficient * most
    return low, high


def _monomial_bounds(monomial: Monomial) -> tuple[int | None, int | None]:
    low: int | None = 1
    high: int | None = 1
    for atom in monomial:
        least, most = _atom_bounds(atom)
        if least is None or least < 0:                           # a factor of either sign: only a lone atom keeps its bounds
            return (least, most) if len(monomial) == 1 else (None, None)
        low, high = low * least, None if high is None or most is None else high * most
    return low, high


@lru_cache(1 << 14)
def _atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    if isinstance(atom, str):
        return 1, None
    left, right = bounds(atom.left), bounds(atom.right)
    known = lambda values: [v for v in values if v is not None]
    match atom.operator:
        case "min":
            return (None if None in (left[0], right[0]) else min(left[0], right[0])), min(known((left[1], right[1])), default=None)
        case "max":
            return max(known((left[0], right[0])), default=None), (None if None in (left[1], right[1]) else max(left[1], right[1]))
        case "%" if right[0] is not None and right[0] > 0:
            return 0, None if right[1] is None else right[1] - 1
        case "//" if right[0] is not None and right[0] > 0:
            low = None if left[0] is None else left[0] // right[0] if left[0] < 0 else 0 if right[1] is None else left[0] // right[1]
            high = None if left[1] is None else left[1] // right[0] if left[1] >= 0 else -1
            return low, high
    return None, None


def at_least(dim: Dim, bound: int) -> bool:
    """Proved: dim >= bound whatever the symbols are; by the bounds of its terms, or of something that is never greater."""
    return dim >= bound if isinstance(dim, int) else _at_least(dim, bound)


@lru_cache(1 << 14)
def _at_least(dim: Poly, bound: int) -> bool:
    todo: list[Dim] = [dim]
    for _ in range(16):                          # real sizes need two or three; beyond that it is not proved
        if not todo:
            return False
        dim = todo.pop()
        low = bounds(dim)[0]
        if low is not None and low >= bound:
            return True
        todo += _never_greater(dim)
    return False


def _least(limits: tuple[int | None, int | None], bound: int) -> bool:
    return limits[0] is not None and limits[0] >= bound


def _never_greater(dim: Dim) -> list[Dim]:
    """Dims that are <= dim for all sizes, with one atom replaced: -min(a, b) >= -a, max(a, b) >= a, -(a // n) >= -a for a >= 0."""
    found: list[Dim] = []
    for monomial, coefficient in _terms(dim):
        for atom in dict.fromkeys(a for a in monomial if isinstance(a, Apply)):
            rest = _without(monomial, (atom,))
            if not _least(_monomial_bounds(rest), 0):
                continue
            choices: tuple[Dim, ...] = ()
            if atom.operator == ("min" if coefficient < 0 else "max"):
                choices = atom.left, atom.right
            elif coefficient < 0 and atom.operator == "//" and _least(bounds(atom.right), 1) and _least(bounds(atom.left), 0):
                choices = (atom.left,)
            others = dim - _collect([(monomial, coefficient)])
            found += [others + _collect([(rest, coefficient)]) * choice for choice in choices]
    return found


def at_most(dim: Dim, bound: int) -> bool:
    return at_least(-dim, -bound)


def proved_different(a: Dim, b: Dim) -> bool:
    """The two sizes differ whatever the symbols are."""
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    difference = a - b
    if isinstance(difference, int):
        return difference != 0
    return at_least(difference, 1) or at_most(difference, -1)


def symbols(dim: Dim) -> frozenset[str]:
    return _symbols(dim) if isinstance(dim, Poly) else frozenset()


@lru_cache(1 << 14)
def _symbols(dim: Poly) -> frozenset[str]:
    found: set[str] = set()
    todo: list[Dim] = [dim]
    while todo:
        for monomial, _ in _terms(todo.pop()):
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    todo += atom.left, atom.right
    return frozenset(found)


def substitute(dim: Dim, values: dict[str, Dim]) -> Dim:
    """The dim with symbols replaced."""
    if isinstance(dim, int) or values.keys().isdisjoint(_symbols(dim)):
        return dim
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        term: Dim = coefficient
        for atom in monomial:
            if isinstance(atom, str):
                term = term * values.get(atom, symbol(atom))
            else:
                left, right = substitute(atom.left, values), substitute(atom.right, values)
                term = term * _APPLY[atom.operator](left, right)
        total = total + term
    return total


def parse_dim(text: str) -> Dim:
    """Read `12`, `B`, `2*B*T + 1`, `(T // 2)`, `max(B, 4)`; ValueError for anything else."""
    def build(node: ast.AST) -> Dim:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -build(operand)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _PARSE:
                return _PARSE[type(operator)](build(left), build(right))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right]):
                return _APPLY[name](build(left), build(right))
        raise ValueError(f"not a dimension: {text!r}")
    if text.isdecimal() and text.isascii() and (text[0] != "0" or text == "0"):
        return int(text)                     # nearly all of them, and each op's examples have some: no need of a parser
    try:
        return build(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        raise ValueError(f"not a dimension: {text!r}") from None


_APPLY = {"//": floordiv, "%": modulo, "min": minimum, "max": maximum}
_PARSE = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
          ast.FloorDiv: floordiv, ast.Mod: modulo}


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Poly) else (((), dim),)


def _collect(terms: list[tuple[Monomial, int]]) -> Dim:
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        sums[monomial] = sums.get(monomial, 0) + coefficient
    kept = [(m, c) for m, c in sums.items() if c]
    if len(kept) > 1:
        kept.sort(key=_text_of_monomial)
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Poly(tuple(kept))


def _text_of_monomial(term: tuple[Monomial, int]) -> list[str]:
    return [str(atom) for atom in term[0]]


def _monomial(atoms: Monomial) -> Monomial:
    return tuple(sorted(atoms, key=str)) if len(atoms) > 1 else atoms


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _operand(dim: Dim) -> str:
    text = str(dim)
    return f"({text})" if isinstance(dim, Poly) and (len(dim.terms) > 1 or "*" in text) else text
