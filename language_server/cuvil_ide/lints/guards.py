"""Code that is meant to fail: inside a `try` that catches the error, or a `with pytest.raises(...)`. Findings there are noise."""
from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ..syntax import last_name

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.source import Span

_CATCHES = {"Exception", "BaseException", "AttributeError", "ImportError", "RuntimeError", "ValueError", "TypeError", "IndexError", "AssertionError"}


def expected_to_fail(facts: FileFacts, span: Span) -> bool:
    node = facts.module.node_at(span.line, span.column)
    below = None
    while node is not None:
        if isinstance(node, cst.Try) and below is node.body and any(_catches(handler.type) for handler in node.handlers):
            return True
        if isinstance(node, cst.With) and any(_raises(item.item) for item in node.items):
            return True
        node, below = facts.module.parent(node), node
    return False


def _catches(type: cst.BaseExpression | None) -> bool:
    if type is None:
        return True
    names = [element.value for element in type.elements] if isinstance(type, cst.Tuple) else [type]
    return any(last_name(name) in _CATCHES for name in names)


def _raises(expression: cst.BaseExpression) -> bool:
    return isinstance(expression, cst.Call) and last_name(expression.func) in ("raises", "assertRaises", "assertRaisesRegex", "suppress")
