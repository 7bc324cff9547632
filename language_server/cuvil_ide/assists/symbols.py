"""The outline of a file: classes, functions and methods. A function that computes with tensors shows what goes in and out."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuvil.source import Span

from .describe import describe, shorten

if TYPE_CHECKING:
    from cuvil import cst
    from cuvil.frontends.python.facts import FileFacts

LIMIT = 60


@dataclass(frozen=True)
class Symbol:
    """kind: "class", "function" or "method". span: the whole definition; name_span: its name."""

    name: str
    kind: str
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...]


def symbols(facts: FileFacts) -> list[Symbol]:
    """Top-level symbols, with the members of classes as children, in the order of the text."""
    def convert(found: cst.Symbol, owner: str) -> Symbol:
        name = f"{owner}.{found.name}" if owner else found.name
        children = tuple(convert(child, name) for child in found.children)
        return Symbol(found.name, found.kind, _detail(facts, name), found.span, found.selection, children)
    return [convert(found, "") for found in facts.module.symbols]


def _detail(facts: FileFacts, name: str) -> str:
    """`(x f32[B, 768]) -> f32[B, 768]`"""
    function = facts.function(name)
    if function is None or function.function is None:
        return ""
    ir = function.function
    inputs = ", ".join(f"{parameter} {text}" for parameter, value in function.parameters if (text := describe(value)))
    results = ", ".join(str(ir.by_id[id].type) for id in ir.results)
    return shorten(f"({inputs}) -> {results}", LIMIT)
