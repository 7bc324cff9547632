"""The nodes of a tree that people see, without blanks, brackets and punctuation, and without working out where they stand."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache

import libcst as cst
from libcst._nodes import op, whitespace

_HIDDEN = tuple(kind for home in (whitespace, op) for kind in vars(home).values()
                if isinstance(kind, type) and issubclass(kind, cst.CSTNode) and kind.__module__ == home.__name__) + (
    cst.LeftParen, cst.RightParen, cst.LeftSquareBracket, cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace, cst.Newline, cst.EmptyLine)
_VISIBLE_OPERATORS = (cst.BaseBinaryOp, cst.BaseUnaryOp, cst.BaseBooleanOp, cst.BaseCompOp, cst.BaseAugOp)
# Fields are declared in the order of the text but for these, which are printed first.
_FIRST = {
    cst.FunctionDef: ("decorators", "asynchronous", "name", "type_parameters", "params", "returns"),
    cst.ClassDef: ("decorators", "name", "type_parameters", "bases", "keywords"),
    cst.Parameters: ("posonly_params", "posonly_ind"), cst.Arg: ("keyword",), cst.Index: ("star",), cst.IfExp: ("body", "test"),
    cst.ExceptHandler: ("type", "name"), cst.ExceptStarHandler: ("type", "name"), cst.MatchCase: ("pattern", "guard"), cst.ImportFrom: ("relative",)}


@cache
def hidden(kind: type) -> bool:
    """Whether nodes of a type are blanks, brackets or punctuation; once for each type: they are abstract, and asking those takes long."""
    return issubclass(kind, _HIDDEN) and not issubclass(kind, _VISIBLE_OPERATORS)


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields of a type that may hold nodes people see, in the order of the text; none of what is no node."""
    if not issubclass(kind, cst.CSTNode) or hidden(kind):
        return ()
    names = [field.name for field in fields(kind) if not field.name.startswith(("whitespace", "lpar", "rpar", "leading_lines", "lines_after", "lbra", "rbra"))
             and field.name not in ("comma", "semicolon", "equal", "header", "footer", "trailing_whitespace", "indent", "value" if kind is cst.Name else "")]
    first = _FIRST.get(kind, ())
    return (*(name for name in first if name in names), *(name for name in names if name not in first))


@cache
def _seen(kind: type) -> bool:
    return issubclass(kind, cst.CSTNode) and not hidden(kind)


def below(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly in a node, in the order of the text."""
    found: list[cst.CSTNode] = []
    for name in _parts(type(node)):
        part = getattr(node, name)
        kind = type(part)
        if kind is tuple or kind is list:
            found += [each for each in part if _seen(type(each))]
        elif _seen(kind):
            found.append(part)
    return found


def walk(nodes: Iterable[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """These nodes and all below them, parents first, in the order of the text."""
    todo = [node for node in nodes if _seen(type(node))][::-1]
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(below(node))
