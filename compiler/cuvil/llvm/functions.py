"""Mathematical functions, one implementation each, used for vector bodies, tails and scalars alike.

Polynomials in f32 and f64 with Cody-Waite range reduction (W. J. Cody and W. Waite, Software Manual for the Elementary
Functions, 1980); coefficients are Chebyshev interpolants of this project's own, fitted in 60-digit arithmetic. Each keeps
NaN, infinities, signed zeros and subnormal results. Largest errors found against correctly rounded results, in units in the
last place, f32 / f64 (tests/native/test_functions.py):

    exp 1.1/1.0   exp2 1.0/1.0   expm1 1.5/1.5   log 1.0/1.0   log2 2.0/1.5   log1p 2.0/1.5   tanh 2.5/2.5   erf 1.5/libm
    sin, cos, tan, atan 0.6/libm

Where it says libm, and for atan2, sinh, cosh, pow and fmod, the C library's function is called for each lane.
"""
from __future__ import annotations

from .writer import Value, Writer, constant

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "erf", "atan", "sinh", "cosh")

# (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2
_EXP = {"float": (0.5, 0.16666576989698775, 0.041666554617204574, 0.008363179052722578, 0.0013926183587713494),
        "double": (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748, 0.00019841269874820627,
                   2.4801587325547743e-05, 2.7557255400206422e-06, 2.75572736431103e-07, 2.5105217004720745e-08, 2.0914686968086876e-09)}
# (2^r - 1) / r for |r| <= 1/2
_EXP2 = {"float": (0.6931471880271255, 0.24022650760575892, 0.05550357109913586, 0.009618082553550122, 0.0013390865661206542,
                   0.00015453164933424576),
         "double": (0.6931471805599453, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848, 0.0013333558146406467,
                    0.00015403530393370732, 1.5252733841561274e-05, 1.321548680870779e-06, 1.0178057085418509e-07, 7.054897303009422e-09,
                    4.455818319966744e-10, 2.5729326214820692e-11)}
# (log(1 + f) - f + f^2/2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG = (0.33333331180030046, -0.24999996957950882, 0.200007157488921, -0.16667802319501254, 0.1424905764569748, -0.12425687331451106,
        0.1168541992348674, -0.11479733846637635, 0.06971611471451178)
# (log((1 + s) / (1 - s)) - 2s) / s^3 in z = s^2, over the same range with s = f / (2 + f)
_LOG_RATIO = (0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045, 0.18181795547521137,
              0.15386244737621665, 0.13268638369266825, 0.13088034850927555)
# erf(x)/x - 1 in z = x^2 <= 0.85, and -log(erfc(x)) for 0.92 <= x <= 4
_ERF_SMALL = (0.12837916667268318, -0.3761263402339505, 0.1128369935115317, -0.026859588116109587, 0.005201456326433703,
              -0.0008147081117456024, 8.387074556861946e-05)
_ERF_LARGE = (-0.00032044153127726646, 1.1302376163746712, 0.6318145166593842, 0.110094480827649, -0.026431017603369227,
              0.0047635752491493495, -0.0005977434719606111, 4.617791279040004e-05, -1.6435696536038326e-06)
# sin(r)/r and cos(r) in z = r^2 for |r| <= pi/4; atan(t)/t in z = t^2 <= 1
_SIN = (0.9999999999999957, -0.16666666666616434, 0.008333333323840354, -0.00019841263278795547, 2.7555267811628643e-06,
        -2.4756264849559612e-08)
_COS = (1.0, -0.49999999999999245, 0.041666666666471334, -0.0013888888869903067, 2.480157851231878e-05, -2.7555229727213816e-07,
        2.06302094218755e-09)
_ATAN = (0.9999999999887381, -0.3333333295165722, 0.19999978336217084, -0.1428522560816021, 0.11105306732424464, -0.09049179093720577,
         0.07495262378099696, -0.06022196387937433, 0.04364658944281667, -0.02600599597760862, 0.011427633277375594,
         -0.0031954252407363944, 0.00041922786011272897)

LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453
# ln(2) in two parts: the first has so few bits that an exponent times it is exact
_LN2_PARTS = {"float": (0.693115234375, 3.1946184945309415e-05), "double": (0.693147180559663, 2.8235290563031577e-13)}
HALF_PI, HALF_PI_REST, TWO_OVER_PI = 1.5707963267948966, 6.123233995736766e-17, 0.6366197723675814


