"""Operators: on tensors they are ops, on Python values and sizes they are worked out here, exactly as Python does."""
from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import libcst as cst

from ...ir.dims import Dim, Poly, at_least, at_most, floordiv, modulo, proved_different
from ...ir.types import DType
from . import joins
from .library import apply, is_tensor
from .partial import NUMBERS
from .values import (
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
from .walk import Walk

BINARY: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "Add": ("add", "+", operator.add), "Subtract": ("sub", "-", operator.sub), "Multiply": ("mul", "*", operator.mul),
    "Divide": ("truediv", "/", operator.truediv), "FloorDivide": ("floordiv", "//", operator.floordiv), "Modulo": ("mod", "%", operator.mod),
    "Power": ("pow", "**", operator.pow), "MatrixMultiply": ("matmul", "@", operator.matmul), "BitAnd": ("and_", "&", operator.and_),
    "BitOr": ("or_", "|", operator.or_), "BitXor": ("xor", "^", operator.xor), "LeftShift": ("lshift", "<<", operator.lshift),
    "RightShift": ("rshift", ">>", operator.rshift)}
UNARY: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "Minus": ("neg", "-", operator.neg), "Plus": ("pos", "+", operator.pos), "BitInvert": ("invert", "~", operator.invert)}
COMPARE: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "Equal": ("eq", "==", operator.eq), "NotEqual": ("ne", "!=", operator.ne), "LessThan": ("lt", "<", operator.lt),
    "LessThanEqual": ("le", "<=", operator.le), "GreaterThan": ("gt", ">", operator.gt), "GreaterThanEqual": ("ge", ">=", operator.ge)}

ON_SIZES: dict[str, Callable[[Dim, Dim], Dim]] = {
    "Add": operator.add, "Subtract": operator.sub, "Multiply": operator.mul, "FloorDivide": floordiv, "Modulo": modulo}
OF_BITS = frozenset(("BitAnd", "BitOr", "BitXor", "LeftShift", "RightShift"))
LONGEST = 100_000                                     # of a string, list or power that is worked out


def binary(walk: Walk, kind: str, left: Value, right: Value, node: cst.CSTNode) -> Value:
    name, sign, function = BINARY[kind]
    if kind in ON_SIZES and walk.building:
        left, right = walk.size_of(left), walk.size_of(right)
    left, right = joins.given(left), joins.given(right)
    if isinstance(left, Either):
        return joins.each(walk, left, lambda option: binary(walk, kind, option, right, node))
    if isinstance(right, Either):
        return joins.each(walk, right, lambda option: binary(walk, kind, left, option, node))
    if is_tensor(left) or is_tensor(right):
        left, right = (_array(walk, each, other, node) for each, other in ((left, right), (right, left)))
        return apply(walk, f"operator.{name}", [left, right], {}, node, sign)
    match left, right:
        case Scalar(value=str() as form), _ if kind == "Modulo":
            return _formatted(walk, form, right, node)
        case Scalar(value=a), Scalar(value=b):
            return python(walk, kind, a, b, node)
        case Sequence(items=a, kind=x), Sequence(items=b, kind=y) if kind == "Add" and x == y and x != "set" and len(a) + len(b) <= LONGEST:
            return Sequence([*a, *b], "list") if x == "list" else Sequence((*a, *b))
        case (Sequence(items=items, kind=x), Scalar(value=int(times))) | (Scalar(value=int(times)), Sequence(items=items, kind=x)) \
                if kind == "Multiply" and x != "set" and len(items) * times <= LONGEST:
            return Sequence(list(items) * times, "list") if x == "list" else Sequence(tuple(items) * times)
        case (Shape(), _) | (_, Shape()):
            return walk.unknown("a shape that is not known", node)
    return silent(walk, (left, right), node)


def _array(walk: Walk, value: Value, other: Value, node: cst.CSTNode) -> Value:
    """A list beside an array is an array to NumPy."""
    return apply(walk, "numpy.array", [value], {}, node) if isinstance(value, Sequence) and value.kind != "set" and is_tensor(other) and other.library == "numpy" else value


def _formatted(walk: Walk, form: str, right: Value, node: cst.CSTNode) -> Value:
    """`"block%d" % (i + 1)`: the name under which a module is kept, say."""
    parts = right.items if isinstance(right, Sequence) and right.kind == "tuple" else (right,)
    values = tuple(part.value if isinstance(part, Scalar) else None for part in parts)
    if len(form) > LONGEST or not all(isinstance(value, (int, str)) for value in values) or "*" in form or any(
            len(width) > 4 for width in re.findall(r"\d+", form)):
        return walk.unknown("a formatted string", node)
    try:
        return Scalar(form % values)
    except (TypeError, ValueError, OverflowError, MemoryError):
        return walk.unknown("a formatted string", node)


