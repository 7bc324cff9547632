"""What an expression says as a mask: by its value where that is known, else by its text.

The text is enough for what tokenizers give by convention (`attention_mask`: 1 for words) and for comparisons with a padding id; the rest
is followed through `~`, `== 0`, `1 - mask`, `.bool()`, indexing and names.
"""
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ..lookup import value_of
from .bindings import bound_before, dotted_text

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.frontends.python.values import Mask

_PAD = re.compile(r"(?:^|_)pad(?:ding)?(?:_token)?(?:_id|_idx|_index)$|^PAD(?:_ID|_IDX)?$")
_KEEPS = frozenset("unsqueeze squeeze view reshape expand expand_as contiguous cpu cuda clone detach repeat transpose".split())
_BOOL, _NUMBERS = frozenset(("bool",)), frozenset("float half double bfloat16 long int".split())
_TURNS = {"logical_not": True, "bitwise_not": True}
FLOATS = re.compile(r"^(?:float|half|double|bfloat16)$")


def polarity(facts: FileFacts, node: cst.BaseExpression | None, depth: int = 12) -> Mask | None:
    """The mask that an expression is; None when that is not known. Of an attention_mask as it comes in, the form is not known either."""
    from cuvil.frontends.python.values import Mask, Tensor
    if node is None or depth == 0:
        return None
    where = facts.module.span(node)
    value = value_of(facts, where)
    if isinstance(value, Tensor) and value.mask is not None:
        return value.mask
    again = lambda inner: polarity(facts, inner, depth - 1)
    match node:
        case cst.Attribute(attr=cst.Name(value="attention_mask")):
            return Mask(True, "01", "tokenizer", where)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(value=text)))]) if "attention_mask" in text:
            return Mask(True, "01", "tokenizer", where)
        case cst.Subscript(value=inner, slice=elements):
            mask = again(inner)
            spread = sum(isinstance(e.slice, cst.Index) and isinstance(e.slice.value, cst.Name) and e.slice.value.value == "None" for e in elements)
            return replace(mask, form="01") if mask is not None and not mask.form and spread == 2 else mask      # a table [B, T] is as the tokenizer made it
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return _turned(again(inner), "bool")
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            return _compared(facts, again(left), left, type(operator).__name__, right, where)
        case cst.BinaryOperation(left=cst.Integer(value="1") | cst.Float(value="1.0" | "1."), operator=cst.Subtract(), right=inner):
            return _turned(again(inner), "01")
        case cst.Call(func=cst.Attribute(value=cst.Name(value="torch"), attr=cst.Name(value=name)), args=[cst.Arg(value=inner)]) if name in _TURNS:
            return _turned(again(inner), "bool")
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=args):
            if name in ("eq", "ne") and len(args) == 1:
                return _compared(facts, again(inner), inner, {"eq": "Equal", "ne": "NotEqual"}[name], args[0].value, where)
            if name in _TURNS:
                return _turned(again(inner), "bool")
            mask = again(inner) if name in _KEEPS | _BOOL | _NUMBERS or name in ("to", "type", "type_as") else None
            if mask is None or name in _KEEPS:
                return mask
            text = facts.module.code(args[0].value) if args else name
            form = "bool" if name == "bool" or text.endswith("bool") else "01" if name in _NUMBERS or "dtype" in text or text.endswith(tuple(_NUMBERS)) or (
                "float" in text) else mask.form
            return replace(mask, form=form) if mask.form != "additive" else mask
    name = dotted_text(facts, node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
    held = bound_before(facts, node, name) if name else None
    return again(held) if held is not None else Mask(True, "", "tokenizer", where) if name == "attention_mask" and not _inverted_by_custom(facts, node) else None


def _inverted_by_custom(facts: FileFacts, node: cst.CSTNode) -> bool:
    """The function fills with `attention_mask` as it came in, in another place: there the name is of what is left out."""
    above = facts.module.parent(node)
    filled = facts.module.parent(above) if isinstance(above, cst.Arg) else None
    own = isinstance(filled, cst.Call) and isinstance(filled.func, cst.Attribute) and filled.func.attr.value.startswith("masked_fill")
    return not own and _FILLED.search(facts.module.owner(node).text) is not None


_FILLED = re.compile(r"\bmasked_fill_?\(\s*attention_mask\s*,")


def _turned(mask: Mask | None, form: str) -> Mask | None:
    return None if mask is None or mask.keep is None or mask.form == "additive" else replace(mask, keep=not mask.keep, form=form)


def _compared(facts: FileFacts, mask: Mask | None, left: cst.BaseExpression, operator: str, right: cst.BaseExpression, where) -> Mask | None:
    from cuvil.frontends.python.values import Mask
    number = right.value if isinstance(right, (cst.Integer, cst.Float)) else right.value if isinstance(right, cst.Name) and right.value in ("True", "False") else None
    if mask is not None and mask.form != "additive" and mask.keep is not None and number is not None:
        if not mask.form and number in ("0", "0.0"):
            return None                                    # an attention_mask inside a model may be additive: 0 keeps there
        one, zero = number in ("1", "1.0", "True"), number in ("0", "0.0", "False")
        if operator == "Equal" and one or operator in ("NotEqual", "GreaterThan") and zero:
            return replace(mask, form="bool")
        if operator == "Equal" and zero or operator in ("NotEqual", "LessThan") and one:
            return replace(mask, form="bool", keep=not mask.keep)
        return None
    last = right.attr.value if isinstance(right, cst.Attribute) else right.value if isinstance(right, cst.Name) else ""
    if operator in ("Equal", "NotEqual") and _PAD.search(last):
        return Mask(operator == "NotEqual", "bool", "pad", where)
    return None
