"""Calls of neural networks in a function, and the mode they are in."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.source import Span

from .carried import inside

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts, FunctionFacts
    from cuvil.frontends.python.values import Value

TRAINS = re.compile(r"\.backward\(|autograd|\bgrad\(|[Oo]ptim|\.step\(|requires_grad|\.grad\b|\bjvp\b|\bvjp\b|create_graph|\bloss")
_MODULE_TYPE = re.compile(r"\b(?:nn\.Module|Module|nn\.Sequential|nn\.Linear|PreTrainedModel)\b")
_EVAL = re.compile(r"\.eval\(\)")


@dataclass(frozen=True)
class ModuleCall:
    """A call of a network. evaluating: it is known to be in evaluation mode."""

    node: cst.Call
    span: Span
    fact: CallFact
    evaluating: bool


def module_calls(facts: FileFacts, function: FunctionFacts, node: cst.FunctionDef) -> list[ModuleCall]:
    """Calls in a function, as walked by itself, whose callee is a network: an object of a module class, a parameter annotated as one, or
    what `.eval()` is called on."""
    evaluated = _evaluated(facts, node)
    annotated = {p.name.value for p in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
                 if p.annotation is not None and _MODULE_TYPE.search(facts.module.code(p.annotation))}
    by_span = {call.span: call for call in function.calls if not call.context.callers}
    found = []
    for call in inside(facts, node, cst.Call):
        fact = by_span.get(facts.module.span(call))
        if fact is None:
            continue
        text = facts.module.code(call.func) if isinstance(call.func, (cst.Name, cst.Attribute)) else ""
        if text in evaluated or text in annotated or (fact.receiver is not None and is_network(fact.receiver) and not _method(call, fact)):
            found.append(ModuleCall(call, fact.span, fact, text in evaluated or fact.training is False))
    return found


def is_network(value: Value | None) -> bool:
    """A module with weights of its own somewhere in it."""
    from cuvil.frontends.python.values import Instance, Library, Weight
    todo, seen = [value], set()
    while todo:
        at = todo.pop()
        if isinstance(at, Instance) and id(at) not in seen:
            seen.add(id(at))
            if isinstance(at.of, Library) and at.weights:
                return True
            todo += at.attributes.values()
        elif isinstance(at, Weight) and at.owner is not None:
            return True
    return False


def _method(call: cst.Call, fact: CallFact) -> bool:
    """`net.encode(x)` and not `net(x)`: a receiver that is an object, called by one of its methods."""
    return isinstance(call.func, cst.Attribute) and fact.name.rpartition(".")[2] == call.func.attr.value


def _evaluated(facts: FileFacts, function: cst.FunctionDef) -> set[str]:
    """What is put in evaluation mode: `net.eval()`, `net = Net().to(device).eval()`."""
    found: set[str] = set()
    if not _EVAL.search(facts.module.code(function)):
        return found
    for call in inside(facts, function, cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval" and not call.args:
            if isinstance(call.func.value, (cst.Name, cst.Attribute)):
                found.add(facts.module.code(call.func.value))
            above = facts.module.parent(call)
            while isinstance(above, (cst.Attribute, cst.Call)):
                above = facts.module.parent(above)
            if isinstance(above, cst.Assign):
                found.update(facts.module.code(target.target) for target in above.targets)
    return found
