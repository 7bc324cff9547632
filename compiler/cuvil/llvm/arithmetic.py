"""The primitives of ir/scalar.py as LLVM instructions, the same for a scalar and for vectors of any length.

Integers wrap and division by zero gives 0 (as NumPy does); no flag lets LLVM reassociate, contract or ignore NaN.
Functions that are longer than an instruction are in functions.py. Emission is a table: PRIMITIVE.
"""
from __future__ import annotations

from collections.abc import Callable

from ..ir.types import DType
from . import functions
from .writer import BITS, REGISTER, Value, Writer, constant

FLOATS = ("float", "double")


def apply(w: Writer, primitive: str, arguments: list[Value], types: list[DType], result: DType) -> Value:
    """primitive(arguments); `types` are the arguments' element types, for signedness and small floats."""
    if primitive == "cast":
        return cast(w, arguments[0], types[0], result)
    if primitive == "select":
        return w.select(*arguments)
    lanes = max(a.lanes for a in arguments)
    arguments = [w.splat(a, lanes) for a in arguments]
    if primitive in COMPARE:
        return compare(w, primitive, *arguments, types[0])
    if types[0] == DType.BOOL:
        return _bool(w, primitive, arguments)
    value = PRIMITIVE[primitive](w, types[0], *arguments)
    return rounded(w, value, result)


def rounded(w: Writer, value: Value, dtype: DType) -> Value:
    """What is left of an f32 in a register when it is an f16 or bf16."""
    if dtype in (DType.F16, DType.BF16):
        return from_memory(w, to_memory(w, value, dtype), dtype)
    return value


def from_memory(w: Writer, value: Value, dtype: DType) -> Value:
    """An element as it is loaded, as it is in registers."""
    match dtype:
        case DType.BOOL:
            return w.compare("ne", value, 0)
        case DType.F16:
            return w.convert("fpext", w.convert("bitcast", value, "half"), "float") if w.target.halves else _from_half(w, value)
        case DType.BF16:
            return w.convert("bitcast", w.op("shl", w.convert("zext", value, "i32"), 16), "float")
    return value


def to_memory(w: Writer, value: Value, dtype: DType) -> Value:
    match dtype:
        case DType.BOOL:
            return w.convert("zext", value, "i8")
        case DType.F16:
            return w.convert("bitcast", w.convert("fptrunc", value, "half"), "i16") if w.target.halves else _to_half(w, value)
        case DType.BF16:                                  # to nearest, ties to even; NaN stays NaN
            bits = w.convert("bitcast", value, "i32")
            odd = w.op("and", w.op("lshr", bits, 16), 1)
            up = w.op("add", w.op("add", bits, 0x7FFF), odd)
            kept = w.select(w.compare("uno", value, value), constant(0x7FC00000, "i32", value.lanes), up)
            return w.convert("trunc", w.op("lshr", kept, 16), "i16")
    return value


def _from_half(w: Writer, value: Value) -> Value:
    """The bits of an f16 as an f32: the exponent is rebased by a multiplication, which also makes subnormals normal."""
    wide = w.convert("zext", value, "i32")
    size = w.op("shl", w.op("and", wide, 0x7FFF), 13)
    scaled = w.convert("bitcast", w.op("fmul", w.convert("bitcast", size, "float"), 2.0 ** 112), "i32")
    special = w.compare("uge", size, 0x7C00 << 13)
    bits = w.select(special, w.op("or", size, 0x7F800000), scaled)
    return w.convert("bitcast", w.op("or", bits, w.op("shl", w.op("and", wide, 0x8000), 16)), "float")


def _to_half(w: Writer, value: Value) -> Value:
    """An f32 to the nearest f16, ties to even, as bits. Subnormal results are rounded by an addition that shifts them into place."""
    bits = w.convert("bitcast", value, "i32")
    size = w.op("and", bits, 0x7FFFFFFF)
    odd = w.op("and", w.op("lshr", size, 13), 1)
    normal = w.op("lshr", w.op("add", w.op("add", size, ((15 - 127) << 23) + 0xFFF), odd), 13)
    magic = 126 << 23                                     # 0.5: its last place is the smallest f16
    small = w.op("sub", w.convert("bitcast", w.op("fadd", w.convert("bitcast", size, "float"), 0.5), "i32"), magic)
    special = w.select(w.compare("ugt", size, 0x7F800000), constant(0x7E00, "i32", value.lanes), constant(0x7C00, "i32", value.lanes))
    half = w.select(w.compare("ult", size, 113 << 23), small, normal)
    half = w.select(w.compare("uge", size, 143 << 23), special, half)
    return w.convert("trunc", w.op("or", half, w.op("and", w.op("lshr", bits, 16), 0x8000)), "i16")


