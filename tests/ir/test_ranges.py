"""Value ranges hold: what runs stays inside them. And they are narrow where rules count on it."""
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil.ir.function import Function
from cuvil.ir.interpret import run
from cuvil.ir.ranges import ANY, RULES, Interval, intervals
from cuvil.ir.types import DType, TensorType
from cuvil.ops import DEFINITIONS
from cuvil.ops.builder import Builder
from cuvil.ops.definition import TypeRuleError, call
from cuvil.ops.examples import all_examples, arrays, capture

EXAMPLES = [pytest.param(name, e, id=f"{name or 'spelling'}-{i}") for i, (name, e) in enumerate(all_examples())]


def watched(function: Function) -> Function:
    return function.with_ops(function.ops, tuple(op.id for op in function.ops))


def of(array: np.ndarray) -> Interval:
    array = np.asarray(array)
    numbers = array[~np.isnan(array)] if array.dtype.kind == "f" else array
    if not numbers.size:
        return ANY
    return Interval(numbers.min().item(), numbers.max().item(), numbers.size < array.size)


def holds(function: Function, values: list[np.ndarray], known: dict[int, Interval]) -> None:
    for op, value in zip(function.ops, values):
        limits, value = known[op.id], np.asarray(value)
        if value.dtype.kind == "f":
            assert limits.nan or not np.isnan(value).any(), f"{op.name} has NaN, which {limits} denies"
            value = value[~np.isnan(value)]
        if value.size:
            assert limits.lo <= value.min() and value.max() <= limits.hi, f"{op.name} {op.type}: {value.min()!r} to {value.max()!r} is not in {limits}"


@pytest.mark.parametrize("name, example", EXAMPLES)
def test_examples_stay_inside(name, example):
    try:
        function = watched(capture(example))
    except (TypeRuleError, AttributeError, TypeError):
        pytest.skip("not for torch, or not compiled")          # NumPy's own spellings, and calls of which only the types are modelled
    if any(not op.type.complete or op.type.symbols or op.name in ("parameter", "opaque") for op in function.ops):
        pytest.skip("nothing is run of it")                    # sizes or weights are open: there are no numbers to compare with
    inputs = list(arrays(example).values())
    values = run(function, inputs)
    holds(function, values, intervals(function))
    holds(function, values, intervals(function, {op.id: of(x) for op, x in zip(function.inputs, inputs)}))


UNARY = ["neg", "abs", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor", "ceil", "round", "trunc",
         "sign", "reciprocal", "atan", "sinh", "cosh", "relu", "sigmoid", "silu", "gelu", "softplus", "logsigmoid", "hardswish", "mish", "hardsigmoid"]
ATTRS = {"gelu": {"approximate": "none"}, "softplus": {"beta": 1.0, "threshold": 20.0}}
BINARY = ["add", "sub", "mul", "div", "floordiv", "mod", "maximum", "minimum", "pow"]
FOLDS = ["reduce_sum", "reduce_max", "reduce_min", "mean", "softmax", "log_softmax", "var", "std", "reduce_prod"]
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.25, 1e-8, 100.0, -300.0, 65504.0, 1e30, math.inf, -math.inf, math.nan])


