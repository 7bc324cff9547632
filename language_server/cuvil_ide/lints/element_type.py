"""An operation that does not take tensors of these element types.

What: an operation gets an element type that the library refuses for it: a difference of bools, `~` of floats, masked_fill with a mask of numbers.
Why: the line raises when it is reached.
Example: `x.masked_fill(attention_mask, 0)` with a mask of integers
Instead: `x.masked_fill(attention_mask == 0, 0)`
Fix: none.

Silent where an element type is not known. Products, indices and statistics of integers have rules of their own.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .element_types import reported
from .problems import called
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n"
VALID = (
    _START + "    return x.masked_fill(y > 0, 0)\n",
    _START + "    return (x > 0) ^ (y > 0)\n",
    _START + "    return ~(x > 0), ~x\n",
    "import torch\nimport torch.nn.functional as F\n\ndef f(x: torch.Tensor):\n    q = x.half()\n    return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.zeros(3, 3))\n",
)
INVALID = (
    Invalid(_START + "    return »x.masked_fill((y > 0).long(), 0)«\n", "mask"),
    Invalid(_START + "    return »(x > 0) - (y > 0)«\n", "bool"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for problem in reported(facts, RULE.name):
        yield RULE.finding(f"{problem.operation}: {problem.what}; it raises: expected {problem.expected}", problem.span, problem.evidence + called(problem))


RULE = Rule("CUV200", "element-type", kind="dtype-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
