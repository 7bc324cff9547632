"""A method that is called again with like arguments on a like object gives a like result: its body is not walked once more.

Twelve blocks of a model are one walk of a block. A call is like another when all its arguments are alike: tensors of one type, objects
with like attributes. For facts only: a function that is compiled is followed everywhere.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from .values import (
    Deferred,
    Either,
    Instance,
    Library,
    Many,
    Mapping,
    Opaque,
    Partial,
    Scalar,
    Sequence,
    Shape,
    Tensor,
    Unknown,
    Untyped,
    UserClass,
    UserFunction,
    Value,
    Weight,
)

if TYPE_CHECKING:
    from .walk import Walk

WORTH = 120                                    # steps that a body takes, below which walking it again is as cheap
DEEP = 24


class Unlike(Exception):
    """A value that is like no other: a list, which may change."""


def key(walk: Walk, function: UserFunction, args: list[Value], keywords: dict[str, Value]) -> Any:
    """What makes two calls alike; None when nothing does."""
    if not isinstance(function.receiver, Instance) or walk.building or function.closure:
        return None
    around = walk.context
    return of_call(walk, (id(function.node), around.loops == (), around.grad, around.regions, around.autocast), args, keywords)


def of_call(walk: Walk, what: tuple, args: list[Value], keywords: dict[str, Value]) -> Any:
    """What makes two calls of one thing alike; None when nothing does. The receiver of a method is among its arguments."""
    try:
        return (*what, tuple(form(walk, arg, 0) for arg in args), tuple((name, form(walk, value, 0)) for name, value in sorted(keywords.items())))
    except (Unlike, TypeError):
        return None


def form(walk: Walk, value: Value, depth: int) -> Any:
    """A hashable form that like values share. Raises Unlike."""
    if depth > DEEP:
        raise Unlike
    match value:
        case Tensor():
            value = walk.resolve(value)
            if not isinstance(value, Tensor):
                return form(walk, value, depth + 1)
            return "tensor", value.type.shape, value.type.dtype, value.library, value.mask, value.marks, value.device, value.grad, value.inference
        case Weight():
            return "weight", value.type.shape, value.type.dtype
        case Deferred(tensor=tensor):
            return "weight", tensor.type.shape, tensor.type.dtype
        case Scalar(value=Opaque(kind=kind)):
            return "opaque", kind
        case Scalar(value=slice() as part):
            return "slice", *(form(walk, Scalar(each) if not isinstance(each, Scalar) else each, depth + 1) for each in (part.start, part.stop, part.step))
        case Scalar(value=inner):
            return type(inner).__name__, inner
        case Unknown(reason=reason):
            return "unknown", reason
        case Untyped(name=name, index=index):
            return "untyped", name, index
        case Shape(of=of):
            return "shape", form(walk, of, depth + 1)
        case Sequence(items=list() as items) if items and depth == 0:
            raise Unlike
        case Sequence(items=items, kind=kind):
            return kind, tuple(form(walk, item, depth + 1) for item in items)
        case Mapping(items=items):
            return "dict", tuple((name, form(walk, item, depth + 1)) for name, item in items.items())
        case Either(options=options):
            return "either", tuple(form(walk, option, depth + 1) for option in options)
        case Many(item=item, kind=kind):
            return "many", kind, form(walk, item, depth + 1)
        case Partial(function=function, args=args, keywords=keywords):
            return "partial", form(walk, function, depth + 1), tuple(form(walk, arg, depth + 1) for arg in args), \
                tuple((name, form(walk, item, depth + 1)) for name, item in keywords)
        case Library(name=name, receiver=receiver):
            return "library", name, None if receiver is None else form(walk, receiver, depth + 1)
        case UserFunction(node=node, receiver=receiver, closure=closure):
            return "function", id(node), tuple(map(id, closure)), None if receiver is None else form(walk, receiver, depth + 1)
        case UserClass(node=node):
            return "class", id(node)
        case Instance():
            return _object(walk, value, depth)
    return id(value)


def _object(walk: Walk, instance: Instance, depth: int) -> Any:
    if any(each is instance for each in walk.constructing):
        raise Unlike
    known = walk.forms.get(id(instance))
    if known is None:
        walk.forms[id(instance)] = instance, ("recursive", id(instance))      # an object that holds itself is like no other
        of = instance.of
        made = ("object", of.name if isinstance(of, Library) else id(of.node), instance.training, instance.complete,
                tuple((name, form(walk, value, depth + 1)) for name, value in _attributes(instance).items()))
        numbered = walk.numbers.setdefault(made, len(walk.numbers))           # a number in its place: forms of forms stay small
        known = walk.forms[id(instance)] = instance, ("object", numbered)
    return known[1]


def _attributes(instance: Instance) -> dict[str, Value]:
    """Of a faithful copy that nobody has looked at, those that it will be copies of."""
    while not instance.looked_at and instance.original[2]:
        instance = instance.original[0]
    return instance.attributes


def again(walk: Walk, result: Value, name: str, args: list[Value], node: cst.CSTNode) -> Value:
    """A result like an earlier one: new tensors of its types."""
    from .partial import opaque
    match result:
        case Tensor():
            made = opaque(walk, name, args, walk.resolve(result).type if isinstance(walk.resolve(result), Tensor) else result.type, node)
            return made
        case Sequence(items=items, kind=kind):
            inner = [again(walk, item, name, args, node) for item in items]
            return Sequence(inner if kind == "list" else tuple(inner), kind)
        case Mapping(items=items):
            return Mapping({key: again(walk, item, name, args, node) for key, item in items.items()})
        case Either(options=options):
            return Either(tuple(again(walk, option, name, args, node) for option in options))
        case Many(item=item, kind=kind):
            return Many(again(walk, item, name, args, node), kind)
    return result
