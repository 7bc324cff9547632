"""Nodes of a file by their type: one walk over each definition's tree, shared by all who ask and kept as long as the tree."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import libcst as cst

if TYPE_CHECKING:
    from cuvil.cst import Definition, Tree
    from cuvil.frontends.python.facts import FileFacts

Node = TypeVar("Node", bound=cst.CSTNode)
_kept: WeakKeyDictionary[Tree, dict[type, list[cst.CSTNode]]] = WeakKeyDictionary()


def definitions(facts: FileFacts, where: re.Pattern[str], analysed: bool = False) -> Iterator[Definition]:
    """The definitions whose text the pattern finds and that parse; the others are not even parsed."""
    for definition in facts.module.definitions:
        if (definition.parsed or not analysed) and definition.mentions(where) and definition.tree is not None:
            facts.module.expect(definition)
            yield definition


def nodes(facts: FileFacts, where: re.Pattern[str], *types: type[Node], analysed: bool = False) -> Iterator[Node]:
    """Every node of exactly these types in definitions whose text the pattern finds, type by type, in the order of the text.

    The pattern must match every text of interest; definitions without a match are not even parsed. analysed: only those that
    the front end looked into, for who asks about values."""
    for definition in definitions(facts, where, analysed):
        found = by_type(definition.tree)
        for wanted in types:
            facts.module.expect(definition)
            yield from found.get(wanted, ())


def by_type(tree: Tree) -> dict[type, list[cst.CSTNode]]:
    """All nodes of a tree that people see, each list in the order of the text."""
    if tree not in _kept:
        found: dict[type, list[cst.CSTNode]] = {}
        for node in tree.walk():
            found.setdefault(type(node), []).append(node)
        _kept[tree] = found
    return _kept[tree]


def last_name(node: cst.BaseExpression) -> str:
    """`c` of `c` and of `a.b.c`; "" of other expressions."""
    return node.value if isinstance(node, cst.Name) else node.attr.value if isinstance(node, cst.Attribute) else ""
