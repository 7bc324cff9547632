"""Copies of Python objects, and the `__init__` that a dataclass has without writing one."""
from __future__ import annotations

from dataclasses import replace

from . import classes, prototypes
from .pythons import python
from .values import NONE, Instance, Many, Mapping, Sequence, UserClass, Value
from .walk import Walk


@python("copy.copy")
def shallow(walk: Walk, args, keywords, node) -> Value | None:
    """Another object with the same attributes; what is set on one is not set on the other."""
    match args:
        case [Instance() as of]:
            return _made(walk, replace(of, attributes=dict(of.attributes), owner=None))
        case [Sequence(items=list() as items)]:
            return Sequence(list(items), "list")
        case [Mapping(items=items, kind=kind)]:
            return Mapping(dict(items), kind)
    return None


@python("copy.deepcopy")
def deep(walk: Walk, args, keywords, node) -> Value | None:
    """Another object with others inside: layers that are copied have weights of their own."""
    match args[:1]:
        case [Instance() as of]:
            made = prototypes.copy(of, walk.created if walk.building else None)
            made.owner = None
            return made
        case [Sequence(kind="list" | "tuple") | Mapping() | Many() as of]:
            holder = Instance(NONE, {"": of})
            return prototypes.copy(holder, walk.created if walk.building else None).attributes[""]
    return None


@python("dataclasses.replace")
def replaced(walk: Walk, args, keywords, node) -> Value | None:
    """An object of a dataclass with other fields. One that computes fields after it was made is not known."""
    match args:
        case [Instance(of=UserClass() as cls) as of] if keywords.keys() <= of.attributes.keys() and classes.find_member(walk, cls, "__post_init__") is None:
            return _made(walk, replace(of, attributes={**of.attributes, **keywords}, owner=None))
    return None


@python("dataclasses.field")
def field(walk: Walk, args, keywords, node) -> Value | None:
    """The value that a field has when none is given."""
    from .calls import call
    if "default_factory" in keywords:
        return call(walk, keywords["default_factory"], [], {}, node)
    return keywords.get("default", walk.unknown("a field without a value", node))


@python("dataclasses.dataclass.__init__")
def set_up(walk: Walk, args, keywords, node) -> Value | None:
    """`super().__init__(...)` of a class that derives from a dataclass: (object, dataclass, *arguments)."""
    made = classes.dataclass_fields(walk, args[1], Instance(args[1]), args[2:], keywords, node)
    args[0].attributes.update(made.attributes)
    return NONE


def _made(walk: Walk, instance: Instance) -> Instance:
    if walk.building:
        walk.created.append(instance)
    return instance
