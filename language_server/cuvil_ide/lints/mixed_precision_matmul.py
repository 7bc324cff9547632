"""Operands of a product that have different element types.

What: a matrix product, a convolution, an attention or a layer gets operands of different element types (float16 with float32, integers with floats).
Why: PyTorch promotes types elementwise only; products raise: "expected m1 and m2 to have the same dtype".
Example: `x.half() @ weight` with a float32 weight
Instead: `x.to(weight.dtype) @ weight`, or the product inside torch.autocast
Fix: none; which of the two precisions is meant is for the author to say.

Silent inside torch.autocast, which casts both, where another default type is set, and where a type is not known.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .element_types import last_name, mixed, of_a_layer, reported
from .problems import called
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
VALID = (
    _START + "def f(x: torch.Tensor, w: torch.Tensor):\n    return x.half() @ w.half()\n",
    _START + "def f(x: torch.Tensor, w: torch.Tensor):\n    return x.half() @ w\n",
    _START + "def f(x: torch.Tensor, w: torch.Tensor):\n    with torch.autocast('cuda', dtype=torch.float16):\n        return x.half() @ w.float()\n",
    _START + "def f(x: torch.Tensor, w: torch.Tensor):\n    return x.half() * w.float()\n",
    _START + "def f():\n    with torch.autocast('cuda'):\n        return g(torch.zeros(2, 3).half(), torch.zeros(3, 4))\n\ndef g(x: torch.Tensor, w: torch.Tensor):\n    return x @ w\n",
    "import numpy as np\n\ndef f():\n    return np.zeros((2, 3), np.float32) @ np.zeros((3, 2))\n",
    # what the annotation says of elements, nobody checks: pixels are floats
    _START + "class Encoder(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.conv = nn.Conv2d(3, 8, 3)\n\n"
    "    def forward(self, pixels: torch.LongTensor):\n        b, c, h, w = pixels.shape\n        return self.conv(pixels.view(b, c, h, w))\n",
)
INVALID = (
    Invalid(_START + "def f(x: torch.Tensor, w: torch.Tensor):\n    x = x.half()\n    w = w.float()\n    return »x @ w«\n", "float16 and float32"),
    Invalid(_START + "def f(q: torch.Tensor, k: torch.Tensor):\n    k = k.bfloat16()\n    return »F.scaled_dot_product_attention(q.float(), k, k)«\n", "float32 and bfloat16"),
    Invalid(_START + "def f():\n    net = nn.Linear(4, 2).half()\n    return »net(torch.zeros(3, 4))«\n", "float32 and float16"),
    Invalid(_START + "def f(ids: torch.LongTensor, x: torch.Tensor):\n    return »x.half() @ x.float()«\n", "float16 and float32"),
    Invalid(_START + "def f():\n    return »nn.Linear(4, 2)(torch.arange(12).reshape(3, 4))«\n", "int64 and float32"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for problem in reported(facts, RULE.name):
        types = list(dict.fromkeys(dtype.numpy for dtype in mixed(problem)))
        shown = problem.what.removesuffix(": the element types differ")
        subject = f"{last_name(problem)}: {shown}" if of_a_layer(problem) else shown
        yield RULE.finding(f"{subject} has operands of {' and '.join(types)}: products promote nothing and raise; bring both to one type, .to(other.dtype)",
                           problem.span, problem.evidence + called(problem))


RULE = Rule("CUV210", "mixed-precision-matmul", kind="dtype-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