@st.composite
def programs(draw):
    """A graph of a few ops over one input, of one element type that changes on the way, and the input's numbers."""
    dtype = draw(st.sampled_from([DType.F32, DType.F16, DType.BF16, DType.F64, DType.U8, DType.I8, DType.I32]))
    b = Builder()
    values = [b.input("x", 0, TensorType((2, 3), dtype))]
    for _ in range(draw(st.integers(1, 7))):
        x = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["unary", "binary", "fold", "cast", "less", "number", "where"]))
        if x.type.dtype == DType.BOOL and kind in ("unary", "binary", "number"):
            continue                                     # no arithmetic: the front end never makes any of bools
        try:
            if kind == "unary":
                name = draw(st.sampled_from(UNARY))
                made = b.emit(name, x, **ATTRS.get(name, {}))
            elif kind == "binary":
                made = b.emit(draw(st.sampled_from(BINARY)), *b.promote(x, draw(st.sampled_from(values))))
            elif kind == "number":
                number = draw(NUMBERS) if x.type.dtype.is_float else draw(st.integers(-300, 300))
                made = b.emit(draw(st.sampled_from(BINARY)), *b.promote(x, number))
            elif kind == "fold" and x.type.rank == 2:
                made = call(b, f"torch.{draw(st.sampled_from(['sum', 'amax', 'amin', 'mean', 'var', 'std']))}", [x], {"dim": 1, "keepdim": True}) \
                    if draw(st.booleans()) else call(b, f"torch.{draw(st.sampled_from(['softmax', 'log_softmax']))}", [x], {"dim": 1})
            elif kind == "cast":
                made = b.cast(x, draw(st.sampled_from([DType.F32, DType.F16, DType.BF16, DType.U8, DType.I8, DType.I64, DType.BOOL])))
            elif kind == "less":
                made = call(b, "torch.clamp", [x], {"min": draw(st.integers(-5, 5)), "max": draw(st.integers(5, 300))})
            else:
                made = call(b, "torch.where", [call(b, "operator.gt", [x, 0], {}), x, draw(st.sampled_from(values))], {})
        except (TypeRuleError, TypeError):
            continue
        values.append(made)
    items = draw(st.lists(NUMBERS if dtype.is_float else st.integers(-300, 300), min_size=6, max_size=6))
    with np.errstate(all="ignore"):
        array = np.array(items).astype("float32" if dtype == DType.BF16 else dtype.numpy).reshape(2, 3)
    if dtype == DType.BF16:
        from cuvil.ops.meaning import round_bf16
        array = round_bf16(array)
    return b.function("f", [values[-1]]), array


@given(programs())
@settings(max_examples=400, deadline=None)
def test_random_programs_stay_inside(program):
    function, array = program
    function = watched(function)
    values = run(function, [array])
    holds(function, values, intervals(function))
    holds(function, values, intervals(function, {function.inputs[0].id: of(array)}))


def test_every_rule_is_for_an_op():
    assert set(RULES) <= {*DEFINITIONS, "opaque"}


def interval(code: str, **inputs: str) -> Interval:
    from cuvil.ops.definition import example
    function = capture(example(code, **inputs))
    return intervals(function)[function.results[0]]


def test_the_root_of_a_negative_zero_is_negative_infinity():
    assert interval("torch.rsqrt(x.abs())", x="f32[2, 3]").lo == -math.inf
    assert interval("torch.rsqrt(x.abs() + 1)", x="f32[2, 3]").within(0, 1.001)


def test_ends_of_a_type_and_nan():
    assert interval("torch.abs(x)", x="i64[3]") == Interval(-2 ** 63, 2 ** 63 - 1)
    assert interval("torch.sign(x.exp())", x="f32[3]").within(0, 1)               # of NaN it is 0


def test_relations_that_rules_count_on():
    # Softmax and sigmoid, also after rounding and arithmetic.
    assert interval("torch.softmax(x, -1)", x="f16[2, 3]").within(0, 1)
    assert interval("torch.sigmoid(x) * 255", x="f32[2, 3]").within(0, 255.001)
    # The greatest of a row is taken off that row ...
    assert interval("x - x.max(1, keepdim=True)[0]", x="f32[2, 3]").hi == 0
    assert interval("torch.exp(x - x.amax(-1, keepdim=True))", x="f32[2, 3]").within(0, 1)
    assert interval("x - x.amax(1)[:, None]", x="f32[2, 3]").hi == 0
    assert interval("x - x.amax()", x="f32[2, 3]").hi == 0
    assert interval("x - x.amin(1, keepdim=True)", x="f32[2, 3]").lo == 0
    # ... and not the greatest of another row, or of another tensor.
    assert interval("x - x.amax(1)", x="f32[3, 3]").hi == math.inf
    assert interval("x - y.amax(1, keepdim=True)", x="f32[3, 3]", y="f32[3, 3]").hi == math.inf
    # Squares, distances, images.
    assert interval("x * x", x="f32[3]").lo == 0 == interval("x ** 2", x="f32[3]").lo
    assert interval("x.float() / 255", x="u8[4, 4]").within(0, 1)
    assert interval("x.float().var(0)", x="u8[4, 4]").lo == 0
    assert interval("x.argmax(1)", x="f32[3, 7]") == Interval(0, 6)
    assert interval("torch.clamp(x, 0, 255)", x="f32[3]").within(0, 255)
    assert interval("torch.clamp(x, 0, 255)", x="?[...]").within(0, 255)
    # Integers wrap: what leaves the type may be anything in it.
    assert interval("x * 3", x="u8[4]") == Interval(0, 255)
    assert interval("x.short() * 3", x="u8[4]") == Interval(0, 765)
