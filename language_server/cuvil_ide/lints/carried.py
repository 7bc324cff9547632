"""Which expressions of a function hold, perhaps changed, the result of some call: a walk over the text, for values that no type is known of.

    carries = Carried(facts, function, sources)        # sources: calls, by their spans
    carries.source(expression)                         # the call whose result it holds, or None

A name holds what was bound to it last in the text. Python numbers, shapes and detached tensors hold nothing.
"""
from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import libcst as cst

from cuvil.cst.shown import below

if TYPE_CHECKING:
    from cuvil.cst import Tree
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.source import Span

# What gives no tensor with a history: numbers, indices, comparisons, metadata.
_CUTS = frozenset("""detach item tolist numpy argmax argmin argsort eq ne lt le gt ge isnan isinf long int bool size dim numel shape device dtype data
    requires_grad grad_fn is_cuda ndim nonzero any all keys""".split())
_FUNCTIONS = frozenset(("torch", "F", "nn", "einops"))


class Carried:
    def __init__(self, facts: FileFacts, function: cst.FunctionDef, sources: Collection[Span]) -> None:
        self.facts, self.sources = facts, sources
        self.names: dict[str, list[tuple[tuple[int, int], Span | None]]] = {}
        for node in _bindings(facts, function):
            self._bind(node)

    def source(self, node: cst.BaseExpression) -> Span | None:
        return self._source(node, 0)

    def _source(self, node: cst.BaseExpression, depth: int) -> Span | None:
        span = self.facts.module.span(node)
        if span in self.sources:
            return span
        if depth > 50:
            return None
        match node:
            case cst.Name(value=name):
                return self._held(name, span)
            case cst.Attribute(value=inner, attr=cst.Name(value=name)):
                return None if name in _CUTS else self._source(inner, depth + 1)
            case cst.Subscript(value=inner) | cst.UnaryOperation(operator=cst.Minus() | cst.Plus(), expression=inner) | cst.NamedExpr(value=inner):
                return self._source(inner, depth + 1)
            case cst.BinaryOperation(left=left, right=right):
                return self._source(left, depth + 1) or self._source(right, depth + 1)
            case cst.IfExp(body=body, orelse=orelse):
                return self._source(body, depth + 1) or self._source(orelse, depth + 1)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return next((s for e in elements if (s := self._source(e.value, depth + 1))), None)
            case cst.Call(func=cst.Attribute(value=home, attr=cst.Name(value=name)), args=args):
                if name in _CUTS:
                    return None
                if _root(home) in _FUNCTIONS:
                    return next((s for a in args if (s := self._source(a.value, depth + 1))), None)
                return self._source(home, depth + 1)
        return None

    def _held(self, name: str, place: Span) -> Span | None:
        held = None
        for at, source in self.names.get(name, ()):
            if at >= (place.line, place.column):
                break
            held = source
        return held

    def _bind(self, node: cst.CSTNode) -> None:
        end = self.facts.module.span(node)
        at = end.end_line, end.end_column
        match node:
            case cst.Assign(targets=targets, value=value):
                source = self.source(value)
                for target in targets:
                    inside = [e.value for e in target.target.elements] if isinstance(target.target, (cst.Tuple, cst.List)) else [target.target]
                    for each in inside:
                        self._set(each, at, source)
            case cst.AnnAssign(target=target, value=value) if value is not None:
                self._set(target, at, self.source(value))
            case cst.AugAssign(target=target, value=value):
                self._set(target, at, self.source(target) or self.source(value))
            case cst.For(target=target, iter=iter):
                start = self.facts.module.span(node)
                self._set(target, (start.line, start.column), self.source(iter))

    def _set(self, target: cst.BaseExpression, at: tuple[int, int], source: Span | None) -> None:
        if isinstance(target, cst.Name):
            self.names.setdefault(target.value, []).append((at, source))


def inside(facts: FileFacts, node: cst.CSTNode, *types: type[cst.CSTNode]) -> list[cst.CSTNode]:
    """Nodes of these types in a node, in the order of the text; functions and lambdas in it are left out."""
    kept = _inside.setdefault(facts.module.owner(node).tree, {})       # many rules ask about the same loops and functions, at each keystroke
    if id(node) not in kept:
        kept[id(node)] = _walked(node)
    return [at for at in kept[id(node)] if isinstance(at, types)]


_inside: WeakKeyDictionary[Tree, dict[int, list[cst.CSTNode]]] = WeakKeyDictionary()


def _walked(node: cst.CSTNode) -> list[cst.CSTNode]:
    found, todo = [], [node]
    while todo:
        at = todo.pop()
        if at is node or not isinstance(at, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            found.append(at)
            todo += reversed(below(at))
    return found


def _bindings(facts: FileFacts, function: cst.FunctionDef) -> list[cst.CSTNode]:
    return inside(facts, function, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For)


def _root(node: cst.BaseExpression) -> str:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
