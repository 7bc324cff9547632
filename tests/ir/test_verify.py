"""The verifier: each rule broken once, and the message that names the op."""
from __future__ import annotations

from dataclasses import replace

import pytest

from cuvil.diagnostics import CuvilError
from cuvil.ir.text import parse_function
from cuvil.ir.verify import verify

GOOD = """func @f(%0: f32[B, 4] "x") -> tensor {
  %1 = exp %0 : f32[B, 4]
  %2 = reduce_sum %1 {axes = (1,), keepdims = true} : f32[B, 1]
  %3 = div %1, %2 : f32[B, 4]
  return %3
}
"""


def test_a_good_function_is_returned():
    function = parse_function(GOOD)
    assert verify(function) is function


@pytest.mark.parametrize("old, new, what", [
    ("exp %0", "expp %0", "its name is not in the vocabulary"),
    ("%1 = exp %0", "%1 = exp %2", "%2 is used before it is defined"),
    ("%2 = reduce_sum", "%1 = reduce_sum", "%1 is defined twice"),
    ("%3 = div %1, %2 : f32[B, 4]", "%3 = div %1, %2 : f32[B, 1]", "its type is f32[B, 1], its operands give f32[B, 4]"),
    ("exp %0 : f32", "exp %0 : f16", "its type is f16[B, 4], its operands give f32[B, 4]"),
    ("axes = (1,)", "axes = (2,)", "axis 2 of f32[B, 4]"),
    ("exp %0", "exp %0, %0", "takes 1 operand"),
    ("div %1, %2", "div %1", "takes 2 operands"),
    ("return %3", "return %9", "its result %9 is not defined"),
    ("{axes = (1,), keepdims = true}", "{keepdims = true}", "its typing rule fails"),
])
def test_broken(old, new, what):
    assert old in GOOD
    with pytest.raises(CuvilError) as error:
        verify(parse_function(GOOD.replace(old, new)))
    assert what in str(error.value) and "function f" in str(error.value)


def test_origins_are_checked_when_asked():
    with pytest.raises(CuvilError, match="lost its origin"):
        verify(parse_function(GOOD), origins=True)
    located = parse_function(GOOD.replace(" : f32[B, 4]\n", ' : f32[B, 4] @ "a.py":1:0-1:4:Call\n').replace("f32[B, 1]\n", 'f32[B, 1] @ "a.py":1:0-1:4\n')
                             .replace('"x")', '"x" @ "a.py":1:0-1:4)'))
    assert verify(located, origins=True)
    with pytest.raises(CuvilError, match="a.py:1:1"):
        verify(located.with_ops(tuple(replace(op, type=located.ops[0].type) for op in located.ops)))


def test_inputs_are_numbered():
    function = parse_function(GOOD)
    with pytest.raises(CuvilError, match="numbered"):
        verify(function.with_ops((replace(function.ops[0], attrs=(("index", 1), ("name", "x"))), *function.ops[1:])))
