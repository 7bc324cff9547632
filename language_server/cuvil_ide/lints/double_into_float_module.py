"""float64 data reaches a layer of float32 weights.

What: a layer of torch.nn whose weights are float32 (or half) is called with a tensor of float64.
Why: the layer raises ("mat1 and mat2 must have the same dtype", "expected scalar type Double but found Float"). NumPy computes in float64 unless
told otherwise, and `torch.from_numpy` and `torch.tensor` of an array keep that.
Example: `nn.Linear(8, 2)(torch.from_numpy(np.asarray(rows, dtype=float)))`
Instead: `torch.from_numpy(np.asarray(rows, dtype=np.float32))`, or `.float()` on the tensor
Fix: unsafe: the float64 numbers are rounded to float32, which is the point.

Silent where the module was made double, inside torch.autocast, where another default type is set, where a type is not known, and where a NumPy scalar
made the data float64, which numpy-scalar-upcast tells.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit

from .element_types import last_name, mixed, reported
from .numpy_scalar_upcast import upcast
from .problems import called
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts, Problem

_START = "import numpy as np\nimport torch\nfrom torch import nn\n\n"
_ROWS = _START + "def f(rows: list):\n    net = nn.Linear(4, 2)\n    x = torch.from_numpy(np.asarray(rows, dtype=float).reshape(-1, 4))\n"
VALID = (
    _ROWS + "    return net(x.float())\n",
    _ROWS + "    return net.double()(x)\n",
    _ROWS + "    with torch.autocast('cuda'):\n        return net(x)\n",
    _START + "torch.set_default_dtype(torch.float64)\n\ndef f():\n    return nn.Linear(4, 2)(torch.zeros(3, 4))\n",
    _START + "def f():\n    return nn.Linear(4, 2, dtype=torch.float64)(torch.from_numpy(np.zeros((3, 4))))\n",
    _START + "def f(x: np.ndarray):\n    return nn.Linear(4, 2)(torch.from_numpy(x))\n",
)
INVALID = (
    Invalid(_ROWS + "    return »net(x)«\n", "float64", _ROWS + "    return net(x.float())\n"),
    Invalid(_START + "def f():\n    return »nn.LayerNorm(4)(torch.tensor(np.ones((3, 4))))«\n", "float32",
            _START + "def f():\n    return nn.LayerNorm(4)(torch.tensor(np.ones((3, 4))).float())\n"),
    # The layer stands in a module that the data reaches by a call.
    Invalid(_START + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.out = nn.Conv1d(3, 8, 3)\n\n    def forward(self, x):\n"
            "        return »self.out(x)«\n\ndef run():\n    return Net().eval()(torch.from_numpy(np.random.rand(2, 3, 9)))\n", "NumPy"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    told = {problem.span for function in facts.functions if _by_a_scalar(function) for problem in function.problems}
    for problem in reported(facts, RULE.name):
        if problem.span in told:
            continue
        weights = next(dtype for dtype in mixed(problem) if dtype.numpy != "float64")
        numpy = "; NumPy computes in float64 unless told otherwise" if "numpy" in facts.source.text else ""
        yield RULE.finding(f"float64 reaches the {weights.numpy} weights of {last_name(problem)}, which takes its own element type only: it raises{numpy}; "
                           f"cast where the data comes in, .float()", problem.span, problem.evidence + called(problem), _fix(facts, problem))


def _by_a_scalar(function: FunctionFacts) -> bool:
    """A NumPy scalar made the float64: numpy-scalar-upcast tells it where that happens."""
    graph = function.function
    return bool(function.problems) and graph is not None and any(upcast(graph, op) is not None for op in graph.by_name.get("cast", ()))


def _fix(facts: FileFacts, problem: Problem) -> Fix | None:
    """`.float()` on what the layer is given, where no caller brought it."""
    node = node_of(facts, problem.span, cst.Call) if not problem.callers else None
    given = node.args[0].value if node is not None and len(node.args) == 1 and not node.args[0].star else None
    if not isinstance(given, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        return None
    where = facts.module.span(given)
    return Fix("unsafe", "Cast to float32: .float()", (Edit(where, f"{facts.source.slice(where)}.float()"),))


RULE = Rule("CUV201", "double-into-float-module", kind="dtype-mismatch", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
