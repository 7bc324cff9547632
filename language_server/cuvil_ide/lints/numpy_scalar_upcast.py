"""A NumPy scalar of float64 that makes a float32 array float64.

What: an array of float32 or float16 is combined with a float64 scalar of NumPy: `np.sqrt(d)`, `np.float64(...)`, `np.mean(...)`, an item of a float64 array.
Why: since NumPy 2 the scalar's type counts as much as the array's (NEP 50), so the result is float64: twice the memory, half the speed, and a float32
model that gets it raises. A Python float does not do that.
Example: `tokens * np.sqrt(dim)`
Instead: `tokens * float(np.sqrt(dim))`, or `math.sqrt(dim)`
Fix: unsafe: `float(...)` around the scalar; the result is computed in float32, which is the point.

Silent for Python numbers, for NumPy 1 as the target, and where the result is cast to float32 again.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from ..lookup import value_of
from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import math\nimport numpy as np\nimport torch\n\ndef f(x: np.ndarray, dim: int):\n    x = x.astype(np.float32)\n"
VALID = (
    _START + "    return x * math.sqrt(dim) + 0.5\n",
    _START + "    return x * float(np.sqrt(dim))\n",
    _START + "    return (x * np.sqrt(dim)).astype(np.float32)\n",
    _START + "    y = x / np.sqrt(dim) + 1\n    return torch.from_numpy(y).float()\n",
    _START + "    x *= np.sqrt(dim)\n    return x\n",
    _START + "    return x * np.float32(0.5) / x.std() * np.random.uniform(0.9, 1.1)\n",
    _START + "    return x > np.sqrt(dim)\n",
    _START + "    return x.astype(np.float64) * np.sqrt(dim)\n",
    "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor, dim: int):\n    return x.float() / np.sqrt(dim)\n",
)
INVALID = (
    Invalid(_START + "    return torch.from_numpy(»x * np.sqrt(dim)« + 0.5)\n", "float64", _START + "    return torch.from_numpy(x * float(np.sqrt(dim)) + 0.5)\n"),
    Invalid(_START + "    scale = np.float64(0.5)\n    return »x * scale«\n", "NEP 50", _START + "    scale = np.float64(0.5)\n    return x * float(scale)\n"),
    Invalid(_START + "    grid = np.linspace(0, 1, 10)\n    return »x - grid[3]«\n", "float32", _START + "    grid = np.linspace(0, 1, 10)\n    return x - float(grid[3])\n"),
    Invalid(_START + "    return »x / np.prod(x.shape)«\n", "int64", _START + "    return x / float(np.prod(x.shape))\n"),
    # The array comes in with a call; the layer behind raises, and this is why.
    Invalid("import numpy as np\nimport torch\n\ndef scaled(x, dim):\n    return torch.from_numpy(»x * np.sqrt(dim)«)\n\ndef run():\n"
            "    return torch.nn.Linear(4, 2)(scaled(np.ones((3, 4), dtype=np.float32), 4))\n", "float64",
            "import numpy as np\nimport torch\n\ndef scaled(x, dim):\n    return torch.from_numpy(x * float(np.sqrt(dim)))\n\ndef run():\n"
            "    return torch.nn.Linear(4, 2)(scaled(np.ones((3, 4), dtype=np.float32), 4))\n"),
)

_COMPUTED = frozenset(("add", "sub", "mul", "div", "pow", "maximum", "minimum"))
_ON = _COMPUTED | flow.PARTS - {"cast"} | {"abs", "neg", "sqrt", "exp", "log", "select", "mean", "reduce_sum", "reduce_max", "reduce_min", "clamp"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "cast"):
        found = upcast(function, op)
        if found is not None:
            result, scalar = found
            array = flow.operand(function, op)
            yield RULE.finding(f"a {array.type.dtype.numpy} array with a NumPy scalar of {scalar.type.dtype.numpy} gives float64 since NumPy 2 (NEP 50); "
                               f"float(...) around the scalar keeps {array.type.dtype.numpy}", flow.span(result),
                               flow.evidence((array, f"has type {array.type}"), (scalar, f"is a NumPy scalar of {scalar.type.dtype.numpy}")),
                               _fix(facts, result, scalar))


def upcast(function: Function, op: Op) -> tuple[Op, Op] | None:
    """(result, scalar) of arithmetic for which NumPy widens an array, this cast, because of a scalar; None when it is another cast or is undone."""
    from cuvil.ir.types import DType
    array = flow.operand(function, op)
    if op.type.dtype != DType.F64 or array.type.dtype not in (DType.F32, DType.F16) or array.type.rank == 0 or array.name == "constant":
        return None
    result = next((user for user in function.users[op.id] if user.name in _COMPUTED and user.origins == op.origins and len(user.operands) == 2), None)
    if result is None or result.type.dtype != DType.F64:
        return None
    other = function.by_id[result.operands[1 - result.operands.index(op.id)]]
    scalar = flow.source(function, other, {"cast"}) if other.origins == op.origins else other
    if scalar.type.shape != () or scalar.type.dtype in (None, DType.F32, DType.F16) or _narrowed(function, result):
        return None
    return result, scalar


def _narrowed(function: Function, op: Op) -> bool:
    """The float64 values, or what is computed of them, are cast to another type, or to one that is not known."""
    for user, _ in flow.uses(function, op, _ON):
        if user.name == "cast" and (user.type.dtype is None or user.type.dtype.size < 8):
            return True
        if user.name == "opaque" and user.type.dtype is None and str(user.attr("call")).rpartition(".")[2] in ("to", "type", "type_as", "astype"):
            return True
    return False


def _fix(facts: FileFacts, result: Op, scalar: Op) -> Fix | None:
    from cuvil.frontends.python.values import Tensor
    node = node_of(facts, flow.span(result), cst.BinaryOperation)
    for side in (node.right, node.left) if node is not None else ():
        where = facts.module.span(side)
        value = value_of(facts, where)
        said = value.type.shape == () if isinstance(value, Tensor) else scalar.origins and scalar.origins[0].span == where
        if said:
            return Fix("unsafe", "Make it a Python float: float(...)", (Edit(where, f"float({facts.source.slice(where)})"),))
    return None


RULE = Rule("CUV202", "numpy-scalar-upcast", kind="silent-upcast", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