def python(walk: Walk, kind: str, a: Any, b: Any, node: cst.CSTNode) -> Value:
    """An operator on two Python values."""
    _, sign, function = BINARY[kind]
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        return walk.unknown("a value that is not a number", node)
    if isinstance(a, Poly) or isinstance(b, Poly):
        if not all(isinstance(x, (int, float, Poly)) for x in (a, b)):
            return walk.unknown("a size with a value that is not a number", node)
        if kind in ("FloorDivide", "Modulo", "Divide") and not isinstance(b, Poly) and b == 0:
            return walk.unknown("a Python operation that fails", node)
        if kind in ON_SIZES and not isinstance(a, float) and not isinstance(b, float):
            return Scalar(ON_SIZES[kind](a, b))
        if kind == "Power" and isinstance(b, int) and 0 <= b <= 8:
            result: Dim = 1
            for _ in range(b):
                result = result * a
            return Scalar(result)
        if kind in OF_BITS:
            return walk.unknown("the bits of a size", node)
        return apply(walk, f"operator.{BINARY[kind][0]}", [real(walk, a, node), real(walk, b, node)], {}, node, sign)
    if kind == "Modulo" and isinstance(a, str) and type(b) in (int, str) and len(a) < 200 and not re.search(r"\d{5}", a):
        try:
            return Scalar(a % b)
        except (TypeError, ValueError):
            return walk.unknown("a formatted string", node)
    if large(kind, a, b) or kind == "Modulo" and isinstance(a, (str, bytes)):
        return walk.unknown("a formatted string" if isinstance(a, (str, bytes)) else "a number that is too large", node)
    try:
        return Scalar(function(a, b))
    except (TypeError, ValueError, ArithmeticError, MemoryError):
        return walk.unknown("a Python operation that fails", node)


def large(kind: str, a: Any, b: Any) -> bool:
    """Whether the result may have more characters or bits than are worked out: a number that is squared in a loop doubles in each round."""
    match a, b:
        case int(), int():
            if kind in ("Power", "LeftShift"):
                return abs(b) > 4096 or a.bit_length() * max(b, 1) > LONGEST
            return kind == "Multiply" and a.bit_length() + b.bit_length() > LONGEST
        case (str() | bytes() as text, int(times)) | (int(times), str() | bytes() as text):
            return kind == "Multiply" and len(text) * times > LONGEST
        case (str() | bytes(), str() | bytes()):
            return len(a) + len(b) > LONGEST
    return kind == "Power" and isinstance(b, int) and abs(b) > 4096


def real(walk: Walk, value: Any, node: cst.CSTNode) -> Tensor:
    """A number computed from symbolic sizes, as the double that Python would hold: a 0-d f64."""
    if isinstance(value, Tensor):
        return value
    walk.builder.origins = (walk.origin(node),)
    return walk.tensor(walk.builder.constant(value, DType.F64), "python")


def unary(walk: Walk, kind: str, value: Value, node: cst.CSTNode) -> Value:
    if kind == "Not":
        known = truth(walk, value)
        return Scalar(not known) if known is not None else walk.undecided(value, node, "the operand of `not`")
    name, sign, function = UNARY[kind]
    value = joins.given(value)
    if isinstance(value, Either):
        return joins.each(walk, value, lambda option: unary(walk, kind, option, node))
    if is_tensor(value):
        return apply(walk, f"operator.{name}", [value], {}, node, sign)
    if isinstance(value, Scalar) and isinstance(value.value, (int, float)):
        return Scalar(function(value.value) if not (kind == "BitInvert" and isinstance(value.value, float)) else value.value)
    if isinstance(value, Scalar) and isinstance(value.value, Poly) and kind != "BitInvert":
        return Scalar(-value.value if kind == "Minus" else value.value)
    return silent(walk, (value,), node)


def compare(walk: Walk, kind: str, left: Value, right: Value, node: cst.CSTNode) -> Value:
    if isinstance(left, Either) or isinstance(right, Either):
        return _compare_each(walk, kind, left, right, node)
    if kind in ("Is", "IsNot"):
        same = identical(left, right)
        return walk.unknown("a comparison by identity", node) if same is None else Scalar(same is (kind == "Is"))
    if kind in ("In", "NotIn"):
        found = contains(walk, right, left)
        return walk.unknown("a membership test", node) if found is None else Scalar(found is (kind == "In"))
    name, sign, _ = COMPARE[kind]
    if (is_tensor(left) or is_tensor(right)) and not (is_none(left) or is_none(right)):
        return apply(walk, f"operator.{name}", [left, right], {}, node, sign)
    known = decide(kind, left, right)
    if known is not None:
        return Scalar(known)
    if any(isinstance(v, Scalar) and isinstance(v.value, Poly) for v in (left, right)) or isinstance(left, Sequence):
        return walk.unknown("a condition on symbolic sizes", node)
    return silent(walk, (left, right), node)


def _compare_each(walk: Walk, kind: str, left: Value, right: Value, node: cst.CSTNode) -> Value:
    """The comparison of one of several values: the same answer for all, or none."""
    if kind not in ("Is", "IsNot", "Equal", "NotEqual"):
        left, right = joins.given(left), joins.given(right)
    options = [compare(walk, kind, a, b, node) for a in (left.options if isinstance(left, Either) else (left,))
               for b in (right.options if isinstance(right, Either) else (right,))]
    return options[0] if all(joins.same(options[0], each) for each in options) else walk.unknown("a comparison of one of several values", node)


