"""Modules kept in a Python list, tuple or dict.

What: a module's attribute is a plain container of modules that its methods call, and they are registered under no name.
Why: torch finds sub-modules in attributes, `ModuleList` and `ModuleDict` only. `parameters()`, `.to(device)`, `.eval()` and `state_dict` leave
these out: they keep random weights, stay on the CPU and in training mode.
Example: `self.layers = [nn.Linear(8, 8) for _ in range(4)]`
Instead: `self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))`
Fix: unsafe: the container becomes a ModuleList; the state_dict gets new names.

Silent for local lists that are given to `Sequential` or `ModuleList`, and for modules that are also registered elsewhere (`add_module`).
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..lookup import value_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import AttributeFact, FileFacts
    from cuvil.frontends.python.values import Instance, Value

_START = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
_FORWARD = "\n    def forward(self, x: torch.Tensor):\n        for layer in self.layers:\n            x = layer(x)\n        return x\n"
VALID = (
    _START + "        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])\n" + _FORWARD,
    _START + "        layers = [nn.Linear(8, 8), nn.ReLU()]\n        self.layers = nn.Sequential(*layers)\n" + _FORWARD,
    _START + "        self.layers = [nn.Linear(8, 8) for _ in range(4)]\n        for i, layer in enumerate(self.layers):\n"
    "            self.add_module(f\"layer{i}\", layer)\n" + _FORWARD,
    _START + "        self.layers = [nn.ReLU(), nn.Tanh()]\n" + _FORWARD,
    _START + "        self.layers = [1, 2, 3]\n\n    def forward(self, x: torch.Tensor):\n        return x * self.layers[0]\n",
)
INVALID = (
    Invalid(_START + "        self.layers = »[nn.Linear(8, 8), nn.Linear(8, 8)]«\n" + _FORWARD, "ModuleList",
            _START + "        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])\n" + _FORWARD),
    Invalid(_START + "        self.layers = »[nn.Linear(8, 8) for _ in range(4)]«\n" + _FORWARD, "not registered",
            _START + "        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])\n" + _FORWARD),
    Invalid(_START + '        self.heads = »{"a": nn.Linear(8, 2)}«\n\n    def forward(self, x: torch.Tensor):\n        return self.heads["a"](x)\n', "ModuleDict",
            _START + '        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2)})\n\n    def forward(self, x: torch.Tensor):\n        return self.heads["a"](x)\n'),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Instance, Scalar, Tensor, Untyped
    for cls in facts.classes:
        if not cls.module:
            continue
        for attribute in cls.attributes:
            if attribute.registered or attribute.method.rpartition(".")[2] != "__init__" or isinstance(attribute.value, (Scalar, Tensor, Instance, Untyped)):
                continue
            read = next((span for name, span in cls.reads if name == attribute.name), None)
            kept = (_weighted(attribute.value) or _weighted(_repeated(facts, attribute))) if read is not None else []
            if not kept or any(each.owner is not None for each in kept) or _registered_by_loop(facts, cls.name, attribute.name):
                continue
            yield _finding(facts, attribute, kept[0], Evidence(read, "is used here"))


def _weighted(value: Value) -> list[Instance]:
    """The modules of a plain container, when some of them have weights."""
    from cuvil.frontends.python.values import Instance, Many, Mapping, Sequence

    from .modules import is_network
    found: list[Value] = []
    match value:
        case Sequence(items=items):
            found = list(items)
        case Mapping(items=items):
            found = list(items.values())
        case Many(item=item):
            found = [item]
    modules = [each for each in found if isinstance(each, Instance)]
    return modules if any(map(is_network, modules)) else []


def _repeated(facts: FileFacts, attribute: AttributeFact) -> Value | None:
    """What a comprehension of an unknown number of rounds makes in each."""
    from cuvil.frontends.python.values import Sequence, Unknown
    if " for " not in facts.source.line(attribute.span.line) and not isinstance(attribute.value, Unknown):
        return None
    node = facts.module.node_at(attribute.span.line, attribute.span.column)
    while node is not None and not isinstance(node, cst.Assign):
        node = facts.module.parent(node)
    made = node.value if node is not None else None
    element = made.value if isinstance(made, cst.DictComp) else made.elt if isinstance(made, cst.ListComp) else None
    value = value_of(facts, facts.module.span(element)) if element is not None else None
    return Sequence((value,)) if value is not None else None


def _registered_by_loop(facts: FileFacts, cls: str, attribute: str) -> bool:
    """`add_module`, `setattr` or a ModuleList over the same attribute, somewhere in the class."""
    text = "".join(d.text for d in facts.module.definitions if d.owner == cls)
    return any(word in text for word in ("add_module", "register_module", "setattr(self", f"ModuleList(self.{attribute}", f"ModuleDict(self.{attribute}",
                                         f"Sequential(*self.{attribute}"))


def _finding(facts: FileFacts, attribute: AttributeFact, module: Instance, read: Evidence) -> Diagnostic:
    from cuvil.frontends.python.values import Mapping, describe
    node = facts.module.node_at(attribute.span.line, attribute.span.column)
    while node is not None and not isinstance(node, cst.Assign):
        node = facts.module.parent(node)
    keyed = isinstance(attribute.value, Mapping) or node is not None and isinstance(node.value, (cst.Dict, cst.DictComp))
    container = "ModuleDict" if keyed else "ModuleList"
    span, fix = attribute.span, None
    if node is not None:
        span = facts.module.span(node.value)
        if isinstance(node.value, (cst.List, cst.ListComp, cst.Tuple, cst.Dict)):
            fix = Fix("unsafe", f"Use a {container}", (Edit(span, f"nn.{container}({facts.source.slice(span)})"),)) if "nn." in facts.source.text else None
    return RULE.finding(f"the modules in `self.{attribute.name}` ({describe(module)}) are not registered: parameters(), .to() and .eval() leave them out; "
                        f"use nn.{container}", span, (read,), fix)


RULE = Rule("CUV303", "modules-in-plain-container", kind="unregistered-state", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
