"""A flipped array given to torch.

What: `torch.from_numpy`, `as_tensor` or `tensor` of a NumPy view with a negative step (`x[::-1]`, `np.flip`).
Why: a flipped view walks its memory backwards, which a torch tensor cannot; the call raises (`negative strides are not supported`).
Example: `torch.from_numpy(frame[..., ::-1])`
Instead: `torch.from_numpy(frame[..., ::-1].copy())`
Fix: safe: the view is copied; before, this line raised.

Silent when a copy was made between, and where the error is expected.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .guards import expected_to_fail
from .recorded import calls, node_of, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import numpy as np\nimport torch\n\ndef f(frame: np.ndarray):\n"
VALID = (
    _START + "    return torch.from_numpy(frame[..., ::-1].copy())\n",
    _START + "    return torch.from_numpy(np.ascontiguousarray(frame[..., ::-1]))\n",
    _START + "    return torch.from_numpy(frame[..., ::2])\n",
    _START + "    return torch.from_numpy(frame[..., ::-1] * 2)\n",
    _START + "    return torch.from_numpy(frame[..., ::-1].astype(np.float32))\n",
    _START + "    return torch.from_numpy(frame).flip(-1)\n",
    # flipped twice is the right way round again
    _START + "    return torch.from_numpy(frame[::-1][::-1])\n",
)
INVALID = (
    Invalid(_START + "    rgb = frame[..., ::-1]\n    return »torch.from_numpy(rgb)«\n", "negative stride",
            _START + "    rgb = frame[..., ::-1]\n    return torch.from_numpy(rgb.copy())\n"),
    Invalid(_START + "    return »torch.from_numpy(np.flip(frame, 0))«\n", "copy", _START + "    return torch.from_numpy(np.flip(frame, 0).copy())\n"),
    Invalid(_START + "    return »torch.as_tensor(frame[::-1].transpose(2, 0, 1))«\n", "copy",
            _START + "    return torch.as_tensor(frame[::-1].transpose(2, 0, 1).copy())\n"),
)

_TAKES = frozenset(("torch.from_numpy", "torch.as_tensor", "torch.tensor"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call in once(c for c in calls(facts) if c.name in _TAKES and c.args and _flipped(c.args[0])):
        if expected_to_fail(facts, call.span):
            continue
        node = node_of(facts, call.span, cst.Call)
        fix, origin = None, call.args[0].op.origins
        if isinstance(node, cst.Call) and node.args and isinstance(node.args[0].value, (cst.Name, cst.Subscript, cst.Call, cst.Attribute)):
            where = facts.module.span(node.args[0].value)
            end = Span(where.path, where.end_line, where.end_column, where.end_line, where.end_column)
            fix = Fix("safe", "Copy the view", (Edit(end, ".copy()"),))
        yield RULE.finding(f"{call.name} raises on this array: it is a flipped view with a negative stride; copy() it first", call.span,
                           (Evidence(origin[0].span, "is flipped here"),) if origin else (), fix)


def _flipped(value) -> bool:
    from cuvil.frontends.python.values import Tensor
    return isinstance(value, Tensor) and value.library == "numpy" and "negative-stride" in value.marks


RULE = Rule("CUV714", "negative-stride", kind="non-contiguous-view", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
