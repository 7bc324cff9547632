"""What a test says of the names in it: `x is not None`, `not x`, `isinstance(x, tuple)`, and these joined by `and` and `or`."""
from __future__ import annotations

import libcst as cst

from . import joins, operators
from .pythons import is_a
from .values import Either, Sequence, Value
from .walk import Frame, Walk

TESTS = 64                                     # of a chain of `and` or `or` that narrow what follows; those before them stand further off


def narrow(walk: Walk, test: cst.BaseExpression, outcome: bool) -> None:
    """In the current frame, names whose value is one of several keep those with which the test has this outcome."""
    todo, looked = [(test, outcome)], 0
    while todo and looked < 2 * TESTS:
        node, outcome = todo.pop()
        looked += 1
        if type(node) not in _TELLING:
            continue
        match node:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                todo.append((inner, not outcome))
            case cst.BooleanOperation(operator=operator, left=left, right=right) if isinstance(operator, cst.And) is outcome:
                todo += (left, outcome), (right, outcome)
            case cst.Name(value=name):
                _keep(walk, name, lambda option, wanted=outcome: operators.truth(walk, option) is not (not wanted))
            case cst.NamedExpr(target=cst.Name() as target):
                todo.append((target, outcome))
            case cst.Comparison(left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(
                    operator=cst.Is() | cst.IsNot() | cst.Equal() | cst.NotEqual() as operator, comparator=cst.Name(value="None"))]):
                none = isinstance(operator, (cst.Is, cst.Equal)) is outcome
                _keep(walk, name, lambda option, wanted=none: operators.is_none(option) is wanted)
            case cst.Call(func=cst.Name(value="isinstance"), args=[cst.Arg(value=cst.Name(value=name)), cst.Arg(value=kinds)]):
                found = walk.evaluate(kinds)
                wanted = found.items if isinstance(found, Sequence) else (found,)
                _keep(walk, name, lambda option, kinds=wanted, outcome=outcome: _may_be(walk, option, kinds, outcome))


_TELLING = frozenset((cst.UnaryOperation, cst.BooleanOperation, cst.Name, cst.NamedExpr, cst.Comparison, cst.Call))


def _may_be(walk: Walk, value: Value, kinds, outcome: bool) -> bool:
    answers = [is_a(walk, value, kind) for kind in kinds]
    known = True if True in answers else None if None in answers else False
    return known is None or known is outcome


def _keep(walk: Walk, name: str, keep) -> None:
    for frame in (walk.frame, *walk.frame.closure):
        if name in frame.names:
            value = frame.names[name]
            if isinstance(value, Either):
                narrowed = joins.without(value, lambda option: not keep(option))
                if isinstance(walk.frame, Frame):
                    walk.frame.names[name] = narrowed
            return
