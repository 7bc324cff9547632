"""A tensor kept on a module as a plain attribute.

What: `self.table = torch.rand(...)` in a module's `__init__` (also by `setattr`, or in a list), read in another method.
Why: `.to(...)`, `.cuda()` and `.half()` move parameters and buffers only; this tensor stays where it was made, with the type it
had, and `state_dict` leaves it out. Moving it in each call costs a copy each time and keeps the old type.
Example: `self.table = torch.rand(16, 8)`
Instead: `self.register_buffer("table", torch.rand(16, 8), persistent=False)`
Fix: unsafe: the tensor is registered as a buffer that is not saved; `.half()` and the like reach it from then on.

Silent for parameters, numbers kept as 0-d tensors or read one by one (a single number may be on the host), attributes that other methods set anew, and classes that move their tensors
themselves (`_apply`, `to`, `cuda`).
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import by_type
from .recorded import node_of, tensors
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import AttributeFact, ClassFacts, FileFacts

_START = ("import torch\nfrom torch import nn\n\nclass Grid(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
          "        self.proj = nn.Linear(8, 8)\n")
_FORWARD = "\n    def forward(self, x: torch.Tensor):\n        return self.proj(x + self.table)\n"
VALID = (
    _START + '        self.register_buffer("table", torch.rand(16, 8), persistent=False)\n' + _FORWARD,
    _START + "        self.table = nn.Parameter(torch.rand(16, 8))\n" + _FORWARD,
    _START + "        self.table = torch.rand(16, 8)\n\n    def forward(self, x: torch.Tensor):\n        self.table = torch.zeros(16, 8, device=x.device)\n"
    "        return self.proj(x + self.table)\n",
    _START + "        self.table = torch.tensor(0.5)\n" + _FORWARD,
    _START + "        self.table = torch.log(torch.tensor([0.3, 3.3]))\n\n    def forward(self, x: torch.Tensor):\n        low = self.table\n"
    "        return self.proj(x * torch.empty(1).uniform_(low[0], self.table[-1]).item())\n",
    # read while the object is made, and not after
    _START + "        self.table = torch.rand(16, 8)\n        self.proj.weight.data.copy_(self.table[:8])\n",
    # it moves its tensor itself
    _START + "        self.table = torch.rand(16, 8)\n" + _FORWARD
    + "\n    def _apply(self, fn):\n        super()._apply(fn)\n        self.table = fn(self.table)\n        return self\n",
    # no module, so nothing moves it
    "import torch\n\nclass Grid:\n    def __init__(self):\n        self.table = torch.rand(16, 8)\n\n    def read(self, x: torch.Tensor):\n"
    "        return x + self.table\n",
)
INVALID = (
    Invalid(_START + "        »self.table = torch.rand(16, 8)«\n" + _FORWARD, "register_buffer",
            _START + '        self.register_buffer("table", torch.rand(16, 8), persistent=False)\n' + _FORWARD),
    Invalid(_START + '        »setattr(self, "table", torch.rand(16, 8))«\n\n    def forward(self, x: torch.Tensor):\n'
            '        return self.proj(x + getattr(self, "table").to(x.device))\n', "not moved",
            _START + '        self.register_buffer("table", torch.rand(16, 8), persistent=False)\n\n    def forward(self, x: torch.Tensor):\n'
            '        return self.proj(x + getattr(self, "table").to(x.device))\n'),
    Invalid(_START + '        for i in range(2):\n            »setattr(self, f"table{i}", torch.rand(16, 8))«\n\n    def forward(self, x: torch.Tensor, i: int):\n'
            '        return self.proj(x + getattr(self, f"table{i}").to(x.device))\n', "register_buffer",
            _START + '        for i in range(2):\n            self.register_buffer(f"table{i}", torch.rand(16, 8), persistent=False)\n\n'
            '    def forward(self, x: torch.Tensor, i: int):\n        return self.proj(x + getattr(self, f"table{i}").to(x.device))\n'),
    Invalid(_START + "        »self.table = [torch.rand(16, 8), torch.rand(16, 8)]«\n\n    def forward(self, x: torch.Tensor):\n"
            "        return self.proj(x + self.table[0] + self.table[1])\n", "register_buffer"),
)

_GETS = re.compile(r"getattr\(\s*self\s*,\s*f[\"']")
_MOVERS = frozenset(("_apply", "to", "cuda", "__setattr__"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for cls in facts.classes:
        if not cls.module or any(f"{cls.name}.{name}" in facts.module.by_name for name in _MOVERS):
            continue
        for name, found in _by_name(cls).items():
            yield from _kept(facts, cls, name, found)
        yield from _under_made_names(facts, cls)


def _by_name(cls: ClassFacts) -> dict[str, list[AttributeFact]]:
    found: dict[str, list[AttributeFact]] = {}
    for attribute in cls.attributes:
        found.setdefault(attribute.name, []).append(attribute)
    return found


def _kept(facts: FileFacts, cls: ClassFacts, name: str, found: list[AttributeFact]) -> Iterator[Diagnostic]:
    last = found[-1]
    if any(each.registered or each.method.rpartition(".")[2] != "__init__" for each in found):
        return
    kept = [t for t in tensors(last.value) if t.library == "torch" and t.type.rank != 0 and "parameter" not in t.marks]
    read = next((span for attribute, span in cls.reads if attribute == name), None)
    if not kept or read is None or len(kept) == 1 and kept[0].type.rank == 1 and _number_by_number(facts, cls, name):
        return
    statement, value = _statement(facts, last.span)
    if statement is None:
        return
    span = facts.module.span(statement)
    fix = None
    if value is not None and len(kept) == 1:
        fix = Fix("unsafe", "Register it as a buffer",
                  (Edit(span, f'self.register_buffer("{name}", {facts.source.slice(facts.module.span(value))}, persistent=False)'),))
    shown = f"`self.{name}` is" if len(kept) == 1 else f"the tensors in `self.{name}` are"
    yield RULE.finding(f"{shown} not moved or cast with the module (.to, .cuda, .half); keep it with register_buffer", span,
                       (Evidence(span, f"has type {kept[0].type}"), Evidence(read, "is read here")), fix)


def _number_by_number(facts: FileFacts, cls: ClassFacts, name: str) -> bool:
    """Whether all that its methods do with an attribute, also under a local name, is to read single elements of it."""
    from cuvil.frontends.python.workspace import dotted
    for definition in facts.module.definitions:
        if definition.owner != cls.name or name not in definition.text or definition.name.endswith(".__init__") or definition.tree is None:
            continue
        found = by_type(definition.tree)
        wholes: list[cst.BaseExpression] = [node for node in found.get(cst.Attribute, ()) if dotted(node) == f"self.{name}"]
        names = {target.value for node in wholes if (target := _bound_to(facts, node)) is not None}
        wholes += [node for node in found.get(cst.Name, ()) if node.value in names and not isinstance(facts.module.parent(node), cst.AssignTarget)]
        if not all(_bound_to(facts, node) is not None or _is_indexed(facts.module.parent(node), node) for node in wholes):
            return False
    return True


def _bound_to(facts: FileFacts, node: cst.BaseExpression) -> cst.Name | None:
    """`low` of `low = node`."""
    match facts.module.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value) if value is node:
            return name
    return None


def _is_indexed(parent: cst.CSTNode | None, node: cst.BaseExpression) -> bool:
    """`node[0]`, `node[-1]`"""
    match parent:
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer() | cst.UnaryOperation(expression=cst.Integer())))]):
            return value is node
    return False


def _under_made_names(facts: FileFacts, cls: ClassFacts) -> Iterator[Diagnostic]:
    """`setattr(self, f"table{i}", tensor)` in `__init__`, with `getattr(self, f"...")` in another method."""
    own = [d for d in facts.module.definitions if d.owner == cls.name]
    if not any(_GETS.search(d.text) for d in own if not d.name.endswith(".__init__")) or any("register_buffer" in d.text for d in own):
        return
    function = facts.function(f"{cls.name}.__init__")
    for call in function.calls if function is not None else ():
        node = node_of(facts, call.span, cst.Call) if call.name == "builtins.setattr" and not call.context.callers else None
        if node is None or len(call.args) != 3 or not isinstance(node.args[1].value, cst.FormattedString):
            continue
        kept = [t for t in tensors(call.args[2]) if t.library == "torch" and t.type.rank != 0 and "parameter" not in t.marks]
        if kept:
            yield RULE.finding("this tensor is not moved or cast with the module (.to, .cuda, .half); keep it with register_buffer", call.span,
                               (Evidence(call.span, f"has type {kept[0].type}"),),
                               Fix("unsafe", "Register it as a buffer", (Edit(call.span, _registered(facts, node)),)))


def _registered(facts: FileFacts, node: cst.Call) -> str:
    name, value = (facts.module.code(arg.value) for arg in node.args[1:])
    return f"self.register_buffer({name}, {value}, persistent=False)"


def _statement(facts: FileFacts, span: Span) -> tuple[cst.CSTNode | None, cst.BaseExpression | None]:
    """What sets the attribute, and the value where it can be written as a buffer."""
    node = facts.module.node_at(span.line, span.column)
    while node is not None and not (isinstance(node, (cst.Assign, cst.AnnAssign)) or isinstance(node, cst.Call) and _sets(node)):
        node = facts.module.parent(node)
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self")))], value=value):
            return node, None if isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.ListComp)) else value
        case cst.Call(args=[cst.Arg(value=cst.Name(value="self")), _, cst.Arg(value=value)]):
            return node, value
    return node, None


def _sets(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Name) and call.func.value == "setattr"


RULE = Rule("CUV302", "tensor-attribute-not-buffer", kind="unregistered-state", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
