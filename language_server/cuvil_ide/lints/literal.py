"""Values that stand in the code as literals."""
from __future__ import annotations

import ast
from typing import Any

import libcst as cst


class NotLiteral(Exception):
    pass


def literal(node: cst.BaseExpression) -> Any:
    """The value of a number, string, None, True, False, ..., a signed number or a tuple, list or dict of these; else NotLiteral."""
    match node:
        case cst.Name(value="None" | "True" | "False" as name):
            return {"None": None, "True": True, "False": False}[name]
        case cst.Ellipsis():
            return ...
        case cst.Integer(value=text) | cst.Float(value=text) | cst.Imaginary(value=text):
            return ast.literal_eval(text)
        case cst.SimpleString(value=text):
            try:
                return ast.literal_eval(text)
            except (SyntaxError, ValueError):
                raise NotLiteral from None
        case cst.ConcatenatedString(left=left, right=right):
            first, second = literal(left), literal(right)
            if type(first) is not type(second):
                raise NotLiteral
            return first + second
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            value = literal(inner)
            if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
                return -value
        case cst.Tuple(elements=elements) | cst.List(elements=elements) if all(isinstance(e, cst.Element) for e in elements):
            items = [literal(e.value) for e in elements]
            return tuple(items) if isinstance(node, cst.Tuple) else items
    raise NotLiteral


def string(node: cst.BaseExpression) -> str | None:
    """The text of a string literal (not an f-string, not bytes)."""
    try:
        value = literal(node) if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)) else None
    except NotLiteral:
        return None
    return value if isinstance(value, str) else None
