"""Classes that derive from a layer or container of torch.nn: `class Norm(nn.LayerNorm)`, `class Block(nn.Sequential)`.

Such an object holds the layer that `super().__init__(...)` makes. Its weights and items are the object's own, and `super().forward(x)`, or a
call of an object whose class has no forward, calls it.
"""
from __future__ import annotations

import libcst as cst

from ...ops.layers import LAYERS
from . import classes
from .classes import CONTAINERS, INNER
from .values import NONE, Instance, Library, UserClass, Value, Weight
from .walk import Walk


def is_layer(name: str) -> bool:
    return name in LAYERS or name in CONTAINERS


def base_of(walk: Walk, cls: UserClass, depth: int = 0) -> str:
    """The layer of torch.nn that a class derives from; "" for none."""
    for base in classes.bases(walk, cls) if depth < 16 else ():
        found = base.name if isinstance(base, Library) and is_layer(base.name) else base_of(walk, base, depth + 1) if isinstance(base, UserClass) else ""
        if found:
            return found
    return ""


def called(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """`super().__init__` and `super().forward`, when the base is a layer; None for other calls."""
    home, _, method = name.rpartition(".")
    if method not in ("__init__", "forward", "__call__") or not is_layer(home) or not args or not isinstance(args[0], Instance):
        return None
    if method == "__init__":
        set_up(walk, args[0], home, args[1:], keywords, node)
        return NONE
    return forward(walk, args[0], args[1:], keywords, node)


def set_up(walk: Walk, instance: Instance, layer: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode | None) -> None:
    from .layers import library_class
    inner = library_class(walk, layer, args, keywords, node)
    if not isinstance(inner, Instance):
        instance.complete = False
        return
    instance.attributes[INNER] = inner
    for key, value in inner.attributes.items():
        if isinstance(value, Instance):
            value.owner = (instance, key)
        elif isinstance(value, Weight):
            value = inner.attributes[key] = Weight(value.type, instance, key)
        instance.attributes.setdefault(key, value)


def forward(walk: Walk, instance: Instance, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    from .calls import call
    inner = instance.attributes.get(INNER)
    if isinstance(inner, Instance) and instance.training is not inner.training:
        inner.training = instance.training
    return call(walk, inner, args, keywords, node) if inner is not None else walk.unknown("a layer of unknown size", node)
