"""Calls of the libraries: arguments become what the vocabulary's spellings take, results become values, failures get a place."""
from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import cache
from typing import Any

import libcst as cst

from ...diagnostics import Evidence
from ...ir.function import Op
from ...ir.types import DType, TensorType
from ...ops import SPELLINGS, TypeRuleError
from ...ops.definition import unsupported
from . import joins, last_axis, learn, marks, masks, partial, traits
from .joins import given
from .values import CPU, NONE, Library, Mapping, Opaque, Scalar, Sequence, Tensor, Unknown, Value, Weight, describe
from .walk import VIEWS, Walk

DTYPES = {"torch": {"float": DType.F32, "double": DType.F64, "half": DType.F16, "bfloat16": DType.BF16, "int": DType.I32, "long": DType.I64,
                    "short": DType.I16, "bool": DType.BOOL, **{d.numpy: d for d in DType if d != DType.BOOL}},
          "numpy": {"bool_": DType.BOOL, "half": DType.F16, "single": DType.F32, "double": DType.F64, "intp": DType.I64, "int_": DType.I64,
                    "ubyte": DType.U8, "byte": DType.I8, **{d.numpy: d for d in DType if d != DType.BF16}}}
PYTHON_DTYPES = {"builtins.float": DType.F64, "builtins.int": DType.I64, "builtins.bool": DType.BOOL}
COPIES = frozenset(("clone", "copy", "deepcopy", "astype", "array", "repeat", "tile", "tensor", "new_tensor", "full", "zeros", "ones", "cat",
                    "stack", "concatenate", "flip", "roll", "repeat_interleave", "empty", "where", "pad"))


_OF_TENSORS = ("torch.nn.functional.", "torch.softmax", "torch.matmul", "torch.relu", "torch.sigmoid", "torch.exp", "torch.bmm")


# What gives several tensors, or none: a call of these that is not understood is not taken as a tensor.
NOT_ONE_TENSOR = frozenset(("max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin", "unique", "unique_consecutive",
                            "split", "chunk", "unbind", "tensor_split", "svd", "qr", "eig", "eigh", "slogdet", "meshgrid", "broadcast_tensors", "aminmax",
                            "std_mean", "var_mean", "size", "stride", "numel", "item", "tolist", "nonzero", "where", "histogram", "modf", "divmod", "shape",
                            "multi_head_attention_forward", "MultiheadAttention", "LSTM", "GRU", "RNN", "LSTMCell", "lstm_cell", "frexp", "inv_ex",
                            "cholesky_ex", "lu", "lu_factor", "lstsq", "svd_lowrank", "pca_lowrank", "triangular_solve", "gradient", "hsplit", "vsplit",
                            "dsplit", "split_with_sizes", "array_split", "unravel_index", "broadcast_arrays", "tril_indices", "triu_indices"))


class Silent(Exception):
    """An argument is not known, so neither is the result."""

    def __init__(self, value: Value) -> None:
        self.value = value


def is_tensor(value: Value) -> bool:
    return isinstance(value, Tensor)


def _number(value: Value) -> Value:
    """A NumPy scalar leaves the operator to a torch tensor beside it, which takes it for a Python number."""
    return replace(value, library="python") if isinstance(value, Tensor) and value.library == "numpy" and value.type.shape == () else value


def apply(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode, shown: str = "") -> Value:
    """A call of a spelled function with evaluated arguments. shown: how the source says it, for messages ("+")."""
    return said(walk, name, args, keywords, _applied(walk, name, args, keywords, node, shown or name), node)


