"""A product of 8-bit integers that is added up in 8 bits.

What: `@`, dot, matmul, einsum, or a sum of products, of int8 or uint8 arrays, which gives int8 or uint8.
Why: both NumPy and PyTorch keep the operands' type for the sum, so it wraps around: two products of 100 * 100 do not fit in 16 bits, none fits in 8.
Example: `codes_x @ codes_w.T` for int8 codes
Instead: `codes_x.astype(np.int32) @ codes_w.astype(np.int32).T`, or `torch._int_mm`, which accumulates in int32
Fix: unsafe: both sides are widened to int32; the result changes, which is the point.

Silent where one side is wider, with `dtype=`, and for sums of one array, which the libraries widen themselves.
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

_START = "import numpy as np\nimport torch\n\ndef f(x: np.ndarray, w: np.ndarray):\n    x, w = x.astype(np.int8), w.astype(np.int8)\n"
_TORCH = "import torch\n\ndef f(x: torch.Tensor, w: torch.Tensor):\n    x, w = x.to(torch.int8), w.to(torch.int8)\n"
VALID = (
    _START + "    return x.astype(np.int32) @ w.astype(np.int32).T\n",
    _START + "    return x.sum(), x.astype(np.int32).dot(w), (x * w.astype(np.int32)).sum(-1)\n",
    _START + "    return np.matmul(x, w, dtype=np.int32)\n",
    _TORCH + "    return torch._int_mm(x, w), x.sum(), x.int() @ w.int()\n",
    _TORCH + "    return ((x > 0).to(torch.int8) * (w > 0).to(torch.int8)).sum()\n",
)
INVALID = (
    Invalid(_START + "    return »x @ w.T«\n", "int8", _START + "    return x.astype(np.int32) @ w.T.astype(np.int32)\n"),
    Invalid(_START + "    return »np.dot(x, w)«\n", "wraps"),
    Invalid(_TORCH + "    return »torch.matmul(x, w)«\n", "int8"),
    Invalid(_TORCH + "    return (»x * w«).sum(-1)\n", "products", _TORCH + "    return (x.to(torch.int32) * w.to(torch.int32)).sum(-1)\n"),
    Invalid(_START + "    return »np.einsum('ij,kj->ik', x, w)«\n", "int8"),
)

_PRODUCTS = frozenset(("matmul", "dot", "inner", "vdot", "tensordot", "mm", "bmm", "mv", "einsum", "__matmul__"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.ir.types import DType
    narrow = (DType.I8, DType.U8)
    for function, op in flow.ops(facts, "matmul", "einsum", "dot", "opaque", "mul"):
        if op.type.dtype not in narrow or len(op.operands) < 2:
            continue
        if op.name == "opaque" and str(op.attr("call")).rpartition(".")[2] not in _PRODUCTS or op.name == "mul" and not _added_up(function, op):
            continue
        if any(function.by_id[id].type.dtype not in narrow for id in op.operands):
            continue
        name = op.type.dtype.numpy
        what = f"products of {name} arrays are {name} before they are added up" if op.name == "mul" else f"the products of {name} arrays are added up in {name}"
        yield RULE.finding(f"{what}: it wraps around past {127 if name == 'int8' else 255}; widen the operands to int32", flow.span(op),
                           flow.evidence(*((function.by_id[id], f"has type {function.by_id[id].type}") for id in op.operands)), _fix(facts, op))


def _added_up(function: Function, op: Op) -> bool:
    """An elementwise product of two arrays that may leave the type and is summed."""
    a, b = (flow.operand(function, op, i) for i in (0, 1))
    ranges = flow.ranges(function)
    whole = ranges[op.id]
    fits = all(whole.lo <= p * q <= whole.hi for p in (ranges[a.id].lo, ranges[a.id].hi) for q in (ranges[b.id].lo, ranges[b.id].hi))
    if fits or flow.number(function, a) is not None or flow.number(function, b) is not None:
        return False
    return any(user.name in ("reduce_sum", "mean") for user, _ in flow.uses(function, op))


def _fix(facts: FileFacts, op: Op) -> Fix | None:
    from cuvil.frontends.python.values import Tensor
    node = node_of(facts, flow.span(op), cst.BinaryOperation)
    if node is None:
        return None
    edits = []
    for side in (node.left, node.right):
        where = facts.module.span(side)
        value = value_of(facts, where)
        if not isinstance(value, Tensor) or not isinstance(side, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
            return None
        edits.append(Edit(where, f"{facts.source.slice(where)}.{'astype(np.int32)' if value.library == 'numpy' else 'to(torch.int32)'}"))
    return Fix("unsafe", "Widen both sides to int32", tuple(edits))


RULE = Rule("CUV931", "int8-accumulator", kind="integer-wrap", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
