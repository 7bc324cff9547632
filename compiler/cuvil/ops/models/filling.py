"""Tensors of known form that are not compiled: windows of signal processing, ranges on a logarithm, diagonals, index grids."""
from __future__ import annotations

from ...ir.dims import at_least, product
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ..builder import Builder, as_dtype
from ..create import sizes
from ..definition import not_known, typed
from ..promotion import default_float
from ..rules import shape_of
from .forms import need_rank


@typed("torch.hann_window", "torch.hamming_window", "torch.blackman_window", "torch.bartlett_window", "torch.kaiser_window")
def window(b: Builder, window_length, periodic=True, alpha=None, beta=None, *, dtype=None, layout=None, device=None, requires_grad=False):
    return TensorType(sizes((window_length,)), dtype or DType.F32)


@typed("numpy.hanning", "numpy.hamming", "numpy.blackman", "numpy.bartlett")
def numpy_window(b: Builder, M):
    return TensorType(sizes((M,)), DType.F64)


@typed("numpy.kaiser")
def kaiser(b: Builder, M, beta):
    return TensorType(sizes((M,)), DType.F64)


@typed("torch.logspace")
def logspace(b: Builder, start, end, steps, base=10.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    return TensorType(sizes((steps,)), dtype or DType.F32)


@typed("numpy.logspace")
def numpy_logspace(b: Builder, start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    return TensorType(sizes((num,)), as_dtype(dtype) if dtype else DType.F64)


@typed("numpy.geomspace")
def geomspace(b: Builder, start, stop, num=50, endpoint=True, dtype=None, axis=0):
    return TensorType(sizes((num,)), as_dtype(dtype) if dtype else DType.F64)


@typed("torch.scalar_tensor")
def scalar_tensor(b: Builder, s, *, dtype=None, device=None, layout=None, pin_memory=False):
    return TensorType((), dtype or DType.F32)


@typed("torch.Tensor.new_tensor")
def new_tensor(b: Builder, self, data, *, dtype=None, device=None, requires_grad=False):
    return TensorType(_literal_shape(data), dtype or (data.type.dtype if isinstance(data, Op) else self.type.dtype))


def _literal_shape(data):
    if isinstance(data, Op):
        return data.type.shape
    shape = []
    while isinstance(data, (list, tuple)):
        shape.append(len(data))
        data = data[0] if data else 0
    return tuple(shape)


@typed("torch.diag", "torch.Tensor.diag")
def diag(b: Builder, input, diagonal=0):
    return _diag(input, diagonal)


@typed("numpy.diag")
def numpy_diag(b: Builder, v, k=0):
    return _diag(v, k)


def _diag(x, offset):
    """A vector becomes a matrix, a matrix gives its diagonal."""
    need_rank(x, "diag", 1, 2)
    own = shape_of(x)
    if len(own) == 1:
        size = own[0] + abs(offset)
        return TensorType((size, size), x.type.dtype)
    return TensorType((_diagonal(own[0], own[1], offset),), x.type.dtype)


def _diagonal(rows, columns, offset):
    rows, columns = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    if at_least(columns - rows, 0):
        return rows
    if at_least(rows - columns, 0):
        return columns
    raise not_known("the length of a diagonal of a symbolic matrix")


@typed("torch.diagflat", "torch.Tensor.diagflat")
def diagflat(b: Builder, input, offset=0):
    size = product(shape_of(input)) + abs(offset)
    return TensorType((size, size), input.type.dtype)


@typed("numpy.diagflat")
def numpy_diagflat(b: Builder, v, k=0):
    return diagflat(b, v, k)


@typed("torch.diag_embed", "torch.Tensor.diag_embed")
def diag_embed(b: Builder, input, offset=0, dim1=-2, dim2=-1):
    own = shape_of(input)
    size, rank = own[-1] + abs(offset), len(own) + 1
    places, rest = {b.axis(dim1, rank), b.axis(dim2, rank)}, iter(own[:-1])
    return TensorType(tuple(size if a in places else next(rest) for a in range(rank)), input.type.dtype)


@typed("torch.tril_indices", "torch.triu_indices")
def triangle_indices(b: Builder, row, col, offset=0, *, dtype=None, device=None, layout=None):
    return TensorType((2, b.unbacked()), dtype or DType.I64)


@typed("numpy.tril_indices", "numpy.triu_indices")
def numpy_triangle_indices(b: Builder, n, k=0, m=None):
    count = b.unbacked()
    return (TensorType((count,), DType.I64),) * 2


@typed("numpy.indices")
def indices(b: Builder, dimensions, dtype=None, sparse=False):
    if sparse:
        raise not_known("sparse index grids")
    return TensorType((len(dimensions), *sizes((dimensions,))), as_dtype(dtype) if dtype else DType.I64)


@typed("numpy.tri")
def tri(b: Builder, N, M=None, k=0, dtype=None):
    return TensorType(sizes((N, N if M is None else M)), as_dtype(dtype) if dtype else default_float("numpy"))


@typed("torch.vander")
def vander(b: Builder, x, N=None, increasing=False):
    return TensorType((*shape_of(x), shape_of(x)[-1] if N is None else N), DType.I64 if x.type.dtype is not None and x.type.dtype.is_int else x.type.dtype)


@typed("torch.block_diag")
def block_diag(b: Builder, *tensors):
    own = [(1,) * (2 - len(shape_of(t))) + tuple(shape_of(t)) for t in tensors]
    return TensorType((sum((s[0] for s in own), 0), sum((s[1] for s in own), 0)), b.common_dtype([t.type for t in tensors]))


@typed("numpy.frombuffer")
def frombuffer(b: Builder, buffer, dtype=None, count=-1, offset=0):
    return TensorType((b.unbacked() if count == -1 else count,), as_dtype(dtype) if dtype else DType.F64)


@typed("torch.frombuffer")
def torch_frombuffer(b: Builder, buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    return TensorType((b.unbacked() if count == -1 else count,), dtype)


@typed("numpy.fromfile")
def fromfile(b: Builder, file, dtype=None, count=-1, sep="", offset=0):
    return TensorType((b.unbacked() if count == -1 else count,), as_dtype(dtype) if dtype else DType.F64)


@typed("numpy.fromiter")
def fromiter(b: Builder, iter, dtype, count=-1):
    return TensorType((b.unbacked() if count == -1 else count,), as_dtype(dtype))


def _of_class(dtype: DType):
    def rule(b: Builder, *data, device=None):
        """Sizes give an uninitialised tensor, a sequence or an array its elements."""
        if len(data) == 1 and isinstance(data[0], (list, tuple, Op)):
            return TensorType(_literal_shape(data[0]), dtype)
        return TensorType(sizes(data), dtype)
    return rule


for _name, _dtype in (("", DType.F32), ("Float", DType.F32), ("Double", DType.F64), ("Half", DType.F16), ("BFloat16", DType.BF16), ("Long", DType.I64), ("Int", DType.I32),
                      ("Short", DType.I16), ("Char", DType.I8), ("Byte", DType.U8), ("Bool", DType.BOOL)):
    typed(f"torch.{_name}Tensor", instead="torch.tensor with a dtype")(_of_class(_dtype))