def _applied(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode, shown: str) -> Value:
    if name.startswith("operator.") and len(args) == 2 and {"torch", "numpy"} == {each.library for each in map(walk.resolve, args) if isinstance(each, Tensor)}:
        args = [_number(walk.resolve(each)) for each in args]
        if isinstance(args[0], Tensor) and args[0].library == "numpy":
            return walk.unknown("an array before a tensor: NumPy asks the tensor for its elements", node)
    if name.startswith(_OF_TENSORS) and args:
        args = [*learn.given_to_tensor_code(walk, [walk.resolve(args[0])]), *args[1:]]
    tensors = [t for t in map(walk.resolve, (*args, *keywords.values())) if isinstance(t, Tensor)]
    tensors += [t for v in (*args, *keywords.values()) if isinstance(v, Sequence) for t in v.items if isinstance(t, Tensor)]
    library = name.partition(".")[0]
    if library not in ("torch", "numpy"):
        library = next((t.library for t in tensors if t.library != "python"), "python")
    builder = walk.builder
    builder.library = "numpy" if library == "numpy" else "torch"
    builder.origins = (walk.origin(node),)
    mark = len(builder.ops)
    try:
        plain_args = [plain(walk, value, library, tensors) for value in args]
        plain_keywords = {key: plain(walk, value, library, tensors) for key, value in keywords.items()}
        if library == "torch" and isinstance(plain_keywords.get("dtype"), str):
            raise TypeError("an element type as a string")
        result = call(builder, name, plain_args, plain_keywords)
    except Silent as silent:
        again = lambda args, keywords: _applied(walk, name, args, keywords, node, shown)
        found = partial.result(walk, name, args, keywords, node, again)
        if isinstance(found, Tensor) and found.op.name == "opaque":
            walk.refuse(f"a value is not known: {getattr(silent.value, 'reason', describe(silent.value))}", getattr(silent.value, "span", None) or node,
                        "a value that is known while compiling", "annotate the parameters, or give input_shapes")
        if found is not None:
            return found
        reason = getattr(silent.value, "reason", "a value that is not known")
        if reason in partial.NUMBERS and any(map(is_tensor, (*args, *keywords.values()))):
            reason = "a call with a number that is not known"                # what it gives is no number: it may have any rank
        return Unknown(reason, getattr(silent.value, "span", None))
    except TypeRuleError as error:
        del builder.ops[mark:]
        builder._next = builder.ops[-1].id + 1 if builder.ops else 0
        if error.kind == "unknown":
            found = partial.result(walk, name, args, keywords, node, lambda args, keywords: None)
            if found is not None:
                walk.refuse(f"{shown}: {error.what}", node, hint="give the shapes of the inputs in input_shapes")
                return found
        if error.kind == "unsupported" and not error.results and walk.facts_only:
            found = partial.result(walk, name, args, keywords, node, lambda args, keywords: None)
            if found is not None:
                walk.refuse(f"{error.what} is not compiled", node, hint=f"write {error.expected}" if error.expected else "")
                return found
        return failed(walk, error, node, shown, args, keywords)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, ZeroDivisionError, OverflowError) as error:
        del builder.ops[mark:]                # arguments of a kind the spelling was not written for: not a finding
        builder._next = builder.ops[-1].id + 1 if builder.ops else 0
        walk.refuse(f"{shown} with these arguments is not compiled ({type(error).__name__}: {error})", node)
        asked = keywords.get("dtype")
        named = isinstance(asked, Scalar) and isinstance(asked.value, str)         # torch takes no names
        found = partial.result(walk, name, args, keywords, node, lambda args, keywords: None) if walk.facts_only and not named else None
        return found if found is not None else walk.unknown(f"{name} with unusual arguments", node)
    wrong = last_axis.mismatch(walk, mark)
    if wrong is not None:
        return failed(walk, wrong, node, shown, args, keywords)
    value = lift(walk, result, library, name, tensors, mark)
    learn.sizes_met(walk, mark)
    return walk.resolve(value)


def said(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], value: Value, node: cst.CSTNode) -> Value:
    """A result with what follows for it as a mask and of where it comes from."""
    last = name.rpartition(".")[2]
    if not isinstance(value, Tensor) or last not in masks.RULES and last not in marks.RULES:
        return value
    args = [walk.resolve(arg) if isinstance(arg, Weight) else arg for arg in args]
    if last in masks.RULES:
        mask = masks.RULES[last](walk, args, keywords, value, node)
        if mask is not value.mask:
            value = replace(value, mask=mask)
    return marks.RULES[last](walk, args, keywords, value, node) if last in marks.RULES else value


