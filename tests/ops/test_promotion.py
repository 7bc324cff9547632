"""Promotion, exhaustively over pairs of operands, against torch.result_type and numpy.result_type."""
from __future__ import annotations

import numpy as np
import pytest
import torch

from cuvil.ir.types import DType, TensorType
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


def test_an_unknown_dtype_or_rank_that_matters_gives_an_unknown_result():
    assert common_dtype([TensorType((2,), None), TensorType((2,), DType.F32)], "torch") is None
    assert common_dtype([TensorType(None, DType.F64), TensorType((2,), DType.F32)], "torch") is None       # f64 with axes, f32 if it has none
    assert common_dtype([TensorType(None, DType.F32), TensorType((2,), DType.F32)], "torch") == DType.F32
    assert common_dtype([TensorType(None, DType.F16), 2.0], "torch") == DType.F16


def of_torch(dtype):
    return getattr(torch, dtype.numpy)


def torch_value(v):
    return torch.ones(v.shape, dtype=of_torch(v.dtype)) if isinstance(v, TensorType) else v


def numpy_value(v):
    return np.ones(v.shape, v.dtype.numpy) if isinstance(v, TensorType) else v
