"""What code says about sizes besides computing with them: `B, T, C = x.shape`, `assert x.shape == (B, 3)`, `if ...: raise`."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...ir.dims import Dim, Poly, symbol, symbols
from ...ir.function import Op
from ...ir.types import DType, TensorType
from .values import Scalar, Sequence, Shape, Tensor, Untyped, Value
from .walk import Walk


def unpacked_shape(walk: Walk, value: Value, parts: list[cst.BaseExpression], star: int | None) -> Value:
    """The sizes of a shape that is unpacked into names: a tensor of unknown rank gets that many axes, by these names."""
    if not isinstance(value, Shape) or star is not None or walk.weak:
        return value
    names = [part.value if isinstance(part, cst.Name) else "" for part in parts]
    base = value.of.name if isinstance(value.of, Untyped) else value.of.op.label or "x"
    dims = tuple(walk.fresh_symbol(name if name.strip("_") else f"{base}{axis}") for axis, name in enumerate(names))
    if not refinable(walk, value.of):
        return Sequence(tuple(map(Scalar, dims)))
    walk.learn_type(value.of, dims)
    return Sequence(tuple(map(Scalar, dims)))


def given_to_tensor_code(walk: Walk, values: list[Value]) -> list[Value]:
    """Arguments of a function of tensors: a parameter without a type that is given to one is a tensor."""
    found = []
    for value in values:
        if isinstance(value, Untyped) and "." not in value.name and value.index >= 0 and not walk.weak and not walk.building:
            value = walk.learn_type(walk.resolve(value), None)
        found.append(value)
    return found


IMAGES = {"torch.nn.Conv2d": "nchw", "torch.nn.BatchNorm2d": "nchw", "torch.nn.MaxPool2d": "nchw", "torch.nn.AvgPool2d": "nchw",
          "torch.nn.AdaptiveAvgPool2d": "nchw", "torch.nn.Conv1d": "ncl",
          "torch.nn.ConvTranspose2d": "nchw", "torch.nn.AdaptiveMaxPool2d": "nchw", "torch.nn.Conv3d": ("n", "c", "depth", "h", "w"),
          "torch.nn.BatchNorm3d": ("n", "c", "depth", "h", "w"), "torch.nn.MaxPool3d": ("n", "c", "depth", "h", "w")}


def given_to_layer(walk: Walk, layer: str, values: list[Value]) -> list[Value]:
    """The arguments of a layer. An input of unknown rank that is given to an image layer is a batch of images: torch takes a
    single image too, which code whose rank says nothing else does not mean."""
    values = given_to_tensor_code(walk, values)
    axes = IMAGES.get(layer)
    if axes and values and isinstance(values[0], Tensor) and values[0].type.shape is None and refinable(walk, values[0]) and not walk.weak:
        values[0] = walk.learn_type(values[0], tuple(map(walk.fresh_symbol, axes)))
    elif axes and walk.assume and values and isinstance(values[0], Tensor) and values[0].type.shape is None:
        type = TensorType(tuple(map(walk.fresh_symbol, axes)), values[0].type.dtype or DType.F32)
        values[0] = replace(values[0], op=walk.builder.append("opaque", (values[0].op.id,), {"call": "a batch of images"}, type))
    return values


def refinable(walk: Walk, of: Tensor | Untyped) -> bool:
    return isinstance(of, Untyped) or of.op.name == "input" and not of.view


def holds(walk: Walk, test: cst.BaseExpression) -> None:
    """The test is true from here on: what it says about shapes is learnt. Tests that are not understood say nothing."""
    todo = [test]
    while todo:
        node = todo.pop()
        if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.And):
            todo += node.right, node.left
        elif isinstance(node, cst.Comparison):
            left = node.left
            for target in node.comparisons:
                if isinstance(target.operator, (cst.Equal, cst.In)):
                    _equal(walk, left, target.comparator)
                left = target.comparator


def fails(walk: Walk, test: cst.BaseExpression) -> None:
    """The test is false from here on: `if x.ndim != 3: raise`."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            holds(walk, inner)
        case cst.BooleanOperation(operator=cst.Or(), left=left, right=right):
            fails(walk, left)
            fails(walk, right)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.NotEqual(), comparator=right)]):
            _equal(walk, left, right)


def _equal(walk: Walk, left: cst.BaseExpression, right: cst.BaseExpression) -> None:
    a, b = walk.evaluate(left), walk.evaluate(right)
    for this, other, node in ((a, b, left), (b, a, right)):
        if isinstance(this, Shape) and isinstance(other, Sequence) and refinable(walk, this.of):
            dims = [item.value if isinstance(item, Scalar) else None for item in other.items]
            if all(isinstance(dim, (int, Poly)) for dim in dims):
                walk.learn_type(this.of, tuple(dims))
                return
        rank = _rank_of(walk, node)
        if rank is not None and isinstance(other, Scalar) and isinstance(other.value, int) and 0 <= other.value <= 16:
            base = rank.name if isinstance(rank, Untyped) else rank.op.label or "x"
            walk.learn_type(rank, tuple(walk.fresh_symbol(f"{base}{axis}") for axis in range(other.value)))
            return
    _same(walk, a, b)


def _rank_of(walk: Walk, node: cst.BaseExpression) -> Tensor | Untyped | None:
    """The tensor of unknown rank whose number of axes an expression is: `x.ndim`, `x.dim()`, `len(x.shape)`."""
    match node:
        case cst.Attribute(value=of, attr=cst.Name(value="ndim")):
            value = walk.evaluate(of)
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name(value="dim")), args=[]):
            value = walk.evaluate(of)
        case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=cst.Attribute(value=of, attr=cst.Name(value="shape")))]):
            value = walk.evaluate(of)
        case _:
            return None
    unknown = isinstance(value, Untyped) or isinstance(value, Tensor) and value.type.shape is None
    return value if unknown and refinable(walk, value) else None


