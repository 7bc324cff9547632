"""What a name was bound to before a place, read from the text: for values of which no type is known."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from ..syntax import by_type

if TYPE_CHECKING:
    from cuvil.cst import Definition
    from cuvil.frontends.python.facts import FileFacts


def dotted_text(facts: FileFacts, node: cst.BaseExpression) -> str:
    """`k`, `self.k`, `self.cache["k"]`; "" for other expressions."""
    at = node
    while isinstance(at, (cst.Attribute, cst.Subscript)):
        at = at.value
    return facts.module.code(node) if isinstance(at, cst.Name) else ""


def bound_before(facts: FileFacts, use: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """The last expression that a name was bound to in the same function, above a place. Unpacking gives the whole right side."""
    found = None
    for target, value in bindings(facts, use):
        if target == name:
            found = value
    return found


def bindings(facts: FileFacts, use: cst.CSTNode) -> Iterator[tuple[str, cst.BaseExpression]]:
    """(name, value) of the assignments above a place, in the function it stands in, or in the module, in the order of the text."""
    for node in _above(facts, use):
        yield from bound(facts, node)


def assignment_of(facts: FileFacts, use: cst.CSTNode, name: str) -> cst.Assign | cst.AnnAssign | None:
    """The last assignment above a place that binds a name."""
    found = None
    for node in _above(facts, use):
        if any(target == name for target, _ in bound(facts, node)):
            found = node
    return found


def _above(facts: FileFacts, use: cst.CSTNode) -> Iterator[cst.Assign | cst.AnnAssign]:
    end, function = facts.module.span(use), function_of(facts, use)
    for node in _assignments(facts, facts.module.owner(use)):
        span = facts.module.span(node)
        if (span.end_line, span.end_column) <= (end.line, end.column) and function_of(facts, node) is function:
            yield node


def bound(facts: FileFacts, node: cst.Assign | cst.AnnAssign) -> Iterator[tuple[str, cst.BaseExpression]]:
    """(name, value) of one assignment. What is unpacked from one value is bound to all of it."""
    for target in ([t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]):
        parts = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        value = node.value
        if len(parts) > 1 and isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(parts):
            yield from ((dotted_text(facts, part), element.value) for part, element in zip(parts, value.elements))
        elif value is not None:
            yield from ((dotted_text(facts, part), value) for part in parts)


def _assignments(facts: FileFacts, home: Definition) -> list[cst.Assign | cst.AnnAssign]:
    """Those of a function's definition; for a statement of the module those of all statements."""
    found = []
    for definition in [home] if home.kind == "function" else facts.module.definitions:
        if definition is home or definition.kind == "statement" and "=" in definition.text and definition.tree is not None:
            kinds = by_type(definition.tree)
            found += [*kinds.get(cst.Assign, ()), *kinds.get(cst.AnnAssign, ())]
    return sorted(found, key=facts.module.span)


def function_of(facts: FileFacts, node: cst.CSTNode | None) -> cst.CSTNode | None:
    while node is not None and not isinstance(node, cst.FunctionDef):
        node = facts.module.parent(node)
    return node
