"""Facts of the classes of a file: what their methods set on self and read from it, put together from the facts of the methods."""
from __future__ import annotations

import libcst as cst

from ...cst import Definition, Place
from . import classes
from .facts import AttributeFact, CallFact, ClassFacts, FunctionFacts
from .values import Instance, Library, Scalar, UserClass, Value, Weight
from .walk import Frame, Walk
from .workspace import Namespace, Workspace

REGISTER = {"torch.nn.Module.register_buffer": "buffer", "torch.nn.Module.register_parameter": "parameter", "torch.nn.Module.add_module": "module",
            "torch.nn.Module.register_module": "module", "builtins.setattr": "", "builtins.object.__setattr__": ""}


def class_facts(workspace: Workspace, namespace: Namespace, functions: tuple[FunctionFacts, ...]) -> tuple[ClassFacts, ...]:
    """Classes of a file whose methods set something on self, in order of the text."""
    methods: dict[str, list[FunctionFacts]] = {}
    for function in functions:
        owner, dot, _ = function.name.rpartition(".")
        if dot:
            methods.setdefault(owner, []).append(function)
    found = []
    for definition in namespace.syntax.definitions:
        if definition.kind == "class" and definition.name in methods:
            walk = Walk(workspace, 2000)
            attributes = tuple(fact for method in methods[definition.name] for fact in _set_by(walk, method))
            if attributes and isinstance(definition.node, cst.ClassDef):
                found.append(_facts(walk, namespace, definition, methods[definition.name], attributes))
    return tuple(found)


def _facts(walk: Walk, namespace: Namespace, definition: Definition, methods: list[FunctionFacts],
           attributes: tuple[AttributeFact, ...]) -> ClassFacts:
    walk.frame = Frame(namespace, definition)
    cls = UserClass(definition.name, definition.node, namespace)
    users, libraries = _bases(walk, cls)
    reads = tuple(read for method in methods if not method.name.endswith(".__init__") for read in method.reads)
    return ClassFacts(definition.name, Place(namespace.path, definition, definition.node.name), (*users, *libraries),
                      classes.derives(walk, cls, classes.MODULE) is True, attributes, reads)


def _bases(walk: Walk, cls: UserClass) -> tuple[list[str], list[str]]:
    """Names of the classes of the workspace that a class derives from, and of the libraries'."""
    users, libraries, todo = [], [], [cls]
    while todo and len(users) < 60:
        at = todo.pop(0)
        for base in classes.bases(walk, at):
            if isinstance(base, UserClass) and base.name not in users:
                users.append(base.name)
                todo.append(base)
            elif isinstance(base, Library) and base.name not in libraries:
                libraries.append(base.name)
    return users, libraries


def _set_by(walk: Walk, method: FunctionFacts) -> list[AttributeFact]:
    """What a method sets on self, by assignment or by a call that registers it."""
    name = method.name.rpartition(".")[2]
    found = [AttributeFact(fact.name.removeprefix("self."), fact.span, fact.value, name, _is_registered(walk, fact.value))
             for fact in method.assigns if fact.name.startswith("self.") and fact.name.count(".") == 1 and not fact.context.callers]
    registered = [fact for call in method.calls if call.name in REGISTER and not call.context.callers for fact in _registered(walk, call, name)]
    return sorted(found + registered, key=lambda fact: fact.span) if registered else found


def _registered(walk: Walk, call: CallFact, method: str) -> list[AttributeFact]:
    key = call.argument(1, "name")
    value = call.argument(2, "tensor" if call.name.endswith("buffer") else "value")
    if not isinstance(call.args[0] if call.args else None, Instance) or not isinstance(key, Scalar) or not isinstance(key.value, str) or value is None:
        return []
    return [AttributeFact(key.value, call.span, value, method, bool(REGISTER[call.name]) or _is_registered(walk, value))]


def _is_registered(walk: Walk, value: Value) -> bool:
    """What nn.Module.__setattr__ takes in: parameters and modules; not tensors, nor lists of them."""
    if isinstance(value, Instance):
        return value.of.name.startswith(("torch.nn.", "torchvision.models.", "transformers.Auto")) if isinstance(value.of, Library) else \
            classes.derives(walk, value.of, classes.MODULE) is True
    return isinstance(value, Weight)
