"""A model exported for one size and used with another.

What: `torch.onnx.export` or `torch.export.export` without dynamic sizes, and in the same file the exported model is given data of another size.
Why: the export fixes all sizes of the example: ONNX Runtime and an exported program refuse data of another batch size, or a graph of a batch of one goes on
with sizes that were written into its reshapes.
Example: `torch.onnx.export(net, torch.zeros(1, 8), "net.onnx")`, then `session.run(None, {"x": np.zeros((32, 8), np.float32)})`
Instead: `dynamic_axes={"x": {0: "batch"}}`, or `dynamic_shapes=...` for torch.export and the new exporter
Fix: none; which axes may change is for the author to say.

Silent where all uses have the example's sizes, where dynamic sizes are given, and where the use is not known.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence

from . import flow
from .bindings import assignment_of, bound_before
from .recorded import calls, node_of, tensors
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.frontends.python.values import Tensor

_START = "import numpy as np\nimport onnxruntime as ort\nimport torch\nfrom torch import nn\n\n"
_ONNX = _START + "def f(net: nn.Module):\n    net.eval()\n    torch.onnx.export(net, (torch.zeros(1, 8),), \"net.onnx\", input_names=[\"x\"])\n    session = ort.InferenceSession(\"net.onnx\")\n"
_PROGRAM = _START + "def f(net: nn.Module):\n    net.eval()\n    program = torch.export.export(net, (torch.zeros(1, 8),))\n"
VALID = (
    _ONNX + "    return session.run(None, {'x': np.zeros((1, 8), np.float32)})\n",
    _ONNX.replace('input_names=["x"]', 'input_names=["x"], dynamic_axes={"x": {0: "n"}}') + "    return session.run(None, {'x': np.zeros((32, 8), np.float32)})\n",
    _ONNX.replace('Session("net.onnx")', 'Session("other.onnx")') + "    return session.run(None, {'x': np.zeros((32, 8), np.float32)})\n",
    _PROGRAM + "    return program.module()(torch.zeros(1, 8))\n",
    _PROGRAM.replace("8),))", "8),), dynamic_shapes=({0: torch.export.Dim('n')},))") + "    return program.module()(torch.zeros(4, 8))\n",
)
INVALID = (
    Invalid(_ONNX.replace("torch.onnx.export(", "»torch.onnx.export(").replace('["x"])', '["x"])«') + "    return session.run(None, {'x': np.zeros((32, 8), np.float32)})\n", "[32, 8]"),
    Invalid(_PROGRAM.replace("torch.export.export(net, (torch.zeros(1, 8),))", "»torch.export.export(net, (torch.zeros(1, 8),))«") + "    run = program.module()\n    return run(torch.zeros(4, 8))\n",
            "dynamic_shapes"),
)

_EXPORTS = {"torch.onnx.export": "dynamic_axes", "torch.export.export": "dynamic_shapes"}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if "export(" not in facts.source.text:
        return
    known = list(calls(facts))
    for export in known:
        option = _EXPORTS.get(export.name)
        if option is None or any(name.startswith("dynamic") for name, _ in export.keywords):
            continue
        examples = list(tensors(export.argument(1, "args")))
        uses = _session_uses(export, known) if export.name == "torch.onnx.export" else _program_uses(facts, export, known)
        for use, given in uses:
            wrong = next((pair for pair in zip(reversed(examples), given) if _other_size(*pair)), None)
            if wrong is not None:
                yield RULE.finding(f"the export fixes the sizes {flow.shape(wrong[0])} of its example, and the model is given {flow.shape(wrong[1])}; name the axes that may "
                                   f"change in {option}", export.span, (Evidence(use.span, f"is given {wrong[1].type}"),))
                break


def _other_size(example: Tensor, given: Tensor) -> bool:
    a, b = example.type.shape, given.type.shape
    return a is not None and b is not None and len(a) == len(b) and any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in zip(a, b))


def _session_uses(export: CallFact, known: list[CallFact]) -> Iterator[tuple[CallFact, list[Tensor]]]:
    """Runs of a session that reads the exported file, with what they feed."""
    from cuvil.frontends.python.values import Instance, Unknown
    path = export.argument(2, "f")
    for call in known:
        if call.name == "onnxruntime.InferenceSession.run" and isinstance(call.receiver, Instance) and path is not None and not isinstance(path, Unknown) \
                and call.receiver.attributes.get("path") == path:
            yield call, list(reversed(list(tensors(call.argument(2, "input_feed")))))


def _program_uses(facts: FileFacts, export: CallFact, known: list[CallFact]) -> Iterator[tuple[CallFact, list[Tensor]]]:
    """Calls of `program.module()`, with their arguments."""
    node = node_of(facts, export.span, cst.Call)
    if node is None:
        return
    for call in known:
        use = node_of(facts, call.span, cst.Call) if any(True for _ in map(tensors, call.args)) else None
        callee = use.func if use is not None else None
        callee = bound_before(facts, use, callee.value) if isinstance(callee, cst.Name) else callee
        match callee:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="module"))):
                held = assignment_of(facts, use, name)
                if held is not None and held.value is node:
                    yield call, list(reversed([each for arg in call.args for each in tensors(arg)]))


RULE = Rule("CUV410", "fixed-export-batch", kind="trace-constant", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
