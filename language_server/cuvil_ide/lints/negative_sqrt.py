"""A root or an arc cosine of what rounding may push out of its domain.

What: `sqrt` (or `rsqrt`) of a variance written as E[x²] − E[x]² or of squared distances written as a² + b² − 2ab, `acos` or `asin` of a cosine that is computed
from normalised vectors, and `sqrt` or `log` of the `tanh` of what a layer gives, with both signs.
Why: for nearly constant x the two means differ by less than their rounding, and the difference comes out below zero, as does the distance of a point to itself;
a cosine of parallel vectors comes out as 1.0000001. The result is NaN for just these inputs.
Example: `((x ** 2).mean(0) - x.mean(0) ** 2).sqrt()`
Instead: `x.std(0, correction=0)`, `torch.cdist(a, b)`; or `.clamp_min(0)` before the root, `.clamp(-1, 1)` before the arc cosine
Fix: display: there are several ways out.

Silent where the value is clamped, made absolute, or something is added to it.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n"
VALID = (
    _START + "    return ((x * x).mean(0) - x.mean(0) ** 2).clamp_min(0).sqrt()\n",
    _START + "    return torch.sqrt((x * x).mean(0) - x.mean(0) ** 2 + 1e-5)\n",
    _START + "    return torch.sqrt(((x - x.mean(0)) ** 2).mean(0)), x.std(0).sqrt()\n",
    _START + "    return torch.sqrt((x ** 2).mean(0) - y.mean(0) ** 2)\n",
    _START + "    return torch.acos(F.cosine_similarity(x, y).clamp(-1, 1)), torch.acos(x), torch.acos(torch.tanh(x))\n",
    _START + "    return torch.sqrt(torch.sigmoid(x)), torch.log(torch.tanh(x @ y) + 2), torch.sqrt(x), torch.log(torch.tanh(x)), torch.cos(x).sqrt()\n",
)
INVALID = (
    Invalid(_START + "    return »torch.sqrt((x * x).mean(0) - x.mean(0) ** 2)«\n", "clamp_min(0)"),
    Invalid(_START + "    m = x.mean(dim=-1, keepdim=True)\n    var = x.pow(2).mean(dim=-1, keepdim=True) - m * m\n    return (x - m) * »var.rsqrt()«\n", "NaN"),
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return »np.sqrt(np.mean(x ** 2) - np.mean(x) ** 2)«\n", "rounding"),
    Invalid(_START + "    x, y = torch.randn(4, 8), torch.randn(4, 8)\n    return »torch.acos(F.cosine_similarity(x, y, dim=-1))«\n", "clamp(-1, 1)"),
    Invalid(_START + "    x, y = F.normalize(x, dim=-1), F.normalize(y, dim=-1)\n    return »torch.arccos((x * y).sum(-1))«\n", "1.0000001"),
    Invalid("import torch\n\ndef far(a, b):\n    squares = (a ** 2).sum(1)[:, None] + (b ** 2).sum(1)[None] - 2 * a @ b.T\n    return »squares.sqrt()«\n\n"
            "def run():\n    x = torch.randn(4, 3)\n    return far(x, x.clone())\n", "cdist"),
    Invalid(_START + "    return »torch.log(torch.tanh(x @ y))«\n", "both signs"),
)

_BOTH_SIGNS = frozenset(("linear", "conv1d", "conv2d", "conv3d", "matmul", "layer_norm", "batch_norm"))


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "sqrt", "rsqrt", "log", "log2"):
        value = flow.source(function, flow.operand(function, op))
        if op.name in ("sqrt", "rsqrt") and _spread(function, value):
            yield RULE.finding("a variance as E[x²] - E[x]² comes out below zero by rounding where x is nearly constant, and its root is NaN; .clamp_min(0) before, or x.std(correction=0)",
                               flow.span(op), flow.evidence((value, "the difference of two means")), Fix("display", "var.clamp_min(0).sqrt()"))
        elif op.name in ("sqrt", "rsqrt") and _distance(function, value):
            yield RULE.finding("squared distances as a² + b² - 2ab come out below zero by rounding where two points are alike, and their root is NaN; .clamp_min(0) before, or torch.cdist",
                               flow.span(op), flow.evidence((value, "the difference")), Fix("display", "squares.clamp_min(0).sqrt()"))
        elif value.name in ("tanh", "erf") and flow.source(function, flow.operand(function, value)).name in _BOTH_SIGNS:
            yield RULE.finding(f"{op.name} of a {value.name} of what has both signs is NaN for one of them",
                               flow.span(op), flow.evidence((value, f"lies in {flow.ranges(function)[value.id]}")))
    for function, op in flow.ops(facts, "acos", "asin"):
        value = flow.source(function, flow.operand(function, op))
        if _cosine(function, value):
            yield RULE.finding(f"the cosine of parallel vectors comes out as 1.0000001 by rounding, and its {op.name} is NaN; .clamp(-1, 1) before",
                               flow.span(op), flow.evidence((value, "the cosine")), Fix("display", "cosine.clamp(-1, 1)"))


def _spread(function: Function, op: Op) -> bool:
    """mean(x²) - mean(x)²."""
    if op.name != "sub":
        return False
    left, right = (flow.source(function, flow.operand(function, op, place), {"broadcast", "reshape"}) for place in (0, 1))
    mean = _root(function, right)
    inner = _root(function, flow.operand(function, left)) if left.name == "mean" else None
    return inner is not None and mean is not None and mean.name == "mean" and mean.operands[0] == inner.id and mean.attr("axes") == left.attr("axes")


def _root(function: Function, op: Op) -> Op | None:
    """x of x², however it is written."""
    if op.name == "mul" and op.operands[0] == op.operands[1] or op.name == "pow" and flow.number(function, flow.operand(function, op, 1)) == 2:
        return flow.operand(function, op)
    return None


def _distance(function: Function, op: Op) -> bool:
    """Sums of squares less a product of the same vectors."""
    if op.name != "sub":
        return False
    left, right = (list(flow.sources(function, flow.operand(function, op, place), flow.LAYOUT | {"add", "mul"})) for place in (0, 1))
    sums = [each for each in left if each.name == "reduce_sum"]
    squared = [root for each in sums if (root := _root(function, flow.operand(function, each))) is not None]
    product = [each for each in right if each.name == "matmul"]
    if len(left) != len(sums) or len(squared) != 2 or len(product) != 1 or len(right) > 2:
        return False
    factors = flow.sources(function, product[0], flow.LAYOUT | {"matmul", "mul"})
    return {each.id for each in factors if each.name != "constant"} == {flow.source(function, each).id for each in squared}


def _cosine(function: Function, op: Op) -> bool:
    if op.name == "opaque" and op.attr("call", "").endswith(("cosine_similarity", "CosineSimilarity")):
        return True
    if op.name == "reduce_sum":
        op = flow.operand(function, op)
        return op.name == "mul" and all(_normalised(function, function.by_id[id]) for id in op.operands)
    return op.name == "matmul" and all(_normalised(function, function.by_id[id]) for id in op.operands)


def _normalised(function: Function, op: Op) -> bool:
    """Divided by its own length."""
    op = flow.source(function, op, {"transpose", "reshape", "broadcast", "cast"})
    if op.name == "opaque":
        last = op.attr("call", "").rpartition(".")[2]
        return last == "normalize" or last in ("T", "mT", "transpose", "t") and bool(op.operands) and _normalised(function, flow.operand(function, op))
    if op.name != "div":
        return False
    lengths = flow.sources(function, flow.operand(function, op, 1), {"broadcast", "reshape", "cast", "maximum"})
    return any(length.name == "norm" and length.operands[0] == op.operands[0] for length in lengths)


RULE = Rule("CUV517", "negative-sqrt", kind="nan-risk", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
