"""Marks of tensors that operations give and take: see values.MARKS. A rule takes (walk, args, keywords, result, node), found by the
operation's last name, and gives the result with its marks."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from .values import Scalar, Sequence, Tensor, Value
from .walk import Walk

Rule = Callable[[Walk, list[Value], dict[str, Value], Tensor, cst.CSTNode], Tensor]
RULES: dict[str, Rule] = {}
OTHER_ORDER = {"bgr": "rgb", "rgb": "bgr"}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function
    return register


def with_marks(value: Tensor, *added: str) -> Tensor:
    return replace(value, marks=value.marks | frozenset(added))


def without(value: Tensor, *removed: str) -> Tensor:
    return replace(value, marks=value.marks - frozenset(removed)) if value.marks else value


@rule("expand", "expand_as", "broadcast_to")
def expanded(walk: Walk, args, keywords, result, node) -> Tensor:
    """An axis of one element that now has more, or is new."""
    if not args or not isinstance(args[0], Tensor) or not result.view:
        return result
    before, after = args[0].type.shape, result.type.shape
    if before is None or after is None:                   # sizes that are written out are there to grow: nobody expands to what is there
        written = any(not isinstance(size, (Tensor, Sequence)) and not (isinstance(size, Scalar) and size.value == -1) for size in args[1:])
        return with_marks(result, "expanded") if before is None and written else result
    grown = [new for old, new in zip((1,) * (len(after) - len(before)) + before, after) if old == 1 and new != 1]
    return with_marks(result, "expanded") if grown else result


@rule("flip", "flipud", "fliplr", "rot90")
def flipped(walk: Walk, args, keywords, result, node) -> Tensor:
    """NumPy flips without a copy; torch copies."""
    result = recoloured(walk, args[0], keywords.get("axis", args[1] if len(args) > 1 else keywords.get("dims")), result)
    return _turned(args[0], result)


def _turned(image: Value, result: Tensor) -> Tensor:
    """A flipped NumPy view; flipped once more it may be the right way round again."""
    if isinstance(image, Tensor) and "negative-stride" in image.marks:
        return without(result, "negative-stride")
    return with_marks(result, "negative-stride") if result.library == "numpy" and result.view else result


def recoloured(walk: Walk, image: Value, axis: Value | None, result: Tensor) -> Tensor:
    """A flip of the axis of channels turns BGR into RGB; of another axis it leaves the colours; of one that is not known they are open."""
    marks = image.marks if isinstance(image, Tensor) else frozenset()
    order = next((mark for mark in ("bgr", "rgb") if mark in marks), "")
    if not order:
        return result
    inner = axis.items[0] if isinstance(axis, Sequence) and len(axis.items) == 1 else axis
    at, rank = inner.value if isinstance(inner, Scalar) else None, image.type.rank
    if not isinstance(at, int) or rank is None:
        return without(result, "bgr", "rgb")
    channels = rank - 1 if "hwc" in marks else rank - 3
    kept = frozenset(mark for mark in marks if mark in ("bgr", "rgb", "hwc"))
    if at % rank == channels:
        kept = kept - {order} | {OTHER_ORDER[order]}
    return replace(result, marks=result.marks - {"bgr", "rgb"} | kept)


@rule("getitem")
def item(walk: Walk, args, keywords, result, node) -> Tensor:
    if len(args) < 2 or not isinstance(args[0], Tensor):
        return result
    image, index = args[0], args[1]
    parts = list(index.items) if isinstance(index, Sequence) and index.kind == "tuple" else [index]
    steps = [number_of(part.value.step) if isinstance(part, Scalar) and isinstance(part.value, slice) else None for part in parts]
    reversed_at = next((at for at, step in enumerate(steps) if step is not None and step < 0), None)
    if reversed_at is not None:
        before_dots = all(not (isinstance(part, Scalar) and part.value is Ellipsis) for part in parts[:reversed_at])
        at = reversed_at if before_dots else reversed_at - len(parts)
        result = recoloured(walk, image, Scalar(at), result)
        return _turned(image, result)
    if not image.marks & {"bgr", "rgb", "hwc"}:
        return result
    for at, part in enumerate(parts):                     # img[:, :, [2, 1, 0]]
        order = [number_of(each) for each in part.items] if isinstance(part, Sequence) else None
        if order == [2, 1, 0]:
            before_dots = all(not (isinstance(each, Scalar) and each.value is Ellipsis) for each in parts[:at])
            return recoloured(walk, image, Scalar(at if before_dots else at - len(parts)), result)
    if image.type.rank is not None and result.type.rank == image.type.rank:
        return replace(result, marks=result.marks | image.marks & {"bgr", "rgb", "hwc"})
    if result.type.rank is not None and image.type.rank is not None and result.type.rank > image.type.rank:
        return replace(result, marks=result.marks | image.marks & {"bgr", "rgb", "hwc"})
    return without(result, "bgr", "rgb", "hwc")


def number_of(value: Value | int | None) -> int | None:
    inner = value.value if isinstance(value, Scalar) else value
    return inner if isinstance(inner, int) else None


@rule("permute", "transpose", "moveaxis", "movedim", "rearrange", "swapaxes")
def reordered(walk: Walk, args, keywords, result, node) -> Tensor:
    source = args[0] if args else None
    colours = source.marks & {"bgr", "rgb"} if isinstance(source, Tensor) else frozenset()
    return replace(result, marks=result.marks - {"hwc"} | colours)


@rule("from_numpy", "as_tensor", "asarray")
def shares_with_numpy(walk: Walk, args, keywords, result, node) -> Tensor:
    """A tensor over the memory of an array: a change of one is a change of the other."""
    source = args[0] if args else None
    if not isinstance(source, Tensor) or source.library == result.library:
        return result
    return _shared(walk, source, result)


@rule("numpy")
def as_numpy(walk: Walk, args, keywords, result, node) -> Tensor:
    return _shared(walk, args[0], result) if args and isinstance(args[0], Tensor) and args[0].library == "torch" else result


def _shared(walk: Walk, source: Tensor, result: Tensor) -> Tensor:
    if source.type.dtype is not None and result.type.dtype is not None and source.type.dtype != result.type.dtype:
        return result                                     # converted: a copy
    walk.shared.add(source.storage)
    return replace(result, storage=source.storage, view=True, marks=result.marks | source.marks - {"parameter", "pinned"} | {"shared"})
