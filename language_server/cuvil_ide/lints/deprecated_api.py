"""A name that PyTorch or NumPy is about to take away.

What: an attribute that the library still has and warns about, or documents as deprecated.
Why: it goes with one of the next releases; the new name often takes its arguments in another way, which is easier to change now.
Example: `with torch.cuda.amp.autocast(): ...`, `np.trapz(y, x)`
Instead: `with torch.amp.autocast("cuda"): ...`, `np.trapezoid(y, x)`
Fix: unsafe where the new name is the same thing: older versions do not have it. Otherwise display.

Silent for target versions before the deprecation, and where the use is guarded.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic

from .api_changes import Change, pattern, uses
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

VALID = (
    "import torch\n\ndef f(x: torch.Tensor):\n    with torch.amp.autocast('cuda'):\n        return x.exp()\n",
    "import numpy as np\n\ndef f(y):\n    return np.trapezoid(y) if hasattr(np, 'trapezoid') else np.trapz(y)\n",
)
INVALID = (
    Invalid("import numpy as np\n\ndef f(y):\n    return »np.trapz«(y)\n", "np.trapezoid", "import numpy as np\n\ndef f(y):\n    return np.trapezoid(y)\n"),
    Invalid("import torch\n\ndef f(x: torch.Tensor):\n    with »torch.cuda.amp.autocast«():\n        return x.exp()\n", 'torch.amp.autocast("cuda"'),
    Invalid("import torch\n\ndef f(a: torch.Tensor):\n    return »torch.qr«(a)\n", "torch.linalg.qr"),
)

# Sources: the release notes and deprecation warnings of the libraries.
_DEPRECATED = {
    "torch.cuda.amp.autocast": Change((2, 4), 'torch.amp.autocast("cuda", ...)'), "torch.cpu.amp.autocast": Change((2, 4), 'torch.amp.autocast("cpu", ...)'),
    "torch.cuda.amp.GradScaler": Change((2, 4), 'torch.amp.GradScaler("cuda", ...)'),
    "torch.backends.cuda.sdp_kernel": Change((2, 3), "torch.nn.attention.sdpa_kernel"),
    "torch.set_default_tensor_type": Change((2, 1), "torch.set_default_dtype and torch.set_default_device"),
    "torch.cholesky": Change((1, 8), "torch.linalg.cholesky"), "torch.qr": Change((1, 8), "torch.linalg.qr"),
    "torch.svd": Change((1, 8), "torch.linalg.svd, which returns V transposed"), "torch.chain_matmul": Change((1, 9), "torch.linalg.multi_dot"),
    "torch.ger": Change((1, 8), "{m}.outer", same=True),
    "torch.range": Change((1, 0), "torch.arange, which leaves out its end"), "torch.triangular_solve": Change((1, 11), "torch.linalg.solve_triangular"),
    "torch.nn.functional.upsample": Change((1, 0), "{m}.interpolate", same=True),
    "torch.nn.functional.upsample_bilinear": Change((1, 0), 'F.interpolate(..., mode="bilinear", align_corners=True)'),
    "torch.nn.functional.upsample_nearest": Change((1, 0), 'F.interpolate(..., mode="nearest")'),
    "torch.testing.assert_allclose": Change((1, 12), "torch.testing.assert_close"),
    "numpy.trapz": Change((2, 0), "{m}.trapezoid", same=True), "numpy.in1d": Change((2, 0), "{m}.isin", same=True),
    "numpy.row_stack": Change((2, 0), "{m}.vstack", same=True),
}
_WHERE = pattern(_DEPRECATED)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for use in uses(facts, _DEPRECATED, _WHERE):
        yield RULE.finding(f"{use.name} is deprecated since {use.library}; it is {use.new} now", use.span, fix=use.fix("unsafe"))


RULE = Rule("CUV922", "deprecated-api", kind="deprecated-removed-api", severity="info", certainty="hint", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
