"""A comparison with NaN.

What: `==`, `!=`, `<`, `<=`, `>` or `>=` with `float("nan")`, `math.nan`, `np.nan` or `torch.nan`.
Why: NaN equals nothing, not even itself, and is neither smaller nor larger than anything: `!=` is always true and all others are always false.
Example: `scores[scores == float("nan")] = 0`
Instead: `scores[torch.isnan(scores)] = 0`, or `np.isnan(x)`, `math.isnan(x)`
Fix: unsafe: `isnan` of tensors and arrays; what it says is another thing, which is the point.

Silent where NaN is compared with NaN: that is a demonstration.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from ..lookup import value_of
from ..syntax import nodes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import math\nimport numpy as np\nimport torch\n\n"
VALID = (
    _START + "def f(x: torch.Tensor):\n    return torch.isnan(x), x != x\n",
    _START + "def f(x):\n    return x is math.nan, math.isnan(x)\n",
    "assert float('nan') != float('nan')\n",
    "def f(nan: int, x: int):\n    return x == nan\n",
    "def f(x):\n    return x == float('inf'), x == 'nan'\n",
)
INVALID = (
    Invalid(_START + "def f(x: torch.Tensor):\n    return »x == float('nan')«\n", "always false", _START + "def f(x: torch.Tensor):\n    return torch.isnan(x)\n"),
    Invalid(_START + "def f(x: torch.Tensor):\n    return x[»x != torch.nan«]\n", "always true", _START + "def f(x: torch.Tensor):\n    return x[~torch.isnan(x)]\n"),
    Invalid(_START + "def f(x: np.ndarray):\n    return (»np.nan == x«).any()\n", "isnan", _START + "def f(x: np.ndarray):\n    return (np.isnan(x)).any()\n"),
    Invalid(_START + "def f(loss):\n    if »loss == math.nan«:\n        raise ValueError\n", "isnan"),
    Invalid("def clean(rows):\n    return [row for row in rows if »row['score'] != float('NaN')«]\n", "always true"),
)

_WHERE = re.compile(r"nan\b", re.IGNORECASE)
_NAN = re.compile(r"""(?:math|cmath|np|numpy|torch|jnp)\.(?:nan|NaN|NAN)|float\(\s*["'][+-]?nan["']\s*\)""", re.IGNORECASE)
_ALWAYS = {cst.Equal: "false", cst.NotEqual: "true", cst.LessThan: "false", cst.LessThanEqual: "false", cst.GreaterThan: "false", cst.GreaterThanEqual: "false"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for node in nodes(facts, _WHERE, cst.Comparison):
        if len(node.comparisons) != 1 or type(node.comparisons[0].operator) not in _ALWAYS:
            continue
        sides = node.left, node.comparisons[0].comparator
        nan = [_NAN.fullmatch(facts.module.code(side)) is not None for side in sides]
        if sum(nan) == 1:
            operator = type(node.comparisons[0].operator)
            yield RULE.finding(f"a comparison with NaN is always {_ALWAYS[operator]}: NaN equals nothing, not even itself; isnan asks for it", facts.module.span(node),
                               fix=_fix(facts, node, sides[nan.index(False)]))


def _fix(facts: FileFacts, node: cst.Comparison, other: cst.BaseExpression) -> Fix | None:
    from cuvil.frontends.python.values import Tensor
    value, operator = value_of(facts, facts.module.span(other)), node.comparisons[0].operator
    prefix = {"torch": "torch", "numpy": "np"}.get(value.library) if isinstance(value, Tensor) else None
    if prefix is None or not isinstance(operator, (cst.Equal, cst.NotEqual)) or re.search(rf"^import (?:numpy as )?{prefix}\b", facts.source.text, re.MULTILINE) is None:
        return None
    text = f"{'~' if isinstance(operator, cst.NotEqual) else ''}{prefix}.isnan({facts.module.code(other)})"
    return Fix("unsafe", f"Ask {prefix}.isnan", (Edit(facts.module.span(node), text),))


RULE = Rule("CUV513", "nan-comparison", kind="nan-risk", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="text")
