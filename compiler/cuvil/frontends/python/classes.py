"""Classes of the workspace: their members, and objects with their attributes and weights.

A class that derives from nn.Module is interpreted: `__init__` gives sub-modules and the shapes of weights, `forward` is
followed. Inference is compiled, so `self.training` is False. Objects of other classes are their attributes.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...cst import Definition
from ...ir.function import Op
from ...ops.builder import Builder
from . import answers, calls, scope, summaries
from .context import MODULE_LEVEL
from .values import (
    NONE,
    Deferred,
    Either,
    Instance,
    Library,
    Many,
    Mapping,
    Partial,
    Scalar,
    Sequence,
    Tensor,
    Unknown,
    Untyped,
    UserClass,
    UserFunction,
    Value,
    Weight,
)
from .walk import Frame, Walk

MODULE = "torch.nn.Module"
NO_ATTRIBUTE = "an attribute that is not known"
OF_MODULES = frozenset(("eval", "train", "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "requires_grad_", "compile", "apply", "load_state_dict",
                        "add_module", "register_module", "register_buffer", "register_parameter", "to_empty"))
ANCESTORS = 64                               # of a class that are looked at
INNER = "()"                                 # the attribute of an object whose class derives from a layer: derived.py
CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))
OF_CONTAINERS = frozenset(("append", "extend", "insert", "pop", "update", "clear", "items", "values", "keys", "__getitem__"))
SCRATCH = 1 << 40                            # op ids of `__init__` never meet those of the function


# --- members --------------------------------------------------------------------------------------------------------

def find_member(walk: Walk, cls: UserClass, name: str) -> tuple[UserClass, Definition] | None:
    """The function or statement that defines a name in a class or, by its bases in order, in one it derives from."""
    todo, seen = [cls], set()
    while todo:
        cls = todo.pop()
        if id(cls.node) in seen or name in SET_UP and of_library(cls):
            continue
        seen.add(id(cls.node))
        key = f"{cls.name}.{name}"
        found = cls.module.find(key)
        walk.used[cls.module.path, key] = found
        if found:
            return cls, found[-1] if len(found) == 1 else next((each for each in reversed(found) if not _sets(each)), found[-1])
        if len(seen) < ANCESTORS:
            todo += (base for base in reversed(bases(walk, cls)) if isinstance(base, UserClass))
    return None


def _sets(definition: Definition) -> bool:
    """Whether it is the `@name.setter` or `@name.deleter` of a property."""
    return any(isinstance(each.decorator, cst.Attribute) and each.decorator.attr.value in ("setter", "deleter")
               for each in getattr(definition.node, "decorators", ()))


# Base classes of transformers and diffusers, whose set-up is a thousand lines about files, devices and quantisation, and one about us:
# `self.config = config`. They are taken for what they are to a model.
LIBRARY_CLASSES = {"PreTrainedModel": "modeling_utils.py", "ModelMixin": "modeling_utils.py", "ConfigMixin": "configuration_utils.py",
                   "PreTrainedConfig": "configuration_utils.py", "PretrainedConfig": "configuration_utils.py"}
SET_UP = frozenset(("__init__", "post_init", "__post_init__", "__new__", "__init_subclass__", "_init_weights", "init_weights", "__getattr__", "__setattr__"))


def of_library(cls: UserClass) -> bool:
    return cls.name in LIBRARY_CLASSES and cls.module.path.endswith(LIBRARY_CLASSES[cls.name])


def of_config(walk: Walk, cls: UserClass, depth: int = 0) -> bool:
    return of_library(cls) or depth < 8 and any(isinstance(base, UserClass) and of_config(walk, base, depth + 1) for base in bases(walk, cls))


def bases(walk: Walk, cls: UserClass) -> list[Value]:
    key = (cls.module.path, cls.name + "()")
    if key not in walk.constants:
        found: list[Value] = []
        definition = cls.module.syntax.by_name.get(cls.name)
        walk.constants[key] = Sequence(())
        scope.run_apart(walk, Frame(cls.module, definition), lambda: found.extend(walk.evaluate(arg.value) for arg in cls.node.bases))
        walk.constants[key] = Sequence(tuple(found))
    return list(walk.constants[key].items)


def derives(walk: Walk, cls: Value, name: str) -> bool | None:
    """Whether a class derives from a library class; None when a base is not known."""
    return descends(walk, cls, lambda each: isinstance(each, Library) and (each.name == name or (name == MODULE and each.name.startswith("torch.nn."))))


def descends(walk: Walk, cls: Value, wanted: Callable[[Value], bool]) -> bool | None:
    """Whether a class or one that it derives from is wanted; None when one of them is not known."""
    todo, seen, known = [cls], set(), True
    while todo:
        cls = todo.pop()
        if wanted(cls):
            return True
        if isinstance(cls, UserClass) and len(seen) < ANCESTORS:
            if id(cls.node) not in seen:
                seen.add(id(cls.node))
                todo += bases(walk, cls)
        elif not isinstance(cls, Library):
            known = False
    return False if known else None


def attribute(walk: Walk, instance: Instance, name: str, node: cst.CSTNode | None) -> Value:
    if name in instance.attributes:
        return instance.attributes[name]
    cls = instance.of
    if isinstance(cls, UserClass):
        found = find_member(walk, cls, name)
        if found is not None:
            return member_value(walk, *found, name, instance, node)
        inner = instance.attributes.get(INNER)
        if isinstance(inner, Instance) and inner.of.name in CONTAINERS and name in OF_CONTAINERS:
            return Library(f"{inner.of.name}.{name}", inner)
        module = derives(walk, cls, MODULE)
        if name == "training" and module is not False:
            return Scalar(False)
        if module:
            return Library(f"{MODULE}.{name}", instance)
        other = find_member(walk, cls, "attribute_map") if of_config(walk, cls) else None
        named = member_value(walk, *other, "attribute_map", None, node) if other is not None else None
        if isinstance(named, Mapping) and isinstance(named.items.get(name), Scalar):           # a name that all configurations have, for one of its own
            return attribute(walk, instance, named.items[name].value, node)
        return walk.unknown(NO_ATTRIBUTE, node)
    if name == "training":
        return Scalar(False)
    return Library(f"{MODULE if name in OF_MODULES else cls.name}.{name}", instance)


def member_value(walk: Walk, owner: UserClass, definition: Definition, name: str, receiver: Value | None, node: cst.CSTNode | None) -> Value:
    """A member of a class as an attribute of an object (or of the class, when receiver is None)."""
    if definition.kind == "class":
        return UserClass(definition.name, definition.node, owner.module)
    if definition.kind == "statement":
        key = (owner.module.path, f"{owner.name}.{name}")
        if key not in walk.constants:
            walk.constants[key] = Unknown("a definition that needs itself")
            frame = scope.run_apart(walk, Frame(owner.module, definition), lambda: [walk.execute(n) for n in definition.tree.nodes])
            walk.constants[key] = frame.names.get(name, Unknown("a class attribute without a value"))
        return walk.constants[key]
    if not isinstance(definition.node, cst.FunctionDef):
        return Unknown("a method that does not parse")
    names = scope.decorators(walk, owner.module, definition.node)
    function = scope.function_value(walk, owner.module, definition, owner, receiver)
    if not isinstance(function, UserFunction):
        return function
    if "builtins.staticmethod" in names:
        return UserFunction(function.name, function.node, function.module, None, (), owner, definition)
    if "builtins.classmethod" in names:
        cls = receiver.of if isinstance(receiver, Instance) else receiver or owner
        return UserFunction(function.name, function.node, function.module, cls, (), owner, definition)
    if receiver is not None and ("builtins.property" in names or "functools.cached_property" in names):
        return calls.follow(walk, function, [], {}, node)
    return function


def class_attribute(walk: Walk, cls: UserClass, name: str, node: cst.CSTNode) -> Value:
    found = find_member(walk, cls, name)
    if found is None and name == "apply" and derives(walk, cls, "torch.autograd.Function"):
        found = find_member(walk, cls, "forward")
        if found is not None:                              # its first argument keeps things for the way back
            return Partial(member_value(walk, *found, "forward", None, node), (walk.unknown("the context of an autograd function", node),))
    return member_value(walk, *found, name, None, node) if found is not None else walk.unknown("a class attribute that is not known", node)


def super_attribute(walk: Walk, value: Library, name: str, node: cst.CSTNode) -> Value:
    """`super().name`: found in the bases of the class the method stands in."""
    from . import derived
    owner = walk.frame.function.owner if walk.frame.function is not None else None
    receiver = value.receiver
    if owner is None or receiver is None:
        return walk.unknown("super() outside a method", node)
    for base in bases(walk, owner):
        if isinstance(base, UserClass):
            found = find_member(walk, base, name)
            if found is not None:
                return member_value(walk, *found, name, receiver, node)
            if name == "__init__" and is_dataclass(walk, base):
                return Partial(Library("dataclasses.dataclass.__init__"), (receiver, base))
        elif isinstance(base, Library):
            if derived.is_layer(base.name) and name in ("__init__", "forward", "__call__"):
                return Library(f"{base.name}.{name}", receiver)
            return Library(f"{MODULE if base.name.startswith('torch.nn.') else base.name}.{name}", receiver)
    return Library(f"builtins.object.{name}", receiver)


# --- objects --------------------------------------------------------------------------------------------------------

def instantiate(walk: Walk, cls: UserClass, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode | None) -> Value:
    """An object of a user's class: its `__init__` is walked apart, so that what it computes costs the function nothing."""
    instance = Instance(cls, training=True if derives(walk, cls, MODULE) else None)
    if sum(each is cls.node for each in walk.active) >= 3:
        walk.cuts += 1
        return walk.unknown("a class that contains itself", node)
    asked = answers.key(walk, cls.node, args, keywords)
    if asked is not None:
        return answers.answered(walk, asked, (cls.module, cls.name), args, keywords, lambda: _made(walk, cls, instance, args, keywords, node))
    return _made(walk, cls, instance, args, keywords, node)