def cast(w: Writer, value: Value, source: DType, target: DType) -> Value:
    """An element type conversion; floats outside an integer's range give what the hardware's conversion gives."""
    element = REGISTER[target]
    if source == target:
        return value
    if target == DType.BOOL:
        return w.compare("une" if source.is_float else "ne", value, 0)
    if source == DType.BOOL:
        return w.convert("uitofp" if target.is_float else "zext", value, element)
    if source.is_float and target.is_float:
        if BITS[value.element] != BITS[element]:
            value = w.convert("fpext" if element == "double" else "fptrunc", value, element)
        return rounded(w, value, target)
    if source.is_float:
        return _float_to_int(w, value, target)
    if target.is_float:
        return rounded(w, w.convert("uitofp" if source == DType.U8 else "sitofp", value, element), target)
    if BITS[value.element] >= BITS[element]:
        return w.convert("trunc", value, element)
    return w.convert("zext" if source == DType.U8 else "sext", value, element)


def _float_to_int(w: Writer, value: Value, target: DType) -> Value:
    """i32 and i64 directly, smaller ones through i64; what does not fit gives the most negative number, as cvttss2si does."""
    element = "i32" if target == DType.I32 else "i64"
    limit = 2.0 ** (BITS[element] - 1)
    fits = w.compare("olt", value, limit)
    if element == "i32" and value.element == "double":
        fits = w.op("and", fits, w.compare("ogt", value, -limit - 1))
    else:
        fits = w.op("and", fits, w.compare("oge", value, -limit))
    whole = w.convert("fptosi", w.select(fits, value, constant(0.0, value.element, value.lanes)), element)
    whole = w.select(fits, whole, constant(-(1 << (BITS[element] - 1)), element, value.lanes))
    return w.convert("trunc", whole, REGISTER[target])


_FLOAT_CONDITION = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
COMPARE = frozenset(_FLOAT_CONDITION)


def compare(w: Writer, primitive: str, a: Value, b: Value, dtype: DType) -> Value:
    if dtype.is_float:
        return w.compare(_FLOAT_CONDITION[primitive], a, b)
    if primitive in ("eq", "ne"):
        return w.compare(primitive, a, b)
    return w.compare(("u" if dtype in (DType.BOOL, DType.U8) else "s") + primitive, a, b)


def _bool(w: Writer, primitive: str, arguments: list[Value]) -> Value:
    opcode = {"add": "or", "or": "or", "maximum": "or", "mul": "and", "and": "and", "minimum": "and", "xor": "xor", "sub": "xor"}
    if primitive in ("abs", "sign"):
        return arguments[0]
    if primitive == "not":
        return w.op("xor", arguments[0], constant(True, "i1", arguments[0].lanes))
    return w.op(opcode[primitive], *arguments)


def _arithmetic(integer: str, real: str) -> Callable[..., Value]:
    return lambda w, t, a, b: w.op(real if t.is_float else integer, a, b)


def _zero(a: Value) -> Value:
    return constant(0, a.element, a.lanes)


def _safe_divisor(w: Writer, t: DType, a: Value, b: Value) -> tuple[Value, Value]:
    """(whether b is 0, a divisor that cannot trap): 1 for 0, and for -1 under the most negative number, whose quotient wraps."""
    zero = w.compare("eq", b, 0)
    unsafe = zero
    if t != DType.U8:
        lowest = w.compare("eq", a, -(1 << (BITS[a.element] - 1)))
        unsafe = w.op("or", zero, w.op("and", lowest, w.compare("eq", b, -1)))
    return zero, w.select(unsafe, constant(1, b.element, b.lanes), b)


def _truncdiv(w: Writer, t: DType, a: Value, b: Value) -> Value:
    if t.is_float:
        return w.call("trunc", w.op("fdiv", a, b))
    zero, divisor = _safe_divisor(w, t, a, b)
    return w.select(zero, _zero(a), w.op("udiv" if t == DType.U8 else "sdiv", a, divisor))


def _floordiv(w: Writer, t: DType, a: Value, b: Value) -> Value:
    if t.is_float:
        return functions.floordiv(w, a, b)
    zero, divisor = _safe_divisor(w, t, a, b)
    if t == DType.U8:
        return w.select(zero, _zero(a), w.op("udiv", a, divisor))
    quotient = w.op("sdiv", a, divisor)
    rest = w.op("sub", a, w.op("mul", quotient, divisor))
    below = w.op("and", w.compare("ne", rest, 0), w.compare("slt", w.op("xor", rest, divisor), 0))
    return w.select(zero, _zero(a), w.select(below, w.op("sub", quotient, 1), quotient))


