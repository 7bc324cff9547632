"""Masks: where they are born, and what the operations on them do to what they say.

A rule takes (walk, args, keywords, result, node) and gives what the result says as a mask, or None when that is not known. It is found
by the last part of the operation's name: `~` is "invert", of torch and NumPy alike.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...ir.function import Op
from ...ir.types import DType
from .values import Mask, Scalar, Sequence, Tensor, Value
from .walk import Walk
from .workspace import dotted

Rule = Callable[[Walk, list[Value], dict[str, Value], Tensor, cst.CSTNode], "Mask | None"]
RULES: dict[str, Rule] = {}
NEVER = -1e3                                   # an additive mask leaves out by adding less than this
_PAD = re.compile(r"(?:^|_)pad(?:_|$|ding_idx|ding_id)|(?:^|_)padding(?:_|$)", re.IGNORECASE)
_IDS = re.compile(r"(?:^|_)(?:ids?|tokens?|src|tgt|seqs?|sequences?|words?|inputs?)$", re.IGNORECASE)
_LENGTH = re.compile(r"len|(?:^|_)valid|(?:^|_)n_(?:tok|keep|real)", re.IGNORECASE)


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function
    return register


def of(value: Value | None) -> Mask | None:
    return value.mask if isinstance(value, Tensor) else None


def number(value: Value | None) -> float | None:
    """A Python number."""
    inner = value.value if isinstance(value, Scalar) else None
    return float(inner) if isinstance(inner, (bool, int, float)) else None


def constant(walk: Walk, value: Value | None) -> float | None:
    """The one number that all elements of a tensor are, as torch.ones and torch.full make it."""
    op: Op | None = value.op if isinstance(value, Tensor) else None
    for _ in range(12):
        if op is None:
            return None
        if op.name == "constant":
            number = op.attr("value")
            return float(number) if isinstance(number, (bool, int, float)) else None
        if op.name not in ("broadcast", "cast", "reshape", "unsqueeze", "squeeze") or not op.operands:
            return None
        op = walk.op(op.operands[0])
    return None


def formed(mask: Mask | None, result: Tensor) -> Mask | None:
    """A mask of the result's element type."""
    if mask is None or mask.form == "additive":
        return mask if mask is None or result.type.dtype is None or result.type.dtype.is_float else None
    return replace(mask, form="bool" if result.type.dtype == DType.BOOL else "01")


def turned(mask: Mask | None) -> Mask | None:
    return None if mask is None else replace(mask, keep=None if mask.keep is None else not mask.keep)


# --- the same mask in another form ----------------------------------------------------------------------------------

@rule("unsqueeze", "squeeze", "expand", "expand_as", "expand_dims", "view", "reshape", "transpose", "permute", "swapaxes", "repeat", "repeat_interleave",
      "contiguous", "clone", "detach", "flatten", "broadcast_to", "tile", "movedim", "moveaxis", "T", "mT", "float", "long", "int", "half", "double",
      "to", "type", "type_as", "astype", "cpu", "cuda", "copy", "numpy", "as_tensor", "from_numpy", "narrow", "rearrange", "chunk", "split")
def kept(walk: Walk, args, keywords, result, node) -> Mask | None:
    return formed(of(args[0] if args else None), result)


@rule("tensor", "array", "asarray")
def taken(walk: Walk, args, keywords, result, node) -> Mask | None:
    return formed(of(args[0] if args else None), result)


@rule("getitem")
def item(walk: Walk, args, keywords, result, node) -> Mask | None:
    index = args[1] if len(args) > 1 else None
    parts = index.items if isinstance(index, Sequence) else (index,)
    return None if any(isinstance(part, Tensor) for part in parts) else formed(of(args[0]), result)


@rule("bool")
def truth(walk: Walk, args, keywords, result, node) -> Mask | None:
    mask = of(args[0] if args else None)
    return turned(replace(mask, form="bool")) if mask is not None and mask.form == "additive" else formed(mask, result)


@rule("cat", "concat", "concatenate")
def joined(walk: Walk, args, keywords, result, node) -> Mask | None:
    """With a part of ones, which all take part: the new tokens of a decoder."""
    items = list(args[0].items) if args and isinstance(args[0], Sequence) else []
    masks = [mask for mask in map(of, items) if mask is not None]
    if not masks or any(mask.keep != masks[0].keep or mask.form != masks[0].form for mask in masks):
        return None
    rest = [constant(walk, each) for each in items if of(each) is None]
    fits = 1.0 if masks[0].keep else 0.0
    return formed(masks[0], result) if masks[0].keep is not None and all(each == fits for each in rest) else None


@rule("stack")
def stacked(walk: Walk, args, keywords, result, node) -> Mask | None:
    items = list(args[0].items) if args and isinstance(args[0], Sequence) else []
    return formed(of(items[0]), result) if items and all(of(each) == of(items[0]) for each in items) else None


