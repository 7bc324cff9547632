"""Elements of a device tensor read one by one in a loop.

What: `.item()`, `int()`, `float()`, `bool()`, or `.tolist()` of an element, on a tensor that lives on an accelerator, inside a loop.
Why: each read waits for all work on the device and copies a few bytes: a loop of n rounds waits n times, and the device idles.
Example: `for r in range(n): end = int(totals[r].item())`
Instead: `totals = totals.tolist()` before the loop, then `end = totals[r]`
Fix: display: one `.tolist()` before the loop.

Silent for tensors on the host or of which nothing is known, for loops of at most two rounds, in loops that train, under a test that
holds only now and then (`if step % 100 == 0`), when the project's target is the CPU, and for a read after the loop.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Span

from ..lookup import value_of
from ..syntax import nodes
from .accelerators import HOST, accelerator, follows
from .carried import inside
from .recorded import calls, owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts, FunctionFacts

_START = "import torch\n\n"
_MAIN = '\ndef main():\n    dev = torch.device("cuda")\n    return f(torch.tensor([1, 3, 5], device=dev))\n'
VALID = (
    _START + "def f(counts):\n    found = []\n    for n in counts.tolist():\n        found.append(n + 1)\n    return found\n" + _MAIN,
    _START + "def f(counts):\n    total = counts[0]\n    for i in range(3):\n        total = total + counts[i]\n    return total.item()\n" + _MAIN,
    # nothing says that it is on a device
    _START + "def f(counts: torch.Tensor):\n    return [float(counts[i]) for i in range(len(counts))]\n",
    _START + "def f(counts):\n    host = counts.cpu()\n    return [int(host[i]) for i in range(3)]\n" + _MAIN,
    _START + "def f(counts):\n    for i in range(1000):\n        if i % 100 == 0:\n            print(i, counts.sum().item())\n" + _MAIN,
    _START + "def f(counts):\n    return [int(counts[i]) for i in range(2)]\n" + _MAIN,
    _START + "def f(counts, loss, opt):\n    total = 0.0\n    for i in range(9):\n        loss.backward()\n        total += counts[i].item()\n    return total\n" + _MAIN,
    _START + "def f(counts):\n    n = int(counts.shape[0])\n    return [int(counts.size(0)) + i for i in range(n)]\n" + _MAIN,
    "import numpy as np\n\ndef f(x: np.ndarray):\n    return [x[i].item() for i in range(len(x))]\n",
)
INVALID = (
    Invalid(_START + "def f(counts):\n    found = []\n    for i in range(counts.shape[0]):\n        found.append(»counts[i].item()«)\n    return found\n" + _MAIN, "tolist"),
    Invalid(_START + "def f(counts):\n    return [»int(counts[i])« for i in range(len(counts))]\n" + _MAIN, "waits"),
    Invalid(_START + "def f(counts, n: int):\n    table = torch.zeros(n, device=counts.device)\n    found = []\n    for i in range(n):\n"
            "        found.append(»int(counts[i].item())«)\n    return found, table\n", "loop"),
    Invalid(_START + 'def decode(model, prompt, n: int):\n    ids = prompt.to("cuda")\n    for _ in range(n):\n        last = model(ids)[:, -1].argmax(-1)\n'
            "        if »last.item()« == 2:\n            break\n        ids = torch.cat([ids, last[:, None]], 1)\n    return ids\n", "device"),
    Invalid(_START + 'def f(n: int):\n    x = torch.rand(100, device="cuda")\n    best = 0.0\n    while best < 1.0:\n        best += »float(x[n])«\n    return best\n', "sync"),
)

_WHERE = re.compile(r"\.item\(\)|\b(?:int|float|bool)\(|\.tolist\(\)")
_TRAINS = re.compile(r"\.backward\(")
_LOOPS = (cst.For, cst.While, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if facts.targets.device == "cpu" or "torch" not in facts.source.text:
        return
    met: dict[int, CallFact] | None = None
    for node in nodes(facts, _WHERE, cst.FunctionDef, analysed=True):
        function, code = owner(facts, facts.module.span(node.name)), facts.module.code(node)
        if function is None or not re.search(r"\bfor\b|\bwhile\b", code) or _TRAINS.search(code):
            continue
        if met is None:                                    # a function's own walk, else one that came through a call
            met = {id(c.span.node): c for c in reversed(list(calls(facts)))}
        given: dict[str, Evidence] | None = None
        said: set[Span] = set()
        for call in inside(facts, node, cst.Call):
            read, fact = _read(call), met.get(id(call))
            if read is None or fact is None or not _often(facts, call, fact):
                continue
            span = facts.module.span(call)
            if any(outer.encloses(span) for outer in said):
                continue
            given = given_devices(facts, function, node) if given is None else given
            device = on_device(facts, function, read, given) or _by_text(facts, node, call, read)
            if device is not None:
                said.add(span)
                yield _finding(facts, call, read, device, fact)


def _read(call: cst.Call) -> cst.BaseExpression | None:
    """What is read: x of `x.item()`, `int(x)`, `int(x.item())`, and of `x[i].tolist()`."""
    match call:
        case cst.Call(func=cst.Name(value="int" | "float" | "bool"), args=[cst.Arg(keyword=None, star="", value=value)]):
            inner = _read(value) if isinstance(value, cst.Call) else None
            return inner if inner is not None else value
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="item")), args=[]):
            return inner
        case cst.Call(func=cst.Attribute(value=cst.Subscript() as inner, attr=cst.Name(value="tolist")), args=[]):
            return inner
    return None


def _often(facts: FileFacts, call: cst.Call, fact: CallFact) -> bool:
    """Whether it runs in more than two rounds, each time."""
    rounds, many = 1, False
    for loop in fact.context.loops:
        many = many or loop.rounds is None
        rounds *= loop.rounds if loop.rounds is not None else 1
    if not many and rounds <= 2 or not fact.context.loops:
        return False
    if any("%" in facts.source.slice(span) for span, _ in fact.context.tests):
        return False
    at, above = call, facts.module.parent(call)
    while above is not None and not isinstance(above, _LOOPS):
        if isinstance(above, cst.If) and "%" in facts.module.code(above.test) and at is not above.test:
            return False
        at, above = above, facts.module.parent(above)
    return True


def given_devices(facts: FileFacts, function: FunctionFacts, node: cst.FunctionDef) -> dict[str, Evidence]:
    """Parameters that live on a device: a call in this file gives such a tensor, or the function itself asks for their device."""
    from cuvil.frontends.python.values import Tensor
    names = [p.name.value for p in (*node.params.posonly_params, *node.params.params)]
    names = names[1:] if names[:1] == ["self"] else names
    found: dict[str, Evidence] = {}
    plain = function.name.rpartition(".")[2]
    for call in calls(facts):
        if call.name.rpartition(".")[2] == plain and call.name in (function.name, plain):
            args = call.args[1:] if call.receiver is not None else call.args
            for name, value in (*zip(names, args), *call.keywords):
                if isinstance(value, Tensor) and value.device is not None and accelerator(value.device.kind):
                    found.setdefault(name, Evidence(call.span, f"`{name}` is on {value.device.kind}"))
    for attribute in inside(facts, node, cst.Attribute):
        if attribute.attr.value == "device" and isinstance(attribute.value, cst.Name) and attribute.value.value in names:
            found.setdefault(attribute.value.value, Evidence(facts.module.span(attribute), f"`{attribute.value.value}` may live on any device"))
    if found:                                              # code that follows one argument's device has its tensors there
        first = next(iter(found.values()))
        for subscript in inside(facts, node, cst.Subscript):
            base = subscript.value
            if isinstance(base, cst.Name) and base.value in names and base.value not in found and "cuda" in facts.source.text:
                found[base.value] = first
    return found


def on_device(facts: FileFacts, function: FunctionFacts, read: cst.BaseExpression, given: dict[str, Evidence]) -> Evidence | None:
    """What says that an expression is a tensor on a device."""
    from cuvil.frontends.python.values import Scalar, Tensor
    text, span = facts.module.code(read), facts.module.span(read)
    if HOST.search(text):
        return None
    value = value_of(facts, span)
    if isinstance(value, Scalar) or isinstance(value, Tensor) and value.library != "torch":
        return None
    if isinstance(value, Tensor) and value.device is not None and value.device.kind:
        return Evidence(span, f"is on {value.device.kind}") if accelerator(value.device.kind) else None
    root = read
    while isinstance(root, (cst.Attribute, cst.Subscript, cst.Call)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if not isinstance(root, cst.Name) or root.value not in given:
        return None
    rebound = any(a.name == root.value and not a.context.callers for a in function.assigns)
    plain = isinstance(read, cst.Name)                     # int(n) of a number that was given is no read
    return None if rebound or plain and not isinstance(value, Tensor) else given[root.value]


def _by_text(facts: FileFacts, node: cst.FunctionDef, call: cst.Call, read: cst.BaseExpression) -> Evidence | None:
    """`.item()` of what is not known, but comes from something that the text moves to an accelerator."""
    from cuvil.frontends.python.values import Unknown, Untyped
    if ".item()" not in facts.module.code(call) or not isinstance(value_of(facts, facts.module.span(read)), (Unknown, Untyped, type(None))):
        return None
    root = read
    while isinstance(root, (cst.Attribute, cst.Subscript, cst.Call)):
        root = root.func if isinstance(root, cst.Call) else root.value
    names = follows(facts, node) if isinstance(root, cst.Name) and not HOST.search(facts.module.code(read)) else {}
    return Evidence(names[root.value], "is moved to the accelerator here") if isinstance(root, cst.Name) and root.value in names else None


def _finding(facts: FileFacts, call: cst.Call, read: cst.BaseExpression, device: Evidence, fact: CallFact) -> Diagnostic:
    root = read.value if isinstance(read, cst.Subscript) else read
    name = facts.module.code(root) if isinstance(root, (cst.Name, cst.Attribute)) else "the tensor"
    loop = fact.context.loops[0].span
    head = Span(loop.path, loop.line, loop.column, loop.line, max(loop.column + 1, loop.end_column if loop.end_line == loop.line else loop.column + 3))
    return RULE.finding(f"each round of the loop waits for the device here (a sync); read {name} once with .tolist() before the loop", facts.module.span(call),
                        (device, Evidence(head, "the loop")), Fix("display", f"{name}.tolist() before the loop"))


RULE = Rule("CUV401", "sync-in-loop", kind="host-sync-in-loop", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
