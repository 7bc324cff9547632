"""NumPy asked to read a tensor that is not on the host.

What: `.numpy()`, `np.asarray(...)` or another NumPy function on a tensor that lives on an accelerator.
Why: NumPy sees host memory only; torch raises `can't convert cuda:0 device type tensor to numpy`.
Example: `scores.cuda().numpy()`
Instead: `scores.cpu().numpy()`
Fix: safe: `.cpu()` is put in; before, this line raised.

Silent when the device is not known, and where the error is expected.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .accelerators import accelerator
from .guards import expected_to_fail
from .recorded import calls, node_of, once
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor):\n"
VALID = (
    _START + "    return x.cuda().relu().cpu().numpy()\n",
    _START + "    return x.numpy()\n",
    _START + '    y = x.to("cuda")\n    y = y.to("cpu")\n    return np.asarray(y)\n',
    _START + "    return np.asarray(x.cuda().tolist())\n",
)
INVALID = (
    Invalid(_START + "    y = x.cuda().relu()\n    return »y.numpy()«\n", "cpu()", _START + "    y = x.cuda().relu()\n    return y.cpu().numpy()\n"),
    Invalid(_START + '    y = torch.zeros(4, device="cuda")\n    return »np.asarray(y)«\n', "cuda",
            _START + '    y = torch.zeros(4, device="cuda")\n    return np.asarray(y.cpu())\n'),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call in once(c for c in calls(facts) if (c.name == "torch.Tensor.numpy" or c.name.startswith("numpy.")) and c.args and _away(c.args[0])):
        if expected_to_fail(facts, call.span) or any(name == "force" for name, _ in call.keywords):
            continue
        node, fix, where = node_of(facts, call.span, cst.Call), None, call.span
        read = node.func.value if call.name == "torch.Tensor.numpy" and isinstance(node.func, cst.Attribute) else node.args[0].value if node.args else None
        if isinstance(read, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
            where = facts.module.span(read)
            end = Span(where.path, where.end_line, where.end_column, where.end_line, where.end_column)
            fix = Fix("safe", "Copy it to the host first", (Edit(end, ".cpu()"),))
        evidence = (Evidence(where, f"lives on {call.args[0].device.kind}"), *(Evidence(span, "called here") for span in call.context.callers))
        yield RULE.finding(f"{call.name.replace('torch.Tensor.', '')} raises: the tensor lives on {call.args[0].device.kind}, and NumPy reads host memory; "
                           "copy it with cpu() first", call.span, evidence, fix)


def _away(value) -> bool:
    from cuvil.frontends.python.values import Tensor
    return isinstance(value, Tensor) and value.library == "torch" and value.device is not None and accelerator(value.device.kind)


RULE = Rule("CUV306", "device-tensor-to-numpy", kind="device-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