class _Format:
    """What an IEEE format looks like in bits."""

    def __init__(self, integer: str, mantissa: int, bias: int) -> None:
        self.integer, self.mantissa, self.bias = integer, mantissa, bias
        self.rounder = 1.5 * 2.0 ** mantissa             # adding it rounds to an integer, which then stands in the low bits
        self.tiny = 2.0 ** (1 - bias)                    # the smallest normal number


_FORMAT = {"float": _Format("i32", 23, 127), "double": _Format("i64", 52, 1023)}


# --- parts ----------------------------------------------------------------------------------------------------------

def polynomial(w: Writer, x: Value, coefficients: tuple[float, ...]) -> Value:
    """Horner's rule, from the highest power down."""
    total = constant(coefficients[-1], x.element, x.lanes)
    for c in reversed(coefficients[:-1]):
        total = w.muladd(total, x, c)
    return total


def _clamp(w: Writer, x: Value, low: float, high: float) -> Value:
    """NaN stays NaN."""
    x = w.select(w.compare("olt", x, low), constant(low, x.element, x.lanes), x)
    return w.select(w.compare("ogt", x, high), constant(high, x.element, x.lanes), x)


def _nearest(w: Writer, x: Value) -> tuple[Value, Value]:
    """x rounded to an integer, as a float and as an integer; |x| < 2^21."""
    form = _FORMAT[x.element]
    shifted = w.op("fadd", x, form.rounder)
    bits = w.op("sub", w.convert("bitcast", shifted, form.integer), w.convert("bitcast", constant(form.rounder, x.element, x.lanes), form.integer))
    return w.op("fsub", shifted, form.rounder), bits


def _power_of_two(w: Writer, n: Value, element: str) -> Value:
    """2^n for an n whose power is a normal number."""
    form = _FORMAT[element]
    return w.convert("bitcast", w.op("shl", w.op("add", n, form.bias), form.mantissa), element)


def _scaled(w: Writer, x: Value, n: Value) -> Value:
    """x * 2^n in two steps, so that results may overflow and be subnormal."""
    half = w.op("ashr", n, 1)
    first = w.op("fmul", x, _power_of_two(w, half, x.element))
    return w.op("fmul", first, _power_of_two(w, w.op("sub", n, half), x.element))


def _exp_parts(w: Writer, x: Value) -> tuple[Value, Value, Value]:
    """(n, r, exp(r) - 1) with x = n ln2 + r."""
    high, low = _LN2_PARTS[x.element]
    n, bits = _nearest(w, w.op("fmul", x, LOG2E))
    r = w.muladd(n, constant(-high, x.element, x.lanes), x)
    r = w.muladd(n, constant(-low, x.element, x.lanes), r)
    return bits, r, w.muladd(w.op("fmul", r, r), polynomial(w, r, _EXP[x.element]), r)


def _log_parts(w: Writer, x: Value) -> tuple[Value, Value, Value]:
    """(e, f, c) with log(x) = e ln2 + f + c, f the larger part of log(x / 2^e); x positive and finite."""
    form = _FORMAT[x.element]
    small = w.compare("olt", x, form.tiny)
    x = w.select(small, w.op("fmul", x, 2.0 ** form.mantissa), x)
    bits = w.convert("bitcast", x, form.integer)
    root = w.convert("bitcast", constant(0.7071067811865476, x.element, x.lanes), form.integer)
    e = w.op("ashr", w.op("sub", bits, root), form.mantissa)
    m = w.convert("bitcast", w.op("sub", bits, w.op("shl", e, form.mantissa)), x.element)
    f = w.op("fsub", m, 1.0)
    exponent = w.convert("sitofp", w.op("sub", e, w.select(small, constant(form.mantissa, e.element, e.lanes), constant(0, e.element, e.lanes))),
                         x.element)
    square = w.op("fmul", w.op("fmul", f, f), 0.5)
    if x.element == "float":
        cube = w.op("fmul", w.op("fmul", f, f), f)
        return exponent, f, w.op("fsub", w.op("fmul", cube, polynomial(w, f, _LOG)), square)
    s = w.op("fdiv", f, w.op("fadd", f, 2.0))
    z = w.op("fmul", s, s)
    ratio = w.op("fmul", z, polynomial(w, z, _LOG_RATIO))
    return exponent, f, w.op("fsub", w.op("fmul", s, w.op("fadd", square, ratio)), square)


