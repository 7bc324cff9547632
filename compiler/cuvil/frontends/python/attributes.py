"""Attributes: of tensors, modules, classes, libraries and Python values; and setting them."""
from __future__ import annotations

import math
from dataclasses import replace

import libcst as cst

from ...ir.types import DType
from ...ops import SPELLINGS
from . import classes, joins, scope
from .library import DTYPES, apply
from .values import (
    Device,
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
    UserModule,
    Value,
    shape_value,
)
from .walk import Walk
from .workspace import library

CONSTANTS = {"math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "math.nan": math.nan, "math.tau": math.tau,
             "torch.pi": math.pi, "torch.e": math.e, "torch.inf": math.inf, "torch.nan": math.nan, "torch.newaxis": None,
             "numpy.pi": math.pi, "numpy.e": math.e, "numpy.inf": math.inf, "numpy.nan": math.nan, "numpy.newaxis": None,
             "typing.TYPE_CHECKING": False}
OPAQUE = frozenset(("device", "layout", "is_cuda", "requires_grad", "grad", "names", "itemsize", "strides", "flags", "base", "is_sparse"))
# The names that torch's results of several tensors have, and their places.
NAMED_RESULTS = {"values": 0, "indices": 1, "eigenvalues": 0, "eigenvectors": 1, "U": 0, "S": 1, "Vh": 2, "V": 2, "Q": 0, "R": 1, "sign": 0,
                 "logabsdet": 1, "hist": 0, "bin_edges": 1, "solution": 0}
TENSOR_CLASS = {"torch": "torch.Tensor", "numpy": "numpy.ndarray", "python": "builtins.float"}


def get(walk: Walk, value: Value, name: str, node: cst.CSTNode) -> Value:
    match value:
        case Tensor():
            return _of_tensor(walk, value, name, node)
        case Untyped():
            if name == "shape":
                return Shape(value) if "." not in value.name else Unknown(value.reason, value.span)
            return Untyped(f"{value.name}.{name}", -1, value.span)
        case Instance():
            return classes.attribute(walk, value, name, node)
        case Either():
            value = joins.given(value)
            return joins.each(walk, value, lambda option: get(walk, option, name, node)) if isinstance(value, Either) else get(walk, value, name, node)
        case Many(kind=kind):
            return Library(f"builtins.{kind}.{name}", value)
        case Partial(function=function, args=args, keywords=keywords) if name in ("func", "args", "keywords"):
            return function if name == "func" else Sequence(args) if name == "args" else Mapping(dict(keywords))
        case UserClass(name=own) | UserFunction(name=own) if name == "__name__" and own != "lambda":
            return Scalar(own.rpartition(".")[2])
        case UserClass():
            return classes.class_attribute(walk, value, name, node)
        case Library(name="builtins.super"):
            return classes.super_attribute(walk, value, name, node)
        case Library(receiver=None):
            return _of_library(walk, value.name, name, node)
        case Scalar(value=DType() as dtype):
            return _of_dtype(dtype, name, node, walk)
        case Scalar(value=Opaque()):
            return walk.unknown(f"an attribute of a {value.value.kind}", node)
        case Scalar(value=str()):
            return Library(f"builtins.str.{name}", value)
        case Sequence(kind=kind):
            place = NAMED_RESULTS.get(name)
            if place is not None and kind == "tuple" and len(value.items) > place and isinstance(value.items[place], Tensor):
                return value.items[place]
            return Library(f"builtins.{kind}.{name}", value)
        case Shape():
            return Library(f"builtins.tuple.{name}", value)
        case Mapping(items=items, kind=kind):
            return items[name] if kind != "builtins.dict" and name in items else Library(f"{kind}.{name}", value)
        case Unknown():
            return value
        case UserModule(namespace=namespace):
            return scope.global_value(walk, namespace, name, node)
        case UserFunction():
            return Library(f"builtins.function.{name}", value)
    return walk.unknown("an attribute of something that is not known", node)


def _of_tensor(walk: Walk, value: Tensor, name: str, node: cst.CSTNode) -> Value:
    home = TENSOR_CLASS[value.library]
    if name == "shape":
        return shape_value(value)
    if name == "dtype":
        return Scalar(value.type.dtype) if value.type.dtype is not None else walk.unknown("an element type that is not known", node)
    if name == "ndim":
        return Scalar(value.type.rank) if value.type.rank is not None else walk.unknown("the shape of a tensor is not known", node)
    if name == "data":
        return replace(value, grad=False)
    if name == "device" and value.library == "torch":
        like = value.device or (Device(like=value.op.label) if value.op.label else None)
        return Scalar(Opaque("device", like))
    if name in OPAQUE:
        return Scalar(Opaque(name))
    if name in ("T", "mT", "H", "mH", "real", "imag") and f"{home}.{name}" in SPELLINGS:
        return apply(walk, f"{home}.{name}", [value], {}, node, f".{name}")
    if name == "size" and value.library == "numpy":
        return Scalar(value.type.numel) if value.type.shape is not None else walk.unknown("the shape of a tensor is not known", node)
    return Library(f"{home}.{name}", value)


def _of_dtype(dtype: DType, name: str, node: cst.CSTNode, walk: Walk) -> Value:
    match name:
        case "is_floating_point":
            return Scalar(dtype.is_float)
        case "itemsize":
            return Scalar(dtype.size)
        case "name":
            return Scalar(dtype.numpy)
    return walk.unknown("an attribute of a dtype", node)


def _of_library(walk: Walk, home: str, name: str, node: cst.CSTNode) -> Value:
    if name == "__name__" and home.rpartition(".")[2][:1].isupper():
        return Scalar(home.rpartition(".")[2])
    full = library(f"{home}.{name}")
    if full.name in CONSTANTS:
        return Scalar(CONSTANTS[full.name])
    if home == "torch" and name in DTYPES["torch"]:
        return Scalar(DTYPES["torch"][name])
    return full


def set(walk: Walk, value: Value, name: str, new: Value, node: cst.CSTNode) -> None:
    """`value.name = new`: on a user's object in `__init__`, its attribute; elsewhere an effect, which is not compiled."""
    if isinstance(value, Instance):
        if not any(each is value for each in walk.constructing):
            walk.forms = {}                                # another one: who called this knows that something changed
        classes.register(value, name, new)
        if not walk.building:
            walk.refuse("an attribute of an object is set while it runs, which is not compiled", node, "a function without effects",
                        "return the new value too")
    elif isinstance(value, Tensor):
        walk.refuse(f"`.{name}` of a tensor is set, which is not compiled", node)
        walk.changed[value.storage] = Unknown("changed through an attribute")
