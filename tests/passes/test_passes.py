"""Each pass keeps every bit of every result and every origin; each rewrite does what its pattern says."""
from importlib import import_module

import numpy as np
import pytest
from programs import Say, drawn

from cuvil import passes
from cuvil.ir.function import Function
from cuvil.ir.interpret import run
from cuvil.ir.types import DType
from cuvil.ir.verify import verify
from cuvil.passes import cse, dce
from cuvil.passes.rewriter import Rule

ODD = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, 0.5, -7.25, 2.0], np.float32)


def names(function: Function) -> list[str]:
    return [op.name for op in function.body]


def after(function: Function) -> list[str]:
    return names(passes.run(function).function)


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape
    nan = np.isnan(a)
    assert np.array_equal(nan, np.isnan(b))
    assert np.array_equal(np.where(nan, 0, a).view(np.uint32), np.where(nan, 0, b).view(np.uint32))


# What people write most: neutral arithmetic and views.

@pytest.mark.parametrize("write", [
    lambda s, x: s("operator.mul", x, 1),
    lambda s, x: s("operator.truediv", x, 1.0),
    lambda s, x: s("operator.sub", x, 0.0),
    lambda s, x: s("operator.add", x, -0.0),
    lambda s, x: s("torch.neg", s("torch.neg", x)),
    lambda s, x: s("torch.transpose", s("torch.transpose", x, 0, 1), 0, 1),
    lambda s, x: s("torch.reshape", s("torch.reshape", x, (12,)), (3, 4)),
    lambda s, x: s("torch.Tensor.expand", x, 3, 4),
    lambda s, x: s("torch.Tensor.float", s("torch.Tensor.double", x)),
])
def test_comes_to_nothing(write):
    s = Say(x="f32[3, 4]")
    function = s.function(s("torch.exp", write(s, s.inputs[0])))
    assert after(function) == ["exp"]
    x = ODD.reshape(3, 4)
    same_bits(run(function, [x])[0], run(passes.run(function).function, [x])[0])


# x + 0.0 turns -0.0 into 0.0, and a narrowing cast loses bits: they stay.
@pytest.mark.parametrize("write, kept", [
    (lambda s, x: s("operator.add", x, 0.0), ["constant", "add"]),
    (lambda s, x: s("operator.mul", x, 0.0), ["constant", "mul"]),
    (lambda s, x: s("torch.Tensor.float", s("torch.Tensor.half", x)), ["cast", "cast"]),
    (lambda s, x: s("torch.Tensor.float", s("torch.Tensor.int", x)), ["cast", "cast"]),
])
def test_stays(write, kept):
    s = Say(x="f32[12]")
    assert after(s.function(write(s, s.inputs[0]))) == kept


def test_an_integer_plus_zero_is_nothing():
    s = Say(x="i32[4]")
    assert after(s.function(s("torch.abs", s("operator.add", s.inputs[0], 0)))) == ["abs"]


@pytest.mark.parametrize("name", ["torch.relu", "torch.abs", "torch.floor", "torch.ceil", "torch.round", "torch.trunc", "torch.sign"])
def test_doing_it_twice_is_doing_it_once(name):
    s = Say(x="f32[12]")
    once = s.function(s(name, s.inputs[0]))
    s = Say(x="f32[12]")
    twice = s.function(s(name, s(name, s(name, s.inputs[0]))))
    assert after(twice) == after(once)
    same_bits(run(twice, [ODD])[0], run(passes.run(twice).function, [ODD])[0])


def test_clamping_twice_to_the_same_bounds_is_one_clamp():
    s = Say(x="f32[12]")
    function = s.function(s("torch.clamp", s("torch.clamp", s.inputs[0], min=0.0), min=0.0))
    assert after(function).count("maximum") == 1


def test_other_bounds_stay():
    s = Say(x="f32[12]")
    function = s.function(s("torch.clamp", s("torch.clamp", s.inputs[0], min=0.0), min=-0.0))
    assert after(function).count("maximum") == 2


