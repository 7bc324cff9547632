"""A tensor made on the host that meets one from the device.

What: a factory call without `device=` (`torch.ones`, `torch.arange`, `torch.tensor`, ...) whose result is combined with a tensor that lives
where the input or the module lives.
Why: on an accelerator torch raises `Expected all tensors to be on the same device`. On the CPU all is well, so tests pass.
Example: `keep = torch.tril(torch.ones(T, T, dtype=torch.bool)); scores.masked_fill(~keep, -1e9)`
Instead: `torch.ones(T, T, dtype=torch.bool, device=x.device)`
Fix: safe: the tensor is made where the other one lives. On the CPU this is the same; elsewhere the line raised.

Silent for 0-d tensors, which may mix, for indices, for code that sets a default device, for programs that never mention an
accelerator or a device, and when the project's target is the CPU.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .recorded import node_of, tensors
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts, FunctionFacts
    from cuvil.frontends.python.values import Device, Tensor
    from cuvil.ir.function import Function, Op

_START = "import torch\nfrom torch import nn\n\nclass Decoder(nn.Module):\n    def forward(self, x: torch.Tensor):\n        B, T, C = x.shape\n"
_MAIN = '\ndef main():\n    return Decoder().to("cuda")(torch.randn(2, 5, 16, device="cuda"))\n'
VALID = (
    _START + "        keep = torch.ones(T, C, device=x.device)\n        return x * keep\n" + _MAIN,
    _START + "        return x * torch.tensor(2.0)\n" + _MAIN,
    "import torch\n\ndef f(x):\n    t = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)\n    return x.relu() + t\n",
    _START + "        keep = torch.ones(T, C).to(x)\n        return x * keep\n" + _MAIN,
    _START + "        keep = torch.ones_like(x)\n        return x * keep\n" + _MAIN,
    _START + "        order = torch.arange(T)\n        return x[:, order]\n" + _MAIN,
    # nothing here ever leaves the host
    _START + "        return x * torch.ones(T, C)\n\ndef main():\n    return Decoder()(torch.randn(2, 5, 16))\n",
    'import torch\n\ntorch.set_default_device("cuda")\n\ndef f(x: torch.Tensor):\n    B, T = x.shape\n    return x * torch.ones(T)\n',
    'import torch\n\ndef f(x: torch.Tensor):\n    B, T = x.shape\n    return x.cpu() * torch.ones(T)\n\ndef main():\n    return f(torch.ones(2, 2, device="cuda"))\n',
)
INVALID = (
    Invalid(_START + "        keep = »torch.ones(T, C)«\n        return x * keep\n" + _MAIN, "device",
            _START + "        keep = torch.ones(T, C, device=x.device)\n        return x * keep\n" + _MAIN),
    Invalid(_START + '        keep = torch.tril(»torch.ones(T, T, dtype=torch.bool)«)\n        scores = x @ x.transpose(1, 2)\n'
            '        return scores.masked_fill(~keep, float("-inf"))\n' + _MAIN, "device=",
            _START + '        keep = torch.tril(torch.ones(T, T, dtype=torch.bool, device=x.device))\n        scores = x @ x.transpose(1, 2)\n'
            '        return scores.masked_fill(~keep, float("-inf"))\n' + _MAIN),
)

FACTORIES = frozenset(f"torch.{name}" for name in """zeros ones full empty arange linspace logspace eye rand randn randint randperm tensor normal
    hann_window hamming_window tril_indices triu_indices""".split())
_INDEXING = frozenset(("gather", "take", "index", "embedding", "scatter", "getitem", "slice", "index_select"))
_LAYERS = frozenset(f"torch.nn.{name}" for name in ("Linear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "LayerNorm", "BatchNorm1d", "BatchNorm2d", "GroupNorm"))
_MIXES = frozenset(("to", "copy_", "type_as", "view_as", "expand_as", "reshape_as", "index_select", "index_put", "index_put_", "getitem", "__getitem__",
                    "as_tensor", "tensor", "is_same_size", "set_", "cpu", "cuda", "load_state_dict", "cat_", "embedding"))
_ACCELERATOR = re.compile(r"""cuda|["']mps|["']xpu|\.device\b|\bdevice\s*=|accelerat""")
_SETS_DEFAULT = re.compile(r"set_default_device|set_default_tensor_type|with torch\.device\(")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    text = facts.source.text
    if facts.targets.device == "cpu" or not _ACCELERATOR.search(text) or _SETS_DEFAULT.search(text):
        return
    found: dict[Span, Diagnostic] = {}
    for function in facts.functions:
        if function.function is not None and any(c.name in FACTORIES for c in function.calls):
            for finding in _mixed(facts, function):
                known = found.get(finding.span)
                if known is None or known.fix is None or finding.severity == "error" and known.severity != "error":
                    found[finding.span] = replace(finding, fix=finding.fix or (known.fix if known is not None else None))
    yield from found.values()


def _mixed(facts: FileFacts, function: FunctionFacts) -> Iterator[Diagnostic]:
    for place, sides in _meetings(function):
        host = next((o for o, device in sides if device.default and o.type.rank and 0 not in o.type.shape), None)
        away = next(((o, device) for o, device in sides if not device.default and device.kind != "cpu" and o.type.rank != 0), None)
        call = _factory(function, host) if host is not None and away is not None else None
        if call is not None and call.span.path == facts.source.path:
            yield _finding(facts, function, call, place, *away)


def _meetings(function: FunctionFacts) -> Iterator[tuple[Span | None, list[tuple[Op, Device]]]]:
    """What comes together in one operation, with the devices that are known."""
    placed = _placed(function)
    for op in function.function.body:
        if len(op.operands) > 1 and op.name not in _INDEXING and op.name != "opaque":
            operands = [function.function.by_id[id] for id in op.operands if id in function.function.by_id]
            yield op.origins[0].span if op.origins else None, [(o, placed[o.id]) for o in operands if o.id in placed]
    for call in function.calls:
        if call.receiver is not None and call.name in _LAYERS:      # weights live where the result does
            results = [t for t in tensors(call.result) if t.device is not None]
            yield call.span, [(t.op, t.device) for value in (*call.args, *results[:1]) for t in tensors(value) if t.device is not None]
    for call in function.calls:                            # those that the graph has no op for
        if call.name.startswith("torch.") and call.name.rpartition(".")[2] not in _MIXES:
            yield call.span, [(t.op, t.device) for value in call.args for t in tensors(value) if t.library == "torch" and t.device is not None]


def _placed(function: FunctionFacts) -> dict[int, Device]:
    """Where ops live: those that calls gave and took, and those that follow from their operands."""
    placed: dict[int, Device] = {}
    moved: set[int] = set()                               # an op stands for a tensor before and after `.to(...)`
    for tensor in _seen(function):
        if tensor.library == "torch" and tensor.device is not None and placed.setdefault(tensor.op.id, tensor.device) != tensor.device:
            moved.add(tensor.op.id)
    for id in moved:
        del placed[id]
    for op in function.function.ops:
        if op.id not in placed and op.id not in moved and op.operands and op.name != "opaque":
            given = [placed.get(id) for id in op.operands if id in function.function.by_id and function.function.by_id[id].type.rank != 0]
            known = [device for device in given if device is not None]
            away = next((device for device in known if not device.default), None)
            if away is not None or known and len(known) == len(given):
                placed[op.id] = away or known[0]
    return placed


def _seen(function: FunctionFacts) -> Iterator[Tensor]:
    """Tensors as they were when calls met them: what is known of expressions is of the end of the walk."""
    for _, value in function.parameters:
        yield from tensors(value)
    for call in function.calls:
        for value in (call.result, *call.args):
            yield from tensors(value)


def _factory(function: FunctionFacts, host: Op) -> CallFact | None:
    """The factory call that a host tensor comes from, when there is just one."""
    from cuvil.frontends.python.values import Tensor
    above = _ancestors(function.function, host)
    made = {c.span: c for c in function.calls if c.name in FACTORIES and isinstance(c.result, Tensor) and c.result.op.id in above
            and not any(name == "device" for name, _ in c.keywords) and c.result.device is not None and c.result.device.default}
    return next(iter(made.values())) if len(made) == 1 else None


def _ancestors(function: Function, op: Op) -> set[int]:
    found, todo = set(), [op.id]
    while todo:
        at = todo.pop()
        if at not in found and at in function.by_id:
            found.add(at)
            todo += function.by_id[at].operands
    return found


def _finding(facts: FileFacts, function: FunctionFacts, call: CallFact, place: Span | None, other: Op, device: Device) -> Diagnostic:
    where = f"on {device.kind}" if device.kind else f"on the device of `{device.like}`"
    evidence = [Evidence(place, "meets it here")] if place is not None else []
    evidence += [Evidence(origin.span, f"lives {where}") for origin in other.origins[:1]]
    evidence += [Evidence(span, "called here") for span in call.context.callers]
    name, fix = device.like, None
    node = node_of(facts, call.span, cst.Call)
    if name.isidentifier() and not call.context.callers and isinstance(node, cst.Call) and any(name == parameter for parameter, _ in function.parameters):
        end = Span(call.span.path, call.span.end_line, call.span.end_column - 1, call.span.end_line, call.span.end_column - 1)
        fix = Fix("safe", f"Make it on {name}.device", (Edit(end, f"{', ' if node.args else ''}device={name}.device"),))
    text = f"{call.name} without device= makes its tensor on the CPU, and it meets one {where}"
    finding = RULE.finding(f"{text}; give it device={name + '.device' if name.isidentifier() and name != 'self' else '...'}", call.span, tuple(evidence), fix)
    return replace(finding, severity="error") if device.kind and device.kind not in ("cpu", "meta") else finding


RULE = Rule("CUV301", "host-tensor-in-forward", kind="device-mismatch", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
