"""Where an iterable without an order of its own is given numbers: enumerated into a map of ids, sliced into shards or splits."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from ..syntax import last_name

if TYPE_CHECKING:
    from cuvil.cst import Tree
    from cuvil.frontends.python.facts import FileFacts


@dataclass(frozen=True, eq=False)
class Numbered:
    """made: the call without an order; at: where it is numbered; how: "numbered" or "sliced"."""

    made: cst.BaseExpression
    at: cst.CSTNode
    how: str


def numbered(facts: FileFacts, tree: Tree, nodes: dict[type, list[cst.CSTNode]], unordered: Callable[[cst.BaseExpression], bool]) -> Iterator[Numbered]:
    """Every such use in one definition. A name counts when it is bound once in it, to a call that `unordered` knows, and never sorted."""
    bound = _bound(nodes, unordered)
    for call in nodes.get(cst.Call, ()):
        if isinstance(call.func, cst.Name) and call.func.value == "enumerate" and call.args:
            made = _made(call.args[0].value, bound, unordered)
            if made is not None and _number_is_kept(tree, call):
                yield Numbered(made, call, "numbered")
    for subscript in nodes.get(cst.Subscript, ()):
        made = _made(subscript.value, bound, unordered)
        if made is not None and len(subscript.slice) == 1 and isinstance(subscript.slice[0].slice, cst.Slice) and not _whole(subscript.slice[0].slice):
            yield Numbered(made, subscript, "sliced")


def _whole(part: cst.Slice) -> bool:
    return part.lower is None and part.upper is None and part.step is None


def _bound(nodes: dict[type, list[cst.CSTNode]], unordered: Callable[[cst.BaseExpression], bool]) -> dict[str, cst.BaseExpression]:
    """Names bound once in the definition to an unordered call (or a list of one)."""
    found: dict[str, cst.BaseExpression] = {}
    spoilt = {call.func.value.value for call in nodes.get(cst.Call, ())
              if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("sort", "shuffle") and isinstance(call.func.value, cst.Name)}
    spoilt |= {arg.value.value for call in nodes.get(cst.Call, ()) for arg in call.args
               if isinstance(call.func, (cst.Name, cst.Attribute)) and last_name(call.func) in ("shuffle", "natsorted") and isinstance(arg.value, cst.Name)}
    count: dict[str, int] = {}
    for assign in nodes.get(cst.Assign, ()):
        for target in assign.targets:
            if isinstance(target.target, cst.Name):
                name = target.target.value
                count[name] = count.get(name, 0) + 1
                made = _unwrapped(assign.value)
                if unordered(made):
                    found[name] = made
    return {name: made for name, made in found.items() if count[name] == 1 and name not in spoilt}


def _made(node: cst.BaseExpression, bound: dict[str, cst.BaseExpression], unordered: Callable[[cst.BaseExpression], bool]) -> cst.BaseExpression | None:
    node = _unwrapped(node)
    return bound.get(node.value) if isinstance(node, cst.Name) else node if unordered(node) else None


def _unwrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """Inside list(...) and tuple(...), which keep the order."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in ("list", "tuple") and len(node.args) == 1:
        node = node.args[0].value
    return node


def _number_is_kept(tree: Tree, call: cst.Call) -> bool:
    """The number becomes a value: `{name: i for i, name in ...}`, `ids[name] = i`, `ids.append(i)`."""
    node = tree.parent(call)
    while node is not None and not isinstance(node, (cst.For, cst.CompFor)):
        if not isinstance(node, (cst.Arg, cst.Call)):
            return False
        node = tree.parent(node)
    if node is None or not isinstance(node.target, cst.Tuple) or not isinstance(node.target.elements[0].value, cst.Name):
        return False
    number = node.target.elements[0].value.value
    if isinstance(node, cst.CompFor):
        made = tree.parent(node)
        return isinstance(made, cst.DictComp) and number in (_name(made.value), _name(made.key))
    for line in node.body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            match small:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())], value=cst.Name(value=name)) if name == number:
                    return True
                case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value="append")), args=[cst.Arg(value=cst.Name(value=name))])) if name == number:
                    return True
    return False


def _name(node: cst.BaseExpression) -> str:
    return node.value if isinstance(node, cst.Name) else ""
