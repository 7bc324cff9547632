"""A mean, a norm or a softmax of integers or bools.

What: a function that PyTorch defines for floats alone (mean, std, var, norm, softmax, normalize, quantile, ...) is given a tensor of integers or bools.
Why: it raises: "mean(): could not infer output dtype". A comparison gives bools, and lengths, labels and ids are integers; in NumPy the same line works.
Example: `(predicted == target).mean()`
Instead: `(predicted == target).float().mean()`, or `.mean(dtype=torch.float32)`
Fix: safe: `.float()` before the call, which raised.

Silent for NumPy arrays, with a `dtype=` argument, and where the element type is not known.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from ..lookup import value_of
from .element_types import last_name, reported
from .problems import called
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, Problem

_START = "import torch\nimport torch.nn.functional as F\n\n"
VALID = (
    _START + "def f(x: torch.Tensor, y: torch.Tensor):\n    return (x == y).float().mean()\n",
    _START + "def f(mask: torch.Tensor):\n    return (mask > 0).sum(1).mean(dtype=torch.float32)\n",
    _START + "def f(mask: torch.Tensor):\n    return (mask > 0).sum(1).max()\n",
    _START + "def f(x: torch.Tensor):\n    return x.mean()\n",
    "import numpy as np\n\ndef f(x: np.ndarray, y: np.ndarray):\n    return (x == y).mean()\n",
)
INVALID = (
    Invalid(_START + "def f(x: torch.Tensor, y: torch.Tensor):\n    return »(x.argmax(-1) == y).mean()«\n", "bool",
            _START + "def f(x: torch.Tensor, y: torch.Tensor):\n    return (x.argmax(-1) == y).float().mean()\n"),
    Invalid(_START + "def f(mask: torch.Tensor):\n    lengths = (mask > 0).sum(1)\n    return »torch.std(lengths)«\n", "int64",
            _START + "def f(mask: torch.Tensor):\n    lengths = (mask > 0).sum(1)\n    return torch.std(lengths.float())\n"),
    Invalid(_START + "def f(x: torch.Tensor):\n    return »F.softmax(x.long(), dim=-1)«\n", "softmax",
            _START + "def f(x: torch.Tensor):\n    return F.softmax(x.long().float(), dim=-1)\n"),
)
_SHORT = {"i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool"}


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for problem in reported(facts, RULE.name):
        types = [long for short, long in _SHORT.items() if f"{short}[" in problem.what]
        shown = f" of {types[0]} elements" if types else ""
        yield RULE.finding(f"{last_name(problem)}{shown} raises: it is defined for floats; .float() first, or dtype= where the function takes it",
                           problem.span, problem.evidence + called(problem), _fix(facts, problem))


def _fix(facts: FileFacts, problem: Problem) -> Fix | None:
    """`.float()` on the tensor, where no caller brought it."""
    from cuvil.frontends.python.values import Tensor
    node = node_of(facts, problem.span, cst.Call) if not problem.callers else None
    if node is None:
        return None
    def floats_wanted(of: cst.BaseExpression | None) -> bool:
        value = value_of(facts, facts.module.span(of)) if of is not None else None
        return isinstance(value, Tensor) and value.type.dtype is not None and not value.type.dtype.is_float

    if isinstance(node.func, cst.Attribute) and floats_wanted(node.func.value):
        at = facts.module.span(node.func.attr)
        return Fix("safe", "Cast to float32: .float()", (Edit(replace(at, end_line=at.line, end_column=at.column), "float()."),))
    given = node.args[0].value if node.args and node.args[0].keyword is None and not node.args[0].star else None
    if not floats_wanted(given):
        return None
    where = facts.module.span(given)
    text = facts.source.slice(where)
    simple = isinstance(given, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    return Fix("safe", "Cast to float32: .float()", (Edit(where, f"{text if simple else f'({text})'}.float()"),))


RULE = Rule("CUV212", "integer-statistic", kind="dtype-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
