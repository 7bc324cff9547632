"""What is known of a tensor that a library function makes when one of its arguments is not: often its rank and element type, and some sizes.

A rule takes (walk, args, keywords) with evaluated arguments and gives a TensorType, or None when nothing is certain. Sizes that are not
known are new symbols, which may be any size. Arguments that say only where or how (device=, generator=) are left out before the rules.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...ir.dims import Dim, Poly
from ...ir.types import DType, TensorType
from . import joins, masks, traits
from .values import NONE, Either, Library, Many, Opaque, Scalar, Sequence, Shape, Tensor, Unknown, Untyped, Value
from .walk import Walk

A_NUMBER, SOME_NUMBER = "a Python parameter without a default", "a number that is not known"
NUMBERS = frozenset((A_NUMBER, SOME_NUMBER))               # reasons of what is a number, whichever it is
Rule = Callable[[Walk, list[Value], dict[str, Value]], "TensorType | None"]
RULES: dict[str, Rule] = {}
ASIDE = frozenset(("device", "generator", "layout", "requires_grad", "non_blocking", "memory_format", "pin_memory", "training", "p", "eps", "inplace",
                   "momentum", "out"))
_F64 = ("numpy.zeros", "numpy.ones", "numpy.empty")


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function
    return register


def result(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode, apply: Callable[..., Value]) -> Value | None:
    """The result of a call some of whose arguments are not known, or None. apply: does the call with other arguments."""
    less = {key: value for key, value in keywords.items() if key not in ASIDE or not unknown(value)}
    if "dtype" in less and unknown(less["dtype"]):
        given = apply(args, {key: value for key, value in less.items() if key != "dtype"})
        return forget_dtype(walk, given, name) if isinstance(given, Tensor) else None
    if len(less) < len(keywords):
        return apply(args, less)
    if name.rpartition(".")[2] in COMPARISONS:
        return _compared(walk, name, args, node)
    found = RULES.get(name) or RULES.get(name.rpartition(".")[2])
    if found is None or not name.startswith(("torch.", "operator.", "numpy.")):
        return None
    args = [joins.given(walk.resolve(arg)) for arg in args]
    type = found(walk, args, {key: joins.given(walk.resolve(value)) for key, value in keywords.items()})
    if type is not None and name in _F64 and len(args) < 2 and "dtype" not in keywords:
        type = TensorType(type.shape, DType.F64)
    asked = keywords.get("dtype")
    if type is not None and asked is not None and asked != NONE:
        type = TensorType(type.shape, asked.value if isinstance(asked, Scalar) and isinstance(asked.value, DType) else _dtype_named(asked))
    return None if type is None else opaque(walk, name, args, type, node)


def _dtype_named(asked: Value) -> DType | None:
    from .library import dtype_named
    return dtype_named(asked.name) if isinstance(asked, Library) else None


COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


def _compared(walk: Walk, name: str, args: list[Value], node: cst.CSTNode) -> Value | None:
    """A comparison with something that is not known: elements that are true or false. The id of the padding is a number."""
    tensor = next((arg for arg in map(walk.resolve, args) if isinstance(arg, Tensor)), None)
    if tensor is None:
        return None
    walk.refuse(f"{name} with a value that is not known", node)
    number = masks.of_pad(walk, "ne", node) is not None
    return opaque(walk, name, [tensor], TensorType(tensor.type.shape if number else None, DType.BOOL), node)


def opaque(walk: Walk, name: str, args: list[Value], type: TensorType, node: cst.CSTNode) -> Tensor:
    """A tensor of which only the type is known, and what it comes from."""
    flat = [item for arg in args for item in (arg.items if isinstance(arg, Sequence) else (arg.item,) if isinstance(arg, Many) else (arg,))]
    tensors = [each for each in flat if isinstance(each, Tensor)]
    walk.builder.origins = (walk.origin(node),)
    op = walk.builder.append("opaque", tuple(each.op.id for each in tensors), {"call": name}, type)
    library = next((each.library for each in tensors if each.library != "python"), "numpy" if name.startswith("numpy.") else "torch")
    if name.startswith("numpy.random.") and type.shape == ():         # without a size NumPy draws a Python float
        library = "python"
    if args and isinstance(args[0], Tensor) and len(tensors) == 1 and _looks_into(name, args):
        return traits.view(walk, op, name, args[0])
    made = traits.made(walk, op, library, name, tensors)
    if library == "torch" and name.rpartition(".")[2] not in FACTORIES and any(map(unknown, args)):
        # What is not known may be a tensor, on another device and with a gradient.
        device = None if made.device is None or made.device.default else made.device
        return walk.own(replace(made, device=device, grad=made.grad or (None if walk.context.grad in (None, "grad") else False)))
    return made


FACTORIES = frozenset(("zeros", "ones", "empty", "rand", "randn", "full", "arange", "linspace", "eye", "randint", "tril_indices", "triu_indices"))
_VIEWS = frozenset(("view", "transpose", "swapaxes", "movedim", "moveaxis", "permute", "unsqueeze", "squeeze", "expand", "broadcast_to", "narrow", "select",
                    "diagonal", "unfold", "view_as", "expand_as", "detach", "unflatten", "T", "mT"))


def _looks_into(name: str, args: list[Value]) -> bool:
    """Whether the result of a call is a view of its first argument, whatever the sizes are. An index by numbers and slices is."""
    last = name.rpartition(".")[2]
    if last == "getitem" and len(args) == 2:
        parts = args[1].items if isinstance(args[1], Sequence) and args[1].kind == "tuple" else (args[1],)
        return all(isinstance(part, Scalar) and not isinstance(part.value, (bool, str, float)) for part in parts)
    return last in _VIEWS or name in ("numpy.flip", "numpy.flipud", "numpy.fliplr")


def forget_dtype(walk: Walk, value: Tensor, name: str) -> Tensor:
    walk.builder.origins = value.op.origins
    return traits.made(walk, walk.builder.append("opaque", (value.op.id,), {"call": name}, TensorType(value.type.shape, None)), value.library, name, [value])


def unknown(value: Value) -> bool:
    return isinstance(value, (Unknown, Untyped, Either))


def size(walk: Walk, value: Value) -> Dim:
    """A size that is given; a new symbol where it is not known."""
    inner = value.value if isinstance(value, Scalar) else None
    return inner if isinstance(inner, Poly) or isinstance(inner, int) and not isinstance(inner, bool) and inner >= 0 else joins.open_size(walk)


def open_shape(walk: Walk, rank: int) -> tuple[Dim, ...]:
    return tuple(joins.open_size(walk) for _ in range(rank))


def listed(args: list[Value]) -> list[Value] | None:
    """Sizes given one by one or as one tuple; None when their number is not known."""
    if len(args) == 1 and isinstance(args[0], Sequence):
        return list(args[0].items)
    if len(args) == 1 and not isinstance(args[0], Scalar):
        return None                                       # it may be a tuple
    return args


def tensor(args: list[Value]) -> TensorType | None:
    return args[0].type if args and isinstance(args[0], Tensor) else None


# --- shapes ---------------------------------------------------------------------------------------------------------

@rule("view", "reshape", "expand")
def reshape(walk: Walk, args, keywords) -> TensorType | None:
    x, sizes = tensor(args), listed(args[1:]) if len(args) > 1 else None
    if x is None:
        return None
    if sizes is None or not sizes:
        return TensorType(None, x.dtype)
    return TensorType(tuple(size(walk, each) for each in sizes), x.dtype)


@rule("repeat")
def repeated(walk: Walk, args, keywords) -> TensorType | None:
    """At least one axis for each number, and those that the tensor has."""
    x, sizes = tensor(args), listed(args[1:])
    known = x is not None and x.shape is not None and sizes
    return TensorType(open_shape(walk, max(len(x.shape), len(sizes))) if known else None, x.dtype) if x is not None else None


@rule("repeat_interleave")
def interleaved(walk: Walk, args, keywords) -> TensorType | None:
    """Without an axis the result has one."""
    x = tensor(args)
    if len(args) < 3 and "dim" not in keywords and "axis" not in keywords:
        return None if x is None else TensorType(open_shape(walk, 1), x.dtype)
    return other_sizes(walk, args, keywords)


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d",
      "max_pool2d", "max_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def windows(walk: Walk, args, keywords) -> TensorType | None:
    """As many axes as before."""
    x = tensor(args)
    asked = keywords.get("return_indices")
    if x is None or asked is not None and not (isinstance(asked, Scalar) and asked.value is False):
        return None
    return TensorType(None if x.shape is None else open_shape(walk, len(x.shape)), x.dtype)


@rule("linear")
def projected(walk: Walk, args, keywords) -> TensorType | None:
    """The axes of the first argument; one element type for all."""
    x, weight = tensor(args), args[1].type if len(args) > 1 and isinstance(args[1], Tensor) else None
    if x is None:
        return None
    dtype = x.dtype or (weight.dtype if weight is not None else None)
    return TensorType(None if x.shape is None or weight is None else open_shape(walk, len(x.shape)), dtype)


@rule("transpose", "swapaxes", "movedim", "pad", "narrow", "index_select", "take_along_dim", "flip", "roll")
def other_sizes(walk: Walk, args, keywords) -> TensorType | None:
    x = tensor(args)
    return None if x is None else TensorType(None if x.shape is None else open_shape(walk, len(x.shape)), x.dtype)


@rule("interpolate", "upsample")
def resized(walk: Walk, args, keywords) -> TensorType | None:
    """Samples and channels stay, as many as there are."""
    x = tensor(args)
    return None if x is None else TensorType(None if x.shape is None else (*x.shape[:2], *open_shape(walk, max(len(x.shape) - 2, 0))), x.dtype)


@rule("permute")
def permuted(walk: Walk, args, keywords) -> TensorType | None:
    x, order = tensor(args), listed(args[1:])
    if x is None:
        return None
    rank = len(x.shape) if x.shape is not None else len(order) if order else None
    return TensorType(None if rank is None else open_shape(walk, rank), x.dtype)


@rule("squeeze")
def squeezed(walk: Walk, args, keywords) -> TensorType | None:
    x = tensor(args)
    return None if x is None else TensorType(None, x.dtype)


@rule("unsqueeze")
def unsqueezed(walk: Walk, args, keywords) -> TensorType | None:
    x = tensor(args)
    return None if x is None else TensorType(None if x.shape is None else open_shape(walk, len(x.shape) + 1), x.dtype)


@rule("softmax", "log_softmax", "dropout", "dropout2d", "relu", "gelu", "silu", "leaky_relu", "elu", "normalize", "layer_norm", "group_norm", "rms_norm",
      "batch_norm", "instance_norm", "cumsum", "contiguous", "clone", "nan_to_num", "tril", "triu", "hardtanh", "softplus", "gumbel_softmax")
def alike(walk: Walk, args, keywords) -> TensorType | None:
    """The shape of the first tensor, and its element type where it is one of floats."""
    x = tensor(args)
    return None if x is None else TensorType(x.shape, x.dtype if x.dtype is not None and x.dtype.is_float else None)


@rule(*(f"numpy.{n}" for n in ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tanh", "cbrt", "power")))
def of_a_number(walk: Walk, args, keywords) -> TensorType | None:
    """NumPy's scalar of a Python number that is not known: a double, which decides what an array of floats becomes."""
    numbers = all(isinstance(arg, Scalar) and isinstance(arg.value, (int, float)) or isinstance(arg, Unknown) and arg.reason in NUMBERS for arg in args)
    return TensorType((), DType.F64) if args and numbers else None


