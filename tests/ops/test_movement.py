"""The index expressions of movements: evaluated element by element, they must agree with the NumPy meaning."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import cuvil.ops  # noqa: F401
from cuvil.ir.interpret import run
from cuvil.ir.scalar import Apply, Const, Index, Read
from cuvil.ops import DEFINITIONS, TypeRuleError
from cuvil.ops.examples import all_examples, arrays, capture
from cuvil.ops.meaning import convert, meanings


def value(expression, operands):
    """A scalar expression, with indices already constants; reads outside an operand fail."""
    match expression:
        case Const(number, dtype):
            return np.asarray(number).astype("float32" if dtype.numpy == "bfloat16" else dtype.numpy)
        case Read(operand, index, _):
            at = tuple(int(value(i, operands)) for i in index)
            assert all(0 <= i < n for i, n in zip(at, operands[operand].shape, strict=True)), f"read at {at} of {operands[operand].shape}"
            return operands[operand][at]
        case Apply("select", (condition, then, otherwise), _):
            then, otherwise = value(then, operands), value(otherwise, operands)      # both sides, as vector code does
            return then if value(condition, operands) else otherwise
        case Apply("cast", (x,), dtype):
            return convert(np.asarray(value(x, operands)), dtype)
        case Apply(name, arguments, _):
            return meanings()[name](*(np.asarray(value(a, operands)) for a in arguments))
    raise AssertionError(expression)


def movements():
    for name, example in all_examples():
        try:
            function = capture(example, "numpy" if "np." in example.code else "torch")
        except (AttributeError, TypeRuleError):                      # not a torch expression
            function = capture(example, "numpy")
        if any(DEFINITIONS[op.name].kind == "movement" for op in function.ops):
            yield pytest.param(function, example, id=f"{name}: {example.code}")


@pytest.mark.parametrize("function, example", list(movements()))
def test_at_agrees_with_numpy(function, example):
    values = {op.id: x for op, x in zip(function.inputs, arrays(example).values())}
    for op in function.body:
        operands = [values[o] for o in op.operands]
        values[op.id], = run(function.with_ops(function.ops, (op.id,)), list(arrays(example).values()))
        definition = DEFINITIONS[op.name]
        if definition.kind != "movement" or values[op.id].size > 500:
            continue
        types = [function.by_id[o].type for o in op.operands]
        for place in itertools.product(*map(range, op.type.shape)):
            index = tuple(Const(i, Index("i").dtype) for i in place)
            read = lambda number, where: Read(number, tuple(where), types[number].dtype)
            got = value(definition.at(op.type, types, dict(op.attrs), index, read), operands)
            np.testing.assert_array_equal(got, values[op.id][place])
            if definition.guard:
                assert value(definition.guard(op.type, types, dict(op.attrs), index, read), operands)
