"""Attention scores that are scaled by another size than the one they sum over.

What: q·kᵀ is multiplied by n ** -0.5 (or divided by the root) where n is the number of heads or the width of the model and not the size of a
head, or is multiplied by the root instead of divided.
Why: each score is a sum over the size of a head, so that size sets its spread. With another number the softmax is too flat or too sharp: shapes
are right, nothing crashes, and a model trained with the right scale loses quality.
Example: `(q @ k.transpose(-2, -1)) / num_heads ** 0.5`
Instead: `(q @ k.transpose(-2, -1)) / head_dim ** 0.5`
Fix: display: the size of a head under the root.

Silent about attention among channels (kᵀ·v, a sum over positions), about learned temperatures, about 1/d as µP has it, where no scale is seen
(T5 and cosine attention have none), and about numbers that are neither the number of heads nor the width.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix

from ..lookup import value_of
from ..syntax import last_name
from . import flow
from .axes import is_weight
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.dims import Dim
    from cuvil.ir.function import Function, Op

_START = "import math\nimport torch\nfrom torch import nn\n\ndef f(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n    B, H, T, D = q.shape\n    B, H, S, D = k.shape\n"
_MODULE = ("import torch\nfrom torch import nn\n\nclass A(nn.Module):\n    def __init__(self, dim=768, heads=12):\n        super().__init__()\n"
           "        self.heads, self.qkv = heads, nn.Linear(dim, 3 * dim)\n        self.scale = {}\n\n    def forward(self, x: torch.Tensor):\n"
           "        B, N, C = x.shape\n        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)\n"
           "        w = ({} @ k.transpose(-2, -1)).softmax(dim=-1)\n        return w @ v, w\n")
_UNTYPED = ("import torch\n\ndef f(x, wq, wk, wv, num_heads):\n    B, T, C = x.shape\n    head_dim = C // num_heads\n\n    def split(t):\n"
            "        return t.view(B, T, num_heads, head_dim).transpose(1, 2)\n\n    q, k, v = split(x @ wq), split(x @ wk), split(x @ wv)\n"
            "    scores = {}\n    return torch.softmax(scores, dim=-1)\n    return w @ v, w\n")
VALID = (
    _START + "    w = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(D), dim=-1)\n    return w @ v, w\n",
    _START + "    w = torch.softmax((q * D ** -0.25) @ (k * D ** -0.25).transpose(-2, -1), dim=-1)\n    return w @ v, w\n",
    _START + "    w = torch.softmax(q @ k.transpose(-2, -1) / D, dim=-1)\n    return w @ v, w\n",
    _START + "    w = torch.softmax(q @ k.transpose(-2, -1), dim=-1)\n    return w @ v, w\n",
    _MODULE.format("(dim // heads) ** -0.5", "(q * self.scale)"),
    # A temperature that is trained, and one that somebody chose.
    _MODULE.format("nn.Parameter(torch.ones(()))", "(q * self.scale)"),
    _MODULE.format("0.07", "(q * self.scale)"),
    # Among channels.
    _START + "    w = torch.softmax((k * D ** -0.5).transpose(-2, -1) @ v, dim=-1)\n    return q @ w, w\n",
    _UNTYPED.format("q @ k.transpose(-2, -1) / head_dim ** 0.5"),
    _UNTYPED.format("q @ k.transpose(-2, -1) / (C // num_heads) ** 0.5"),
)
INVALID = (
    Invalid(_START + "    w = torch.softmax(»q @ k.transpose(-2, -1) / math.sqrt(H)«, dim=-1)\n    return w @ v, w\n", "the number of heads"),
    Invalid(_START + "    w = torch.softmax(»q @ k.transpose(-2, -1) * D ** 0.5«, dim=-1)\n    return w @ v, w\n", "the wrong way round"),
    Invalid(_MODULE.format("dim ** -0.5", "(»q * self.scale«)"), "the width of the model"),
    Invalid(_MODULE.format("heads ** -0.5", "(»q * self.scale«)"), "the number of heads"),
    Invalid(_UNTYPED.format("»q @ k.transpose(-2, -1) / num_heads ** 0.5«"), "the number of heads"),
    Invalid("import torch\n\ndef f(x: torch.Tensor, heads: int):\n    B, T, C = x.shape\n    q = k = v = x.view(B, T, heads, C // heads).transpose(1, 2)\n"
            "    s = torch.einsum('bhtd,bhsd->bhts', q, k)\n    s = »s * C ** -0.5«\n    w = s.softmax(-1)\n    return w @ v, w\n", "the width of the model"),
)

_HEADS = re.compile(r"^(?:n|num|nb|number_of)?_?(?:attention_|attn_|q_)?heads?$|^nheads?$", re.IGNORECASE)
_STEPS = flow.LAYOUT | {"slice", "select", "add", "sub", "tril", "triu", "maximum", "clamp"}
_MUL = {"operator.mul": 1, "torch.mul": 1, "torch.Tensor.mul": 1, "operator.truediv": -1, "torch.div": -1, "torch.Tensor.div": -1}
HEADS, WIDTH = "the number of heads", "the width of the model"


@dataclass(frozen=True)
class Factor:
    """A part base ** power of a scale, and the op that multiplies by it. heads: all that is known is that it is named as their number."""

    base: Dim | float
    power: float
    op: Op
    heads: bool = False


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, softmax in flow.ops(facts, "softmax"):
        found = _product(facts, function, flow.operand(function, softmax))
        if found is None:
            continue
        product, factors = found
        for factor in factors:
            what = _wrong(function, product, factors, factor)
            span = flow.span(factor.op)
            if what and span is not None and span.path == facts.source.path:
                size = _contracted(function, product)
                head = f"the size of a head, {size}" if size is not None else "the size of a head (head_dim)"
                yield RULE.finding(f"the scale of these attention scores is taken from {what}; each score is a sum over {head}: scale by 1/sqrt(head_dim)",
                                   span, flow.evidence((product, "each score sums over the last axis of the queries"), (softmax, "and goes into a softmax")),
                                   Fix("display", "1 / math.sqrt(head_dim)"))
                break


def _product(facts: FileFacts, function: Function, value: Op) -> tuple[Op, list[Factor]] | None:
    """The product q·kᵀ behind a scale and masks, and all factors of the scale, those of q and k too. None when one is not known."""
    factors: list[Factor] = []
    product = _peel(facts, function, value, factors)
    if product is None or product.name not in ("matmul", "einsum") or len(product.operands) != 2 or _of_channels(function, product) or any(
            is_weight(function.by_id[id]) for id in product.operands):
        return None
    for id in product.operands:
        if _peel(facts, function, function.by_id[id], factors) is None:
            return None
    return product, factors


def _of_channels(function: Function, product: Op) -> bool:
    """kᵀ·v, a sum over positions: attention among channels, which has a scale of its own."""
    left = function.by_id[product.operands[0]]
    axes = left.attr("axes") if left.name == "transpose" else None
    return axes is not None and product.name == "matmul" and tuple(axes[-2:]) == (len(axes) - 1, len(axes) - 2)


def _peel(facts: FileFacts, function: Function, value: Op, factors: list[Factor]) -> Op | None:
    """What is left of a value when its scale is taken off; None when the scale is no number."""
    for _ in range(64):
        sign = {"mul": 1, "div": -1}.get(value.name) or _MUL.get(value.attr("call", ""), 0)
        operands = [function.by_id[id] for id in value.operands]
        if sign and len(operands) == 2:
            other = next((place for place in (1, 0) if _plain(function, operands[place])), None)
            if other is None or other == 0 and sign < 0:
                return value if value.name in ("mul", "div") and not any(op.type.shape == () for op in operands) else None
            parts = _factors(function, operands[other], sign, value)
            if parts is None:
                return None
            factors += parts
            value = operands[1 - other]
        elif sign and len(operands) == 1:
            part = _written(facts, value, sign)
            if part is None:
                return None
            factors.append(part)
            value = operands[0]
        elif value.name in _STEPS and operands:
            value = next((op for op in (reversed(operands) if value.name == "select" else operands) if not _plain(function, op)), operands[0])
        else:
            return value
    return None


def _plain(function: Function, value: Op) -> bool:
    """A number, whatever it is spread over."""
    value = flow.source(function, value, {"cast", "broadcast"})
    return value.type.shape == () and value.name in ("constant", "sqrt", "rsqrt", "pow", "mul", "div", "reciprocal")


def _factors(function: Function, value: Op, power: float, op: Op) -> list[Factor] | None:
    value = flow.source(function, value, {"cast", "broadcast"})
    if value.name == "constant":
        base = value.attr("value")
        return [Factor(base, power, op)] if not isinstance(base, (bool, str)) and base is not None else None
    inner = [function.by_id[id] for id in value.operands]
    if value.name in ("sqrt", "rsqrt", "reciprocal"):
        return _factors(function, inner[0], power * {"sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1}[value.name], op)
    if value.name == "pow":
        exponent = flow.number(function, inner[1])
        return _factors(function, inner[0], power * exponent, op) if exponent is not None else None
    if value.name in ("mul", "div"):
        parts = _factors(function, inner[0], power, op), _factors(function, inner[1], power if value.name == "mul" else -power, op)
        return None if None in parts else parts[0] + parts[1]
    return None


def _written(facts: FileFacts, op: Op, sign: int) -> Factor | None:
    """A factor whose value is not known, by what is written: the root of something that is named as the number of heads, or of a known size."""
    node = node_of(facts, op.origins[0].span, cst.BinaryOperation) if op.origins and op.origins[0].span.path == facts.source.path else None
    scale, power = (node.right if node is not None else None), float(sign)
    while True:
        match scale:
            case cst.BinaryOperation(left=left, operator=cst.Power(), right=right):
                try:
                    power *= float(facts.module.code(right).replace(" ", "").strip("()"))
                except ValueError:
                    return None
                scale = left
            case cst.BinaryOperation(left=cst.Integer(value="1") | cst.Float(value="1.0" | "1."), operator=cst.Divide(), right=right):
                power, scale = -power, right
            case cst.Call(func=func, args=[cst.Arg(value=inner, keyword=None)]) if last_name(func) in ("sqrt", "rsqrt", "float"):
                power *= {"sqrt": 0.5, "rsqrt": -0.5, "float": 1.0}[last_name(func)]
                scale = inner
            case cst.Name() | cst.Attribute():
                known = getattr(value_of(facts, facts.module.span(scale)), "value", None)
                if known is not None and not isinstance(known, (bool, str)):
                    return Factor(known, power, op)
                return Factor(0.0, power, op, heads=True) if _HEADS.match(last_name(scale)) else None
            case _:
                return None


def _wrong(function: Function, product: Op, factors: list[Factor], factor: Factor) -> str:
    """What the one root of a scale is of, when that is not what the scores sum over; "" when it is right or nothing that is known."""
    if len(factors) != 1 or factor.power not in (-0.5, 0.5, 1, -1):
        return ""
    if factor.heads:
        return HEADS if factor.power == -0.5 else ""
    size, base = _contracted(function, product), factor.base
    if size is None:
        return ""
    number = isinstance(base, (int, float)) and isinstance(size, int)
    if factor.power in (1, -1):                            # a number that was worked out before
        if not number or base <= 0:
            return ""
        base = float(base) ** (-2 * factor.power)
        if isclose(base, 1 / size, rel_tol=1e-6) and size != 1:
            return "its size the wrong way round"
    elif factor.power == 0.5:
        return "its size the wrong way round" if base == size and size != 1 else ""

    def equal(other: Dim | int | None) -> bool:
        return other is not None and (isclose(base, other, rel_tol=1e-6) if number and isinstance(other, int) else base == other)
    if equal(size) or equal(1):
        return ""
    if any(equal(width) for width in _widths(function, product)):
        return WIDTH
    return HEADS if any(map(equal, _heads(function, product))) else ""


def _contracted(function: Function, product: Op) -> Dim | int | None:
    """The size that each score is a sum over."""
    queries = function.by_id[product.operands[0]].type.shape
    if not queries:
        return None
    if product.name == "matmul":
        return queries[-1]
    terms, _, result = str(product.attr("equation")).replace(" ", "").partition("->")
    own, _, other = terms.partition(",")
    gone = [at for at, letter in enumerate(own) if letter in other and letter not in result]
    return queries[gone[0]] if len(gone) == 1 and "." not in own and len(own) == len(queries) else None


def _heads(function: Function, product: Op) -> list[Dim | int]:
    """The sizes of the axis of heads, of the queries and of the keys."""
    shapes = [function.by_id[id].type.shape for id in product.operands]
    return [shape[-3 if product.name == "matmul" else 1] for shape in shapes if shape is not None and len(shape) == 4]


def _widths(function: Function, product: Op) -> list[Dim | int]:
    """Sizes that the queries had before they were split into heads: those of the last axis, and that of a projection."""
    size = _contracted(function, product)
    found = [heads * size for heads in _heads(function, product)]
    value = function.by_id[product.operands[0]]
    for _ in range(24):
        if value.type.shape:
            found.append(value.type.shape[-1])
        if not value.operands or value.name not in flow.LAYOUT | {"slice", "mul", "opaque"}:
            break
        value = function.by_id[value.operands[0]]
    return [width for width in found if width != size]


RULE = Rule("CUV514", "attention-temperature", kind="attention-scale", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