@rule("prod")
def product_of_sizes(walk: Walk, args, keywords) -> TensorType | None:
    return TensorType((), DType.I64) if len(args) == 1 and isinstance(args[0], Shape) else None


@rule("dot", "inner", "vdot", "tensordot", "mm", "bmm")
def contracted_with(walk: Walk, args, keywords) -> TensorType | None:
    """Products of tensors of one element type are of it, whatever their shapes are."""
    dtypes = {arg.type.dtype if isinstance(arg, Tensor) else None for arg in args[:2]}
    return TensorType(None, dtypes.pop() if len(dtypes) == 1 else None) if any(isinstance(arg, Tensor) for arg in args[:2]) else None


@rule("T", "mT", "H", "mH")
def turned(walk: Walk, args, keywords) -> TensorType | None:
    """As many axes as before, however many there are."""
    x = tensor(args)
    return None if x is None else TensorType(None if x.shape is None else open_shape(walk, len(x.shape)), x.dtype)


@rule("isnan", "isinf", "isfinite", "isposinf", "isneginf", "logical_not", "signbit")
def asked(walk: Walk, args, keywords) -> TensorType | None:
    x = tensor(args)
    return None if x is None else TensorType(x.shape, DType.BOOL)


@rule("add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "matmul", "multiply", "subtract", "divide", "maximum", "minimum", "clamp", "clip")
def computed(walk: Walk, args, keywords) -> TensorType | None:
    """With something that is not known a tensor gives a tensor; with a number that is declared as one, of its own shape."""
    x = next((arg.type for arg in args if isinstance(arg, Tensor)), None)
    if x is None:
        return None
    numbers = all(isinstance(arg, Tensor) or isinstance(arg, Scalar) or isinstance(arg, Unknown) and arg.reason in NUMBERS for arg in (*args, *keywords.values()))
    if not numbers or sum(isinstance(arg, Tensor) for arg in args) > 1:
        dtypes = {arg.type.dtype if isinstance(arg, Tensor) else None for arg in args if not isinstance(arg, Scalar)}
        dtype = dtypes.pop() if len(dtypes) == 1 and len(args) == 2 and not keywords else None
        return TensorType(None, dtype if dtype is not None and dtype.is_float else None)
    return TensorType(x.shape, x.dtype if x.dtype is not None and x.dtype.is_float else None)


@rule("to", "type", "type_as", "astype")
def converted(walk: Walk, args, keywords) -> TensorType | None:
    """A place or an element type that is not known: the shape stays."""
    x = tensor(args)
    if x is None:
        return None
    place = all(isinstance(each, Scalar) and isinstance(each.value, (Opaque, str, bool)) for each in args[1:])
    return TensorType(x.shape, x.dtype if place and "dtype" not in keywords and "other" not in keywords else None)


# --- new tensors ----------------------------------------------------------------------------------------------------

def _made(walk: Walk, args, keywords, dtype: DType | None = DType.F32) -> TensorType | None:
    sizes = listed([keywords["size"]] if "size" in keywords else args)
    asked = keywords.get("dtype")
    shape = None if sizes is None else tuple(size(walk, each) for each in sizes)
    return TensorType(shape, asked.value if isinstance(asked, Scalar) and isinstance(asked.value, DType) else
                      dtype if asked is None or asked == NONE else None)


@rule("zeros", "ones", "empty", "rand", "randn")
def made(walk: Walk, args, keywords) -> TensorType | None:
    named = next((keywords[name] for name in ("shape", "size") if name in keywords), None)
    return _made(walk, args if named is None else [named], keywords)


@rule("new_zeros", "new_ones", "new_empty")
def made_like(walk: Walk, args, keywords) -> TensorType | None:
    x = tensor(args)
    return None if x is None else _made(walk, args[1:], keywords, x.dtype)


@rule("Tensor", "FloatTensor")
def of_sizes(walk: Walk, args, keywords) -> TensorType | None:
    """torch.Tensor(n, 4); one argument alone may be data."""
    return TensorType(tuple(size(walk, each) for each in args), DType.F32) if len(args) > 1 else TensorType(None, DType.F32)


@rule("full")
def filled(walk: Walk, args, keywords) -> TensorType | None:
    fill = args[1].value if len(args) > 1 and isinstance(args[1], Scalar) else None
    dtype = DType.BOOL if isinstance(fill, bool) else DType.I64 if isinstance(fill, int) else DType.F32 if isinstance(fill, float) else None
    return _made(walk, args[:1], keywords, dtype) if args and isinstance(args[0], Sequence) else None


@rule("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like")
def like(walk: Walk, args, keywords) -> TensorType | None:
    return tensor(args)


@rule("asarray", "array", "ascontiguousarray", "tensor", "as_tensor", "from_numpy")
def made_of(walk: Walk, args, keywords) -> TensorType | None:
    """Of data that is not known: a tensor, of the element type that is asked for."""
    from .library import dtype_named
    asked = keywords.get("dtype", args[1] if len(args) > 1 else None)
    inner = asked.value if isinstance(asked, Scalar) else dtype_named(asked.name) if isinstance(asked, Library) else None
    return TensorType(None, inner if isinstance(inner, DType) else None) if args and unknown(args[0]) else None


@rule("arange", "linspace")
def counted(walk: Walk, args, keywords) -> TensorType | None:
    asked = keywords.get("dtype")
    dtype = asked.value if isinstance(asked, Scalar) and isinstance(asked.value, DType) else _dtype_named(asked) if asked is not None else None
    return TensorType((joins.open_size(walk),), dtype) if args or keywords else None


# --- several tensors ------------------------------------------------------------------------------------------------

@rule("cat", "concat", "concatenate", "stack")
def joined(walk: Walk, args, keywords) -> TensorType | None:
    """All have one rank, so one that is known says it. The element type is known when all are."""
    if not args or not isinstance(args[0], (Sequence, Many)):
        return None
    items = [walk.resolve(each) for each in args[0].items] if isinstance(args[0], Sequence) else [walk.resolve(args[0].item)]
    types = [each.type for each in items if isinstance(each, Tensor)]
    rank = next((len(type.shape) for type in types if type.shape is not None), None)
    dtypes = {type.dtype for type in types} if len(types) == len(items) else {None}
    return TensorType(None if rank is None else open_shape(walk, rank), dtypes.pop() if len(dtypes) == 1 else None) if types else None


@rule("stack")
def stacked(walk: Walk, args, keywords) -> TensorType | None:
    type = joined(walk, args, keywords)
    return None if type is None else TensorType(None if type.shape is None else open_shape(walk, len(type.shape) + 1), type.dtype)


@rule("scaled_dot_product_attention")
def attention(walk: Walk, args, keywords) -> TensorType | None:
    q, v = tensor(args), args[2].type if len(args) > 2 and isinstance(args[2], Tensor) else None
    if q is None or q.shape is None:
        return q
    return TensorType((*q.shape[:-1], v.shape[-1] if v is not None and v.shape else joins.open_size(walk)), q.dtype)


@rule("einsum")
def contracted(walk: Walk, args, keywords) -> TensorType | None:
    equation = args[0].value if args and isinstance(args[0], Scalar) and isinstance(args[0].value, str) else ""
    if "->" not in equation or "." in equation:
        return None
    operands = args[1].items if len(args) == 2 and isinstance(args[1], Sequence) else args[1:]
    dtypes = {each.type.dtype if isinstance(each, Tensor) else None for each in map(walk.resolve, operands)}
    return TensorType(open_shape(walk, len(equation.partition("->")[2].replace(" ", ""))), dtypes.pop() if len(dtypes) == 1 else None)


@rule("getitem")
def item(walk: Walk, args, keywords) -> TensorType | None:
    """Indexing whose sizes are not known but whose form is: slices and `...` keep axes, numbers drop them, None adds them."""
    x = tensor(args)
    if x is None or x.shape is None:
        return None if x is None else TensorType(None, x.dtype)
    parts = list(args[1].items) if isinstance(args[1], Sequence) and args[1].kind == "tuple" else [args[1]]
    rank = len(x.shape)
    for part in parts:
        inner = part.value if isinstance(part, Scalar) else None
        if isinstance(part, Scalar) and (inner is None or isinstance(inner, bool)):
            rank += 1
        elif isinstance(inner, (int, Poly)):
            rank -= 1
        elif not isinstance(inner, slice) and inner is not Ellipsis:
            return TensorType(None, x.dtype)
    return TensorType(open_shape(walk, rank), x.dtype) if rank >= 0 else None
