"""A sequence layer in its default layout gets the batch first.

What: `nn.MultiheadAttention`, a Transformer layer or an RNN made without `batch_first=True` takes [time, batch, ..], and is called with
[batch, time, ..]: the first axis carries the batch, or the result is pooled or indexed along axis 1 as time.
Why: attention and recurrence run over the samples of the batch: each sample's result hangs on its neighbours. Shapes fit, nothing fails.
Example: `self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4), 2)` and then `self.encoder(x).mean(dim=1)`
Instead: `nn.TransformerEncoderLayer(64, 4, batch_first=True)`
Fix: unsafe: the result changes, which is the point.

Silent when batch_first is given, when the input is transposed before, and when nothing says which axis is the batch.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import nodes
from .axes import BATCH_NAMES, axes_of, batches
from .bindings import bound, bound_before, dotted_text
from .padded import last
from .recorded import calls
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.source import Span

_START = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
_ENCODER = _START + ("        layer = nn.TransformerEncoderLayer(16, nhead=2)\n        self.enc = nn.TransformerEncoder(layer, num_layers=1)\n\n"
                     "    def forward(self, frames):\n")
_FIRST = _ENCODER.replace("nhead=2", "nhead=2, batch_first=True")
VALID = (
    _FIRST + "        h = self.enc(frames)\n        return h.mean(dim=1)\n",
    _ENCODER + "        h = self.enc(frames.transpose(0, 1)).transpose(0, 1)\n        return h.mean(dim=1)\n",
    _ENCODER + "        h = self.enc(frames)\n        return h.mean(dim=0)\n",
    _ENCODER + "        x = frames.permute(1, 0, 2)\n        h = self.enc(x)\n        return h[0]\n",
    _ENCODER + "        return self.enc(frames)\n",
    _START + "        self.rnn = nn.LSTM(8, 16, batch_first=True)\n\n    def forward(self, x):\n        out, _ = self.rnn(x)\n        return out[:, -1]\n",
)
INVALID = (
    Invalid(_ENCODER + "        h = »self.enc(frames)«\n        return h.mean(dim=1)\n", "batch_first",
            _FIRST + "        h = self.enc(frames)\n        return h.mean(dim=1)\n"),
    Invalid(_START + "        self.rnn = nn.GRU(8, 16)\n\n    def forward(self, x):\n        out, _ = »self.rnn(x)«\n        return out[:, -1]\n", "time",
            _START + "        self.rnn = nn.GRU(8, 16, batch_first=True)\n\n    def forward(self, x):\n        out, _ = self.rnn(x)\n        return out[:, -1]\n"),
    Invalid(_START + "        self.att = nn.MultiheadAttention(16, 2)\n\n    def forward(self, x: torch.Tensor):\n        B, T, C = x.shape\n"
            "        return »self.att(x, x, x)«[0]\n", "batch",
            _START + "        self.att = nn.MultiheadAttention(16, 2, batch_first=True)\n\n    def forward(self, x: torch.Tensor):\n        B, T, C = x.shape\n"
            "        return self.att(x, x, x)[0]\n"),
)

_LAYERS = re.compile(r"\b(?:MultiheadAttention|TransformerEncoderLayer|TransformerDecoderLayer|Transformer|LSTM|GRU|RNN)$")
_STACKS = ("torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder")
_WHERE = re.compile(r"\bMultiheadAttention\b|\bTransformer|\bLSTM\b|\bGRU\b|\bRNN\b")
_TURNS = re.compile(r"transpose|permute|swapaxes|movedim|rearrange|\.T\b|\.mT\b|einsum|pack_padded|unbind|stack")
_ROWWISE = re.compile(r"norm|drop|\bln|linear|proj|act|relu|gelu|mlp|ffn?|fc", re.IGNORECASE)
_SAME = frozenset("to float half cpu cuda contiguous clone detach relu".split())


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if not facts.module.mentions(_WHERE):
        return
    known = {id(call.span.node): call for call in calls(facts) if call.name in _STACKS or _is_layer(call)}
    made = {(owner, name): call for owner, name, call in _layers(facts, known)}
    if not made:
        return
    for definition in facts.module.definitions:
        if definition.kind != "function" or not definition.parsed or definition.tree is None:
            continue
        for (owner, name), layer in made.items():
            if name in definition.text and (definition.owner == owner if name.startswith("self.") else definition.name == owner):
                yield from _uses(facts, definition, name, layer)


def _is_layer(call: CallFact) -> bool:
    return call.name.startswith("torch.nn.") and _LAYERS.search(call.name) is not None


def _layers(facts: FileFacts, known: dict[int, CallFact]) -> Iterator[tuple[str, str, cst.Call]]:
    """(class or function, name, constructor call) of sequence layers in the default layout."""
    for node in nodes(facts, _WHERE, cst.Assign, analysed=True):
        if not isinstance(node.value, cst.Call) or id(node.value) not in known:
            continue
        layer = node.value
        if known[id(layer)].name in _STACKS:
            inner = layer.args[0].value if layer.args else None
            layer = bound_before(facts, node, inner.value) if isinstance(inner, cst.Name) else inner
        if not isinstance(layer, cst.Call) or id(layer) not in known or not _is_layer(known[id(layer)]):
            continue
        if any(arg.star or arg.keyword is not None and arg.keyword.value == "batch_first" for arg in layer.args) or _many(layer):
            continue
        definition = facts.module.owner(node)
        for target, _ in bound(facts, node):
            yield (definition.owner if target.startswith("self.") else definition.name), target, layer


def _many(layer: cst.Call) -> bool:
    """So many arguments by place that batch_first may be one of them."""
    return sum(arg.keyword is None for arg in layer.args) >= 5


def _uses(facts: FileFacts, definition, name: str, layer: cst.Call) -> Iterator[Diagnostic]:
    for call in nodes(facts, re.compile(re.escape(name) + r"\("), cst.Call):
        if facts.module.owner(call) is not definition or dotted_text(facts, call.func) != name or not call.args or _turned(facts, call.args[0].value):
            continue
        why = _by_input(facts, facts.module.span(call)) or _by_result(facts, definition, call)
        if why is None:
            continue
        what, evidence = why
        where = facts.module.span(layer)
        yield RULE.finding(f"{last(layer.func)} without batch_first takes [time, batch, ..], and {what}: it runs over the samples of the batch. Make it with batch_first=True",
                           facts.module.span(call), (Evidence(where, "made without batch_first"), *evidence),
                           Fix("unsafe", "batch_first=True", (Edit(where, f"{facts.source.slice(where)[:-1].rstrip().rstrip(',')}, batch_first=True)"),)))
        return


def _turned(facts: FileFacts, node: cst.BaseExpression | None) -> bool:
    """The input was transposed on its way."""
    for _ in range(8):
        if node is None or _TURNS.search(facts.module.code(node)):
            return node is not None
        name = dotted_text(facts, node)
        if not name and isinstance(node, cst.Call) and node.args and not isinstance(node.func, cst.Attribute):
            node = node.args[0].value
        elif name:
            node = bound_before(facts, node, name)
        else:
            return False
    return False


def _by_input(facts: FileFacts, where: Span) -> tuple[str, tuple[Evidence, ...]] | None:
    """By the graph of any walk that came here: the first axis of the input is the batch."""
    from cuvil.frontends.python.values import Tensor
    for home in facts.functions:
        for call in home.calls if home.function is not None else ():
            value = call.args[0] if call.span == where and call.args else None
            if isinstance(value, Tensor) and value.type.rank == 3 and value.type.shape[0] != 1:
                at = axes_of(home.function).get(value.op.id)
                if str(value.type.shape[0]).lower() in BATCH_NAMES or at and set(at[0]) & batches(home.function):
                    return f"the first axis of {value.type} is the batch", ()
    return None


def _by_result(facts: FileFacts, definition, call: cst.Call) -> tuple[str, tuple[Evidence, ...]] | None:
    """The result is pooled or indexed along axis 1, as if that were time."""
    for node in nodes(facts, re.compile(r"\.(?:mean|max|amax)\(|\[\s*:\s*,"), cst.Call, cst.Subscript):
        if facts.module.owner(node) is not definition:
            continue
        pooled = _along_one(node)
        if pooled is not None and _comes_from(facts, pooled, call):
            return "the result is taken along axis 1 as time", (Evidence(facts.module.span(node), "axis 1 is taken as time here"),)
    return None


def _along_one(node: cst.Call | cst.Subscript) -> cst.BaseExpression | None:
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="mean" | "max" | "amax")), args=[cst.Arg(value=cst.Integer(value="1"))]):
            return inner
        case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=None)), cst.SubscriptElement(slice=cst.Index(value=at)), *_]):
            return inner if isinstance(at, cst.UnaryOperation) and isinstance(at.operator, cst.Minus) or isinstance(at, cst.Integer) and at.value == "0" else None
    return None


def _comes_from(facts: FileFacts, node: cst.BaseExpression | None, call: cst.Call) -> bool:
    """The layer's result, maybe added to something and normalised row by row."""
    todo, steps = [node], 0
    while todo and steps < 40:
        steps += 1
        match todo.pop():
            case None:
                continue
            case found if found is call:
                return True
            case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
                todo.append(inner)
            case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
                todo += left, right
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in _SAME:
                todo.append(inner)
            case cst.Call(func=func, args=[cst.Arg(value=inner)]) if _ROWWISE.search(dotted_text(facts, func)):
                todo.append(inner)
            case other if name := dotted_text(facts, other):
                todo.append(bound_before(facts, other, name))
    return False


RULE = Rule("CUV115", "batch-first-default", kind="batch-first", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