def _same(walk: Walk, a: Value, b: Value) -> None:
    match a, b:
        case Scalar(value=p), Scalar(value=q):
            for this, other in ((p, q), (q, p)):
                name = _symbol(this)
                if name is not None and isinstance(other, (int, Poly)) and not isinstance(other, bool) and this != other:
                    if isinstance(other, Poly) and name in symbols(other) or isinstance(other, int) and other < 1:
                        continue
                    walk.learn_size(name, other)
                    return
        case Sequence(items=left), Sequence(items=right) if len(left) == len(right):
            for x, y in zip(left, right):
                _same(walk, walk.resolve(x), walk.resolve(y))


def _symbol(dim: Dim) -> str | None:
    """The name of a dim that is one symbol."""
    if isinstance(dim, Poly) and len(dim.terms) == 1:
        monomial, coefficient = dim.terms[0]
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], str) and dim == symbol(monomial[0]):
            return monomial[0]
    return None


ONE_DTYPE = frozenset(("linear", "matmul", "conv2d", "layer_norm", "batch_norm", "rms_norm", "group_norm", "attention"))


def dtypes_met(walk: Walk, mark: int = 0) -> dict[int, DType]:
    """Inputs without an element type that meet a weight where torch takes only operands of one type: they have the weight's. mark: the
    place of the first op that is looked at."""
    found: dict[int, DType] = {}
    for op in walk.builder.ops[mark:]:
        if op.name in ONE_DTYPE:
            operands = [made for i in op.operands[:3 if op.name == "attention" else None] if (made := walk.op(i)) is not None]       # its mask is of any type
            known = {operand.type.dtype for operand in operands if operand.type.dtype is not None}
            if len(known) == 1:
                for at in operands:
                    while at.type.dtype is None and at.name not in ("input", "take", "gather") and at.operands and _keeps_type(walk, at) \
                            and (first := walk.op(at.operands[0])) is not None:
                        at = next((made for i in at.operands if (made := walk.op(i)) is not None and made.type.dtype is None), first)
                    if at.name == "input" and at.type.dtype is None:
                        found.setdefault(at.attr("index"), *known)
    return found


class DtypesMet(BaseException):
    """Inputs have these element types: the walk begins anew, and knows."""

    def __init__(self, dtypes: dict[int, DType]) -> None:
        self.dtypes = dtypes


def listener() -> Callable[[Walk], None]:
    """Raises DtypesMet at the first statement after which an element type is known that was not before: most are known early."""
    mark = 0

    def listen(walk: Walk) -> None:
        nonlocal mark
        if len(walk.builder.ops) > mark:
            met = dtypes_met(walk, mark)
            if met and not met.keys() <= walk.dtypes.keys():
                raise DtypesMet(met)
            mark = len(walk.builder.ops)
    return listen


def _keeps_type(walk: Walk, op: Op) -> bool:
    """What the op gives has the element type of what it is given. Of several operands one alone may be of the result's type: a mask is not; but
    an integer of Python takes the type of what is beside it."""
    if op.name in SUMS:
        others = [walk.op(i) for i in op.operands[1:]]
        return all(other is not None and other.name == "constant" and isinstance(other.attr("value"), int) for other in others)
    return op.name != "opaque" or str(op.attr("call")).rpartition(".")[2] in KEPT


SUMS = frozenset(("add", "sub", "mul", "div", "select", "maximum", "minimum", "pow"))
KEPT = frozenset(("either", "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "getitem", "flatten", "contiguous", "[]=",
                  "dropout", "cat", "stack", "pad", "flip", "roll", "relu", "gelu", "silu", "matmul", "linear"))


def types_met(walk: Walk) -> dict[int, TensorType]:
    """Inputs by their place, with all that the walk learnt of them that was not known from the start."""
    dtypes = dtypes_met(walk)
    found = {}
    for op in walk.builder.ops:
        if op.name == "input":
            place, dtype = op.attr("index"), op.type.dtype or dtypes.get(op.attr("index"))
            if op.type.shape is not None and place in walk.learned_shapes or dtype is not op.type.dtype:
                found[place] = TensorType(op.type.shape, dtype)
    return found


def sizes_met(walk: Walk, mark: int) -> None:
    """Sizes that the ops made since `mark` need to be equal, are equal from here on: had they differed, the code would have raised."""
    if walk.weak:
        return
    for at in range(mark, len(walk.builder.ops)):
        op = walk.builder.ops[at]
        if op.name in ("linear", "matmul", "layer_norm", "rms_norm") and len(op.operands) > 1:
            x, y = walk.op(op.operands[0]), walk.op(op.operands[1])
            if x is not None and y is not None and x.type.shape and y.type.shape:
                inner = y.type.shape[-2 if op.name == "matmul" and len(y.type.shape) > 1 else -1]
                if x.type.shape[-1] != inner:
                    _same(walk, Scalar(x.type.shape[-1]), Scalar(inner))
        elif op.name == "conv2d" and op.attr("groups") == 1:
            x, weight = walk.op(op.operands[0]), walk.op(op.operands[1])
            if x is not None and weight is not None and x.type.shape and weight.type.shape and x.type.shape[1] != weight.type.shape[1]:
                _same(walk, Scalar(x.type.shape[1]), Scalar(weight.type.shape[1]))