def _made(walk: Walk, cls: UserClass, instance: Instance, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode | None) -> Value:
    unknown_base = any(isinstance(base, Unknown) for base in bases(walk, cls))
    if is_dataclass(walk, cls):
        return dataclass_fields(walk, cls, instance, args, keywords, node)
    from . import derived, prototypes
    alike = summaries.of_call(walk, ("new", id(cls.node)), args, keywords) if walk.facts_only and walk.building else None
    if alike is not None and alike in walk.summaries:
        return prototypes.copy(walk.summaries[alike], walk.created, late=False)        # what the constructor around it computes is settled at its end
    found = find_member(walk, cls, "__init__")
    if found is None and args and any(isinstance(base, Library) and base.name in DICTS for base in bases(walk, cls)):
        instance.attributes[ITEMS] = args[0]
        return instance
    layer = derived.base_of(walk, cls) if found is None else ""
    if layer:
        derived.set_up(walk, instance, layer, args, keywords, node)
        return instance
    if found is None:
        rope = find_member(walk, cls, "rope_parameters")
        if rope is not None and of_config(walk, cls):
            instance.attributes["rope_parameters"] = member_value(walk, *rope, "rope_parameters", None, node)
            if instance.attributes["rope_parameters"] == NONE:           # its set-up fills in the plain rule
                instance.attributes["rope_parameters"] = Mapping({"rope_type": Scalar("default"), "rope_theta": Scalar(10000.0)})
        if of_config(walk, cls):
            instance.attributes["_output_attentions"] = Scalar(False)
        after = find_member(walk, cls, "__post_init__")
        if after is not None:
            function = member_value(walk, *after, "__post_init__", instance, node)
            if isinstance(function, UserFunction):
                apart(walk, instance, cls, lambda: calls.follow(walk, function, [], {}, node))
        instance.complete = not unknown_base and not (args or keywords)
        return instance
    function = member_value(walk, *found, "__init__", instance, node)
    if not isinstance(function, UserFunction):
        instance.complete = False
        return instance
    apart(walk, instance, cls, lambda: calls.follow(walk, function, args, keywords, node))
    instance.complete = instance.complete and not unknown_base
    if alike is not None:
        walk.summaries[alike] = prototypes.copy(instance, walk.created, late=False)      # as it is now: what is made may be changed
    return instance


