"""The text form of CIR: what it looks like, and that it is read back whole. (tests/ops reads back every example of the vocabulary.)"""
from __future__ import annotations

import math

import pytest

from cuvil.diagnostics import CuvilError
from cuvil.ir.dims import floordiv, symbol
from cuvil.ir.function import Function, Op
from cuvil.ir.text import parse_function, print_function
from cuvil.ir.types import DType, TensorType
from cuvil.lineage import Origin
from cuvil.ops import SPELLINGS, Builder
from cuvil.source import Span

B = symbol("B")


def mlp(b: Builder) -> Function:
    x = b.input("x", 0, TensorType.parse("f32[B, 768]"))
    w = b.parameter("fc.weight", TensorType.parse("f32[768, 3072]"))
    h = b.emit("matmul", x, w, label="h")
    return b.function("mlp", [SPELLINGS["operator.mul"](b, h, 2.0), h], "tuple")


def test_what_people_read():
    assert print_function(mlp(Builder())) == """\
func @mlp(%0: f32[B, 768] "x", parameter %1: f32[768, 3072] "fc.weight") -> tuple {
  %2 "h" = matmul %0, %1 : f32[B, 3072]
  %3 = constant {dtype = f32, value = 2.0} : f32[]
  %4 = mul %2, %3 : f32[B, 3072]
  return %4, %2
}
"""


def test_locations_are_read_back():
    b = Builder()
    here, caller = Span("dir/a \"b\".py", 3, 4, 3, 9), Span("c.py", 1, 0, 2, 0)
    with b.at(Origin(here, "BinaryOperation", (caller, here)), Origin(caller)):
        f = mlp(b)
    f = Function(f.name, f.ops, f.results, f.returns, Origin(here, "FunctionDef"))
    assert parse_function(print_function(f, locations=True)) == f
    assert '@ "dir/a \\"b\\".py":3:4-3:9:BinaryOperation < "c.py":1:0-2:0 < ' in print_function(f, locations=True)


ATTRIBUTES = [0, -7, 2**40, 0.0, -0.0, 1.5, -2e-30, 1e30, math.inf, -math.inf, True, False, None, "", 'a "quoted" \\ é', DType.BF16, B, B * 2 - 1,
              floordiv(symbol("T"), 2), -B, symbol("f32"), symbol("true"), (), (1,), (1, 2), ((1.0, 2.0), (3.0, -4.0)), (B, 2 * B), (floordiv(B, 2), 3),
              ((), ()), ((1,), (2,)), ("a", None, True), (floordiv(B, 2),), (((1,),),)]


@pytest.mark.parametrize("value", ATTRIBUTES, ids=repr)
def test_attributes_are_read_back(value):
    f = Function("f", (Op(0, "iota", (), (("another", 1), ("value", value)), TensorType((B, 2), None)),), (0,))
    again = parse_function(print_function(f))
    assert again == f and repr(again.ops[0].attrs) == repr(f.ops[0].attrs)          # repr tells 0.0 from -0.0 and from False


def test_nan_is_read_back():
    f = Function("f", (Op(0, "constant", (), (("value", math.nan),), TensorType((), DType.F32)),), (0,))
    assert math.isnan(parse_function(print_function(f)).ops[0].attr("value"))


@pytest.mark.parametrize("type", ["f32[]", "i64[2, 3]", "bool[B, 2*T]", "bf16[(T // 2), max(B, 4)]", "?[...]", "?[2]", "f16[...]", "u8[B*T + 1]"])
def test_types_are_read_back(type):
    f = Function("f", (Op(3, "input", (), (("index", 0), ("name", "x")), TensorType.parse(type), (), "x"),), (3,))
    assert parse_function(print_function(f)) == f and type in print_function(f)


@pytest.mark.parametrize("name", ["forward", "Block.forward", "Block.forward.<locals>.f", "Größe"])
def test_names_are_read_back(name):
    f = Function(name, (), ())
    assert parse_function(print_function(f)) == f


@pytest.mark.parametrize("text, line, expected", [
    ("", 1, "'func'"), ("func @f() -> tensor {\n  %0 = add %1, : f32[]\n}", 2, "a value such as %3"), ("func @f() -> tensor {\n  return %0\n", 3, "'}'"),
    ("func @f() -> tensor {\n  %0 = add\n}", 3, "':'"), ("func @f(%0: f99[2] \"x\") -> tensor {\n  return %0\n}", 1, "a type")])
def test_a_broken_text_says_where(text, line, expected):
    with pytest.raises(CuvilError) as error:
        parse_function(text)
    assert "IR text" in str(error.value) and expected in error.value.expected
    if "f99" not in text:
        assert f"line {line}" in str(error.value)
