"""Module objects: what they hold, what switches and moves them, and who may have done so unseen."""
from __future__ import annotations

import re
from collections.abc import Iterable

from ...cst import Definition
from ...ir.types import DType
from .values import Device, Instance, Mapping, Sequence, Value, Weight
from .walk import Walk

_SWITCH = re.compile(r"\.(?:eval|train)\(")
_MOVE = re.compile(r"\.(?:to|cuda|cpu)\(")


def move(module: Instance, device: Device | None) -> None:
    """`module.to(device)`: with all that it holds."""
    for each in modules(module):
        each.device = None
    module.device = device


def modules(module: Instance) -> list[Instance]:
    """A module and the modules registered below it."""
    found, todo, seen = [], [module], set()
    while todo:
        at = todo.pop()
        if id(at) not in seen:
            seen.add(id(at))
            found.append(at)
            todo += [each for each in at.attributes.values() if isinstance(each, Instance) and each.owner is not None and each.owner[0] is at]
    return found


def switch(walk: Walk, module: Instance, mode: bool | None) -> None:
    """`module.train(mode)`, with all that it holds. In code that may not run the mode is only known if it stays what it was."""
    uncertain = walk.weak > walk.quiet
    walk.forms = {}
    for each in modules(module):
        each.training = mode if not uncertain or each.training is mode else None


def unsettled(module: Instance) -> None:
    """Somebody may have switched a module."""
    for each in modules(module):
        each.training = None


def given_away(values: Iterable[Value]) -> None:
    """Modules that unknown code has seen: it may have switched or moved them."""
    for value in values:
        for each in modules(value) if isinstance(value, Instance) else ():
            each.training = None
            if each.device is not None or each.owner is None:
                each.device = Device(like=getattr(each.of, "name", "").rpartition(".")[2])


def of_the_file(text: str, definition: Definition, name: str, value: Value) -> None:
    """An object made at the top of a file: what else the file does to it is not walked in order."""
    rest = text.replace(definition.text, "", 1)
    for each in held(value):
        if _SWITCH.search(rest):
            unsettled(each)
        if _MOVE.search(rest):
            move(each, Device(like=name))


def of_self(walk: Walk, instance: Instance, module: bool, text: str, constructor: str) -> None:
    """`self` of a method that is walked by itself. Whoever calls it may have switched a module, and `self.net` too where the file
    switches anything outside the constructor."""
    instance.device = Device(like="self")
    if module or _SWITCH.search(text.replace(constructor, "", 1)):
        for each in held(instance):
            unsettled(each)


def dtype_of_weights(module: Instance) -> DType | None:
    """The element type of floats that all weights of a module have; None when they differ or there are none."""
    found = {each.type.dtype for inner in held(module) for each in inner.attributes.values() if isinstance(each, Weight)}
    floats = {dtype for dtype in found if dtype is None or dtype.is_float}
    return floats.pop() if len(floats) == 1 else None


def held(value: Value) -> list[Instance]:
    """All objects that a value holds, itself included."""
    found, todo, seen = [], [value], set()
    while todo:
        at = todo.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        match at:
            case Instance():
                found.append(at)
                todo += at.attributes.values()
            case Sequence(items=items):
                todo += items
            case Mapping(items=items):
                todo += items.values()
    return found
