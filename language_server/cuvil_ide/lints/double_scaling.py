"""Pixels divided by 255 twice.

What: a value that lies in 0..1 already, because `ToTensor` or a division by 255 made it so, is divided by 255 (or 127.5, 256) again.
Why: the image becomes almost black, at most 1/255, and a model that is fed with it gives poor results without any error.
Example: `transforms.ToTensor()(Image.open(path)) / 255`
Instead: `transforms.ToTensor()(Image.open(path))`
Fix: unsafe: the second division is taken out; the result changes, which is the point.

Silent for raw bytes, for images whose range is not known, and for masks of 0 and 1.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from . import flow
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op

_START = "import numpy as np\nimport torch\nfrom PIL import Image\nfrom torchvision import transforms\n\n"
VALID = (
    _START + "def f(img: np.ndarray):\n    return torch.from_numpy(img.astype(np.uint8)).float() / 255\n",
    _START + "def f(path: str):\n    x = np.asarray(Image.open(path).convert('RGB'))\n    return x / 255.0\n",
    _START + "def f(path: str):\n    x = transforms.PILToTensor()(Image.open(path))\n    return x / 255\n",
    _START + "def f(x: torch.Tensor):\n    return x / 255, (x > 0) / 255, torch.sigmoid(x) / 255\n",
    _START + "def f(img: np.ndarray):\n    x = img.astype(np.uint8) / 255\n    return (x * 255) / 255\n",
)
INVALID = (
    Invalid(_START + "def f(path: str):\n    x = transforms.ToTensor()(Image.open(path).convert('RGB'))\n    return »x / 255«\n", "1/255",
            _START + "def f(path: str):\n    x = transforms.ToTensor()(Image.open(path).convert('RGB'))\n    return x\n"),
    Invalid(_START + "def f(img: np.ndarray):\n    x = img.astype(np.uint8) / 255.0\n    x = torch.from_numpy(x).permute(2, 0, 1)[None]\n    return »x.float().div(255.0)«\n", "0..1"),
    Invalid(_START + "def f(img: np.ndarray):\n    x = img.astype(np.uint8) / 255.0\n    return »x / 127.5« - 1\n", "0..1",
            _START + "def f(img: np.ndarray):\n    x = img.astype(np.uint8) / 255.0\n    return x - 1\n"),
)

_SCALES = (255, 256, 127.5)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "div"):
        scale, value = flow.number(function, flow.operand(function, op, 1)), flow.operand(function, op)
        made = flow.source(function, value, flow.PARTS - {"concat", "gather", "take"})
        if scale in _SCALES and flow.ranges(function)[value.id].within(0, 1) and _scaled(function, made):
            yield RULE.finding(f"the pixels lie in 0..1 already: divided by {scale:g} again they are at most 1/{scale:g}, an almost black image", flow.span(op),
                               flow.evidence((made, "scaled to 0..1 here")), _fix(facts, flow.span(op)))


def _scaled(function: Function, op: Op) -> bool:
    if op.name == "opaque":
        return op.attr("call", "").endswith(".ToTensor")
    return op.name == "div" and flow.number(function, flow.operand(function, op, 1)) in _SCALES


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    node = node_of(facts, span, cst.BinaryOperation)
    if node is None or not isinstance(node.operator, cst.Divide):
        return None
    return Fix("unsafe", "Scale once", (Edit(span, facts.module.code(node.left)),))


RULE = Rule("CUV515", "double-scaling", kind="lossy-cast", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
