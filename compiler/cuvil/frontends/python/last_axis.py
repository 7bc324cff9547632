"""The last axis of a tensor whose rank is not known: a linear layer, a normalisation or a table says how long it is, and layers after it
want it to be so long.

    h = self.up(x)              # x of any rank, up = nn.Linear(10, 16): 16 along the last axis
    self.down(h.relu())         # down = nn.Linear(32, 4) takes 32: this raises for every x
"""
from __future__ import annotations

from ...ir.dims import Dim, proved_different
from ...ir.function import Op
from ...ops import TypeRuleError
from ...ops.definition import DEFINITIONS, ELEMENTWISE
from .walk import Walk

FAR = 40                                       # ops that are looked back over
SAME = frozenset(("gelu", "silu", "relu", "softmax", "log_softmax", "layer_norm", "rms_norm", "softplus", "mish", "selu", "elu", "leaky_relu", "hardswish",
                  "hardsigmoid", "sigmoid", "tanh", "cast"))             # as many elements along each axis as their first operand
SAME_CALLS = frozenset(("dropout", "contiguous", "to", "detach", "clone"))
WANTS = {"linear": (1, 1), "layer_norm": (1, -1), "rms_norm": (1, -1), "matmul": (1, -2)}      # op -> the operand and its axis that say how many


def mismatch(walk: Walk, mark: int) -> TypeRuleError | None:
    """What is wrong with an op made since `mark`, where only the last axis of its first operand is known."""
    for at in range(mark, len(walk.builder.ops)):
        op = walk.builder.ops[at]
        if op.name not in WANTS or len(op.operands) < 2:
            continue
        place, axis = WANTS[op.name]
        x, other = walk.op(op.operands[0]), walk.op(op.operands[place])
        if x is None or other is None or x.type.shape is not None or not other.type.shape or len(other.type.shape) < -axis or \
                op.name == "matmul" and len(other.type.shape) < 2:
            continue
        have, want = last_axis(walk, x), other.type.shape[axis]
        if have is not None and proved_different(have, want):
            return TypeRuleError(f"{op.name} of {'?' if x.type.dtype is None else x.type.dtype}[..., {have}] with {other.type}: the last axis has {have} elements, "
                                 f"{want} are taken", f"a last axis of {want}")
    return None


def last_axis(walk: Walk, op: Op) -> Dim | None:
    """How long the last axis is; None when it is not known."""
    return _looked_back(walk, op, [FAR])


def _looked_back(walk: Walk, op: Op, left: list[int]) -> Dim | None:
    """left: the ops that may still be looked at, for all ways together."""
    while left[0] > 0:
        left[0] -= 1
        shape, operands = op.type.shape, [made for i in op.operands if (made := walk.op(i)) is not None]
        if shape is not None:
            return shape[-1] if shape else None
        if not operands:
            return None
        second = operands[1].type.shape if len(operands) > 1 else None
        if op.name == "linear":
            return second[0] if second else None
        if op.name in ("layer_norm", "rms_norm") and second:
            return second[-1]
        if op.name == "matmul":
            return second[-1] if second is not None and len(second) > 1 else None
        if op.name == "take" and len(operands[0].type.shape or ()) > 1 and op.attr("axis") == 0:
            return operands[0].type.shape[-1]                  # rows of a table
        if op.name in SAME or op.name == "opaque" and str(op.attr("call")).rpartition(".")[2].lower() in SAME_CALLS:
            op = operands[0]
        elif op.name in DEFINITIONS and DEFINITIONS[op.name].kind == ELEMENTWISE:
            found = [last for made in operands if isinstance(last := _looked_back(walk, made, left), int)]
            return next((last for last in found if last > 1), None)            # the others have as many, or one
        else:
            return None
    return None
