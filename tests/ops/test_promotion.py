"""Promotion, exhaustively over pairs of operands, against torch.result_type and numpy.result_type."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cuvil.ir.types import DType, TensorType
from cuvil.ops.builder import Builder
from cuvil.ops.definition import call
from cuvil.ops.promotion import common_dtype, promote

NUMBERS = (True, 3, 2.5)


def kinds():
    """Every dtype with axes and without, and the Python numbers."""
    return [*(TensorType(shape, dtype) for dtype in DType for shape in ((2,), ())), *NUMBERS]


@pytest.mark.parametrize("a", list(DType), ids=str)
def test_promote_types_of_torch(a):
    for b in DType:
        assert str(torch.promote_types(of_torch(a), of_torch(b))) == f"torch.{promote(a, b).numpy}"


@pytest.mark.parametrize("a", kinds(), ids=str)
def test_result_type_of_torch(a):
    for b in kinds():
        if isinstance(a, TensorType) or isinstance(b, TensorType):
            expected = torch.result_type(torch_value(a), torch_value(b))
            assert f"torch.{common_dtype([a, b], 'torch').numpy}" == str(expected), (a, b)


@pytest.mark.parametrize("a", kinds(), ids=str)
def test_result_type_of_numpy(a):
    for b in kinds():
        values = [v for v in (a, b) if isinstance(v, TensorType)]
        if values and all(v.dtype != DType.BF16 for v in values):    # which NumPy does not have
            got, expected = common_dtype([a, b], "numpy"), np.result_type(numpy_value(a), numpy_value(b))
            assert got.numpy == expected.name, (a, b)


def test_result_type_of_numpy_before_2():
    """As NumPy 1.26 printed it. Where a 0-d array's value decides, the type is not known."""
    names, wrong, silent = {d.numpy for d in DType}, [], 0
    for line in (Path(__file__).parent / "numpy1.txt").read_text().splitlines():
        a, _, b, _, expected = line.split()
        got = common_dtype([numpy1_value(a), numpy1_value(b)], "numpy", (1, 26))
        silent += got is None and expected in names
        if got is None and "[]" not in a + b and expected in names or got is not None and got.numpy != expected:
            wrong.append(f"{line}, not {got}")
    assert not wrong and silent < 90


@pytest.mark.parametrize("a, b, before, after", [                          # the table of NEP 50
    ("uint8[]", "2", "int64", "uint8"), ("uint8[2]", "int64[]", None, "int64"), ("float32[2]", "float64[]", None, "float64"),
    ("uint8[2]", "1", "uint8", "uint8"), ("uint8[2]", "300", None, "uint8"), ("float32[]", "3.0", "float64", "float32"),
    ("float32[2]", "3.0", "float32", "float32"), ("int64[2]", "float32[]", "float64", "float64")])
def test_what_nep_50_changed(a, b, before, after):
    values = [numpy1_value(a), numpy1_value(b)]
    for version, expected in (((1, 26), before), ((2, 0), after)):
        got = common_dtype(values, "numpy", version)
        assert (got and got.numpy) == expected


def test_element_types_that_hang_on_a_rank_are_unknown_and_no_finding():
    b = Builder()
    x, y = b.input("x", 0, TensorType(None, DType.F64)), b.input("y", 1, TensorType((2,), DType.F32))
    assert call(b, "operator.add", [x, y], {}).type == TensorType(None, None)


def test_an_unknown_dtype_or_rank_that_matters_gives_an_unknown_result():
    assert common_dtype([TensorType((2,), None), TensorType((2,), DType.F32)], "torch") is None
    assert common_dtype([TensorType(None, DType.F64), TensorType((2,), DType.F32)], "torch") is None       # f64 with axes, f32 if it has none
    assert common_dtype([TensorType(None, DType.F32), TensorType((2,), DType.F32)], "torch") == DType.F32
    assert common_dtype([TensorType(None, DType.F16), 2.0], "torch") == DType.F16


def numpy1_value(text):
    dtype, bracket, axes = text.partition("[")
    if bracket:
        return TensorType((2,) if axes == "2]" else (), DType.parse(dtype))
    return {"True": True, "inf": float("inf")}.get(text) or (float(text) if "." in text or "e" in text else int(text))


def of_torch(dtype):
    return getattr(torch, dtype.numpy)


def torch_value(v):
    return torch.ones(v.shape, dtype=of_torch(v.dtype)) if isinstance(v, TensorType) else v


def numpy_value(v):
    return np.ones(v.shape, v.dtype.numpy) if isinstance(v, TensorType) else v
