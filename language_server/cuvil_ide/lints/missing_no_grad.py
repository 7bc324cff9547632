"""A network in evaluation mode whose results are kept with their gradients.

What: in a loop, a network on which `.eval()` was called is run outside `torch.no_grad()` and `torch.inference_mode()`, and its results
are collected.
Why: each result holds the graph of everything that made it, so memory grows with every round; nothing ever calls `backward`.
Example: `for images in loader: vectors.append(encoder(images))`
Instead: the same under `with torch.inference_mode():`, or `@torch.inference_mode()` on the function
Fix: unsafe: the function runs in inference mode; its results cannot be used in training any more.

Silent when the results are detached or become numbers or indices, when the function trains or asks for gradients, and when a caller
has switched gradients off.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .carried import Carried, inside
from .modules import TRAINS, ModuleCall, module_calls
from .recorded import owner
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts

_START = "import torch\nfrom torch import nn\n\n"
_INDEX = "def index(encoder: nn.Module, loader):\n    encoder.eval()\n    vectors = []\n    for images in loader:\n"
_END = "    return torch.cat(vectors)\n"
VALID = (
    _START + "@torch.inference_mode()\n" + _INDEX + "        vectors.append(encoder(images))\n" + _END,
    _START + "def index(encoder: nn.Module, loader):\n    encoder.eval()\n    with torch.no_grad():\n        return [encoder(images) for images in loader]\n",
    _START + _INDEX + "        vectors.append(encoder(images).detach())\n" + _END,
    _START + _INDEX + "        vectors.append(encoder(images).argmax(dim=-1))\n" + _END,
    _START + _INDEX + "        loss = encoder(images).sum()\n        loss.backward()\n        vectors.append(images.grad)\n" + _END,
    # its only caller switches gradients off
    _START + _INDEX + "        vectors.append(encoder(images))\n" + _END
    + "\n@torch.no_grad()\ndef run(encoder: nn.Module, loader):\n    return index(encoder, loader)\n",
    # not known to be for inference
    _START + "def outputs(net: nn.Module, loader):\n    return [net(x) for x in loader]\n",
    # an attack: gradients of the input are the point
    _START + "def attack(net: nn.Module, images):\n    net.eval()\n    found = []\n    for x in images:\n        x.requires_grad_()\n"
    "        found.append(net(x))\n    return found\n",
)
INVALID = (
    Invalid(_START + _INDEX + "        feats = »encoder(images)«\n        feats = feats / feats.norm(dim=1, keepdim=True)\n        vectors.append(feats)\n" + _END,
            "inference_mode",
            _START + "@torch.inference_mode()\n" + _INDEX
            + "        feats = encoder(images)\n        feats = feats / feats.norm(dim=1, keepdim=True)\n        vectors.append(feats)\n" + _END),
    Invalid(_START + "def index(encoder: nn.Module, loader):\n    encoder.eval()\n    return torch.cat([»encoder(images)«.cpu() for images in loader])\n",
            "graph", _START + "@torch.inference_mode()\ndef index(encoder: nn.Module, loader):\n    encoder.eval()\n"
            "    return torch.cat([encoder(images).cpu() for images in loader])\n"),
)

_WHERE = re.compile(r"\bfor\b")
_KEEPS = frozenset(("append", "extend", "add", "insert"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if ".eval(" not in facts.source.text and "from_pretrained" not in facts.source.text:
        return
    for node in nodes(facts, _WHERE, cst.FunctionDef, analysed=True):
        function = owner(facts, facts.module.span(node.name))
        if function is None or node.name.value in ("forward", "__call__") or TRAINS.search(facts.module.code(node)):
            continue
        running = {call.span: call for call in module_calls(facts, function, node)
                   if call.evaluating and call.fact.context.grad not in ("no_grad", "inference") and call.fact.context.loops}
        if not running or _switched_off(facts, running):
            continue
        carried = Carried(facts, node, running)
        for place, kept in _kept(facts, node):
            source = carried.source(kept)
            if source is not None:
                yield _finding(facts, function, node, running.pop(source), facts.module.span(place))
            if not running:
                break


def _kept(facts: FileFacts, function: cst.FunctionDef) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Expressions whose value outlives a round of a loop: appended, in a comprehension, put into a container."""
    for node in inside(facts, function, cst.Call, cst.ListComp, cst.DictComp, cst.Assign):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=[*_, cst.Arg(value=value)]) if name in _KEEPS:
                yield node, value
            case cst.ListComp(elt=value) | cst.DictComp(value=value):
                yield node, value
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())], value=value):
                yield node, value


def _switched_off(facts: FileFacts, running: dict[Span, ModuleCall]) -> bool:
    return any(call.span in running and call.context.callers and call.context.grad in ("no_grad", "inference")
               for function in facts.functions for call in function.calls)


def _finding(facts: FileFacts, function: FunctionFacts, node: cst.FunctionDef, call: ModuleCall, kept: Span) -> Diagnostic:
    fix = None
    if re.search(r"^import torch\s*$", facts.source.text, re.MULTILINE):
        top = facts.module.span(node)
        place = Span(top.path, top.line, 0, top.line, 0)
        fix = Fix("unsafe", "Run the function in inference mode", (Edit(place, " " * top.column + "@torch.inference_mode()\n"),))
    return RULE.finding("each result is kept with its graph, so memory grows with every round; run it under torch.inference_mode() or torch.no_grad()",
                        call.span, (Evidence(kept, "is kept here"),), fix)


RULE = Rule("CUV705", "missing-no-grad", kind="missing-no-grad", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
