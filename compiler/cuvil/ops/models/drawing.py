"""Random and uninitialised tensors: what they hold is not known, their shapes and element types are."""
from __future__ import annotations

from ...ir.types import DType, TensorType
from ..builder import Builder, as_dtype
from ..create import sizes
from ..definition import not_known, typed
from ..promotion import default_float
from ..rules import broadcast, shape_of
from .forms import like, need_floats, need_rank

INSTEAD = "random values made by the caller"


@typed("torch.empty", instead="zeros")
def empty(b: Builder, *size, dtype=None, device=None, layout=None, requires_grad=False, pin_memory=False, memory_format=None):
    return TensorType(sizes(size), dtype or DType.F32)


@typed("torch.rand", "torch.randn", instead=INSTEAD)
def rand(b: Builder, *size, dtype=None, device=None, generator=None, layout=None, requires_grad=False, pin_memory=False):
    return TensorType(sizes(size), dtype or DType.F32)


@typed("torch.empty_like", "torch.rand_like", "torch.randn_like", instead=INSTEAD)
def empty_like(b: Builder, input, *, dtype=None, device=None, layout=None, requires_grad=False, memory_format=None):
    return like(input, dtype)


@typed("torch.Tensor.new_empty", "torch.Tensor.new", instead="new_zeros")
def new_empty(b: Builder, self, *size, dtype=None, device=None, requires_grad=False):
    return TensorType(sizes(size), dtype or self.type.dtype)


@typed("torch.empty_strided")
def empty_strided(b: Builder, size, stride, *, dtype=None, device=None, requires_grad=False):
    return TensorType(sizes((size,)), dtype or DType.F32)


@typed("torch.randint", instead=INSTEAD)
def randint(b: Builder, *bounds, low=None, high=None, size=None, dtype=None, device=None, generator=None, requires_grad=False):
    size = size if size is not None else next((a for a in bounds if isinstance(a, (tuple, list))), None)
    if size is None:
        raise not_known("the size of random numbers")
    return TensorType(sizes((size,)), dtype or DType.I64)


@typed("torch.randint_like", instead=INSTEAD)
def randint_like(b: Builder, input, *bounds, low=0, high=None, dtype=None, device=None, memory_format=None):
    return like(input, dtype)


@typed("torch.randperm", instead=INSTEAD)
def randperm(b: Builder, n, *, dtype=None, device=None, generator=None, requires_grad=False):
    return TensorType(sizes((n,)), dtype or DType.I64)


@typed("torch.multinomial", "torch.Tensor.multinomial", instead="argmax, or sampling in the caller")
def multinomial(b: Builder, input, num_samples, replacement=False, *, generator=None):
    need_floats("multinomial", input)
    need_rank(input, "multinomial", 1, 2)
    return TensorType((*shape_of(input)[:-1], num_samples), DType.I64)


@typed("torch.bernoulli", "torch.poisson", "torch.Tensor.bernoulli", instead=INSTEAD)
def bernoulli(b: Builder, input, p=None, *, generator=None):
    need_floats("bernoulli", input)
    return input.type


@typed("torch.normal", instead=INSTEAD)
def normal(b: Builder, mean, std=1.0, size=None, *, generator=None, dtype=None, device=None):
    given = [v.type for v in (mean, std) if hasattr(v, "type")]
    if not given:
        return TensorType(sizes((size,)), dtype or DType.F32)
    return TensorType(broadcast(given, "normal"), given[0].dtype)


@typed("torch.Tensor.normal", "torch.Tensor.uniform", "torch.Tensor.exponential", "torch.Tensor.log_normal", "torch.Tensor.cauchy", "torch.Tensor.geometric",
       "torch.Tensor.random", instead=INSTEAD)
def drawn_into(b: Builder, self, *parameters, **more):
    """x.normal_(): the memory of x is filled."""
    return self.type


# --- NumPy ----------------------------------------------------------------------------------------------------------

@typed("numpy.empty", instead="np.zeros")
def numpy_empty(b: Builder, shape, dtype=None, order="C"):
    return TensorType(_size(shape), as_dtype(dtype) if dtype else default_float("numpy"))


@typed("numpy.empty_like", instead="np.zeros_like")
def numpy_empty_like(b: Builder, a, dtype=None, order="K"):
    return like(a, as_dtype(dtype) if dtype else None)


def _size(size):
    return () if size is None else sizes((size,))


@typed("numpy.random.rand", "numpy.random.randn", instead=INSTEAD)
def numpy_rand(b: Builder, *size):
    return TensorType(sizes(size), DType.F64)


@typed("numpy.random.random", "numpy.random.random_sample", "numpy.random.ranf", "numpy.random.standard_normal", instead=INSTEAD)
def random_sample(b: Builder, size=None):
    return TensorType(_size(size), DType.F64)


@typed("numpy.random.normal", "numpy.random.laplace", "numpy.random.gumbel", "numpy.random.logistic", "numpy.random.uniform", "numpy.random.beta",
       "numpy.random.gamma", instead=INSTEAD)
def located(b: Builder, loc=0.0, scale=1.0, size=None):
    given = [v.type for v in (loc, scale) if hasattr(v, "type")]
    return TensorType(broadcast(given, "random numbers") if size is None and given else _size(size), DType.F64)


@typed("numpy.random.exponential", "numpy.random.rayleigh", "numpy.random.chisquare", "numpy.random.standard_t", instead=INSTEAD)
def scaled(b: Builder, scale=1.0, size=None):
    return TensorType(scale.type.shape if size is None and hasattr(scale, "type") else _size(size), DType.F64)


@typed("numpy.random.randint", instead=INSTEAD)
def numpy_randint(b: Builder, low, high=None, size=None, dtype=None):
    return TensorType(_size(size), as_dtype(dtype) if dtype else DType.I64)


@typed("numpy.random.poisson", "numpy.random.binomial", instead=INSTEAD)
def counts(b: Builder, lam=1.0, p=None, size=None):
    return TensorType(_size(size), DType.I64)


@typed("numpy.random.permutation", instead=INSTEAD)
def permutation(b: Builder, x):
    return x.type if hasattr(x, "type") else TensorType(_size(x), DType.I64)


@typed("numpy.random.choice", instead=INSTEAD)
def choice(b: Builder, a, size=None, replace=True, p=None):
    if hasattr(a, "type"):
        need_rank(a, "np.random.choice", 1)
        return TensorType(_size(size), a.type.dtype)
    if not isinstance(a, (int,)) and not hasattr(a, "terms"):
        raise not_known("the elements that are chosen from")
    return TensorType(_size(size), DType.I64)


@typed("numpy.random.dirichlet", instead=INSTEAD)
def dirichlet(b: Builder, alpha, size=None):
    count = shape_of(alpha)[0] if hasattr(alpha, "type") else len(alpha)
    return TensorType((*_size(size), count), DType.F64)
