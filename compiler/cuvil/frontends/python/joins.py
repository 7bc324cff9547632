"""What is known of a value that is one of several: after branches, around loops, over the returns of a function.

Tensors of one rank are one tensor whose differing sizes are open. Values of different kinds are an Either, and what is done with one
is done with each: `self.norm(x)` where norm is a LayerNorm or an Identity. None among them leaves where None would have raised.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.dims import Poly, symbol
from ...ir.types import TensorType
from .values import NONE, Deferred, Either, Instance, Library, Many, Mapping, Scalar, Sequence, Tensor, Unknown, Untyped, Value, Weight

if TYPE_CHECKING:
    from .walk import Walk

OPTIONS = 4                                    # more than that is not known
DIFFERS = Unknown("differs between branches")


def join(walk: Walk, a: Value, b: Value) -> Value:
    """What holds of both. For facts only: a function that needs it is refused."""
    if a is b or same(a, b):
        return a
    if isinstance(a, (Unknown, Untyped)):
        return a if isinstance(a, Unknown) else DIFFERS
    if isinstance(b, (Unknown, Untyped)):
        return b if isinstance(b, Unknown) else DIFFERS
    a, b = (walk.resolve(each) if isinstance(each, (Weight, Deferred)) else each for each in (a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return tensors(walk, a, b)
    if isinstance(a, (Sequence, Many)) and isinstance(b, (Sequence, Many)):
        return sequences(walk, a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.items.keys() == b.items.keys():
        return Mapping({key: join(walk, value, b.items[key]) for key, value in a.items.items()})
    if isinstance(a, Scalar) and isinstance(b, Scalar) and is_size(a.value) and is_size(b.value) and a.value != 0 and b.value != 0 and (
            isinstance(a.value, Poly) or isinstance(b.value, Poly)):
        return Scalar(open_size(walk)) if least(a.value) and least(b.value) else DIFFERS
    options: list[Value] = []
    for each in (*(a.options if isinstance(a, Either) else (a,)), *(b.options if isinstance(b, Either) else (b,))):
        for at, known in enumerate(options):
            if same(known, each):
                break
            if isinstance(known, Tensor) and isinstance(each, Tensor):
                options[at] = tensors(walk, known, each)
                break
        else:
            options.append(each)
    if any(isinstance(each, Unknown) for each in options) or len(options) > OPTIONS:
        return DIFFERS
    return options[0] if len(options) == 1 else Either(tuple(options))


def open_size(walk: Walk) -> Poly:
    """A size of which nothing is known."""
    made = walk.fresh_symbol("n")
    walk.open_sizes.add(made)
    return made


def is_size(value: object) -> bool:
    return isinstance(value, (int, Poly)) and not isinstance(value, bool)


def least(value: int | Poly) -> bool:
    from ...ir.dims import at_least
    return at_least(value, 1)


def same(a: Value, b: Value) -> bool:
    """The two are one value, as far as anyone can tell."""
    if a is b or type(a) is not type(b):
        return a is b
    match a:
        case Scalar(value=p):
            return type(p) is type(b.value) and p == b.value
        case Tensor():
            return a.op is b.op and a.storage == b.storage
        case Library():
            return a == b
        case Instance(of=Library(name=name)) if isinstance(b.of, Library):
            return name == b.of.name and a.constructor == b.constructor and a.weights == b.weights and a.complete and b.complete \
                and a.constructor is not None
    return False


def tensors(walk: Walk, a: Tensor, b: Tensor, wide: bool = False) -> Value:
    """One of two tensors: the sizes, type and marks that both have. wide: what the first says holds of the second."""
    if a.library != b.library:
        return Unknown("differs between branches")
    p, q = a.type, b.type
    shape = None
    if p.shape is not None and q.shape is not None and len(p.shape) == len(q.shape):
        shape = p.shape if wide else tuple(x if x == y else open_size(walk) for x, y in zip(p.shape, q.shape))
    type = TensorType(shape, p.dtype if p.dtype == q.dtype else None)
    walk.builder.origins = a.op.origins
    op = walk.builder.append("opaque", (a.op.id, b.op.id), {"call": "either"}, type)
    made = walk.tensor(op, a.library)
    walk.fixed[made.storage] = "it is one of two tensors"
    return replace(made, device=a.device if a.device == b.device else None, grad=a.grad if a.grad == b.grad else None,
                   inference=a.inference and b.inference, mask=a.mask if a.mask == b.mask else None, marks=a.marks & b.marks)


def without_differences(a: TensorType, b: TensorType) -> TensorType:
    """What two types have in common: a size that differs becomes a symbol named for its axis."""
    if a == b:
        return a
    shape = None
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        shape = tuple(p if p == q else symbol(f"axis{axis}") for axis, (p, q) in enumerate(zip(a.shape, b.shape)))
    return TensorType(shape, a.dtype if a.dtype == b.dtype else None)


def sequences(walk: Walk, a: Sequence | Many, b: Sequence | Many) -> Value:
    if a.kind != b.kind:
        return DIFFERS
    if isinstance(a, Sequence) and isinstance(b, Sequence) and len(a.items) == len(b.items) and a.kind != "set":
        items = [join(walk, x, y) for x, y in zip(a.items, b.items)]
        return Sequence(items if a.kind == "list" else tuple(items), a.kind)
    parts = [*(a.items if isinstance(a, Sequence) else (a.item,)), *(b.items if isinstance(b, Sequence) else (b.item,))]
    return Many(all_of(walk, parts), a.kind) if a.kind != "set" else DIFFERS


def all_of(walk: Walk, values: list[Value]) -> Value:
    """What holds of all of some values."""
    if not values:
        return Unknown("an item of an empty sequence")
    found = values[0]
    for each in values[1:]:
        found = join(walk, found, each)
    return found


def each(walk: Walk, value: Either, function: Callable[[Value], Value]) -> Value:
    """What a function gives for each option but None, where it would have raised."""
    return all_of(walk, [function(option) for option in value.options if not _none(option)])


def given(value: Value) -> Value:
    """The value where None would raise: an Either without it."""
    return without(value, _none)


def without(value: Value, left_out: Callable[[Value], bool]) -> Value:
    """An Either without some of its options; itself when none would be left."""
    if not isinstance(value, Either):
        return value
    left = tuple(option for option in value.options if not left_out(option))
    return value if not left or len(left) == len(value.options) else left[0] if len(left) == 1 else Either(left)


def optional(value: Value) -> Value:
    """The value, or None."""
    if isinstance(value, Either):
        return value if any(map(_none, value.options)) else Either((NONE, *value.options)[:OPTIONS])
    return value if _none(value) or isinstance(value, Unknown) else Either((NONE, value))


def _none(value: Value) -> bool:
    return isinstance(value, Scalar) and value.value is None


def wide(walk: Walk, a: Value, b: Value) -> bool:
    """All that `a` says holds of `b`: going around a loop once more finds nothing new. Sizes that `a` leaves open may be any."""
    if a is b or isinstance(a, (Unknown, Untyped)):
        return True
    inside = lambda p, q: len(p) == len(q) and all(wide(walk, x, y) for x, y in zip(p, q))
    match a, b:
        case Tensor(type=p), Tensor(type=q):
            if a.library != b.library or p.dtype is not None and p.dtype != q.dtype:
                return False
            return p.shape is None or q.shape is not None and len(p.shape) == len(q.shape) and all(
                x == y or x in walk.open_sizes for x, y in zip(p.shape, q.shape))
        case Scalar(value=p), Scalar(value=q):
            return type(p) is type(q) and p == q or is_size(q) and isinstance(p, Poly) and p in walk.open_sizes
        case Sequence(items=p), Sequence(items=q):
            return a.kind == b.kind and inside(p, q)
        case Many(item=item), Sequence(items=items):
            return a.kind == b.kind and all(wide(walk, item, each) for each in items)
        case Many(item=p), Many(item=q):
            return a.kind == b.kind and wide(walk, p, q)
        case Mapping(items=p), Mapping(items=q):
            return p.keys() == q.keys() and inside(p.values(), q.values())
        case Either(options=options), Either(options=others):
            return all(any(wide(walk, option, other) for option in options) for other in others)
        case Either(options=options), _:
            return any(wide(walk, option, b) for option in options)
    return same(a, b)
