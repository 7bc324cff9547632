"""Floats as positions.

What: a tensor is indexed by a tensor of floats, mostly what `/` or a mean of integers gave, or floats are looked up in an embedding.
Why: the line raises IndexError when it is reached: PyTorch indexes by integers and bools only, and `/` gives floats even of integers.
Example: `rows = flat / width; grid[rows]`
Instead: `rows = flat // width`
Fix: none; the division may stand far away, and other uses of it may want the float.

Silent where an element type is not known, and where the error is expected.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .element_types import reported
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor, k: int):\n    H, W = x.shape\n    _, flat = x.flatten().topk(3)\n    grid = torch.zeros(H, W, 2)\n"
VALID = (
    _START + "    return grid[flat // W, flat % W]\n",
    _START + "    return grid[(flat / W).long(), flat % W]\n",
    _START + "    try:\n        return grid[flat / W]\n    except IndexError:\n        return grid[flat // W]\n",
    "import torch\n\ndef f(x: torch.Tensor, i: torch.Tensor):\n    return x[i / 2] if i is None else x\n",
)
INVALID = (
    Invalid(_START + "    rows = flat / W\n    return »grid[rows, flat % W]«\n", "an index of f32"),
    Invalid("import torch\n\ndef f():\n    return »torch.nn.Embedding(10, 4)(torch.zeros(3))«\n", "integer indices"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for problem in reported(facts, RULE.name):
        yield RULE.finding(f"{problem.what}: it raises; expected {problem.expected}", problem.span, problem.evidence)


RULE = Rule("CUV211", "float-index", kind="index-dtype", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
