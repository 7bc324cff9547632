"""A name that current PyTorch or NumPy no longer has.

What: an attribute that was removed from the library (NumPy 1.24 and 2.0, PyTorch 1.13 and later).
Why: the line raises AttributeError or RuntimeError as soon as it is reached, often in a branch that only some models take.
Example: `values, vectors = torch.symeig(cov, eigenvectors=True)`, `x.astype(np.float_)`
Instead: `torch.linalg.eigh(cov)`, `np.float64`
Fix: safe where the new name is the same thing (`np.float_` was `np.float64`): the result is the same on old versions, and
new ones raised. Otherwise display: arguments or results differ.

Silent where the use is guarded: in a `try` that catches it, or under an `if` that asks `hasattr` or a version.
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
    "import numpy as np\n\ndef f(x):\n    return x.astype(np.float64)\n",
    "import numpy as np\n\ndef f(x):\n    try:\n        return np.float_(x)\n    except AttributeError:\n        return np.float64(x)\n",
    "import numpy as np\n\ndef f(x):\n    if hasattr(np, 'product'):\n        return np.product(x)\n    return np.prod(x)\n",
    "def f(np, x):\n    return np.float_(x)\n",
)
INVALID = (
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return x.astype(»np.float_«)\n", "np.float_ was removed in NumPy 2.0",
            "import numpy as np\n\ndef f(x: np.ndarray):\n    return x.astype(np.float64)\n"),
    Invalid("import numpy as np\n\ndef f(x: np.ndarray):\n    return np.where(x > 0, x, »np.NINF«)\n", "-np.inf",
            "import numpy as np\n\ndef f(x: np.ndarray):\n    return np.where(x > 0, x, (-np.inf))\n"),
    Invalid("import torch\n\ndef f(x: torch.Tensor):\n    return »torch.symeig«(x, eigenvectors=True)\n", "torch.linalg.eigh"),
)

_NUMPY2, _NUMPY124, _TORCH = (2, 0), (1, 24), (1, 13)
_REMOVED = {
    "numpy.float_": Change(_NUMPY2, "{m}.float64", same=True), "numpy.complex_": Change(_NUMPY2, "{m}.complex128", same=True),
    "numpy.unicode_": Change(_NUMPY2, "{m}.str_", same=True), "numpy.string_": Change(_NUMPY2, "{m}.bytes_", same=True),
    "numpy.Inf": Change(_NUMPY2, "{m}.inf", same=True), "numpy.Infinity": Change(_NUMPY2, "{m}.inf", same=True), "numpy.infty": Change(_NUMPY2, "{m}.inf", same=True),
    "numpy.PINF": Change(_NUMPY2, "{m}.inf", same=True), "numpy.NINF": Change(_NUMPY2, "(-{m}.inf)", same=True), "numpy.NaN": Change(_NUMPY2, "{m}.nan", same=True),
    "numpy.product": Change(_NUMPY2, "{m}.prod", same=True), "numpy.cumproduct": Change(_NUMPY2, "{m}.cumprod", same=True),
    "numpy.alltrue": Change(_NUMPY2, "{m}.all", same=True), "numpy.sometrue": Change(_NUMPY2, "{m}.any", same=True), "numpy.round_": Change(_NUMPY2, "{m}.round", same=True),
    "numpy.asfarray": Change(_NUMPY2, "{m}.asarray(..., dtype=float)"), "numpy.find_common_type": Change(_NUMPY2, "{m}.result_type"),
    "numpy.msort": Change(_NUMPY2, "{m}.sort(..., axis=0)"), "numpy.mat": Change(_NUMPY2, "{m}.asmatrix"),
    "numpy.int": Change(_NUMPY124, "int", same=True), "numpy.float": Change(_NUMPY124, "float", same=True), "numpy.complex": Change(_NUMPY124, "complex", same=True),
    "numpy.object": Change(_NUMPY124, "object", same=True), "numpy.str": Change(_NUMPY124, "str", same=True),
    "torch.symeig": Change(_TORCH, "torch.linalg.eigh"), "torch.eig": Change(_TORCH, "torch.linalg.eig"),
    "torch.lstsq": Change(_TORCH, "torch.linalg.lstsq, with the arguments exchanged"),
    "torch.solve": Change(_TORCH, "torch.linalg.solve, with the arguments exchanged"),
    "torch.matrix_rank": Change(_TORCH, "torch.linalg.matrix_rank"),
}
_WHERE = pattern(_REMOVED)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for use in uses(facts, _REMOVED, _WHERE):
        yield RULE.finding(f"{use.name} was removed in {use.library}; it is {use.new} now", use.span, fix=use.fix("safe"))


RULE = Rule("CUV921", "removed-api", kind="deprecated-removed-api", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
