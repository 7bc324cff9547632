"""Dims: polynomials agree with integers under every substitution, and what is called proved holds for all of them."""
from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil.ir.dims import (
    TooLong,
    at_least,
    at_most,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
    modulo,
    parse_dim,
    proved_different,
    substitute,
    symbol,
    symbols,
)

B, T = symbol("B"), symbol("T")
OPERATIONS = {"+": (lambda a, b: a + b, lambda a, b: a + b), "-": (lambda a, b: a - b, lambda a, b: a - b), "*": (lambda a, b: a * b, lambda a, b: a * b),
              "//": (floordiv, lambda a, b: a // b), "%": (modulo, lambda a, b: a % b), "min": (minimum, min), "max": (maximum, max)}


@st.composite
def expressions(draw, depth=3):
    """(dim, the same as a Python function of B and T)."""
    kind = draw(st.sampled_from(["number", "B", "T"] + ["operation"] * 3)) if depth else draw(st.sampled_from(["number", "B", "T"]))
    if kind == "number":
        n = draw(st.integers(-4, 9))
        return n, lambda b, t: n
    if kind != "operation":
        return (B, lambda b, t: b) if kind == "B" else (T, lambda b, t: t)
    left, f = draw(expressions(depth - 1))
    name = draw(st.sampled_from(list(OPERATIONS)))
    right, g = draw(expressions(depth - 1)) if name not in ("//", "%") else (lambda n: (n, lambda b, t: n))(draw(st.integers(1, 6)))
    make, python = OPERATIONS[name]
    return make(left, right), lambda b, t: python(f(b, t), g(b, t))


@settings(max_examples=300, deadline=None)
@given(expressions(), st.integers(1, 7), st.integers(1, 7))
def test_substitution_agrees_with_python(expression, b, t):
    dim, python = expression
    assert substitute(dim, {"B": b, "T": t}) == python(b, t)


@settings(max_examples=300, deadline=None)
@given(expressions())
def test_the_text_is_read_back(expression):
    assert parse_dim(str(expression[0])) == expression[0]


@settings(max_examples=300, deadline=None)
@given(expressions(), expressions(), st.integers(-9, 9))
def test_what_is_proved_holds_for_all_sizes(one, other, bound):
    values = [(b, t) for b in range(1, 6) for t in range(1, 6)]
    (d, f), (e, g) = one, other
    if at_least(d, bound):
        assert all(f(b, t) >= bound for b, t in values)
    if at_most(d, bound):
        assert all(f(b, t) <= bound for b, t in values)
    if proved_different(d, e):
        assert all(f(b, t) != g(b, t) for b, t in values)


@settings(max_examples=200, deadline=None)
@given(expressions(2), expressions(2))
def test_an_exact_quotient_multiplies_back(one, other):
    quotient = exact_quotient(one[0], other[0]) if other[0] != 0 else None
    if quotient is not None:
        assert quotient * other[0] == one[0]


@pytest.mark.parametrize("a, b, quotient", [(B * T * 12, T * 4, 3 * B), (B * T + 2 * T, T, B + 2),
                                            ((B + 1) * (T + 2), T + 2, B + 1), (B + 1, 2, None), (0, B, 0)])
def test_quotients(a, b, quotient):
    assert exact_quotient(a, b) == quotient


@pytest.mark.parametrize("dim, text", [(B * T, "B*T"), (B * 2 - 1, "2*B - 1"), (floordiv(T, 2), "(T // 2)"), (floordiv(4 * B + 3, 2), "2*B + 1"),
                                       (maximum(B, 4), "max(B, 4)"), (minimum(T, B * T), "min(T, B*T)"), (modulo(6 * B, 3), "0"), (B - B, "0")])
def test_texts(dim, text):
    assert str(dim) == text


def test_symbols():
    assert symbols(floordiv(B + 1, 2) * T) == {"B", "T"}


@pytest.mark.parametrize("text", ["(b*c // (4*b*t))", "((c + 1) // (4*b))", "(c % (4*b))", "(c // (2*((b + 1) // t)))", "((b*c) // t)"])
def test_a_product_in_a_division_reads_back(text):
    assert parse_dim(str(parse_dim(text))) == parse_dim(text)


def test_sizes_that_nest_deep_are_worked_with_in_little_time():
    size = symbol("h")
    for _ in range(60):                          # each names the one before twice: written out anew each time this would never end
        half = (size + 1) // 2
        size = half + 3 if at_least(half, 1) else 0
    assert len({size, size + B, half * B}) == 3 and pickle.loads(pickle.dumps(size)) == size


def test_a_size_that_names_the_last_one_twice_again_and_again_is_given_up():
    size = symbol("h")
    with pytest.raises(TooLong):
        for i in range(60):
            size = minimum(size * symbol(f"a{i}"), (size + B) // 2)