def test_scalars_are_computed():
    s = Say(x="f32[4]")
    b = s.builder
    scale = b.emit("sqrt", b.constant(64.0, DType.F32))
    function = passes.run(s.function(s("operator.truediv", s.inputs[0], scale))).function
    assert names(function) == ["constant", "div"]
    assert next(function.body).attr("value") == 8.0


def test_a_mean_whose_axis_is_put_back_keeps_it():
    s = Say(x="f32[3, 4]")
    x, = s.inputs
    function = passes.run(s.function(s("operator.sub", x, s("torch.Tensor.unsqueeze", s("torch.amax", x, -1), -1)))).function
    assert names(function) == ["reduce_max", "sub"]
    assert next(function.body).attr("keepdims") is True


# Common subexpressions: one value, the origins of all, and no mixing of what only looks equal.

def test_the_same_value_is_computed_once_and_knows_both_places():
    s = Say(x="f32[4]")
    x, = s.inputs
    function = passes.run(s.function(s("operator.add", s("torch.exp", x), s("torch.exp", x)))).function
    exp = next(function.body)
    assert names(function) == ["exp", "add"]
    assert [o.span.line for o in exp.origins] == [2, 3]


def test_zero_and_minus_zero_are_two_constants():
    s = Say(x="f32[4]")
    x, = s.inputs
    b = s.builder
    zero, minus = b.constant(0.0, DType.F32), b.constant(-0.0, DType.F32)
    function = s.function(s("torch.maximum", x, zero), s("torch.maximum", x, minus))
    assert names(cse(function)).count("constant") == 2


def test_nothing_that_a_result_needs_is_dead():
    s = Say(x="f32[4]", y="f32[4]")
    x, _ = s.inputs
    s("torch.exp", x)
    function = dce(s.function(s("torch.neg", x)))
    assert names(function) == ["neg"]
    assert len(function.inputs) == 2                       # the signature stays


# Composites open, and what came out of them remembers.

def test_a_composite_opens_and_its_parts_say_so():
    s = Say(x="f32[3, 4]")
    optimized = passes.run(s.function(s("torch.softmax", s.inputs[0], -1)))
    assert {c.name for c in optimized.composites.values()} == {"softmax"}
    assert set(optimized.composites) == {op.id for op in optimized.function.body}
    assert optimized.function.results == s.function(s.builder.ops[-1]).results       # a value keeps its id
    assert [name for name, _ in optimized.history][0] == "captured"


def test_a_returned_input_is_copied():
    s = Say(x="f32[4]")
    function = passes.run(s.function(s.inputs[0], s.inputs[0])).function
    assert names(function) == ["reshape", "reshape"]
    assert len(set(function.results)) == 2


# Anything at all: every pass gives a function that verifies, the same bits, and an origin for every op.

@pytest.mark.parametrize("seed", range(40))
def test_every_pass_keeps_every_bit_and_every_origin(seed):
    function = drawn(seed)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((4, 6)).astype(np.float32) for _ in range(2)]
    arrays[0].flat[:12] = ODD
    with np.errstate(all="ignore"):
        expected = run(function, arrays)
        optimized = passes.run(function)
        for name, stage in optimized.history:
            verify(stage)
            for got, want in zip(run(stage, arrays), expected, strict=True):
                same_bits(got, want)
            assert all(op.origins for op in stage.body), name
    for op in optimized.function.body:
        before = function.by_id.get(op.id)
        assert before is None or set(before.origins) <= set(op.origins)


def test_passes_alone_reach_their_end():
    """Running all again changes nothing."""
    for seed in range(10):
        once = passes.run(drawn(seed)).function
        assert names(passes.run(once).function) == names(once)


def test_every_rule_says_why():
    rules = [v for f in ("canonicalise", "duplicate") for v in vars(import_module(f"cuvil.passes.{f}")).values() if isinstance(v, Rule)]
    listed = [r for f in ("canonicalise", "duplicate") for r in import_module(f"cuvil.passes.{f}").RULES]
    assert len(rules) == len(listed) == 16
    assert all(rule.pattern and rule.replacement and rule.reason for rule in rules)