def call(builder: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """ops.definition.call with signatures kept: binding is most of the cost of a small call."""
    function = SPELLINGS[name]
    try:
        signature(function).bind(builder, *args, **keywords)
    except TypeError as error:
        raise unsupported(f"{name}: {error}", "the arguments that Cuvil captures") from None
    return function(builder, *args, **keywords)


@cache
def signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def failed(walk: Walk, error: TypeRuleError, node: cst.CSTNode, shown: str, args: list[Value], keywords: dict[str, Value]) -> Unknown:
    if error.kind == "unknown":
        walk.refuse(f"{shown}: {error.what}", node, hint="give the shapes of the inputs in input_shapes")
        return walk.unknown(error.what, node)
    if error.kind == "unsupported":
        walk.refuse(f"{error.what} is not compiled", node, hint=f"write {error.expected}" if error.expected else "")
        given = [walk.resolve(value) for value in (*args, *keywords.values())]
        if error.results:
            results = [_given(walk, shown, given, each, node) for each in error.results]
            return results[0] if len(results) == 1 else Sequence(tuple(results))
        if shown.rpartition(".")[2] not in NOT_ONE_TENSOR and any(map(is_tensor, given)):
            return partial.opaque(walk, shown, given, TensorType(None, None), node)
        return walk.unknown(f"{shown} is used in a way that is not supported", node)
    if any(isinstance(each, Tensor) and 0 in (each.type.shape or ()) for each in map(walk.resolve, (*args, *keywords.values()))):
        return walk.unknown("an operation on no elements", node)          # a list that is filled elsewhere, a default that nobody uses
    if error.kind == "dtype-mismatch" and _only_claimed(walk, (*args, *keywords.values())):
        return walk.unknown("an element type that the code contradicts", node)
    return walk.problem(error.kind, error.what, error.expected, node, shown, evidence(walk, (*args, *keywords.values())))


def _only_claimed(walk: Walk, values: tuple[Value, ...]) -> bool:
    """An element type of the clash is one that only `torch.LongTensor` and the like say of a parameter of the function that is walked:
    people write those for any tensor, and Python does not check them."""
    definition = walk.recording.definition if walk.recording is not None else None
    if definition is None or "Tensor" not in definition.text:
        return False
    claimed = {_CLASSES[name] for name in re.findall(r"\b(Long|Int|Short|Byte|Bool|Half|Float|Double|BFloat16)Tensor\b", _HEADER.match(definition.text)[0])}
    return any(value.type.dtype in claimed for value in map(joins.given, map(walk.resolve, values)) if isinstance(value, (Tensor, Weight)))


_CLASSES = {"Long": DType.I64, "Int": DType.I32, "Short": DType.I16, "Byte": DType.U8, "Bool": DType.BOOL, "Half": DType.F16, "Float": DType.F32,
            "Double": DType.F64, "BFloat16": DType.BF16}
_HEADER = re.compile(r"(?s).*?\)\s*(?:->[^\n]*)?:\s*\n|.*")


def _given(walk: Walk, name: str, args: list[Value], type: Any, node: cst.CSTNode) -> Value:
    """A result that only facts need: an opaque op, None, or a tuple of them."""
    if type is None:
        return NONE
    if isinstance(type, TensorType):
        return partial.opaque(walk, name, args, type, node)
    return Sequence(tuple(_given(walk, name, args, each, node) for each in type))


def evidence(walk: Walk, values: tuple[Value, ...]) -> tuple[Evidence, ...]:
    """Where each tensor of a clash got its shape."""
    found = []
    flat = [item for value in values for item in (value.items if isinstance(value, Sequence) else (value,))]
    for value in flat[:6]:
        value = walk.resolve(value)
        if isinstance(value, Tensor) and value.op.origins:
            label = f"`{value.op.label}` is " if value.op.label else "this is "
            found.append(Evidence(value.op.origins[0].span, label + str(value.type)))
    return tuple(dict.fromkeys(found))


def plain(walk: Walk, value: Value, library: str, tensors: list[Tensor]) -> Any:
    """What a spelling takes: ops, numbers, dims, strings, dtypes, slices, lists and tuples of these. Raises Silent."""
    value = given(walk.resolve(value))
    match value:
        case Tensor(library="python") if library == "numpy":      # a Python float is weak there too: it takes the array's dtype
            dtype = next((t.type.dtype for t in tensors if t.library == "numpy" and t.type.dtype is not None), DType.F64)
            return walk.builder.cast(value.op, dtype if dtype.is_float else DType.F64)
        case Tensor(library="python") if library == "torch" and (dtype := _taken_by(tensors, value)) is not None:
            return walk.builder.cast(value.op, dtype)
        case Tensor():
            return value.op
        case Scalar(value=slice() as part):
            return slice(*(plain(walk, p, library, tensors) if p is not None else None for p in (part.start, part.stop, part.step)))
        case Scalar(value=Opaque()):
            return None
        case Scalar(value=inner):
            return inner
        case Sequence(items=items, kind=kind) if kind != "set":
            inner = [plain(walk, item, library, tensors) for item in items]
            return inner if kind == "list" else tuple(inner)
        case Library(name=name):
            dtype = dtype_named(name)
            if dtype is not None:
                return dtype
        case Mapping(items=items):
            return {key: plain(walk, item, library, tensors) for key, item in items.items()}
    raise Silent(value)


def _taken_by(tensors: list[Tensor], number: Tensor) -> DType | None:
    """The element type that a Python float has beside torch tensors none of which has axes and floats; where one has, it gives way there."""
    types = [each.type for each in tensors if each.library == "torch"]
    if not types or not number.type.dtype.is_float or any(t.dtype is None or t.dtype.is_float and t.shape != () for t in types):
        return None
    return next((t.dtype for t in types if t.dtype.is_float), DType.F32)


def dtype_named(name: str) -> DType | None:
    if name in PYTHON_DTYPES:
        return PYTHON_DTYPES[name]
    home, _, last = name.rpartition(".")
    return DTYPES.get(home, {}).get(last)


def lift(walk: Walk, result: Any, library: str, name: str, arguments: list[Tensor], mark: int) -> Value:
    """A spelling's result as a value; a tensor that shares memory with an argument keeps its storage."""
    match result:
        case Op():
            return _tensor(walk, result, library, name, arguments, mark)
        case tuple():
            return Sequence(tuple(lift(walk, item, library, name, arguments, mark) for item in result))
        case list():
            return Sequence([lift(walk, item, library, name, arguments, mark) for item in result], "list")
        case Tensor() | Scalar() | Sequence() | Unknown() | Mapping():
            return result
    return Scalar(result)


def _tensor(walk: Walk, op: Op, library: str, name: str, arguments: list[Tensor], mark: int) -> Tensor:
    last = name.rpartition(".")[2]
    if last not in COPIES or name == "numpy.flip":        # NumPy flips without a copy
        by_id = {t.op.id: t for t in arguments}
        fresh, at = {made.id: made for made in walk.builder.ops[mark:]}, op
        while at is not None and at.id not in by_id and at.id in fresh and at.name in VIEWS and at.operands:
            at = fresh.get(at.operands[0]) or walk.op(at.operands[0])
        base = by_id.get(at.id) if at is not None else None
        if base is not None and name == "torch.Tensor.numpy":      # the same memory, as an array
            return replace(traits.view(walk, op, name, base), library="numpy", device=CPU)
        if base is not None and base.library == library:
            return traits.view(walk, op, name, base)
    return traits.made(walk, op, library, name, arguments)