def _log_special(w: Writer, x: Value, result: Value) -> Value:
    """Infinity at both ends, NaN below 0 and of NaN."""
    inf = constant(float("inf"), x.element, x.lanes)
    result = w.select(w.compare("oeq", x, float("inf")), inf, result)
    result = w.select(w.compare("oeq", x, 0.0), constant(float("-inf"), x.element, x.lanes), result)
    return w.select(w.compare("uge", x, 0.0), w.select(w.compare("uno", x, x), x, result), constant(float("nan"), x.element, x.lanes))


def _keep_tiny(w: Writer, x: Value, result: Value) -> Value:
    """x itself where f(x) = x to the last place: keeps the sign of zero and every bit of a subnormal."""
    return w.select(w.compare("olt", w.call("fabs", x), 2.0 ** -60), x, result)


# --- exponentials ---------------------------------------------------------------------------------------------------

_EXP_RANGE = {"float": (-104.5, 89.5), "double": (-746.5, 710.5)}


def exp(w: Writer, x: Value) -> Value:
    n, _, p = _exp_parts(w, _clamp(w, x, *_EXP_RANGE[x.element]))
    return _scaled(w, w.op("fadd", p, 1.0), n)


def exp2(w: Writer, x: Value) -> Value:
    x = _clamp(w, x, *((-151.0, 129.0) if x.element == "float" else (-1076.0, 1025.0)))
    n, bits = _nearest(w, x)
    r = w.op("fsub", x, n)
    return _scaled(w, w.muladd(r, polynomial(w, r, _EXP2[x.element]), 1.0), bits)


def expm1(w: Writer, x: Value) -> Value:
    """2^n (exp(r) - 1) + (2^n - 1), halved on the way so that 2^n does not overflow first."""
    low, high = (-20.0, 89.5) if x.element == "float" else (-40.0, 710.5)
    n, _, p = _exp_parts(w, _clamp(w, x, low, high))
    half = _power_of_two(w, w.op("sub", n, 1), x.element)
    value = w.op("fmul", w.muladd(p, half, w.op("fsub", half, 0.5)), 2.0)
    return _keep_tiny(w, x, value)


def tanh(w: Writer, x: Value) -> Value:
    """t / (t + 2) with t = exp(2|x|) - 1; 1 beyond what the format can tell from 1."""
    size = w.call("fabs", x)
    t = expm1(w, _clamp(w, w.op("fmul", size, 2.0), 0.0, 20.0 if x.element == "float" else 42.0))
    return w.call("copysign", w.op("fdiv", t, w.op("fadd", t, 2.0)), x)


# --- logarithms -----------------------------------------------------------------------------------------------------

def _log(w: Writer, x: Value) -> Value:
    high, low = _LN2_PARTS[x.element]
    e, f, c = _log_parts(w, x)
    small = w.muladd(e, constant(low, x.element, x.lanes), c)
    return w.muladd(e, constant(high, x.element, x.lanes), w.op("fadd", small, f))


def log(w: Writer, x: Value) -> Value:
    return _log_special(w, x, _log(w, x))


def log2(w: Writer, x: Value) -> Value:
    """e + (f + c) log2(e), log2(e) taken as 1 + 0.4427 so that f itself is added exactly last."""
    e, f, c = _log_parts(w, x)
    rest = w.op("fadd", w.op("fmul", c, LOG2E - 1.0), w.op("fmul", f, LOG2E - 1.0))
    return _log_special(w, x, w.op("fadd", w.op("fadd", w.op("fadd", rest, c), f), e))


def log1p(w: Writer, x: Value) -> Value:
    """log(u) with u = 1 + x as rounded, and what the rounding lost, over u."""
    u = w.op("fadd", x, 1.0)
    lost = w.select(w.compare("oge", x, 1.0), w.op("fsub", constant(1.0, x.element, x.lanes), w.op("fsub", u, x)),
                    w.op("fsub", x, w.op("fsub", u, 1.0)))
    value = w.op("fadd", _log(w, u), w.op("fdiv", lost, u))
    return _keep_tiny(w, x, _log_special(w, u, value))


# --- error function -------------------------------------------------------------------------------------------------