# --- the other way round --------------------------------------------------------------------------------------------

@rule("invert", "logical_not", "bitwise_not", "bitwise_invert")
def inverted(walk: Walk, args, keywords, result, node) -> Mask | None:
    mask = of(args[0] if args else None)
    if mask is None or mask.form == "additive" or result.type.dtype != DType.BOOL:
        return None                                       # ~ of numbers 0 and 1 gives -1 and -2
    return turned(replace(mask, form="bool"))


@rule("sub", "subtract", "rsub")
def subtracted(walk: Walk, args, keywords, result, node) -> Mask | None:
    mask = of(args[1] if len(args) > 1 else None)
    return turned(formed(mask, result)) if mask is not None and mask.form != "additive" and number(args[0]) == 1 else None


@rule("eq", "equal", "ne", "not_equal", "lt", "less", "le", "less_equal", "gt", "greater", "ge", "greater_equal")
def compared(walk: Walk, args, keywords, result, node) -> Mask | None:
    if len(args) < 2:
        return None
    kind, left, right = _kind(node, result), args[0], args[1]
    if kind is None:
        return None
    if isinstance(right, Tensor) and not isinstance(left, Tensor):
        left, right, kind = right, left, MIRRORED[kind]
    mask, other = of(left), number(right)
    if mask is not None and mask.form != "additive" and other is not None:
        holds = [_holds(kind, element, other) for element in (0.0, 1.0)]
        return replace(mask, form="bool", keep=mask.keep if holds == [False, True] else not mask.keep) \
            if mask.keep is not None and holds[0] != holds[1] else None
    if mask is not None and mask.form == "additive" and other is not None and other <= 0:
        holds = [_holds(kind, element, other) for element in (-1e30, 0.0)]
        return Mask(mask.keep if holds == [False, True] else not mask.keep, "bool", mask.origin, mask.span) \
            if mask.keep is not None and holds[0] != holds[1] else None
    born = of_pad(walk, kind, node) if kind in ("eq", "ne") else None
    return born or of_places(walk, kind, left, right, node)


MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_NAMES = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
_OPERATORS = {cst.Equal: "eq", cst.NotEqual: "ne", cst.LessThan: "lt", cst.LessThanEqual: "le", cst.GreaterThan: "gt", cst.GreaterThanEqual: "ge"}


def _kind(node: cst.CSTNode, result: Tensor) -> str | None:
    """Which comparison a node is."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _OPERATORS.get(type(node.comparisons[0].operator))
    if isinstance(node, cst.Call):
        last = dotted(node.func).rpartition(".")[2] or (node.func.attr.value if isinstance(node.func, cst.Attribute) else "")
        return _NAMES.get(last, last if last in MIRRORED else None)
    return None


def _holds(kind: str, a: float, b: float) -> bool:
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[kind]


# --- births ---------------------------------------------------------------------------------------------------------

def _sides(node: cst.CSTNode) -> tuple[cst.CSTNode | None, cst.CSTNode | None]:
    if isinstance(node, cst.Comparison):
        return node.left, node.comparisons[0].comparator
    if isinstance(node, cst.Call):
        values = [arg.value for arg in node.args]
        if len(values) == 1 and isinstance(node.func, cst.Attribute):
            return node.func.value, values[0]
        if len(values) == 2:
            return values[0], values[1]
    return None, None


def _last(node: cst.CSTNode | None) -> str:
    """The last word of a name: pad_token_id of self.tokenizer.pad_token_id."""
    while isinstance(node, (cst.Subscript, cst.Call)):
        node = node.value if isinstance(node, cst.Subscript) else node.func.value if isinstance(node.func, cst.Attribute) else None
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""


def of_pad(walk: Walk, kind: str, node: cst.CSTNode) -> Mask | None:
    """`ids != pad_id`: a comparison with what is named like the padding's id, or of token ids with 0."""
    left, right = _sides(node)
    a, b = _last(left), _last(right)
    by_name = bool(_PAD.search(a)) != bool(_PAD.search(b)) and "mask" not in a + b
    by_zero = isinstance(right, cst.Integer) and right.value == "0" and _IDS.search(a)
    if not by_name and not by_zero:
        return None
    return Mask(kind == "ne", "bool", "pad", walk.span(node))


