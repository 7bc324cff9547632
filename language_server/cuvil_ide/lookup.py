"""What the facts say about a place in a file."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.source import Span

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import ExpressionFact, FileFacts, FunctionFacts
    from cuvil.frontends.python.values import Value


def function_at(facts: FileFacts, line: int, column: int = 0) -> FunctionFacts | None:
    """The innermost function around a place; any function of the line if the column is outside all."""
    around = [f for f in facts.functions if f.span.contains(line, column)] or [f for f in facts.functions if f.span.touches(line)]
    return min(around, key=lambda f: _size(f.span), default=None)


def expression_at(facts: FileFacts, line: int, column: int) -> ExpressionFact | None:
    """The smallest expression at a place whose value was computed; the last of equals, which is the last computed."""
    best = None
    for expression in expressions(facts, line):
        if expression.span.contains(line, column) and (best is None or _size(expression.span) <= _size(best.span)):
            best = expression
    return best


def value_of(facts: FileFacts, span: Span) -> Value | None:
    """The value of exactly this expression, None when nothing was computed for it."""
    found = fact_of(facts, span)
    return found.value if found is not None else None


def fact_of(facts: FileFacts, span: Span) -> ExpressionFact | None:
    """What was computed for exactly this expression."""
    function = _function_of(facts, span)
    if function is not None:
        return function.by_span.get(span)
    return next((e for e in facts.expressions if e.span == span), None)


_starts: tuple[FileFacts | None, list[int]] = None, []           # of the file that was asked about last


def _function_of(facts: FileFacts, span: Span) -> FunctionFacts | None:
    """The function that the span stands in. Functions are in the order of the text and do not overlap."""
    global _starts
    if _starts[0] is not facts:
        _starts = facts, [function.span.line for function in facts.functions]
    at = bisect_right(_starts[1], span.line) - 1
    return facts.functions[at] if at >= 0 and facts.functions[at].span.encloses(span) else None


def expressions(facts: FileFacts, line: int) -> Iterator[ExpressionFact]:
    """Those that may touch the line: of the module, and of the functions around it."""
    yield from facts.expressions
    for function in facts.functions:
        if function.span.touches(line):
            yield from function.expressions


def _size(span: Span) -> tuple[int, int]:
    lines = span.end_line - span.line
    return lines, span.end_column - span.column if not lines else span.end_column
