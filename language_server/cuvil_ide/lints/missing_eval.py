"""A network with dropout or batch norm that is run for inference in training mode.

What: a module is called under `torch.no_grad()` or `torch.inference_mode()` while it is in training mode, and it holds layers that hang
on the mode.
Why: a new module trains, and loading weights does not change that. Dropout then drops at random, and batch norm uses the batch and
changes its statistics. Switching gradients off does not switch the mode.
Example: `net = RiskNet(); net.load_state_dict(state); return net(rows)` under `torch.inference_mode()`
Instead: `net.eval()` after the weights are loaded
Fix: unsafe: `.eval()` is called on the module before; the results change, which is the point.

Silent when the mode is not known, for modules from `from_pretrained`, for modules without such layers, where `.train()` is written in the same
function, where the code speaks of Monte Carlo dropout, and for modules that went through code that is not known.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .recorded import calls, node_of, once, owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.frontends.python.values import Value

_START = ("import torch\nfrom torch import nn\n\nclass RiskNet(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
          "        self.body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), {}nn.Linear(64, 1))\n\n"
          "    def forward(self, x):\n        return self.body(x)\n\n"
          "def load(path):\n    net = RiskNet()\n    net.load_state_dict(torch.load(path, weights_only=True))\n    return net{}\n\n")
_DROP = _START.format("nn.Dropout(0.5), ", "")
VALID = (
    _START.format("nn.Dropout(0.5), ", ".eval()") + "@torch.inference_mode()\ndef score(path, rows):\n    return load(path)(rows)\n",
    _START.format("", "") + "@torch.inference_mode()\ndef score(path, rows):\n    return load(path)(rows)\n",
    _START.format("nn.Dropout(0.0), ", "") + "@torch.inference_mode()\ndef score(path, rows):\n    return load(path)(rows)\n",
    _DROP + "def step(path, rows):\n    return load(path)(rows)\n",
    _DROP + "@torch.inference_mode()\ndef samples(path, rows):\n    net = load(path)\n    net.train()\n    return [net(rows) for _ in range(8)]\n",
    _DROP + "@torch.inference_mode()\ndef mc_dropout(path, rows):\n    net = load(path)\n    return [net(rows) for _ in range(8)]\n",
    # what prepare does is not known
    "from elsewhere import prepare\n" + _DROP + "@torch.inference_mode()\ndef score(path, rows):\n    net = load(path)\n    prepare(net)\n    return net(rows)\n",
    _DROP + "@torch.inference_mode()\ndef score(net, rows):\n    return net(rows)\n",
)
INVALID = (
    Invalid(_DROP + "@torch.inference_mode()\ndef score(path, rows):\n    net = load(path)\n    return »net(rows)«.squeeze(-1)\n", "eval()",
            _DROP + "@torch.inference_mode()\ndef score(path, rows):\n    net = load(path)\n    net.eval()\n    return net(rows).squeeze(-1)\n"),
    Invalid(_START.format("nn.BatchNorm1d(64), ", "") + "def score(path, rows):\n    net = load(path)\n    with torch.no_grad():\n        y = »net(rows)«\n    return y\n",
            "BatchNorm1d", _START.format("nn.BatchNorm1d(64), ", "")
            + "def score(path, rows):\n    net = load(path)\n    with torch.no_grad():\n        net.eval()\n        y = net(rows)\n    return y\n"),
)

MODES = re.compile(r"torch\.nn\.(?:\w*Dropout\d?d?|(?:Lazy|Sync)?BatchNorm\d?d?|RReLU|TransformerEncoderLayer|TransformerDecoderLayer|MultiheadAttention|LSTM|GRU)$")
_OPTIONAL = re.compile(r"(?:TransformerEncoderLayer|TransformerDecoderLayer|MultiheadAttention|LSTM|GRU)$")
_MEANT = re.compile(r"\.train\(\s*(?:True)?\s*\)|\bmc_|monte|uncertain|_mc\b|update_bn|calibrat|warm_?up|benchmark", re.IGNORECASE)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call in once(calls(facts)):
        if call.training is not True or call.context.grad not in ("no_grad", "inference") or call.receiver is None:
            continue
        layer = _by_mode(call.receiver)
        if layer and not _meant(facts, call) and not _escaped(facts, call):
            yield _finding(facts, call, layer)


def _by_mode(value: Value | None) -> str:
    """The name of a layer in a module whose result hangs on the mode; "" when there is none."""
    from cuvil.frontends.python.values import Instance, Library, Many, Sequence
    todo, seen = [value], set()
    while todo:
        at = todo.pop()
        match at:
            case Instance(of=Library(name=name)) if name.startswith(("torchvision.models.", "timm.")):
                return "batch norm or dropout" if at.training is not False else ""
            case Instance(of=Library(name=name)) if MODES.match(name) and _drops(at, name):
                return name.rpartition(".")[2] if at.training is not False else ""
            case Instance() if id(at) not in seen:
                seen.add(id(at))
                todo += reversed(list(at.attributes.values()))
            case Sequence(items=items):
                todo += items
            case Many(item=item):
                todo.append(item)
    return ""


def _drops(layer, name: str) -> bool:
    """A dropout of zero does nothing; some layers have one only when it is asked for."""
    from cuvil.frontends.python.values import Scalar
    word = "p" if "Dropout" in name else "dropout"
    chance = layer.attributes.get(word)
    if isinstance(chance, Scalar):
        return bool(chance.value)
    if layer.constructor is not None and word in layer.constructor:
        return bool(layer.constructor[word])
    return _OPTIONAL.search(name) is None


def _meant(facts: FileFacts, call: CallFact) -> bool:
    function = owner(facts, call.span)
    return function is not None and _MEANT.search(facts.source.slice(function.span)) is not None


def _escaped(facts: FileFacts, call: CallFact) -> bool:
    """The module was given to something that is not known, which may have changed its mode."""
    from cuvil.frontends.python.values import Unknown
    return any(each is not call and isinstance(each.result, Unknown) and (not each.name or "." not in each.name or not each.name.startswith("torch"))
               and any(value is call.receiver for value in (*each.args, *(v for _, v in each.keywords))) and each.receiver is not call.receiver
               and not _followed(facts, each) for function in facts.functions for each in function.calls)


def _followed(facts: FileFacts, call: CallFact) -> bool:
    return call.name in facts.module.by_name


def _finding(facts: FileFacts, call: CallFact, layer: str) -> Diagnostic:
    made = next((c.span for c in calls(facts) if c.result is call.receiver and c.span.path == facts.source.path), None)
    evidence = (*((Evidence(made, "is made here, in training mode"),) if made is not None else ()), *(Evidence(s, "called here") for s in call.context.callers))
    return RULE.finding(f"this runs in training mode: its {layer} behaves as in training; call eval() on the module first "
                        f"({'inference_mode' if call.context.grad == 'inference' else 'no_grad'} does not)", call.span, evidence, _fix(facts, call))


def _fix(facts: FileFacts, call: CallFact) -> Fix | None:
    node = node_of(facts, call.span, cst.Call)
    if node is None or not isinstance(node.func, cst.Name):
        return None
    statement = node
    while statement is not None and not isinstance(statement, cst.SimpleStatementLine):
        statement = facts.module.parent(statement)
    if statement is None:
        return None
    at = facts.module.span(statement)
    place = Span(at.path, at.line, 0, at.line, 0)
    return Fix("unsafe", f"Call {node.func.value}.eval() before", (Edit(place, f"{' ' * at.column}{node.func.value}.eval()\n"),))


RULE = Rule("CUV701", "missing-eval", kind="missing-eval", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
