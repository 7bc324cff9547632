"""Places where values are put into text: %-formats, str.format, format(), f-strings and logging calls, read alike.

A Use is one of them: its template, what each field asks for, and the expression that goes there. Shared by the rules on
formats; it judges nothing but what the template itself says.
"""
from __future__ import annotations

import re
import string as strings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from ..syntax import nodes
from .literal import string

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_PERCENT = re.compile(r"%(?:\((?P<name>[^)]*)\))?(?P<flags>[#0\- +]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?[hlL]?(?P<type>.)?", re.DOTALL)
_WHERE = re.compile(r"""['")]\s*%|\bformat\s*\(|:[^\s{}'"]{1,12}[}]|\blog\w*\s*\.|\.getLogger\(""", re.IGNORECASE)
_LOGGING = {"debug": 0, "info": 0, "warning": 0, "warn": 0, "error": 0, "critical": 0, "fatal": 0, "exception": 0, "log": 1}


@dataclass(frozen=True)
class Field:
    """style "%": spec is the conversion character; style "{": spec is what follows the colon, conversion "r", "s", "a" or "".
    key: position or name. argument: what goes there, None when it cannot be seen (a star argument, a variable)."""

    style: str
    key: int | str
    spec: str
    conversion: str = ""
    argument: cst.BaseExpression | None = None


@dataclass(frozen=True)
class Use:
    """node: the whole expression. count: arguments given, None when unknown; names likewise. what: "%", "format", "f-string", "logging"."""

    what: str
    node: cst.BaseExpression
    template: str
    fields: tuple[Field, ...]
    count: int | None = None
    names: frozenset[str] | None = None
    arguments: tuple[cst.BaseExpression, ...] = field(default=())
    problem: str = ""                                # the template itself cannot be used


def uses(facts: FileFacts) -> Iterator[Use]:
    for node in nodes(facts, _WHERE, cst.BinaryOperation, cst.Call, cst.FormattedStringExpression):
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Modulo(), right=right) if (template := string(left)) is not None:
                yield _percent("%", node, template, *_operands(right), right)
            case cst.FormattedStringExpression(expression=expression):
                spec = _literal_spec(node)
                if spec:
                    yield Use("f-string", node, spec, (Field("{", 0, spec, node.conversion or "", expression),))
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="format"))) if (template := string(value)) is not None:
                yield _braces(node, template)
            case cst.Call(func=cst.Name(value="format"), args=[cst.Arg(keyword=None, star="", value=value), cst.Arg(keyword=None, star="", value=spec)]):
                if text := string(spec):
                    yield Use("format", node, text, (Field("{", 0, text, "", value),), arguments=(value,))
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in _LOGGING and _is_logger(facts, node.func.value):
                if (use := _logging(node, _LOGGING[method])) is not None:
                    yield use


def _operands(right: cst.BaseExpression) -> tuple[list[cst.BaseExpression] | None, dict[str, cst.BaseExpression] | None]:
    """The right side of %: positional operands, or named ones; (None, None) when only running tells."""
    if isinstance(right, cst.Tuple):
        items = [e.value for e in right.elements]
        return (None, None) if any(isinstance(e, cst.StarredElement) for e in right.elements) else (items, None)
    if isinstance(right, cst.Dict):
        named = {}
        for element in right.elements:
            if not isinstance(element, cst.DictElement) or (key := string(element.key)) is None:
                return None, None
            named[key] = element.value
        return None, named
    if isinstance(right, (cst.SimpleString, cst.Integer, cst.Float, cst.FormattedString, cst.ConcatenatedString, cst.List,
                          cst.ListComp, cst.Comparison, cst.BooleanOperation)):
        return [right], None
    return None, None


