"""The table of node kinds and the IR forms they become, made from the tables that the interpreter itself runs by."""
from __future__ import annotations

from typing import NamedTuple

from . import analysis, operators
from .tables import EXPRESSIONS, STATEMENTS

assert analysis                                # importing it fills both tables


class Row(NamedTuple):
    """node: the libcst node kind; form: what it becomes; kind: "expression", "operator" or "statement"."""

    node: str
    form: str
    kind: str


def _operators() -> list[Row]:
    rows = []
    for node, (name, sign, _) in {**operators.BINARY, **operators.COMPARE}.items():
        rows.append(Row(node, f"`a {sign} b` as operator.{name}; on Python values and sizes, worked out", "operator"))
    rows += [Row(node, f"`{sign}a` as operator.{name}", "operator") for node, (name, sign, _) in operators.UNARY.items()]
    return rows


MAPPING: list[Row] = [
    *(Row(kind.__name__, rule.form, "expression") for kind, rule in EXPRESSIONS.items()),
    *_operators(),
    *(Row(kind.__name__, rule.form, "statement") for kind, rule in STATEMENTS.items())]
