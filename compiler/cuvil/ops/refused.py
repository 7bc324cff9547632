"""What user code says and Cuvil does not compile yet, with the types it gives: facts go on behind it, compilation ends there.

Each spelling here raises `unsupported(..., results=types)`; results are empty where a size hangs on data.
"""
from __future__ import annotations

from ..ir.dims import Dim
from ..ir.types import DType, TensorType
from .builder import Builder
from .create import sizes
from .definition import spelled, unsupported
from .rules import shape_of


def _along(x, axis: int, size: Dim) -> tuple[Dim, ...]:
    return tuple(size if a == axis else d for a, d in enumerate(shape_of(x)))


@spelled("torch.sort", "torch.Tensor.sort")
def sort(b: Builder, input, dim=-1, descending=False, stable=False):
    b.axis(dim, input)
    raise unsupported("sort", "", (input.type, TensorType(input.type.shape, DType.I64)))


@spelled("torch.argsort", "torch.Tensor.argsort", "numpy.argsort", "numpy.ndarray.argsort")
def argsort(b: Builder, input, dim=-1, descending=False, stable=False, axis=-1, kind=None):
    raise unsupported("argsort", "", (TensorType(input.type.shape, DType.I64),))


@spelled("numpy.sort")
def numpy_sort(b: Builder, a, axis=-1, kind=None):
    raise unsupported("np.sort", "", (a.type,))


@spelled("torch.topk", "torch.Tensor.topk")
def topk(b: Builder, input, k, dim=-1, largest=True, sorted=True):
    shape = _along(input, b.axis(dim, input), k)
    raise unsupported("topk", "argmax for k = 1", (TensorType(shape, input.type.dtype), TensorType(shape, DType.I64)))


@spelled("torch.cumprod", "torch.Tensor.cumprod")
def cumprod(b: Builder, input, dim, dtype=None):
    kind = dtype or (DType.I64 if input.type.dtype is not None and not input.type.dtype.is_float else input.type.dtype)
    raise unsupported("cumprod", "", (TensorType(input.type.shape, kind),))


@spelled("torch.scatter", "torch.scatter_add", "torch.scatter_reduce", "torch.index_add", "torch.index_copy", "torch.index_fill", "torch.masked_scatter",
         "torch.Tensor.scatter", "torch.Tensor.scatter_add", "torch.Tensor.scatter_reduce", "torch.Tensor.index_add", "torch.Tensor.index_copy",
         "torch.Tensor.index_fill", "torch.Tensor.index_put", "torch.Tensor.masked_scatter")
def scatter(b: Builder, input, *args, **keywords):
    raise unsupported("writing to positions given by an index tensor", "gather, or torch.where with a mask", (input.type,))


@spelled("torch.nonzero", "torch.Tensor.nonzero", "numpy.nonzero", "numpy.flatnonzero", "torch.masked_select", "torch.Tensor.masked_select", "torch.unique",
         "torch.Tensor.unique", "numpy.unique", "torch.bincount", "numpy.bincount")
def data_dependent(b: Builder, input, *args, **keywords):
    raise unsupported("a result whose size hangs on data", "torch.where with a mask")


@spelled("torch.rand", "torch.randn")
def random(b: Builder, *size, dtype=None, device=None, generator=None, requires_grad=False):
    raise unsupported("random numbers", "random values made by the caller", (TensorType(sizes(size), dtype or DType.F32),))


@spelled("torch.rand_like", "torch.randn_like")
def random_like(b: Builder, input, dtype=None, device=None):
    raise unsupported("random numbers", "random values made by the caller", (TensorType(input.type.shape, dtype or input.type.dtype),))


@spelled("torch.randint")
def randint(b: Builder, *args, dtype=None, device=None, generator=None, size=None):
    size = size if size is not None else next((a for a in args if isinstance(a, (tuple, list))), None)
    raise unsupported("random numbers", "random values made by the caller", () if size is None else (TensorType(sizes((size,)), dtype or DType.I64),))


@spelled("torch.multinomial", "torch.Tensor.multinomial")
def multinomial(b: Builder, input, num_samples, replacement=False, generator=None):
    raise unsupported("random numbers", "argmax, or sampling in the caller", (TensorType((*shape_of(input)[:-1], num_samples), DType.I64),))


@spelled("torch.signbit", "torch.Tensor.signbit", "numpy.signbit")
def signbit(b: Builder, input):
    raise unsupported("signbit", "x < 0", (TensorType(input.type.shape, DType.BOOL),))


@spelled("torch.erfc", "torch.erfinv", "torch.lgamma", "torch.digamma", "torch.i0", "torch.special.erfc", "torch.special.erfinv",
         "torch.Tensor.erfc", "torch.Tensor.erfinv", "torch.Tensor.lgamma", "torch.Tensor.digamma")
def special(b: Builder, input):
    raise unsupported("a special function that has no accurate form in CIR", "",
                      (input.type,) if input.type.dtype is not None and input.type.dtype.is_float else ())


@spelled("torch.nn.functional.embedding_bag")
def embedding_bag(b: Builder, input, weight, offsets=None, **options):
    raise unsupported("embedding_bag", "embedding and a sum over its axis")


@spelled("torch.nn.functional.max_pool3d", "torch.nn.functional.avg_pool3d", "torch.nn.functional.conv3d", "torch.conv3d")
def volumes(b: Builder, input, *args, **keywords):
    raise unsupported("pooling and convolution of volumes (N, C, D, H, W)")
