"""A Python loop over the elements of a tensor.

What: `for i in range(n)` whose body only reads and writes single elements (`out[i, j] = x[i, j] * gain`), each round on its own.
Why: each element costs a call through the whole library, a microsecond for a multiplication that takes a nanosecond; on a device each is a kernel of its own.
Example: `for i in range(h): for j in range(w): out[i, j] = max(x[i, j], 0)`
Instead: `out = x.clamp(min=0)`
Fix: display: the same arithmetic on whole tensors, with `where` for conditions.

Silent where a round needs what another one computed (recurrences), where rows are handled instead of elements, where something else is called, and for a
few rounds.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from ..lookup import value_of
from ..syntax import nodes
from .carried import inside
from .recorded import around
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.frontends.python.values import Tensor

_START = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor, gain: float):\n    h, w = x.shape\n    out = torch.zeros(h, w)\n"
_LOOP = "    for i in range(h):\n        for j in range(w):\n"
VALID = (
    _START + "    return x * gain\n",
    # each round needs the one before
    _START + "    for i in range(1, h):\n        for j in range(w):\n            out[i, j] = out[i - 1, j] * gain + x[i, j]\n    return out\n",
    _START + "    state = 0.0\n" + _LOOP + "            state = state * gain + x[i, j]\n            out[i, j] = state\n    return out\n",
    # rows
    _START + "    for i in range(h):\n        out[i] = x[i] * gain\n    return out\n",
    _START + _LOOP + "            out[i, j] = lookup(x[i, j])\n    return out\n\ndef lookup(v):\n    return open(str(v)).read()\n",
    _START + "    for i in range(3):\n        out[i, 0] = x[i, 1] * gain\n    return out\n",
    _START + _LOOP + "            if x[i, j] > gain:\n                break\n            out[i, j] = x[i, j]\n    return out\n",
)
INVALID = (
    Invalid(_START + _LOOP.replace("for i in range(h)", "»for i in range(h)«") + "            out[i, j] = max(x[i, j], 0) * gain\n    return out\n", "whole tensors"),
    Invalid(_START + _LOOP.replace("for i in range(h)", "»for i in range(h)«") + "            v = x[i][j]\n            if v > 0:\n                out[i][j] = v - gain\n    return out\n", "where"),
    Invalid("import numpy as np\n\ndef f(a: np.ndarray):\n    n, = a.shape\n    total = 0.0\n    »for i in range(n)«:\n        total += a[i] * a[i]\n    return total\n", "array"),
)

_WHERE = re.compile(r"\bfor\b.*\bin range\(")
_PURE = frozenset("""abs min max int float round bool exp log sqrt pow sin cos tanh sigmoid relu clamp clip floor ceil square maximum minimum where item sign
    log1p expm1 fabs hypot atan2 arctan2 float32 float64 int32 uint8 uint16 int16""".split())
_FEW = 8


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for loop in nodes(facts, _WHERE, cst.For, analysed=True):
        outer = around(facts, loop, cst.For)
        if _rounds(loop) is None or isinstance(outer, cst.For) and _rounds(outer) is not None and _alone(outer):
            continue
        if (_rounds(loop) or _FEW + 1) <= _FEW or not _steps(loop.body) or not _independent(facts, loop):
            continue
        element = _element(facts, loop)
        if element is not None:
            where, tensor = element
            kind = "array" if tensor.library == "numpy" else "tensor"
            start, end = facts.module.span(loop), facts.module.span(loop.iter)
            condition = ", with where for the condition" if inside(facts, loop, cst.If) else ""
            yield RULE.finding(f"the loop handles the elements of {'an array' if kind == 'array' else 'a tensor'} one by one, and no round needs another one: the same arithmetic on whole {kind}s "
                               f"takes one call{condition}", Span(start.path, start.line, start.column, end.end_line, end.end_column),
                               (Evidence(where, f"one element of {tensor.type}"),), Fix("display", f"compute on whole {kind}s"))


def _rounds(loop: cst.For) -> int | None:
    """Of a loop over range: how many rounds it has, 0 when that is not written; None for other loops."""
    match loop:
        case cst.For(target=cst.Name(), iter=cst.Call(func=cst.Name(value="range"), args=args)):
            return int(args[0].value.value) if len(args) == 1 and isinstance(args[0].value, cst.Integer) else 0
    return None


def _alone(loop: cst.For) -> bool:
    """The inner loop is all that the outer one does: the two are one loop."""
    return isinstance(loop.body, cst.IndentedBlock) and len(loop.body.body) == 1 and isinstance(loop.body.body[0], cst.For)


def _steps(block: cst.BaseSuite) -> bool:
    """Only assignments, conditions around them, and inner loops over range."""
    for statement in block.body if isinstance(block, cst.IndentedBlock) else ():
        match statement:
            case cst.SimpleStatementLine(body=parts):
                if not all(isinstance(part, (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Pass)) for part in parts):
                    return False
            case cst.If(body=body, orelse=orelse):
                if not _steps(body) or orelse is not None and not _steps(cst.IndentedBlock([orelse]) if isinstance(orelse, cst.If) else orelse.body):
                    return False
            case cst.For(body=body, orelse=None):
                if _rounds(statement) is None or not _steps(body):
                    return False
            case _:
                return False
    return isinstance(block, cst.IndentedBlock)


def _independent(facts: FileFacts, loop: cst.For) -> bool:
    """No round reads what another one wrote, and nothing but arithmetic is called."""
    for call in inside(facts, loop, cst.Call):
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else call.func.value if isinstance(call.func, cst.Name) else ""
        if name not in _PURE and name not in ("range", "len"):
            return False
    code, written, bound = facts.module.code, {}, set()
    for node in inside(facts, loop, cst.Assign, cst.AugAssign):
        for target in [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]:
            if isinstance(target, cst.Subscript):
                root = target
                while isinstance(root, cst.Subscript):
                    root = root.value
                written.setdefault(code(root), set()).add(code(target))
            elif isinstance(target, cst.Name):
                bound.add(target.value)
                if not _fresh(facts, loop, node, target.value):
                    return False
            else:
                return False
    for read in inside(facts, loop, cst.Subscript):
        if isinstance(facts.module.parent(read), cst.Subscript):
            continue
        root = read
        while isinstance(root, cst.Subscript):
            root = root.value
        if code(root) in written and code(read) not in written[code(root)]:
            return False
    return True


def _fresh(facts: FileFacts, loop: cst.For, node: cst.Assign | cst.AugAssign, name: str) -> bool:
    """A name that each round binds before it reads it, or that sums up and is read nowhere else in the loop."""
    uses = sorted((facts.module.span(each), each) for each in inside(facts, loop, cst.Name) if each.value == name)
    if isinstance(node, cst.AugAssign):
        return isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)) and len(uses) == 1
    condition, value = around(facts, node, cst.If), facts.module.span(node.value)
    sometimes = condition is not None and facts.module.span(loop).encloses(facts.module.span(condition))
    return not sometimes and uses[0][0] == facts.module.span(node.targets[0].target) and not any(value.encloses(span) for span, _ in uses)


def _element(facts: FileFacts, loop: cst.For) -> tuple[Span, Tensor] | None:
    """A place where one element of a tensor is read at an index of the loop."""
    from cuvil.frontends.python.values import Tensor
    for read in inside(facts, loop, cst.Subscript):
        span = facts.module.span(read)
        value, base = value_of(facts, span), value_of(facts, facts.module.span(read.value))
        if isinstance(value, Tensor) and value.type.shape == () and isinstance(base, Tensor):
            root = read.value
            while isinstance(root, cst.Subscript):
                root = root.value
            whole = value_of(facts, facts.module.span(root))
            return span, whole if isinstance(whole, Tensor) else base
    return None


RULE = Rule("CUV803", "element-loop", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