def _percent(what: str, node: cst.BaseExpression, template: str, given: list[cst.BaseExpression] | None,
             named: dict[str, cst.BaseExpression] | None, alone: cst.BaseExpression | None = None) -> Use:
    """alone: the whole right side; if it turns out to be no tuple, it is the first argument."""
    fields: list[Field] = []
    problem, position = "", 0

    def at(index: int) -> cst.BaseExpression | None:
        if given is None:
            return alone if index == 0 else None
        return given[index] if index < len(given) else None

    for match in _PERCENT.finditer(template):
        kind = match["type"]
        if kind == "%":
            continue
        if kind is None or kind not in "diouxXeEfFgGcrsa":
            problem = problem or ("the template ends inside a conversion" if kind is None else f"there is no conversion %{kind}")
            continue
        if match["name"] is not None:
            fields.append(Field("%", match["name"], kind, argument=(named or {}).get(match["name"])))
            continue
        for star in (match["width"], match["precision"]):
            if star == "*":
                fields.append(Field("%", position, "*", argument=at(position)))
                position += 1
        fields.append(Field("%", position, kind, argument=at(position)))
        position += 1
    return Use(what, node, template, tuple(fields), None if given is None else len(given),
               None if named is None else frozenset(named), tuple(given or (named or {}).values()), problem)


def _braces(node: cst.Call, template: str) -> Use:
    starred = any(arg.star for arg in node.args)
    given = [arg.value for arg in node.args if not arg.keyword]
    named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword}
    fields: list[Field] = []
    problem, automatic, manual = "", 0, False
    try:
        todo = [(part, False) for part in strings.Formatter().parse(template)]
        while todo:
            (_, name, spec, conversion), nested = todo.pop(0)
            if name is None:
                continue
            first, path = re.match(r"([^.\[]*)(.*)", name, re.DOTALL).groups()
            key: int | str
            if first == "":
                key, automatic = automatic, automatic + 1
            elif first.isdigit():
                key, manual = int(first), True
            else:
                key = first
            argument = None if starred or path else (given[key] if isinstance(key, int) and key < len(given) else
                                                     named.get(key) if isinstance(key, str) else None)
            # A spec with a field of its own is known only when it runs.
            fields.append(Field("{", key, "" if "{" in spec else spec, conversion or "", argument))
            if not nested and "{" in spec:
                todo[:0] = [(part, True) for part in strings.Formatter().parse(spec)]
    except ValueError as error:
        problem = str(error)
    if automatic and manual:
        problem = "the template numbers some fields and leaves others to be counted"
    return Use("format", node, template, tuple(fields), None if starred else len(given), None if starred else frozenset(named),
               (*given, *named.values()), problem)


def _logging(node: cst.Call, skip: int) -> Use | None:
    positional = [arg for arg in node.args if not arg.keyword]
    if len(positional) <= skip or any(arg.star for arg in node.args):
        return None
    template = string(positional[skip].value)
    given = [arg.value for arg in positional[skip + 1:]]
    if template is None or not given:                # without arguments logging does not format at all
        return None
    if len(given) == 1 and "%(" in template:
        return _percent("logging", node, template, *_operands(given[0]))
    use = _percent("logging", node, template, given, None)
    # loguru and structlog fill {} fields; their loggers look the same from here.
    return None if not use.fields and "{" in template else use


def _is_logger(facts: FileFacts, receiver: cst.BaseExpression) -> bool:
    name = receiver.value if isinstance(receiver, cst.Name) else receiver.attr.value if isinstance(receiver, cst.Attribute) else ""
    if isinstance(receiver, cst.Call):
        return isinstance(receiver.func, cst.Attribute) and receiver.func.attr.value == "getLogger"
    return name.lower().lstrip("_") in ("logging", "logger", "log")


def _literal_spec(node: cst.FormattedStringExpression) -> str:
    """The spec as text; "" if there is none or part of it is computed."""
    parts = node.format_spec or ()
    return "".join(p.value for p in parts) if all(isinstance(p, cst.FormattedStringText) for p in parts) else ""