def of_places(walk: Walk, kind: str, left: Value, right: Value, node: cst.CSTNode) -> Mask | None:
    """`arange(n) < lengths[:, None]`, and `arange(n)[:, None] >= arange(n)`."""
    a, b = _counts(walk, left), _counts(walk, right)
    if kind in ("eq", "ne") or a == b is False:
        return None
    if a and b:
        p, q = left.type.shape, right.type.shape
        if not p or not q or len(p) < 2 and len(q) < 2 or (p[-1] == 1) == (q[-1] == 1):
            return None
        rows_first = p[-1] == 1                           # query >= key keeps what came before
        return Mask((kind in ("ge", "gt")) == rows_first, "bool", "causal", walk.span(node))
    names = _sides(node)[1 if a else 0]
    if not _LENGTH.search(_last(names)):
        return None
    return Mask((kind in ("lt", "le")) == a, "bool", "length", walk.span(node))


def _counts(walk: Walk, value: Value) -> bool:
    """It is an arange, in some shape."""
    op = value.op if isinstance(value, Tensor) else None
    for _ in range(12):
        if op is None or op.name == "iota":
            return op is not None
        if op.name == "opaque" and op.attr("call") in ("torch.arange", "numpy.arange"):
            return True
        if op.name not in ("broadcast", "cast", "reshape", "unsqueeze", "squeeze", "transpose", "add", "mul", "slice") or not op.operands:
            return False
        op = walk.op(op.operands[0])
    return False


@rule("tril", "triu")
def triangle(walk: Walk, args, keywords, result, node) -> Mask | None:
    if not args:
        return None
    diagonal = number(keywords.get("diagonal", keywords.get("k", args[1] if len(args) > 1 else Scalar(0))))
    lower, fill = _triangle_name(node) == "tril", constant(walk, args[0])
    if fill is not None and fill <= NEVER and not lower:
        return Mask(True, "additive", "causal", walk.span(node)) if diagonal is not None and diagonal >= 0 else None
    if fill != 1.0 or diagonal is None:
        return None
    form = "bool" if result.type.dtype == DType.BOOL else "01"
    keep = True if lower else False if diagonal >= 1 else None
    return Mask(keep, form, "causal", walk.span(node))


def _triangle_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Call):
        return node.func.attr.value if isinstance(node.func, cst.Attribute) else node.func.value if isinstance(node.func, cst.Name) else ""
    return ""


# --- filled and additive --------------------------------------------------------------------------------------------

@rule("mul", "multiply")
def multiplied(walk: Walk, args, keywords, result, node) -> Mask | None:
    if len(args) < 2:
        return None
    masks = [mask for mask in (of(args[0]), of(args[1])) if mask is not None]
    factor = number(args[1]) if of(args[0]) is not None else number(args[0])
    if len(masks) == 1 and factor is not None and factor <= NEVER and masks[0].form != "additive":
        return Mask(turned(masks[0]).keep, "additive", masks[0].origin, masks[0].span)
    if len(masks) == 2 and masks[0].keep is True and masks[1].keep is True and "additive" not in (masks[0].form, masks[1].form):
        return formed(masks[0], result)
    return None


@rule("and_", "logical_and", "bitwise_and", "or_", "logical_or", "bitwise_or")
def combined(walk: Walk, args, keywords, result, node) -> Mask | None:
    a, b = of(args[0] if args else None), of(args[1] if len(args) > 1 else None)
    if a is None or b is None or a.keep != b.keep or "additive" in (a.form, b.form):
        return None
    return formed(a if a.origin != "causal" else b, result)


@rule("add")
def added(walk: Walk, args, keywords, result, node) -> Mask | None:
    a, b = of(args[0] if args else None), of(args[1] if len(args) > 1 else None)
    both = a is not None and b is not None and a.form == b.form == "additive" and a.keep == b.keep
    return a if both else None


@rule("masked_fill", "masked_fill_")
def filled(walk: Walk, args, keywords, result, node) -> Mask | None:
    """Zeros, or a mask of 0 and 1, filled with -inf: an additive mask. Scores that are filled are scores still."""
    if len(args) < 2:
        return None
    where, what = args[1], number(keywords.get("value", args[2] if len(args) > 2 else None))
    base, mask = of(args[0]), of(where)
    if what is None or constant(walk, args[0]) is None and base is None:
        return None
    if base is not None and base.form == "additive":
        return base if what == 0 else None
    if not (what <= NEVER or math.isinf(what) and what < 0):
        return None
    keep = None if mask is None or mask.keep is None else not mask.keep
    return Mask(keep, "additive", mask.origin if mask is not None else "fill", mask.span if mask is not None else walk.span(node))


@rule("where")
def chosen(walk: Walk, args, keywords, result, node) -> Mask | None:
    if len(args) < 3:
        return None
    mask = of(args[0])
    a, b = (number(each) if number(each) is not None else constant(walk, each) for each in args[1:3])
    if mask is None or a is None or b is None or (a <= NEVER) == (b <= NEVER):
        return None
    other = b if a <= NEVER else a
    if other != 0:
        return None
    keep = mask.keep if b <= NEVER else None if mask.keep is None else not mask.keep
    return Mask(keep, "additive", mask.origin, mask.span)
