"""A fused attention that is given a mask and is_causal.

What: `scaled_dot_product_attention(..., attn_mask=mask, is_causal=True)`.
Why: the call raises: it takes one of both.
Example: `F.scaled_dot_product_attention(q, k, v, attn_mask=keep, is_causal=True)`
Instead: `attn_mask=keep & torch.ones(Tq, Tk, dtype=torch.bool).tril(Tk - Tq)`
Fix: display: both have to become one mask.

Silent when the mask may be None, when is_causal hangs on the mask, and where the error is caught or expected.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Fix

from .flow import once
from .guards import expected_to_fail
from .recorded import calls
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\nimport torch.nn.functional as F\n\n"
VALID = (
    _START + "def f(q, k, v, mask=None):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=True)\n",
    _START + "def f(q, k, v, mask):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)\n",
    _START + "def f(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v, attn_mask=None, is_causal=True)\n",
)
INVALID = (
    Invalid(_START + "def f(q, k, v, lengths: torch.Tensor):\n    keep = torch.arange(8) < lengths[:, None]\n"
            "    return »F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None], is_causal=True)«\n", "one of both"),
)


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Scalar, Tensor
    for call in calls(facts):
        if call.name == "torch.nn.functional.scaled_dot_product_attention" and call.argument(5, "is_causal") == Scalar(True) and (
                isinstance(call.argument(3, "attn_mask"), Tensor)) and not expected_to_fail(facts, call.span):
            yield RULE.finding("a mask and is_causal together: scaled_dot_product_attention takes one of both and raises. Merge the triangle into the mask",
                               call.span, (), Fix("display", "attn_mask = mask & torch.ones(Tq, Tk, dtype=torch.bool).tril(Tk - Tq)"))


RULE = Rule("CUV606", "causal-and-mask", kind="mask-shape", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
