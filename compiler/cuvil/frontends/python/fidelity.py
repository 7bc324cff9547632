"""Proof that captured IR remembers its source: every op has a place, and the text at that place is the node it says it is.

    report = check(source)
    report.lost                               # [] when nothing was lost
"""
from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ...cst import Module
from ...ir.function import Function, Op
from ...lineage import Origin
from ...source import Source
from .analysis import analyze
from .workspace import Workspace


@dataclass(frozen=True)
class Loss:
    """An op whose source cannot be shown, or is not what it says."""

    function: str
    op: int
    what: str


@dataclass(frozen=True)
class Report:
    """functions: names of those checked; ops and origins: how many; lost: what failed."""

    functions: tuple[str, ...]
    ops: int
    origins: int
    lost: tuple[Loss, ...]


def check(source: Source, workspace: Workspace | None = None) -> Report:
    """Check all functions of a file that have IR, ops that came from other files of the workspace included."""
    workspace = workspace if workspace is not None else Workspace()
    facts = analyze(source, workspace)
    functions = [f.function for f in facts.functions if f.function is not None]
    return check_functions(functions, source, workspace)


def check_functions(functions: list[Function], source: Source, workspace: Workspace) -> Report:
    """The same for given functions, say after a pass."""
    lost: list[Loss] = []
    places: dict[str, dict[tuple[str, object], str]] = {}
    ops = origins = 0
    for function in functions:
        for op in function.ops:
            ops += 1
            if not op.origins and op.name != "parameter":
                lost.append(Loss(function.name, op.id, f"{op.name} has no origin"))
            for origin in op.origins:
                origins += 1
                what = _wrong(op, origin, source, workspace, places)
                if what:
                    lost.append(Loss(function.name, op.id, f"{op.name} at {origin.span}: {what}"))
    return Report(tuple(f.name for f in functions), ops, origins, tuple(lost))


def _wrong(op: Op, origin: Origin, source: Source, workspace: Workspace, places: dict) -> str:
    """What does not hold of an origin, "" if all does."""
    path = origin.span.path
    namespace = workspace.namespace(path)
    if namespace is None:
        return "its file cannot be read"
    if path not in places:
        places[path] = _nodes(namespace.syntax)
    code = places[path].get((origin.node, origin.span))
    if code is None:
        return f"no {origin.node} stands there"
    text = namespace.source.slice(origin.span)
    if _bare(text) != _bare(code):
        return f"the text is {text!r}, the node {code!r}"
    if op.name == "input" and code.strip() != op.label:
        return f"the input is named {op.label!r}, the text {code!r}"
    if op.label and op.name not in ("input", "parameter") and op.label not in namespace.source.text:
        return f"the name {op.label!r} is not in the text"
    for caller in origin.callers:
        other = workspace.namespace(caller.path)
        if other is None or "(" not in other.source.slice(caller) and "." not in other.source.slice(caller):
            return f"no call stands at {caller}"
    return ""


def _bare(code: str) -> str:
    """Code without blanks and the brackets around it: libcst prints a node by itself without the indents of its lines."""
    return "".join(code.split()).strip("()\\")


def _nodes(module: Module) -> dict[tuple[str, object], str]:
    """(node kind, span) -> the node as libcst prints it, of all expressions and statements that ops can come from."""
    found = {}
    for definition in module.definitions:
        if definition.tree is not None:
            for node in definition.tree.walk():
                kind, span = type(node).__name__, definition.span(node, module.source.path)
                if isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement)):
                    found[kind, span] = definition.tree.root.code_for_node(node)
                elif isinstance(node, cst.FunctionDef):
                    found[kind, span] = definition.tree.code(node)
                if kind == "Name":                        # the name of a parameter is where the parameter is declared
                    found["Param", span] = definition.tree.root.code_for_node(node)
    return found