def erf(w: Writer, x: Value) -> Value:
    if x.element == "double":
        return w.library("erf", x)
    size = w.call("fabs", x)
    z = w.op("fmul", x, x)
    small = w.muladd(x, polynomial(w, z, _ERF_SMALL), x)
    decay = exp(w, w.neg(polynomial(w, _clamp(w, size, 0.9, 4.0), _ERF_LARGE)))
    large = w.call("copysign", w.op("fsub", constant(1.0, x.element, x.lanes), decay), x)
    return w.select(w.compare("olt", size, 0.921875), small, w.select(w.compare("uno", x, x), x, large))


# --- circular functions: f32 by way of f64 --------------------------------------------------------------------------

# From here on a quarter turn is too many units of f64's last place; the C library then takes the argument apart exactly.
_LARGE = 2.0 ** 28


def _by_quadrant(name: str):
    def function(w: Writer, x: Value) -> Value:
        if x.element == "double":
            return w.library(name, x)
        large = w.compare("oge", w.call("fabs", x), _LARGE)
        wide = w.convert("fpext", w.select(large, constant(0.0, x.element, x.lanes), x), "double")
        n, bits = _nearest(w, w.op("fmul", wide, TWO_OVER_PI))
        r = w.muladd(n, constant(-HALF_PI, "double", x.lanes), wide)
        r = w.muladd(n, constant(-HALF_PI_REST, "double", x.lanes), r)
        z = w.op("fmul", r, r)
        sine, cosine = w.op("fmul", r, polynomial(w, z, _SIN)), polynomial(w, z, _COS)
        odd = w.compare("ne", w.op("and", bits, 1), 0)
        if name == "tan":
            value = w.op("fdiv", w.select(odd, w.neg(cosine), sine), w.select(odd, sine, cosine))
        else:
            if name == "cos":
                odd, bits = w.op("xor", odd, constant(True, "i1", x.lanes)), w.op("add", bits, 1)
            value = w.select(odd, cosine, sine)
            value = w.select(w.compare("ne", w.op("and", bits, 2), 0), w.neg(value), value)
        value = w.convert("fptrunc", value, "float")
        if name != "cos":
            value = _keep_tiny(w, x, value)
        value = w.select(w.compare("uno", x, x), x, value)
        return _where(w, large, x, value, lambda: w.library(name + "f", x))
    return function


sin, cos, tan = map(_by_quadrant, ("sin", "cos", "tan"))


def _where(w: Writer, mask: Value, x: Value, value: Value, slow) -> Value:
    """value, replaced in the lanes of a mask that hardly ever has any by what `slow` writes."""
    place = w.alloca(x.type)
    rare, after = w.label("rare"), w.label("usual")
    w.put(f"store {value}, ptr {place}")
    w.branch(w.any(mask), rare, after)
    w.start(rare)
    w.put(f"store {w.select(mask, slow(), value)}, ptr {place}")
    w.jump(after)
    w.start(after)
    return w.make(f"load {x.type}, ptr {place}", x.element, x.lanes)


def atan(w: Writer, x: Value) -> Value:
    if x.element == "double":
        return w.library("atan", x)
    return w.convert("fptrunc", _atan(w, w.convert("fpext", x, "double")), "float")


def _atan(w: Writer, x: Value) -> Value:
    """atan(x) = pi/2 - atan(1/x) beyond 1."""
    size = w.call("fabs", x)
    beyond = w.compare("ogt", size, 1.0)
    t = w.select(beyond, w.op("fdiv", constant(1.0, x.element, x.lanes), size), size)
    value = w.op("fmul", t, polynomial(w, w.op("fmul", t, t), _ATAN))
    value = w.select(beyond, w.op("fsub", constant(HALF_PI, x.element, x.lanes), value), value)
    return w.call("copysign", value, x)


def atan2(w: Writer, y: Value, x: Value) -> Value:
    if x.element == "double":
        return w.library("atan2", y, x)
    return w.library("atan2f", y, x)


# --- the C library's ------------------------------------------------------------------------------------------------

def _library(name: str):
    return lambda w, x: w.library(name + ("f" if x.element == "float" else ""), x)


sinh, cosh = map(_library, ("sinh", "cosh"))


def power(w: Writer, a: Value, b: Value) -> Value:
    return w.library("powf" if a.element == "float" else "pow", a, b)


def fmod(w: Writer, a: Value, b: Value) -> Value:
    return w.library("fmodf" if a.element == "float" else "fmod", a, b)


# --- remainders and integer powers ----------------------------------------------------------------------------------

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
