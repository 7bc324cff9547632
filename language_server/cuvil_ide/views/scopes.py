"""Names in a function: which scopes Python looks a name up in, and what it is bound to in each.

A syntax question with types attached: comprehensions, lambdas and nested functions are scopes of their own, class bodies are not
seen from inside their methods, `global` and `nonlocal` are honoured. Types are what the facts know of the binding's value.
"""
from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.source import Span

from ..protocol import Binding, Scope
from .subject import place

if TYPE_CHECKING:
    from cuvil.cst.module import Definition, Module
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts

COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
OPENS = (cst.FunctionDef, cst.Lambda, cst.ClassDef, *COMPREHENSIONS)


@dataclass
class _Frame:
    """A scope while it is collected. bound: name -> [(kind, node, where)]."""

    name: str
    outer: _Frame | None
    is_class: bool = False
    bound: dict[str, list[tuple[str, Span | None]]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)

    def bind(self, name: str, kind: str, span: Span | None) -> None:
        self.bound.setdefault(name, []).append((kind, span))


def scopes(facts: FileFacts, function: FunctionFacts) -> dict[tuple[Span, str], Scope]:
    """(place of a Name node, its text) -> its scope, for all names in the function's definition."""
    module = facts.module
    definition = module.by_name.get(function.name)
    if definition is None or definition.tree is None or definition.node is None:
        return {}
    path = facts.source.path
    outermost = _members_frame(module, definition.owner, path)
    frames: dict[int, _Frame] = {}
    outside: dict[int, _Frame] = {}          # parts of a definition that belong to the scope around it
    tree = definition.tree
    names: list[tuple[cst.Name, Span, _Frame]] = []
    for node in tree.walk():
        parent = tree.parent(node)
        frame = outside.get(id(node)) or frames.get(id(parent), outermost)
        span = definition.span(node, path)
        own = _opened(node, frame)
        if own is not None and own is not frame:
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                if parent is not None:       # the definition itself is bound by its owner already
                    frame.bind(node.name.value, "function" if isinstance(node, cst.FunctionDef) else "class", definition.span(node.name, path))
                outside.update((id(part), frame) for part in (node.name, *node.decorators, getattr(node, "returns", None)))
            frame = own
        frames[id(node)] = frame
        for name, kind, at in _bindings(node):
            target = frame
            while kind == "assignment" and isinstance(node, cst.NamedExpr) and target.name.endswith("comprehension>") and target.outer:
                target = target.outer        # PEP 572: `:=` binds outside the comprehension
            target.bind(name, kind, definition.span(at, path))
        if isinstance(node, (cst.Global, cst.Nonlocal)):
            frame.elsewhere |= {item.name.value for item in node.names}
        if isinstance(node, cst.Name) and _is_use_or_binding(node, parent):
            names.append((node, span, frame))
    types = _types(function)
    return {(span, node.value): _scope(node.value, frame, types) for node, span, frame in names}


def _opened(node: cst.CSTNode, frame: _Frame) -> _Frame | None:
    if not isinstance(node, OPENS):
        return None
    match node:
        case cst.FunctionDef() | cst.ClassDef():
            name = node.name.value
        case cst.Lambda():
            name = "<lambda>"
        case _:
            name = "<comprehension>"
    return _Frame(f"{frame.name}.{name}" if frame.name != "module" else name, frame, isinstance(node, cst.ClassDef))


def _members_frame(module: Module, owner: str, path: str) -> _Frame:
    """The scope that a class or the module ("") is: functions and classes by the scan, other names by the statements' trees."""
    outer = owner.rpartition(".")[0]
    frame = _Frame(owner, _members_frame(module, outer, path), True) if owner else _Frame("module", None)
    for definition in module.members.get(owner, ()):
        if definition.kind in ("function", "class") and definition.name != owner:
            name, line = definition.name.rpartition(".")[2], module.source.line(definition.header)
            column = max(line.find(name, definition.indent + len("def" if definition.kind == "function" else "class")), 0)
            frame.bind(name, definition.kind, Span(path, definition.header, column, definition.header, column + len(name)))
        elif definition.kind == "statement" and definition.tree is not None:
            for name, kind, span in _statement_bindings(definition, path):
                frame.bind(name, kind, span)
    return frame


