"""The order of a set decides what number a label gets.

What: `enumerate(set(words))`, or a list made of such a set, becomes a map from labels to ids.
Why: the hash of a string differs from one process to the next, and with it the order of the set: the same label has another id in the
next run, and predictions carry the wrong names.
Example: `label2id = {label: i for i, label in enumerate(set(labels))}`
Instead: `enumerate(sorted(set(labels)))`, or `dict.fromkeys(labels)` for the order of first appearance
Fix: unsafe: sorted(...) is put around the set; ids that were trained with another order change once, and labels must be comparable.

Silent for sorted sets, for membership, and for sets of numbers (their order is the same in every process).
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import by_type, definitions
from .numbered import numbered
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = (
    "def ids(labels):\n    return {label: i for i, label in enumerate(sorted(set(labels)))}\n",
    "def ids(labels):\n    return {label: i for i, label in enumerate(dict.fromkeys(labels))}\n",
    "def both(a, b):\n    return len(set(a) & set(b))\n",
    "def numbers(n):\n    return {x: i for i, x in enumerate({int(v) for v in n})}\n",
    "def show(labels):\n    for i, label in enumerate(set(labels)):\n        print(i, label)\n",
)
INVALID = (
    Invalid("def ids(labels):\n    return {label: i for i, label in enumerate(»set(labels)«)}\n", "another id in the next process",
            "def ids(labels):\n    return {label: i for i, label in enumerate(sorted(set(labels)))}\n"),
    Invalid("def ids(rows):\n    classes = list(»{r.split(',')[1] for r in rows}«)\n    return {c: i for i, c in enumerate(classes)}\n", "sorted",
            "def ids(rows):\n    classes = list(sorted({r.split(',')[1] for r in rows}))\n    return {c: i for i, c in enumerate(classes)}\n"),
)

_WHERE = re.compile(r"\benumerate\b")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for definition in definitions(facts, _WHERE):
        for use in numbered(facts, definition.tree, by_type(definition.tree), _is_set):
            if use.how == "numbered":
                where = facts.module.span(use.made)
                yield RULE.finding("a set has no order: what is numbered here gets another id in the next process; put sorted(...) around the set", where,
                                   (Evidence(facts.module.span(use.at), "numbered here"),),
                                   Fix("unsafe", "Sort the labels", (Edit(where, f"sorted({facts.source.slice(where)})"),)))


def _is_set(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Call(func=cst.Name(value="set"), args=[cst.Arg(star="", keyword=None, value=inner)]):
            return not _of_numbers(inner)
        case cst.SetComp(elt=item):
            return not _of_numbers(item)
    return False


def _of_numbers(node: cst.BaseExpression) -> bool:
    """The items are numbers for sure: int(...), len(...), range(...), arithmetic."""
    match node:
        case cst.Call(func=cst.Name(value="int" | "float" | "len" | "range" | "round" | "abs")):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="item" | "tolist" | "numpy"))):
            return True
        case cst.BinaryOperation(operator=cst.Multiply() | cst.FloorDivide() | cst.Modulo() | cst.Divide() | cst.Subtract()):
            return True
        case cst.GeneratorExp(elt=item) | cst.ListComp(elt=item):
            return _of_numbers(item)
        case cst.Integer() | cst.Float():
            return True
    return False


RULE = Rule("CUV911", "set-order-labels", kind="nondeterministic-order", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
