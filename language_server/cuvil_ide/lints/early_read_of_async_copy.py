"""An asynchronous copy to the host that is read before it is there.

What: `host = x.to("cpu", non_blocking=True)`, and `host` is read (`.numpy()`, `.item()`, arithmetic, ...) with nothing between that waits.
Why: the copy has only been asked for. Unlike kernels on the device, the CPU does not wait for it: it reads what was in that memory before.
Example: `host = out.to("cpu", non_blocking=True); return host.numpy()`
Instead: `host = out.cpu()`, or `torch.cuda.synchronize()` (an event) before the read
Fix: unsafe: the copy becomes a blocking one.

Silent when something waits between (`synchronize`, `wait`, an event's `query`), when it is only handed on, and for copies to the device.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .carried import inside
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f(x: torch.Tensor):\n    y = x.relu()\n"
VALID = (
    _START + '    host = y.to("cpu", non_blocking=True)\n    torch.cuda.synchronize()\n    return host.numpy()\n',
    _START + '    host = y.to("cpu")\n    return host.numpy()\n',
    _START + '    host = y.to("cpu", non_blocking=True)\n    done = torch.cuda.Event()\n    done.record()\n    done.synchronize()\n    return host.tolist()\n',
    _START + '    host = y.to("cpu", non_blocking=True)\n    return host\n',
    _START + '    there = y.to("cuda", non_blocking=True)\n    return there.sum().item()\n',
    _START + '    host = y.to("cpu", non_blocking=True)\n    return host.shape, host.dtype\n',
)
INVALID = (
    Invalid(_START + '    host = »y.to("cpu", non_blocking=True)«\n    return host.numpy()\n', "synchronize",
            _START + '    host = y.to("cpu")\n    return host.numpy()\n'),
    Invalid(_START + '    return »y.to("cpu", non_blocking=True)«.tolist()\n', "non_blocking", _START + '    return y.to("cpu").tolist()\n'),
    Invalid(_START + '    host = »y.to(device="cpu", non_blocking=True)«\n    total = 0.0\n    for value in host:\n        total += float(value)\n    return total\n',
            "read", _START + '    host = y.to(device="cpu")\n    total = 0.0\n    for value in host:\n        total += float(value)\n    return total\n'),
    Invalid('import torch\n\ndef f(x: torch.Tensor):\n    host = torch.empty(x.shape, pin_memory=True)\n    »host.copy_(x, non_blocking=True)«\n    return host.sum().item()\n',
            "synchronize", 'import torch\n\ndef f(x: torch.Tensor):\n    host = torch.empty(x.shape, pin_memory=True)\n    host.copy_(x)\n    return host.sum().item()\n'),
)

_WHERE = re.compile(r"non_blocking\s*=\s*True")
_WAITS = re.compile(r"synchronize|\.wait\(|wait_stream|\.query\(|barrier|\.result\(")
_METADATA = frozenset(("shape", "dtype", "device", "size", "dim", "ndim", "numel", "is_pinned", "record_stream", "data_ptr", "stride", "is_contiguous"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function in nodes(facts, _WHERE, cst.FunctionDef):
        pinned = _pinned(facts, function)
        for call in inside(facts, function, cst.Call):
            if _to_host(call) and (name := _container(facts, call)):
                read = _later_read(facts, function, call)
            elif _to_host(call):
                name, read = _read(facts, function, call, _bound(facts, call))
            elif (name := _filled(facts, call)) in pinned:
                read = _first_read(facts, function, call, name)
            else:
                continue
            if read is not None:
                yield _finding(facts, call, name, read)


def _to_host(call: cst.Call) -> bool:
    """`x.to("cpu", non_blocking=True)`"""
    if not (isinstance(call.func, cst.Attribute) and call.func.attr.value == "to") or not _asynchronous(call):
        return False
    return any(isinstance(a.value, cst.SimpleString) and a.value.evaluated_value == "cpu" and (a.keyword is None or a.keyword.value == "device")
               or isinstance(a.value, cst.Call) and [s.value.evaluated_value for s in a.value.args if isinstance(s.value, cst.SimpleString)] == ["cpu"]
               for a in call.args)


def _asynchronous(call: cst.Call) -> bool:
    return any(a.keyword is not None and a.keyword.value == "non_blocking" and isinstance(a.value, cst.Name) and a.value.value == "True" for a in call.args)


def _pinned(facts: FileFacts, function: cst.FunctionDef) -> set[str]:
    """Names of page-locked host tensors made in the function."""
    return {target.target.value for node in inside(facts, function, cst.Assign) for target in node.targets
            if isinstance(target.target, cst.Name) and re.search(r"pin_memory\s*=\s*True|\.pin_memory\(\)", facts.module.code(node.value))}


def _filled(facts: FileFacts, call: cst.Call) -> str:
    """The name that `name.copy_(x, non_blocking=True)` fills."""
    match call:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="copy_"))) if _asynchronous(call):
            return name
    return ""


def _bound(facts: FileFacts, call: cst.Call) -> str:
    above = facts.module.parent(call)
    match above:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)]):
            return facts.module.code(target)
    return ""


def _container(facts: FileFacts, call: cst.Call) -> str:
    """The list or dict that the copy is put into."""
    match facts.module.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name)))]):
            return name
        case cst.Arg() as arg:
            match facts.module.parent(arg):
                case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="append"))):
                    return name
    return ""


def _later_read(facts: FileFacts, function: cst.FunctionDef, call: cst.Call) -> Span | None:
    """The first `.numpy()` or the like after a copy, if nothing waits before it."""
    after = facts.module.span(call)
    for node in inside(facts, function, cst.Call):
        span = facts.module.span(node)
        if (span.line, span.column) < (after.end_line, after.end_column):
            continue
        if _WAITS.search(facts.module.code(node.func) + "("):
            return None
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("numpy", "tolist", "item"):
            return span
    return None


def _read(facts: FileFacts, function: cst.FunctionDef, call: cst.Call, name: str) -> tuple[str, Span | None]:
    if name:
        return name, _first_read(facts, function, call, name)
    above = facts.module.parent(call)
    direct = isinstance(above, cst.Attribute) and isinstance(facts.module.parent(above), cst.Call) and above.attr.value not in (*_METADATA, "copy_", "to")
    return "it", facts.module.span(facts.module.parent(above)) if direct else None


def _first_read(facts: FileFacts, function: cst.FunctionDef, call: cst.Call, name: str) -> Span | None:
    """The first place after the copy that looks at its elements, if nothing waits before it."""
    after = facts.module.span(call)
    for node in inside(facts, function, cst.Name, cst.Attribute, cst.Call):
        span = facts.module.span(node)
        if (span.line, span.column) < (after.end_line, after.end_column):
            continue
        if isinstance(node, cst.Call):
            if _WAITS.search(facts.module.code(node.func) + "("):
                return None
        elif facts.module.code(node) == name:
            if _looks(facts, node):
                return span
            above = facts.module.parent(node)
            if isinstance(above, cst.AssignTarget):
                return None                                # it is something else from here on
    return None


def _looks(facts: FileFacts, node: cst.BaseExpression) -> bool:
    match facts.module.parent(node):
        case cst.Attribute(value=inner, attr=cst.Name(value=name)) as above if inner is node:
            return name not in _METADATA and isinstance(facts.module.parent(above), (cst.Call, cst.Subscript))
        case cst.Subscript(value=inner) | cst.For(iter=inner) | cst.UnaryOperation(expression=inner):
            return inner is node
        case cst.BinaryOperation() | cst.Comparison() | cst.ComparisonTarget():
            return True
        case cst.Arg() as arg:
            outer = facts.module.parent(arg)
            callee = facts.module.code(outer.func) if isinstance(outer, cst.Call) else ""
            return callee in ("float", "int", "bool", "list", "print", "sum", "max", "min") or callee.startswith(("np.", "numpy."))
    return False


def _finding(facts: FileFacts, call: cst.Call, name: str, read: Span) -> Diagnostic:
    flag = next(i for i, a in enumerate(call.args) if a.keyword is not None and a.keyword.value == "non_blocking")
    kept = [facts.module.code(a.value) if a.keyword is None else f"{a.keyword.value}={facts.module.code(a.value)}" for i, a in enumerate(call.args) if i != flag]
    span, func = facts.module.span(call), facts.module.span(call.func)
    inner = Span(span.path, func.end_line, func.end_column, span.end_line, span.end_column)
    shown = "its result" if name == "it" else f"`{name}`"
    return RULE.finding(f"non_blocking=True only asks for this copy to the host, and {shown} is read before anything waits for it; "
                        "drop the flag, or call torch.cuda.synchronize() first", span, (Evidence(read, "is read here"),),
                        Fix("unsafe", "Wait for the copy", (Edit(inner, f"({', '.join(kept)})"),)))


RULE = Rule("CUV307", "early-read-of-async-copy", kind="async-copy-race", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