def _mod(w: Writer, t: DType, a: Value, b: Value) -> Value:
    if t.is_float:
        return functions.mod(w, a, b)
    zero, divisor = _safe_divisor(w, t, a, b)
    if t == DType.U8:
        return w.select(zero, _zero(a), w.op("urem", a, divisor))
    rest = w.op("srem", a, divisor)
    below = w.op("and", w.compare("ne", rest, 0), w.compare("slt", w.op("xor", rest, divisor), 0))
    return w.select(zero, _zero(a), w.select(below, w.op("add", rest, divisor), rest))


def _extreme(integer: str, ordered: str) -> Callable[..., Value]:
    """NaN if either side is NaN."""
    def emit(w: Writer, t: DType, a: Value, b: Value) -> Value:
        if not t.is_float:
            return w.call(("u" if t == DType.U8 else "s") + integer, a, b)
        chosen = w.select(w.compare(ordered, a, b), a, b)            # b when either is NaN
        return w.select(w.compare("uno", a, a), a, chosen)
    return emit


def _abs(w: Writer, t: DType, a: Value) -> Value:
    if t.is_float:
        return w.call("fabs", a)
    return a if t == DType.U8 else w.call("abs", a, extra=", i1 false")


def _sign(w: Writer, t: DType, a: Value) -> Value:
    above, below = ("ogt", "olt") if t.is_float else ("ugt", "ult") if t == DType.U8 else ("sgt", "slt")
    one, minus = constant(1, a.element, a.lanes), constant(-1, a.element, a.lanes)
    return w.select(w.compare(above, a, 0), one, w.select(w.compare(below, a, 0), minus, _zero(a)))


def _shift(opcode: str) -> Callable[..., Value]:
    """Shifting by all bits or more gives what shifting one by one would."""
    def emit(w: Writer, t: DType, a: Value, b: Value) -> Value:
        code = "lshr" if opcode == "ashr" and t == DType.U8 else opcode
        bits = BITS[a.element]
        fits = w.compare("ult", b, bits)
        if code == "ashr":
            return w.op(code, a, w.select(fits, b, constant(bits - 1, b.element, b.lanes)))
        return w.select(fits, w.op(code, a, w.select(fits, b, _zero(b))), _zero(a))
    return emit


def _not(w: Writer, t: DType, a: Value) -> Value:
    return w.op("xor", a, -1)


def _neg(w: Writer, t: DType, a: Value) -> Value:
    return w.neg(a) if t.is_float else w.op("sub", _zero(a), a)


def _isinf(w: Writer, t: DType, a: Value) -> Value:
    return w.compare("oeq", w.call("fabs", a), float("inf"))


def _intrinsic(name: str) -> Callable[..., Value]:
    return lambda w, t, a: w.call(name, a)


PRIMITIVE: dict[str, Callable[..., Value]] = {
    "add": _arithmetic("add", "fadd"), "sub": _arithmetic("sub", "fsub"), "mul": _arithmetic("mul", "fmul"),
    "div": lambda w, t, a, b: w.op("fdiv", a, b), "floordiv": _floordiv, "truncdiv": _truncdiv, "mod": _mod,
    "maximum": _extreme("max", "oge"), "minimum": _extreme("min", "ole"),
    "and": lambda w, t, a, b: w.op("and", a, b), "or": lambda w, t, a, b: w.op("or", a, b),
    "xor": lambda w, t, a, b: w.op("xor", a, b), "shl": _shift("shl"), "shr": _shift("ashr"),
    "neg": _neg, "abs": _abs, "not": _not, "sign": _sign,
    "sqrt": _intrinsic("sqrt"), "floor": _intrinsic("floor"), "ceil": _intrinsic("ceil"), "trunc": _intrinsic("trunc"),
    "round": _intrinsic("rint"),                                     # the default rounding mode: ties to even
    "rsqrt": lambda w, t, a: w.op("fdiv", constant(1.0, a.element, a.lanes), w.call("sqrt", a)),
    "reciprocal": lambda w, t, a: w.op("fdiv", constant(1.0, a.element, a.lanes), a),
    "isnan": lambda w, t, a: w.compare("uno", a, a), "isinf": _isinf,
    "pow": lambda w, t, a, b: functions.power(w, a, b) if t.is_float else functions.integer_power(w, a, b, t != DType.U8),
    "atan2": lambda w, t, a, b: functions.atan2(w, a, b),
    **{name: (lambda function: lambda w, t, a: function(w, a))(getattr(functions, name)) for name in functions.UNARY},
}
