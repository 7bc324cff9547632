"""Functions of torch and NumPy that are not about values: sizes, limits, modes, devices, and values that come from elsewhere."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from ...ir.dims import Poly
from ...ir.types import DType, TensorType
from . import learn
from .library import dtype_named
from .pythons import FUNCTIONS, is_a, python
from .values import NONE, Instance, Library, Scalar, Sequence, Shape, Tensor, Unknown, Value
from .walk import Walk


@python("torch.Tensor.dim", "torch.Tensor.ndimension")
def dim(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.rank is not None:
        return Scalar(args[0].type.rank)
    return walk.unknown("the shape of a tensor is not known", node)


@python("torch.Tensor.size")
def size(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.shape is None:
        return Shape(args[0]) if len(args) == 1 and not keywords else walk.unknown("the shape of a tensor is not known", node)
    return None


@python("torch.Tensor.numel", "torch.Tensor.nelement")
def numel_of(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.shape is not None:
        return Scalar(args[0].type.numel)
    return walk.unknown("the shape of a tensor is not known", node)


@python("torch.Tensor.is_floating_point", "torch.is_floating_point")
def is_floating_point(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Tensor) and args[0].type.dtype is not None:
        return Scalar(args[0].type.dtype.is_float)
    return walk.unknown("an element type that is not known", node)


@python("torch.is_tensor")
def is_tensor(walk: Walk, args, keywords, node) -> Value | None:
    known = is_a(walk, args[0], Library("torch.Tensor")) if args else None
    return walk.unknown("an isinstance test", node) if known is None else Scalar(known)


def _drawn(name: str) -> None:
    FUNCTIONS[name] = lambda walk, args, keywords, node: _draw(walk, name, args, keywords, node)


def _draw(walk: Walk, name: str, args, keywords, node) -> Value | None:
    """Tensors whose values come from elsewhere: for facts they are like a weight of that shape; a function that draws is refused."""
    walk.refuse("random or uninitialised values are drawn, which is not compiled", node, hint="give the values as an input")
    like = next((arg for arg in args if isinstance(arg, Tensor)), None)
    size = keywords.get("size")
    shape = args[0] if len(args) == 1 and isinstance(args[0], Sequence) else Sequence(tuple(args)) if size is None else \
        size if isinstance(size, Sequence) else Sequence((size,))
    library, callee = name.partition(".")[0], name.rpartition(".")[2]
    if callee == "randint":
        shape = next((arg for arg in (*args, *keywords.values()) if isinstance(arg, Sequence)), None)
    dims = None if shape is None else [item.value if isinstance(item, Scalar) else None for item in shape.items]
    given = keywords.get("dtype")
    asked = given.value if isinstance(given, Scalar) else dtype_named(given.name) if isinstance(given, Library) else given
    if like is not None:
        type = like.type if asked is None else TensorType(like.type.shape, asked if isinstance(asked, DType) else None)
    elif dims is not None and all(isinstance(d, (int, Poly)) for d in dims):
        dtype = DType.I64 if callee in ("randint", "randperm") else DType.F64 if library == "numpy" else DType.F32
        type = TensorType(tuple(dims), dtype if asked is None else asked if isinstance(asked, DType) else None)
    elif callee.endswith("_like") or callee in ("rand", "randn", "empty"):
        from . import partial
        type = TensorType(None, None) if callee.endswith("_like") else partial.RULES[callee](walk, list(args), keywords)
        made = partial.opaque(walk, name, list(args), type if library == "torch" else TensorType(type.shape, None), node)
        return replace(made, device=None) if callee.endswith("_like") and library == "torch" else made
    else:
        return walk.unknown("random values of a shape that is not known", node)
    walk.builder.origins = (walk.origin(node),)
    return walk.tensor(walk.builder.append("parameter", (), {"name": f"drawn{len(walk.builder.ops)}"}, type), library if type.shape != () or library == "torch" else "python")


for _each in ("torch.rand", "torch.randn", "torch.randint", "torch.rand_like", "torch.randn_like", "torch.empty", "torch.empty_like", "torch.randperm",
              "numpy.random.rand", "numpy.random.randn", "numpy.random.random", "numpy.empty"):
    _drawn(_each)


@python("torch.is_grad_enabled", "torch.jit.is_scripting", "torch.jit.is_tracing", "torch.compiler.is_compiling",
        "torch.onnx.is_in_onnx_export", "torch._dynamo.is_compiling")
def never(walk: Walk, args, keywords, node) -> Value | None:
    return Scalar(False)


@python("torch._assert")
def asserted(walk: Walk, args, keywords, node) -> Value | None:
    """An assert that tracing keeps: what it says of shapes is learnt."""
    if isinstance(node, cst.Call) and node.args and args and isinstance(args[0], Unknown):
        learn.holds(walk, node.args[0].value)
    return NONE


@python("torch.Tensor.detach_")
def same_values(walk: Walk, args, keywords, node) -> Value | None:
    if args and isinstance(args[0], Tensor):
        walk.shared.add(args[0].storage)
        return replace(args[0], view=True, grad=False)
    return None


@python("torch.finfo", "torch.iinfo", "numpy.finfo", "numpy.iinfo")
def limits(walk: Walk, args, keywords, node) -> Value | None:
    dtype = args[0].value if args and isinstance(args[0], Scalar) else dtype_named(args[0].name) if args and isinstance(args[0], Library) else None
    if not isinstance(dtype, DType):
        return walk.unknown("the limits of an element type that is not known", node)
    return Instance(Library("torch.finfo"), {key: Scalar(value) for key, value in dtype_limits(dtype).items()})


def dtype_limits(dtype: DType) -> dict[str, Any]:
    """min, max, and for floats eps, tiny and smallest_normal. Source: IEEE 754, two's complement."""
    if dtype.is_float:
        exponent, mantissa = {DType.F16: (5, 10), DType.BF16: (8, 7), DType.F32: (8, 23), DType.F64: (11, 52)}[dtype]
        bias = 2 ** (exponent - 1) - 1
        largest = (2.0 - 2.0 ** -mantissa) * 2.0 ** bias
        return {"max": largest, "min": -largest, "eps": 2.0 ** -mantissa, "tiny": 2.0 ** (1 - bias), "smallest_normal": 2.0 ** (1 - bias),
                "bits": dtype.size * 8}
    bits = dtype.size * 8
    if dtype == DType.U8:
        return {"min": 0, "max": 255, "bits": 8}
    return {"min": -2 ** (bits - 1), "max": 2 ** (bits - 1) - 1, "bits": bits}