def decide(kind: str, left: Value, right: Value) -> bool | None:
    """The truth of a comparison of Python values, for all sizes; None when it is not decided."""
    function = COMPARE[kind][2]
    match left, right:
        case Scalar(value=a), Scalar(value=b):
            if isinstance(a, Opaque) or isinstance(b, Opaque):
                return None
            if isinstance(a, (Poly, int)) and isinstance(b, (Poly, int)) and (isinstance(a, Poly) or isinstance(b, Poly)):
                return decide_sizes(kind, a, b)
            try:
                return bool(function(a, b))
            except TypeError:
                return None
        case Sequence(items=a, kind=x), Sequence(items=b, kind=y) if kind in ("Equal", "NotEqual") and "set" not in (x, y):
            if x != y or len(a) != len(b):
                return kind == "NotEqual"
            parts = [decide("Equal", p, q) for p, q in zip(a, b)]
            equal = False if False in parts else None if None in parts else True
            return equal if equal is None or kind == "Equal" else not equal
        case (Scalar(), Sequence()) | (Sequence(), Scalar()) if kind in ("Equal", "NotEqual"):
            return kind == "NotEqual"
        case Library(name=a), Library(name=b) if kind in ("Equal", "NotEqual") and a == b:
            return kind == "Equal"
    return None


def decide_sizes(kind: str, a: Dim, b: Dim) -> bool | None:
    difference = a - b
    if kind in ("Equal", "NotEqual"):
        equal = True if difference == 0 else False if proved_different(a, b) else None
        return equal if equal is None or kind == "Equal" else not equal
    if kind == "LessThan":
        return True if at_most(difference, -1) else False if at_least(difference, 0) else None
    if kind == "LessThanEqual":
        return True if at_most(difference, 0) else False if at_least(difference, 1) else None
    return decide_sizes({"GreaterThan": "LessThan", "GreaterThanEqual": "LessThanEqual"}[kind], b, a)


def is_none(value: Value) -> bool:
    return isinstance(value, Scalar) and value.value is None


def identical(left: Value, right: Value) -> bool | None:
    if is_none(left) or is_none(right):
        other = right if is_none(left) else left
        if is_none(other):
            return True
        known = (Scalar, Tensor, Weight, Sequence, Mapping, Instance, UserFunction, UserClass, Library, Shape, Many, Partial)
        return False if isinstance(other, known) else None
    match left, right:
        case Scalar(value=bool() as a), Scalar(value=bool() as b):
            return a is b
        case Scalar(value=DType() as a), Scalar(value=DType() as b):
            return a is b
        case Tensor(storage=a, view=False), Tensor(storage=b, view=False) if a == b:
            return True
        case Library(name=a), Library(name=b):
            return a == b
        case UserClass(node=a), UserClass(node=b):
            return a is b
        case (UserClass(), Library(receiver=None)) | (Library(receiver=None), UserClass()):
            return False
    return None


def contains(walk: Walk, container: Value, item: Value) -> bool | None:
    match container:
        case Sequence(items=items):
            same = identical if isinstance(item, (UserClass, Library)) else lambda each, item: decide("Equal", each, item)
            parts = [same(walk.resolve(each), item) for each in items]
            return True if True in parts else None if None in parts else False
        case Mapping(items=items, kind=kind) if isinstance(item, Scalar) and not isinstance(item.value, Poly):
            return True if item.value in items else False if kind == "builtins.dict" else None
        case Scalar(value=str() as text) if isinstance(item, Scalar) and isinstance(item.value, str):
            return item.value in text
        case Scalar(value=range() as numbers) if isinstance(item, Scalar) and isinstance(item.value, int):
            return item.value in numbers
    return None


def truth(walk: Walk, value: Value) -> bool | None:
    """What `if value:` does, when it is the same for all inputs."""
    match value:
        case Scalar(value=Poly() as size):
            return True if at_least(size, 1) or at_most(size, -1) else None
        case Scalar(value=Opaque()):
            return True
        case Scalar(value=inner):
            return bool(inner)
        case Sequence(items=items) | Mapping(items=items):
            return len(items) > 0
        case UserFunction() | UserClass() | Library() | Partial():
            return True
        case Either(options=options):
            answers = {truth(walk, option) for option in options}
            return answers.pop() if len(answers) == 1 else None
        case Instance(of=Library()):
            return True if not value.of.name.endswith(("List", "Dict", "Sequential")) else len(value.attributes) > 0
    return None


def silent(walk: Walk, values: tuple[Value, ...], node: cst.CSTNode) -> Unknown:
    """The Unknown that an operation on Unknown gives: the first reason goes on, and it is a number only if all are."""
    found = [value for value in values if isinstance(value, (Unknown, Untyped))]
    for value in (*(each for each in found if each.reason not in NUMBERS), *found):
        return Unknown(value.reason, value.span)
    return walk.unknown("an operation on values that are not numbers or tensors", node)