def _statement_bindings(definition: Definition, path: str) -> Iterator[tuple[str, str, Span]]:
    for node in definition.tree.walk():
        for name, kind, at in _bindings(node):
            yield name, kind, definition.span(at, path)


def _bindings(node: cst.CSTNode) -> Iterator[tuple[str, str, cst.CSTNode]]:
    """The names that a node itself binds in its scope."""
    match node:
        case cst.Param(name=name):
            yield name.value, "parameter", name
        case cst.AssignTarget(target=target) | cst.AnnAssign(target=target) | cst.AugAssign(target=target) | cst.NamedExpr(target=target) \
                | cst.For(target=target) | cst.CompFor(target=target):
            for name in _targets(target):
                yield name.value, "assignment", name
        case cst.WithItem(asname=cst.AsName(name=target)) | cst.ExceptHandler(name=cst.AsName(name=target)):
            for name in _targets(target):
                yield name.value, "assignment", name
        case cst.ImportAlias(name=name, asname=None):
            while isinstance(name, cst.Attribute):
                name = name.value
            yield name.value, "import", name
        case cst.ImportAlias(asname=cst.AsName(name=cst.Name() as name)):
            yield name.value, "import", name


def _targets(target: cst.CSTNode) -> Iterator[cst.Name]:
    todo = [target]
    while todo:
        match todo.pop():
            case cst.Name() as name:
                yield name
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                todo += [element.value for element in reversed(elements)]
            case cst.StarredElement(value=value):
                todo.append(value)


def _is_use_or_binding(node: cst.Name, parent: cst.CSTNode | None) -> bool:
    """Not a keyword, the attribute in `x.attribute`, nor the keyword in `f(keyword=1)`, nor a part of an imported path."""
    if node.value in ("None", "True", "False"):
        return False
    match parent:
        case cst.Attribute(attr=attr) if attr is node:
            return False
        case cst.Arg(keyword=keyword) if keyword is node:
            return False
        case cst.ImportFrom():
            return False
    return True


def _scope(name: str, frame: _Frame, types: dict[tuple[str, Span | None], str]) -> Scope:
    chain, bindings = [], []
    current: _Frame | None = frame
    skip = name in frame.elsewhere
    while current is not None:
        if current is frame or not current.is_class:
            chain.append(current.name)
            if not (skip and current is frame):
                bindings += [Binding(name, kind, current.name, place(span), types.get((name, span), "")) for kind, span in current.bound.get(name, ())]
        current = current.outer
    chain.append("builtins")
    if hasattr(builtins, name):
        bindings.append(Binding(name, "builtin", "builtins", None, type(getattr(builtins, name)).__name__))
    return Scope(name, chain, bindings)


def _types(function: FunctionFacts) -> dict[tuple[str, Span | None], str]:
    """What is known of a name where it is bound: by the place of its expression, and for parameters by name alone."""
    from cuvil.frontends.python.values import Tensor
    known: dict[tuple[str, Span | None], str] = {}
    for fact in function.expressions:
        if fact.node == "Name" and isinstance(fact.value, Tensor):
            known["", fact.span] = str(fact.value.type)
    parameters = {name: str(value.type) for name, value in function.parameters if isinstance(value, Tensor)}
    return _ByPlace(known, parameters, function.span)


class _ByPlace(dict):
    def __init__(self, known: dict, parameters: dict[str, str], span: Span) -> None:
        super().__init__(known)
        self.parameters, self.header = parameters, span

    def get(self, key, default=""):
        name, span = key
        return super().get(("", span)) or (self.parameters.get(name, default) if span is not None and self.header.encloses(span) else default)