DICTS = ("collections.OrderedDict", "builtins.dict")
ITEMS = "{}"                                           # the attribute under which an object that is a dict keeps what it holds


def apart(walk: Walk, instance: Instance, cls: UserClass, work) -> None:
    """Walk an `__init__` with a builder of its own; tensors it leaves on objects are kept as Deferred."""
    outer, context = walk.building, walk.context
    builder, weights = walk.builder, walk.weights
    if not outer:
        walk.builder, walk.weights, walk.created = Builder(builder.library, SCRATCH, builder.numpy), {}, []
    walk.context = MODULE_LEVEL                            # gradients are on, whatever is around the call: weights ask for them themselves
    walk.building += 1
    walk.weak += 1
    walk.quiet += 1
    walk.active.append(cls.node)
    walk.created.append(instance)
    walk.constructing.append(instance)
    try:
        work()
    finally:
        walk.active.pop()
        walk.constructing.pop()
        walk.weak -= 1
        walk.quiet -= 1
        walk.building -= 1
        walk.context = context
        if not outer:
            for each in walk.created:
                if each.looked_at:
                    each.attributes.update({name: _settle(walk, value) for name, value in each.attributes.items()})
            walk.builder, walk.weights = builder, weights


def _settle(walk: Walk, value: Value) -> Value:
    value = walk.resolve(value) if isinstance(value, Tensor) else value
    if isinstance(value, Tensor) and value.op.id >= SCRATCH:
        return Deferred(_needed(walk.builder, value.op), value)
    if isinstance(value, Untyped):
        return walk.members.get((value.name, value.span), value)
    if isinstance(value, Either):
        return Either(tuple(_settle(walk, option) for option in value.options))
    if isinstance(value, Many):
        return Many(_settle(walk, value.item), value.kind)
    if isinstance(value, Sequence):
        items = [_settle(walk, item) for item in value.items]
        return Sequence(items if value.kind == "list" else tuple(items), value.kind)
    if isinstance(value, Mapping):
        return Mapping({key: _settle(walk, item) for key, item in value.items.items()}, value.kind)
    if isinstance(value, Partial):
        return Partial(value.function, tuple(_settle(walk, arg) for arg in value.args), tuple((key, _settle(walk, item)) for key, item in value.keywords))
    return value


