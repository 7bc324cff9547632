"""Mathematical functions. One implementation each, used for vector bodies, tails and scalars alike."""
from __future__ import annotations

from .writer import Value, Writer, constant

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "erf", "atan", "sinh", "cosh")


def _libm(name: str):
    return lambda w, x: w.library(name + ("f" if x.element == "float" else ""), x)


exp, exp2, expm1, log, log2, log1p, sin, cos, tan, tanh, erf, atan, sinh, cosh = map(_libm, UNARY)


def power(w: Writer, a: Value, b: Value) -> Value:
    return w.library("powf" if a.element == "float" else "pow", a, b)


def atan2(w: Writer, a: Value, b: Value) -> Value:
    return w.library("atan2f" if a.element == "float" else "atan2", a, b)


def fmod(w: Writer, a: Value, b: Value) -> Value:
    return w.library("fmodf" if a.element == "float" else "fmod", a, b)


def mod(w: Writer, a: Value, b: Value) -> Value:
    """The remainder with the divisor's sign (Python's %), by fmod, as ATen and NumPy do it."""
    rest = fmod(w, a, b)
    return w.select(_wrong_sign(w, rest, b), w.op("fadd", rest, b), rest)


def floordiv(w: Writer, a: Value, b: Value) -> Value:
    """floor(a / b) from the exact remainder: what Python, NumPy and ATen compute. Division by 0 gives a / b."""
    rest = fmod(w, a, b)
    quotient = w.op("fdiv", w.op("fsub", a, rest), b)
    quotient = w.select(_wrong_sign(w, rest, b), w.op("fsub", quotient, 1.0), quotient)
    whole = w.call("floor", quotient)
    whole = w.select(w.compare("ogt", w.op("fsub", quotient, whole), 0.5), w.op("fadd", whole, 1.0), whole)
    plain = w.op("fdiv", a, b)
    zero = w.call("copysign", constant(0.0, a.element, a.lanes), plain)
    result = w.select(w.compare("oeq", quotient, 0.0), zero, whole)
    return w.select(w.compare("oeq", b, 0.0), plain, result)


def _wrong_sign(w: Writer, rest: Value, b: Value) -> Value:
    differs = w.op("xor", w.compare("olt", rest, 0.0), w.compare("olt", b, 0.0))
    return w.op("and", w.compare("une", rest, 0.0), differs)


def integer_power(w: Writer, a: Value, b: Value, signed: bool) -> Value:
    """a ** b by squaring, wrapping. A negative exponent gives the truncated quotient 1 / a**-b: 0 except for 1 and -1."""
    lanes, element = a.lanes, a.element
    base, left, result = (w.alloca(a.type) for _ in range(3))
    for pointer, value in ((base, a), (left, b), (result, constant(1, element, lanes))):
        w.put(f"store {value}, ptr {pointer}")
    head, body, done = w.label("power"), w.label("square"), w.label("powered")
    w.jump(head)
    w.start(head)
    rest = w.make(f"load {a.type}, ptr {left}", element, lanes)
    w.branch(w.any(w.compare("sgt" if signed else "ne", rest, 0)), body, done)
    w.start(body)
    square = w.make(f"load {a.type}, ptr {base}", element, lanes)
    total = w.make(f"load {a.type}, ptr {result}", element, lanes)
    odd = w.compare("ne", w.op("and", rest, 1), 0)
    if signed:
        odd = w.op("and", odd, w.compare("sgt", rest, 0))
    w.put(f"store {w.select(odd, w.op('mul', total, square), total)}, ptr {result}")
    w.put(f"store {w.op('mul', square, square)}, ptr {base}")
    w.put(f"store {w.op('ashr' if signed else 'lshr', rest, 1)}, ptr {left}")
    w.jump(head)
    w.start(done)
    powered = w.make(f"load {a.type}, ptr {result}", element, lanes)
    if not signed:
        return powered
    one = constant(1, element, lanes)
    alternating = w.op("sub", one, w.op("shl", w.op("and", b, 1), 1))
    inverse = w.select(w.compare("eq", a, 1), one, w.select(w.compare("eq", a, -1), alternating, constant(0, element, lanes)))
    return w.select(w.compare("slt", b, 0), inverse, powered)
