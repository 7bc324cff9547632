"""Value ranges: between which numbers every element of a value lies, whatever the inputs are.

    intervals(function) -> {op id: Interval}

One pass over the ops with one rule for each family. Sound for what CIR means: float results are rounded in their element type and may
overflow to inf, integers wrap. What is not known is between -inf and inf. Two relations are seen besides the bounds of operands:
`x - max(x) <= 0` and `x / sum(x)` in [0, 1] for x >= 0.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from . import rounding
from .dims import bounds
from .function import Function, Op
from .types import DType


@dataclass(frozen=True, slots=True)
class Interval:
    """lo <= x <= hi for every element that is a number. nan: some element may be NaN."""

    lo: float
    hi: float
    nan: bool = False

    def within(self, lo: float, hi: float) -> bool:
        return lo <= self.lo and self.hi <= hi

    def holds(self, value: float) -> bool:
        return self.lo <= value <= self.hi

    @property
    def finite(self) -> bool:
        return -inf < self.lo and self.hi < inf and not self.nan

    def __or__(self, other: Interval) -> Interval:
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi), self.nan or other.nan)

    def __str__(self) -> str:
        return f"[{self.lo:g}, {self.hi:g}]"


ANY = Interval(-inf, inf, True)
UNIT = Interval(0, 1)
Rule = Callable[["_Pass", Op, Sequence[Interval]], Interval]


def intervals(function: Function, given: Mapping[int, Interval] = {}) -> dict[int, Interval]:
    """The interval of each op. given: what is known of inputs and parameters."""
    todo = _Pass(function, {}, set())
    for op in function.ops:
        todo.found[op.id] = _of(todo, op, given)
    return todo.found


def of_dtype(dtype: DType | None) -> Interval:
    """Everything that an element type holds."""
    if dtype is None or dtype.is_float:
        return ANY
    return Interval(*rounding.limits(dtype))


@dataclass(frozen=True, slots=True)
class _Pass:
    """real: values that are known to be floats."""

    function: Function
    found: dict[int, Interval]
    real: set[int]

    def folded(self, op: Op) -> str:
        """The reduction of the left operand that is the right one, row by row: "reduce_max" of `x - x.max(1, keepdim=True)`."""
        left, right = (self.function.by_id[id] for id in op.operands)
        while right.name == "broadcast":
            right = self.function.by_id[right.operands[0]]
        shape, fold = right.type.shape, right
        if fold.name == "reshape":
            fold = self.function.by_id[fold.operands[0]]
        if not fold.name.startswith("reduce_") or fold.operands[0] != left.id:
            return ""
        axes = fold.attr("axes")
        if fold is right and fold.attr("keepdims"):
            return fold.name
        whole = left.type.shape
        if whole is None or shape is None or axes is None:
            return fold.name if axes is None and fold is right else ""
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(whole))
        return fold.name if shape == kept or len(axes) == len(whole) else ""


def _of(todo: _Pass, op: Op, given: Mapping[int, Interval]) -> Interval:
    whole = of_dtype(op.type.dtype)
    if op.id in given:
        return given[op.id]
    if _real(todo, op):
        todo.real.add(op.id)
    rule = RULES.get(op.name)
    if rule is None:
        return whole
    result = rule(todo, op, [todo.found[id] for id in op.operands])
    if op.name in EXACT:
        return result
    if op.id in todo.real:
        return _rounded(op, result)
    if op.type.dtype is None:
        return ANY                                                # an integer may wrap
    return replace(result, nan=False) if result.within(whole.lo, whole.hi) else whole


def _real(todo: _Pass, op: Op) -> bool:
    """It is of some floating type, even where it is not known of which."""
    if op.type.dtype is not None:
        return op.type.dtype.is_float
    return op.name in FLOATING or (op.name in PROMOTING and any(id in todo.real for id in op.operands))


def _rounded(op: Op, x: Interval) -> Interval:
    dtype, units = op.type.dtype, 0 if op.name in ROUNDED else 4
    if dtype is None and not units:                               # rounded once, in one of the types: to a neighbour in the coarsest at most
        each = [(x.lo, x.hi), *(rounding.outward(x.lo, x.hi, kind, 0) for kind in (DType.F16, DType.BF16))]
        lo, hi = min(lo for lo, _ in each), max(hi for _, hi in each)
    elif dtype is None:                                           # as coarse as bfloat16, as small as float16
        lo, hi = rounding.outward(x.lo, x.hi, DType.BF16, 4)
        greatest = rounding.limits(DType.F16)[1]
        lo, hi = -inf if lo < -greatest else lo, inf if hi > greatest else hi
    else:
        lo, hi = rounding.outward(x.lo, x.hi, dtype, units)
    if op.name in ("exp", "exp2") and x.hi == 1:                  # exact there: exp(x) <= 1 for x <= 0
        hi = 1
    return Interval(max(lo, FLOOR.get(op.name, -inf)), min(hi, CEILING.get(op.name, inf)), x.nan)


# --- families ---------------------------------------------------------------------------------------------------------

def _same(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return x[0]


def _either(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return _union(x)


def _union(x: Sequence[Interval]) -> Interval:
    if not x:
        return ANY
    return Interval(min(i.lo for i in x), max(i.hi for i in x), any(i.nan for i in x))


def _with_zero(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return x[0] | Interval(0, 0)


def _rising(f: Callable[[float], float], lo: float = -inf, hi: float = inf) -> Rule:
    """A function that never falls, and where it is defined: outside it gives NaN."""
    def rule(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
        low, high = max(x[0].lo, lo), min(x[0].hi, hi)
        if low > high:
            return Interval(-inf, inf, True)
        return Interval(_at(f, low), _at(f, high), x[0].nan or x[0].lo < lo or x[0].hi > hi)
    return rule


def _at(f: Callable[[float], float], x: float) -> float:
    try:
        return f(x)
    except OverflowError:
        return inf if x > 0 else -inf
    except ValueError:
        return -inf


def _fixed(lo: float, hi: float) -> Rule:
    def rule(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
        return Interval(lo, hi, any(not i.finite for i in x))
    return rule


def _abs(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    """The least integer of a type is its own absolute value. Of an unknown type, numbers are taken to be none of those."""
    whole = of_dtype(op.type.dtype)
    if whole is not ANY and x[0].lo <= whole.lo < 0:
        return whole
    lo, hi = abs(x[0].lo), abs(x[0].hi)
    return Interval(0 if x[0].holds(0) else min(lo, hi), max(lo, hi), x[0].nan)


def _neg(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(-x[0].hi, -x[0].lo, x[0].nan)


def _add(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, b = x
    nan = a.nan or b.nan or (a.hi == inf and b.lo == -inf) or (a.lo == -inf and b.hi == inf)
    return Interval(_sum(a.lo, b.lo, -inf), _sum(a.hi, b.hi, inf), nan)


def _sum(a: float, b: float, unknown: float) -> float:
    return unknown if math.isnan(float(a) + float(b)) else a + b


def _sub(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    result = _add(todo, op, (x[0], _neg(todo, op, x[1:])))
    if op.type.dtype is not None and not op.type.dtype.is_float:
        return result                                             # the difference to the least may wrap
    fold = todo.folded(op)
    if fold == "reduce_max":
        return replace(result, hi=min(result.hi, 0))
    return replace(result, lo=max(result.lo, 0)) if fold == "reduce_min" else result


def _mul(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, b = x
    if op.operands[0] == op.operands[1]:
        return _square(a)
    corners = [_times(p, q) for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
    endless = (inf in (a.hi, -a.lo) and b.holds(0)) or (inf in (b.hi, -b.lo) and a.holds(0))
    return Interval(min(corners), max(corners), a.nan or b.nan or endless)


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _square(a: Interval) -> Interval:
    low, high = _times(a.lo, a.lo), _times(a.hi, a.hi)
    return Interval(0 if a.holds(0) else min(low, high), max(low, high), a.nan)


def _div(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, b = x
    if a.lo >= 0 and todo.folded(op) in ("reduce_sum", "reduce_max"):
        return Interval(0, 1, True)
    if b.holds(0):
        return ANY                                                # of either sign, even for b >= 0: -0.0 is one of its values
    corners = [_quotient(p, q) for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
    return Interval(min(corners), max(corners), a.nan or b.nan or (inf in (a.hi, -a.lo) and inf in (b.hi, -b.lo)))


def _quotient(a: float, b: float) -> float:
    if math.isinf(b):
        return 0 if not math.isinf(a) else (inf if (a > 0) == (b > 0) else -inf)
    return a / b


def _floordiv(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, b = x
    if b.lo <= 0 or not a.finite or not b.finite:
        return of_dtype(op.type.dtype)
    corners = [p // q for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
    return Interval(min(corners) - (0 if _integer(op) else 1), max(corners) + (0 if _integer(op) else 1))


def _mod(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, b = x
    if b.lo <= 0 or not b.finite or not a.finite:
        return of_dtype(op.type.dtype)
    return Interval(0, b.hi - 1 if _integer(op) else b.hi)


def _pow(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, b = x
    if b.lo == b.hi == 2:
        return _square(a)
    if b.lo == b.hi == 0.5 and a.lo >= 0:
        return Interval(_root(a.lo), _root(a.hi), a.nan)
    if not _integer(op) and (a.lo > 0 or (a.lo >= 0 and b.lo >= 0)):
        return Interval(0, inf, a.nan or b.nan)
    if b.lo == b.hi and b.lo > 0 and b.lo % 2 == 0 and not _integer(op):
        return Interval(0, inf, a.nan)
    return of_dtype(op.type.dtype)


def _maximum(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(max(x[0].lo, x[1].lo), max(x[0].hi, x[1].hi), x[0].nan or x[1].nan)


def _minimum(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(min(x[0].lo, x[1].lo), min(x[0].hi, x[1].hi), x[0].nan or x[1].nan)


def _reciprocal(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return ANY if x[0].holds(0) else Interval(*sorted((_quotient(1, x[0].lo), _quotient(1, x[0].hi))), x[0].nan)


def _rsqrt(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    if x[0].lo <= 0:
        return ANY
    return Interval(_quotient(1, _root(x[0].hi)), _quotient(1, _root(x[0].lo)), x[0].nan)


def _sign(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    """The sign of NaN is 0, as in torch."""
    lo, hi = ((v > 0) - (v < 0) for v in (x[0].lo, x[0].hi))
    return Interval(min(lo, 0), max(hi, 0), True) if x[0].nan else Interval(lo, hi)


def _root(x: float) -> float:
    return x if x == inf else math.sqrt(x)


def _bits(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    if op.name == "and" and all(i.lo >= 0 for i in x):
        return Interval(0, min(i.hi for i in x))
    return of_dtype(op.type.dtype)


def _cast(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    to = op.type.dtype
    if to == DType.BOOL:
        return UNIT
    if to is not None and to.is_int:
        if not x[0].finite:
            return of_dtype(to)
        return Interval(math.trunc(x[0].lo), math.trunc(x[0].hi))
    return x[0]


def _select(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return x[1] | x[2]


def _constant(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    value = op.attr("value")
    numbers, pending, nan = [], [value], False
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            pending.extend(item)
        elif isinstance(item, (bool, int)):
            numbers.append(int(item))
        elif isinstance(item, float):
            nan = nan or math.isnan(item)
            numbers += [] if math.isnan(item) else [item]
        else:
            low, high = bounds(item)                              # a symbolic size
            numbers += [-inf if low is None else low, inf if high is None else high]
    return Interval(min(numbers), max(numbers), nan) if numbers else ANY


def _iota(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    size = op.attr("shape")[op.attr("axis")]
    high = bounds(size)[1]
    return Interval(0, inf if high is None else max(high - 1, 0))


def _pad(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    value = op.attr("value", 0)
    return x[0] | Interval(value, value) if isinstance(value, (int, float)) and not math.isnan(value) else ANY


def _index(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    shape = todo.function.by_id[op.operands[0]].type.shape
    high = bounds(shape[op.attr("axis")])[1] if shape and isinstance(op.attr("axis"), int) and op.attr("axis") < len(shape) else None
    return Interval(0, inf if high is None else max(high - 1, 0))


def _count(todo: _Pass, op: Op) -> int | None:
    """How many elements go into one element of a reduction, at most."""
    shape, axes = todo.function.by_id[op.operands[0]].type.shape, op.attr("axes")
    if op.attr("axis") is not None:
        axes = (op.attr("axis"),)
    if shape is None or axes is None or any(not -len(shape) <= axis < len(shape) for axis in axes):
        return None
    count = 1
    for axis in axes:
        high = bounds(shape[axis])[1]
        if high is None:
            return None
        count *= high
    return count


def _total(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, count = x[0], _count(todo, op)
    nan = a.nan or (a.lo == -inf and a.hi == inf)
    if count is None:
        return Interval(0 if a.lo >= 0 else -inf, 0 if a.hi <= 0 else inf, nan)
    error = _summing(op, a, count)
    low, high = _times(a.lo, count), _times(a.hi, count)
    return Interval(low - error if a.lo < 0 else 0, high + error if a.hi > 0 else 0, nan)


def _summing(op: Op, a: Interval, count: int) -> float:
    """By how much a sum may be off: each partial sum is rounded."""
    if op.type.dtype is None:
        return inf
    return count * rounding.spacing(op.type.dtype) * count * max(abs(a.lo), abs(a.hi)) if op.type.dtype.is_float and count else 0


def _product(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(0, 1, x[0].nan) if x[0].within(0, 1) else Interval(0, inf, True) if x[0].lo >= 0 else ANY


def _mean(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    a, count = x[0], _count(todo, op)
    error = _summing(op, a, count) / count if count else inf       # so many rounded sums that nothing but the sign is left
    return Interval(0 if a.lo >= 0 else a.lo - error, 0 if a.hi <= 0 else a.hi + error, True)


def _not_negative(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(0, inf, True)


def _not_positive(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(-inf, 0, not x[0].finite)


def _clipped(lo: float) -> Rule:
    """Activations that look like max(x, 0) with a dip of known depth."""
    def rule(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
        return Interval(lo, max(x[0].hi, 0), not x[0].finite)
    return rule


def _relu(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    return Interval(max(x[0].lo, 0), max(x[0].hi, 0), x[0].nan)


def _opaque(todo: _Pass, op: Op, x: Sequence[Interval]) -> Interval:
    """A call that is known by name only."""
    if op.attr("call") == "either":
        return _union(x)
    known = CALLS.get(str(op.attr("call")).rpartition(".")[2])
    if op.attr("call") in MOVES and len(x) == 1:                  # some of the same numbers
        return x[0]
    return known if known is not None and (op.type.dtype is None or op.type.dtype.is_float) else of_dtype(op.type.dtype)


def _integer(op: Op) -> bool:
    return op.type.dtype is not None and not op.type.dtype.is_float


ROUNDED = frozenset(("add", "sub", "mul", "div", "cast", "constant", "neg", "sqrt", "relu", "reciprocal"))       # once, to the nearest
EXACT = frozenset(("broadcast", "reshape", "transpose", "slice", "flip", "concat", "gather", "take", "pad", "select", "abs", "maximum", "minimum",
                   "reduce_max", "reduce_min", "max_pool2d", "tril", "triu", "floor", "ceil", "round", "trunc", "sign", "opaque", "checked_divisor"))
FLOATING = frozenset(("div", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sigmoid", "softmax", "log_softmax", "tanh", "erf", "sin", "cos",
                      "gelu", "silu", "softplus", "var", "std", "norm", "mean", "layer_norm", "linear"))
PROMOTING = frozenset(("add", "sub", "mul", "maximum", "minimum", "select", "neg", "abs", "broadcast", "reshape", "transpose", "slice", "concat", "relu",
                       "reduce_max", "reduce_min", "reduce_sum", "round", "floor", "ceil", "trunc", "tril", "triu", "flip", "gather", "take"))
FLOOR = {"exp": 0, "exp2": 0, "sigmoid": 0, "softmax": 0, "sqrt": 0, "tanh": -1, "erf": -1, "sin": -1, "cos": -1, "expm1": -1, "norm": 0,
         "var": 0, "std": 0, "softplus": 0, "hardsigmoid": 0}
CEILING = {"sigmoid": 1, "softmax": 1, "tanh": 1, "erf": 1, "sin": 1, "cos": 1, "log_softmax": 0, "logsigmoid": 0, "hardsigmoid": 1}
MOVES = frozenset(("operator.getitem", *(f"torch.Tensor.{n}" for n in ("reshape", "transpose", "permute", "squeeze", "unsqueeze", "flatten", "expand"))))
CALLS = {**dict.fromkeys(("rand", "rand_like", "random", "bernoulli", "gumbel_softmax", "hann_window", "ndtr", "ToTensor"), UNIT), "dropout": ANY}

RULES: dict[str, Rule] = {
    **dict.fromkeys(("broadcast", "reshape", "transpose", "slice", "flip", "gather", "take", "reduce_max", "reduce_min", "max_pool2d", "checked_divisor"), _same),
    **dict.fromkeys(("concat",), _either), **dict.fromkeys(("tril", "triu"), _with_zero), "pad": _pad, "constant": _constant, "iota": _iota,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "reduce_any", "reduce_all"), lambda todo, op, x: UNIT),
    **dict.fromkeys(("argmax", "argmin"), _index), **dict.fromkeys(("and", "or", "xor"), _bits),
    "abs": _abs, "neg": _neg, "add": _add, "sub": _sub, "mul": _mul, "div": _div, "floordiv": _floordiv, "mod": _mod, "pow": _pow,
    "maximum": _maximum, "minimum": _minimum, "reciprocal": _reciprocal, "rsqrt": _rsqrt, "cast": _cast, "select": _select,
    "exp": _rising(math.exp), "exp2": _rising(lambda v: 2.0 ** v), "expm1": _rising(math.expm1), "log": _rising(math.log, 0), "log2": _rising(math.log2, 0),
    "log1p": _rising(math.log1p, -1), "sqrt": _rising(math.sqrt, 0), "tanh": _rising(math.tanh), "erf": _rising(math.erf), "atan": _rising(math.atan),
    "floor": _rising(lambda v: math.floor(v) if abs(v) < inf else v), "ceil": _rising(lambda v: math.ceil(v) if abs(v) < inf else v),
    "round": _rising(lambda v: round(v) if abs(v) < inf else v), "trunc": _rising(lambda v: math.trunc(v) if abs(v) < inf else v),
    "sign": _sign, "sinh": _rising(math.sinh), "cosh": lambda todo, op, x: Interval(0, inf, x[0].nan),
    "sin": _fixed(-1, 1), "cos": _fixed(-1, 1), "softmax": _fixed(0, 1), "sigmoid": lambda todo, op, x: Interval(0, 1, x[0].nan),
    "hardsigmoid": _fixed(0, 1), "log_softmax": _not_positive, "logsigmoid": _not_positive, "relu": _relu,
    "gelu": _clipped(-0.18), "silu": _clipped(-0.28), "mish": _clipped(-0.31), "hardswish": _clipped(-0.38), "softplus": _not_negative,
    "reduce_sum": _total, "reduce_prod": _product, "mean": _mean, "norm": _not_negative, "var": _not_negative, "std": _not_negative,
    "opaque": _opaque,
}
