"""Items: `x[...]` of tensors, sequences, dicts, modules and annotations, and assignment to items."""
from __future__ import annotations

from typing import Any

import libcst as cst

from ...ir.dims import Poly
from ...ops import SPELLINGS
from . import joins, layers, records, traits
from .classes import register
from .library import apply
from .mutation import write_into
from .partial import NUMBERS, SOME_NUMBER
from .values import OPEN, Either, Instance, Library, Many, Mapping, Scalar, Sequence, Shape, Tensor, Unknown, Untyped, UserClass, UserFunction, Value
from .walk import Walk

FEW = 8                                        # values of a dict, of which an unknown key picks one


def key(walk: Walk, elements: tuple[cst.SubscriptElement, ...]) -> Value:
    """The value of what stands between the brackets."""
    parts = []
    for element in elements:
        if isinstance(element.slice, cst.Index):
            value = walk.evaluate(element.slice.value)
            if element.slice.star:
                return walk.unknown("unpacking inside an index", element)
            parts.append(value)
        else:
            parts.append(_slice(walk, element.slice))
    single = len(elements) == 1 and not isinstance(elements[0].comma, cst.Comma)
    return parts[0] if single else Sequence(tuple(parts))


def _slice(walk: Walk, node: cst.Slice) -> Value:
    parts = [walk.evaluate(part) if part is not None else None for part in (node.lower, node.upper, node.step)]
    return Scalar(slice(*(None if isinstance(p, Scalar) and p.value is None else p for p in parts)))


def get(walk: Walk, value: Value, index: Value, node: cst.CSTNode) -> Value:
    value = joins.given(value)
    match value:
        case Either():
            return joins.each(walk, value, lambda option: get(walk, option, index, node))
        case Many(item=inner):
            return value if isinstance(index, Scalar) and isinstance(index.value, slice) else walk.resolve(inner)
        case Tensor():
            return apply(walk, "operator.getitem", [value, index], {}, node, "indexing")
        case Sequence(items=items, kind=kind):
            found = _item(items, index)
            if found is None:
                return _missing(walk, index, len(items), node)
            return Sequence(found if kind == "list" else tuple(found), kind) if isinstance(found, (list, tuple)) else walk.resolve(found)
        case Mapping(items=items):
            if isinstance(index, Scalar) and not isinstance(index.value, (Poly, slice)):
                if index.value in items or value.kind != OPEN:
                    return walk.resolve(items[index.value]) if index.value in items else walk.unknown("a key that is not in the dict", node)
            if 0 < len(items) <= FEW:                         # one of its values, else it would have raised
                return joins.all_of(walk, [walk.resolve(each) for each in items.values()])
            from .hub import ROPE
            if items and all(isinstance(each, UserFunction) and each.name in ROPE for each in items.values()):
                return next(iter(items.values()))             # whichever it is, hub.py says what it gives
        case Scalar(value=str() | range() as inner):
            found = _item(inner, index)
            if found is not None:
                return Scalar(found)
        case Shape():
            number = isinstance(index, Scalar) and not isinstance(index.value, slice)
            return walk.unknown(SOME_NUMBER if number else "the shape of a tensor is not known", node)
        case Instance():
            return layers.item(walk, value, index, node)
        case Library() | UserClass():
            return value                                      # an annotation: list[int], Float[Tensor, "b t"]
        case Unknown():
            return value
    reasons = (getattr(value, "reason", None), getattr(index, "reason", None))                   # an item at a number is no number
    return walk.unknown(next((r for r in reasons if r and r not in NUMBERS), "an item of something that is not known"), node)


def _item(items: Any, index: Value) -> Any:
    """An item or a slice of a Python sequence; None when it is out of range or the index is not known."""
    if not isinstance(index, Scalar):
        return None
    at = index.value
    if isinstance(at, slice):
        parts = [p.value if isinstance(p, Scalar) else p for p in (at.start, at.stop, at.step)]
        if not all(p is None or isinstance(p, int) for p in parts) or parts[2] == 0:
            return None
        return items[slice(*parts)]
    if isinstance(at, int) and -len(items) <= at < len(items):
        return items[at]
    return None


def _missing(walk: Walk, index: Value, length: int, node: cst.CSTNode) -> Value:
    if isinstance(index, Scalar) and isinstance(index.value, int) and not isinstance(index.value, bool):
        return walk.problem("index-out-of-range", f"index {index.value} of a sequence of {length} items",
                            f"an index from {-length} to {length - 1}" if length else "a sequence that is not empty", node, "indexing")
    reason = getattr(index, "reason", None)
    return walk.unknown(reason if reason and reason not in NUMBERS else "an index that is not known", node)


def item(walk: Walk, value: Tensor, index: int) -> Value:
    """Row `index` of a tensor that is iterated over; comes from the expression walked last."""
    builder = walk.builder
    builder.library = value.library
    return traits.view(walk, SPELLINGS["operator.getitem"](builder, value.op, index), "operator.getitem", value)


def set(walk: Walk, value: Value, index: Value, new: Value, node: cst.CSTNode) -> None:
    """`value[index] = new`."""
    match value:
        case Sequence(items=list() as items):
            if isinstance(index, Scalar) and isinstance(index.value, int) and -len(items) <= index.value < len(items):
                items[index.value] = new
            else:
                walk.refuse("a list is changed at an index that is not known", node)
                items[:] = [Unknown("a list changed at an unknown index")] * len(items)
        case Instance(of=Library(name="torch.nn.ModuleList" | "torch.nn.Sequential" | "torch.nn.ModuleDict")):
            key_ = index.value if isinstance(index, Scalar) else None
            if str(key_) in value.attributes:
                register(value, str(key_), new)
            else:
                register(value, "*", joins.all_of(walk, [*value.attributes.values(), new]))
        case Many():
            value.item = joins.join(walk, value.item, new)
        case Mapping(items=items):
            if isinstance(index, Scalar) and not isinstance(index.value, (Poly, slice)):
                items[index.value] = new
            else:
                walk.refuse("a dict is changed at a key that is not known", node)
                for name in items:
                    if not isinstance(name, tuple):
                        items[name] = Unknown("a dict changed at an unknown key")
                items[("a key that is not known", len(items))] = new
                value.kind = OPEN if value.kind == "builtins.dict" else value.kind
        case Tensor():
            write_into(walk, value, index, new, node)
        case Unknown():
            pass
        case Untyped():
            records.written(walk, value, "[]=", new, node)
            walk.refuse("an item of something that is not known is set", node)
        case _:
            walk.refuse("an item of this object is set, which is not compiled", node)
