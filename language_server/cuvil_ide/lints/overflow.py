"""Whether an exponential may be inf: nothing on the way to it keeps its argument small.

    exponent(function, value)     # the argument of the exp that a value is, where nothing holds it back

Held back is what is shifted by anything, negated, squared, clamped, normalised, a logarithm, or known to stay in range. An unknown call may do all of this.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import flow

if TYPE_CHECKING:
    from cuvil.ir.function import Function, Op

LARGEST = {"F16": 11.09, "BF16": 88.72, "F32": 88.72, "F64": 709.78}              # exp of more is inf
_CARRY = flow.PARTS | {"add", "mul", "div", "matmul", "einsum"}
_FREE = frozenset(("input", "parameter", "constant", "linear", "conv1d", "conv2d", "conv3d", "embedding"))
_SAME = frozenset(("asarray", "array", "as_tensor", "tensor", "from_numpy", "numpy", "getitem", "matmul", "einsum", "bmm", "dot", "linear", "to", "float", "astype",
                   "cpu", "squeeze", "unsqueeze", "transpose", "permute", "reshape", "view", "T", "mT", "detach"))
_SMALL = re.compile(r"log(?!it)|prob|sim|cos|dist|norm", re.IGNORECASE)           # what names say of inputs: logarithms of chances, cosines


def limit(op: Op) -> float:
    """From which argument on the exponential is inf, in the widest type that it may have."""
    return LARGEST.get(op.type.dtype.name, 709.78) if op.type.dtype is not None else LARGEST["F32"]


def exponent(function: Function, value: Op) -> Op | None:
    exp = flow.source(function, value, {"cast", "broadcast"})
    if exp.name != "exp" or flow.ranges(function)[exp.operands[0]].hi <= limit(exp):
        return None
    argument = flow.operand(function, exp)
    return argument if all(_free(function, op, exp) for op in _made(function, argument)) else None


def _made(function: Function, value: Op) -> list[Op]:
    """All that goes into a value through ops that let it grow; those that may not are among it."""
    todo, seen, found = [value], {value.id}, []
    while todo:
        op = todo.pop()
        same = op.name == "opaque" and op.operands and op.attr("call", "").rpartition(".")[2] in _SAME
        square = op.name == "mul" and op.operands[0] == op.operands[1]
        if not (op.name in _CARRY and not square or same):
            found.append(op)
            continue
        for id in op.operands:
            if id not in seen:
                seen.add(id)
                todo.append(function.by_id[id])
    return found


def _free(function: Function, op: Op, exp: Op) -> bool:
    """Data as it comes in, or what a layer makes of it. A literal that a caller hands over stands for any data."""
    if op.name == "constant":
        return flow.ranges(function)[op.id].lo >= 0 or op.type.shape != () and flow.depth(op) < flow.depth(exp)
    known = op.name == "opaque" and op.attr("call", "").rpartition(".")[2] in _SAME
    return (op.name in _FREE or known) and _SMALL.search(op.label or str(op.attr("name") or "")) is None