def _needed(builder: Builder, op: Op) -> tuple[Op, ...]:
    """The ops of a builder that a value needs, in order."""
    wanted, first = {op.id}, builder.ops[0].id
    for each in reversed(builder.ops[:op.id - first + 1]):
        if each.id in wanted:
            wanted.update(each.operands)
    return tuple(each for each in builder.ops if each.id in wanted)


def is_dataclass(walk: Walk, cls: UserClass) -> bool:
    return any(name.startswith("dataclasses.") for name in scope.decorators(walk, cls.module, cls.node))


def dataclass_fields(walk: Walk, cls: UserClass, instance: Instance, args: list[Value], keywords: dict[str, Value], node) -> Value:
    for base in reversed(bases(walk, cls)):
        if isinstance(base, UserClass):
            inner = dataclass_fields(walk, base, Instance(base), [], {}, node)
            instance.attributes.update(inner.attributes)
        else:
            instance.complete = instance.complete and isinstance(base, Library)
    fields = list(instance.attributes)
    fields_of = walk.used[cls.module.path, cls.name + "."] = cls.module.find(cls.name + ".")
    for definition in fields_of:
        for line in definition.tree.nodes if definition.tree is not None else ():
            simple = isinstance(line, cst.SimpleStatementLine)
            instance.complete = instance.complete and simple      # under an `if` there may be more
            for small in line.body if simple else ():
                if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                    name = small.target.value
                    fields.append(name)
                    found: list[Value] = [Unknown("a field without a value")]
                    if small.value is not None:
                        scope.run_apart(walk, Frame(cls.module, definition), lambda value=small.value: found.append(walk.evaluate(value)))
                    value = found[-1]
                    if isinstance(value, Library) and value.name.startswith("dataclasses."):
                        value = Unknown("a field made by a factory")
                    instance.attributes[name] = value
    instance.attributes.update(zip(fields, args))
    instance.attributes.update({name: value for name, value in keywords.items() if name in instance.attributes})
    return instance


def register(instance: Instance, name: str, value: Value) -> None:
    """`self.name = value`: sub-modules and weights learn where they hang."""
    if isinstance(value, Instance) and value.owner is None and value is not instance:
        value.owner = (instance, name)
    elif isinstance(value, Weight) and value.owner is None:
        value = replace(value, owner=instance, name=name)
    elif isinstance(value, Either):
        for option in value.options:
            if isinstance(option, Instance) and option.owner is None and option is not instance:
                option.owner = (instance, name)
        value = Either(tuple(Weight(o.type, instance, name) if isinstance(o, Weight) and o.owner is None else o for o in value.options))
    elif isinstance(value, (Sequence, Mapping)):
        pass                                              # a plain list does not register its modules, as in torch
    instance.attributes[name] = value
    inner = instance.attributes.get(INNER)
    if isinstance(inner, Instance) and inner.of.name in CONTAINERS and isinstance(value, (Instance, Either, Unknown)) and name != INNER:
        inner.attributes[name] = value                    # an object that is a Sequential holds the modules that are set on it
