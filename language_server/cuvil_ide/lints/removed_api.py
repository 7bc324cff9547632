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

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from ..lookup import value_of
from ..syntax import nodes
from .guards import expected_to_fail
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

# Name -> (since, new name, whether it is the same thing). {m} is the module as the code calls it.
_NUMPY2, _NUMPY124, _TORCH = "NumPy 2.0", "NumPy 1.24", "PyTorch 1.13"
_REMOVED = {
    "numpy.float_": (_NUMPY2, "{m}.float64", True), "numpy.complex_": (_NUMPY2, "{m}.complex128", True),
    "numpy.unicode_": (_NUMPY2, "{m}.str_", True), "numpy.string_": (_NUMPY2, "{m}.bytes_", True),
    "numpy.Inf": (_NUMPY2, "{m}.inf", True), "numpy.Infinity": (_NUMPY2, "{m}.inf", True), "numpy.infty": (_NUMPY2, "{m}.inf", True),
    "numpy.PINF": (_NUMPY2, "{m}.inf", True), "numpy.NINF": (_NUMPY2, "(-{m}.inf)", True), "numpy.NaN": (_NUMPY2, "{m}.nan", True),
    "numpy.product": (_NUMPY2, "{m}.prod", True), "numpy.cumproduct": (_NUMPY2, "{m}.cumprod", True),
    "numpy.alltrue": (_NUMPY2, "{m}.all", True), "numpy.sometrue": (_NUMPY2, "{m}.any", True), "numpy.round_": (_NUMPY2, "{m}.round", True),
    "numpy.asfarray": (_NUMPY2, "{m}.asarray(..., dtype=float)", False), "numpy.find_common_type": (_NUMPY2, "{m}.result_type", False),
    "numpy.msort": (_NUMPY2, "{m}.sort(..., axis=0)", False), "numpy.mat": (_NUMPY2, "{m}.asmatrix", False),
    "numpy.int": (_NUMPY124, "int", True), "numpy.float": (_NUMPY124, "float", True), "numpy.complex": (_NUMPY124, "complex", True),
    "numpy.object": (_NUMPY124, "object", True), "numpy.str": (_NUMPY124, "str", True),
    "torch.symeig": (_TORCH, "torch.linalg.eigh", False), "torch.eig": (_TORCH, "torch.linalg.eig", False),
    "torch.lstsq": (_TORCH, "torch.linalg.lstsq, with the arguments exchanged", False),
    "torch.solve": (_TORCH, "torch.linalg.solve, with the arguments exchanged", False),
    "torch.matrix_rank": (_TORCH, "torch.linalg.matrix_rank", False),
}
_NAMES = {name.partition(".")[2] for name in _REMOVED}
_WHERE = re.compile(rf"\.\s*(?:{'|'.join(sorted(_NAMES))})\b")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Library
    for node in nodes(facts, _WHERE, cst.Attribute, analysed=True):
        if node.attr.value not in _NAMES:
            continue
        span = facts.module.span(node)
        value = value_of(facts, span)
        if not isinstance(value, Library) or value.name not in _REMOVED or expected_to_fail(facts, span) or _asked_for(facts, node):
            continue
        since, new, same = _REMOVED[value.name]
        new = new.format(m=facts.source.slice(facts.module.span(node.value)))
        yield RULE.finding(f"{facts.source.slice(span)} was removed in {since}; it is {new} now", span,
                           fix=Fix("safe", f"Replace by {new}", (Edit(span, new),)) if same else Fix("display", new))


def _asked_for(facts: FileFacts, node: cst.CSTNode) -> bool:
    """Under an `if` or a conditional expression that asks whether the name, or the version, is there."""
    while (node := facts.module.parent(node)) is not None:
        if isinstance(node, (cst.If, cst.IfExp)) and re.search(r"hasattr|version", facts.module.code(node.test)):
            return True
    return False


RULE = Rule("CUV921", "removed-api", kind="deprecated-removed-api", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
