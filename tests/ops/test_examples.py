"""Every example of the vocabulary, through its spelling, the verifier, the text form and the interpreter, against the real library."""
from __future__ import annotations

import einops
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import cuvil.ops  # noqa: F401  (loads the vocabulary)
from cuvil.ir.interpret import run
from cuvil.ir.text import parse_function, print_function
from cuvil.ir.types import DType
from cuvil.ir.verify import verify
from cuvil.ops import DEFINITIONS
from cuvil.ops.composite import opened
from cuvil.ops.examples import all_examples, arrays, capture, types

TOLERANCE = {DType.F64: 1e-12, DType.F32: 4e-6, DType.F16: 2e-3, DType.BF16: 1.6e-2}      # relative; about 2 to 30 units in the last place


def cases():
    for name, example in all_examples():
        libraries = ["numpy"] if "np." in example.code else ["torch"] if "torch." in example.code or "F." in example.code else ["torch", "numpy"]
        for library in libraries:
            yield pytest.param(example, library, id=f"{name or 'spelling'}: {example.code} [{library}]")


def library_value(example, library):
    """What the real library says: arrays, or None when the expression is not of this library."""
    values = dict(arrays(example))
    if library == "torch":
        values = {n: torch.tensor(v).to(getattr(torch, types(example)[n].dtype.numpy)) for n, v in values.items()}
    try:
        return eval(example.code, {"torch": torch, "F": F, "np": np, "einops": einops}, values)
    except (AttributeError, TypeError, ValueError):
        assert "np." not in example.code and "torch." not in example.code and "F." not in example.code
        return None


@pytest.mark.parametrize("example, library", list(cases()))
@pytest.mark.filterwarnings("ignore")
def test_example(example, library):
    expected = library_value(example, library)
    if expected is None or "bf16" in str(types(example)) and library == "numpy":
        pytest.skip(f"not an expression of {library}")
    function = verify(capture(example, library))
    assert parse_function(print_function(function)) == function
    results = run(function, list(arrays(example).values()))
    for op, result, want in zip((function.by_id[r] for r in function.results), results,
                                expected if isinstance(expected, (tuple, list)) else [expected], strict=True):
        if isinstance(want, torch.Tensor):
            assert str(want.dtype) == f"torch.{op.type.dtype.numpy}"
            want = (want.float() if want.dtype == torch.bfloat16 else want).numpy()
        else:
            want = np.asarray(want)
            assert want.dtype.name == op.type.dtype.numpy
        assert op.type.shape == want.shape
        if op.type.dtype.is_float:
            rtol = TOLERANCE[op.type.dtype]
            np.testing.assert_allclose(result.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=rtol * 0.3)
        else:
            np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("name", sorted(n for n, d in DEFINITIONS.items() if d.kind != "source"))
def test_every_definition_has_an_example_a_cost_and_a_summary(name):
    definition = DEFINITIONS[name]
    assert definition.summary and definition.examples
    for example in definition.examples:
        for function, op in opened_ops(capture(example, "numpy" if "np." in example.code else "torch")):
            if op.name == name:
                flops = definition.flops(op.type, operand_types(function, op), dict(op.attrs))
                assert isinstance(flops, int) and flops >= 0
                return
    pytest.fail(f"no example of {name} contains it")


def operand_types(function, op):
    return [function.by_id[o].type for o in op.operands]


def opened_ops(function):
    """All ops, with those that composites are made of."""
    for op in function.ops:
        yield function, op
        if DEFINITIONS[op.name].kind == "composite":
            yield from opened_ops(opened(op.name, tuple(operand_types(function, op)), op.attrs))
