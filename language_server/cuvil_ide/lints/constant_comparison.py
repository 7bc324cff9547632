"""A comparison whose result is fixed when the code is written.

What: two literals are compared (`None == None`, `1 < 2`), or a name with itself by `is`, `<` or `>`.
Why: one branch of the code can never run; usually one side was meant to be a variable, or a debugging switch was left behind.
Example: `if None == None: mask = causal`
Instead: compare the value that was meant, or drop the test.
Fix: safe for literals: the comparison is replaced by its result, which evaluating it cannot change. None for names.

Silent about `x != x` and `x == x`: for floats and tensors they are the NaN test.
"""
from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Source, Span

from ..syntax import nodes
from .literal import NotLiteral, literal
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = (
    "def f(x): return x != x\n",
    "def f(x): return x == x\n",
    "def f(x): return 0 < x < 1\n",
    "def f(x): return x is None\n",
    "import sys\nnew = sys.version_info >= (3, 11)\n",
    "def f(x, y): return x is y\n",
    "def f(x): return x() < x()\n",
)
INVALID = (
    Invalid("flag = »None == None«\n", "always True", "flag = True\n"),
    Invalid("def f(x):\n    if »1 > 2«:\n        return x\n", "always False", "def f(x):\n    if False:\n        return x\n"),
    Invalid("def f(x): return»(1) == 2«\n", "always False", "def f(x): return False\n"),
    Invalid("def f(mode): return »'train' in ('train', 'eval')«\n", "always True", "def f(mode): return True\n"),
    Invalid("def f(x): return »x is x«\n", "always True"),
    Invalid("def f(x): return »x < x«\n", "with itself"),
)

# Two literals beside an operator, or one word on both sides of it.
_WHERE = re.compile(r"""(?:[\d'")\]}.]|None|True|False)\s*(?:[=!<>]=|[<>]|\bis\b|\bnot\s+in\b|\bin\b)\s*(?:not\s+)?"""
                    r"""(?:[-\d'"(\[{.]|[rbRB]+['"]|None|True|False)"""
                    r"""|\b(\w+)\s*(?:[<>]|\bis\b(?:\s+not\b)?)\s*\1\b""")
_COMPARE = {cst.Equal: operator.eq, cst.NotEqual: operator.ne, cst.LessThan: operator.lt, cst.GreaterThan: operator.gt,
            cst.LessThanEqual: operator.le, cst.GreaterThanEqual: operator.ge, cst.In: lambda a, b: a in b,
            cst.NotIn: lambda a, b: a not in b}
_ITSELF = {cst.Is: "always True", cst.IsNot: "always False", cst.LessThan: "never true", cst.GreaterThan: "never true"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    source = facts.source
    for node in nodes(facts, _WHERE, cst.Comparison):
        if len(node.comparisons) != 1:
            continue
        target = node.comparisons[0]
        kind = type(target.operator)
        if isinstance(node.left, cst.Name) and isinstance(target.comparator, cst.Name) and node.left.value not in ("None", "True", "False"):
            if node.left.value == target.comparator.value and kind in _ITSELF:
                span = facts.module.span(node)
                yield RULE.finding(f"{source.slice(span)} compares {node.left.value} with itself; it is {_ITSELF[kind]}", span)
            continue
        try:
            left, right = literal(node.left), literal(target.comparator)
        except NotLiteral:
            continue
        result = _result(kind, left, right)
        if result is not None:
            span = facts.module.span(node)
            yield RULE.finding(f"{_one_line(source.slice(span))} is always {result}", span, fix=_replacement(source, span, str(result)))


def _result(kind: type, left: object, right: object) -> bool | None:
    if kind in (cst.Is, cst.IsNot):
        # Identity of other literals is the interpreter's affair; these four exist once.
        if not all(value is None or value is ... or isinstance(value, bool) for value in (left, right)):
            return None
        return (left is right) == (kind is cst.Is)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(_COMPARE[kind](left, right))
    except (TypeError, KeyError):                     # 1 < "a" raises when it runs: not ours to say
        return None


def _replacement(source: Source, span: Span, text: str) -> Fix:
    """The result, kept apart from a word that stands directly before or after."""
    start, end = source.index.offset(span.line, span.column), source.index.offset(span.end_line, span.end_column)
    before = " " if start and (source.text[start - 1].isalnum() or source.text[start - 1] == "_") else ""
    after = " " if source.text[end:end + 1].isalnum() or source.text[end:end + 1] == "_" else ""
    return Fix("safe", f"Replace by {text}", (Edit(span, before + text + after),))


def _one_line(text: str) -> str:
    return " ".join(text.split())


RULE = Rule("CUV961", "constant-comparison", kind="constant-comparison", severity="warning", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
