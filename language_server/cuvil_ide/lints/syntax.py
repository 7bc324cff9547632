"""Nodes of a file by their type: one walk over each definition's tree, shared by all rules and kept as long as the tree.

A rule gives a pattern that every text of interest must match, so that definitions without one are not even parsed.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import libcst as cst

if TYPE_CHECKING:
    from cuvil.cst import Tree
    from cuvil.frontends.python.facts import FileFacts

Node = TypeVar("Node", bound=cst.CSTNode)
_kept: WeakKeyDictionary[Tree, dict[type, list[cst.CSTNode]]] = WeakKeyDictionary()


def nodes(facts: FileFacts, where: re.Pattern[str], *types: type[Node]) -> Iterator[Node]:
    """Every node of exactly these types in definitions whose text the pattern finds, type by type, in the order of the text."""
    for definition in facts.module.definitions:
        if _mentions(where, definition.text) and definition.tree is not None:
            by_type = _by_type(definition.tree)
            for wanted in types:
                yield from by_type.get(wanted, ())


@lru_cache(16384)
def _mentions(where: re.Pattern[str], text: str) -> bool:
    return where.search(text) is not None


def _by_type(tree: Tree) -> dict[type, list[cst.CSTNode]]:
    if tree not in _kept:
        found: dict[type, list[cst.CSTNode]] = {}
        for node in tree.walk():
            found.setdefault(type(node), []).append(node)
        _kept[tree] = found
    return _kept[tree]
