"""Objects for methods that are walked by themselves: `self`, as its class makes it when nobody says with what.

A prototype is kept from one method to the next, and from one version of the file to the next, as long as all that its
`__init__` looked at stays the same; every walk gets a copy of its own.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import libcst as cst

from ...cst.shown import walk as nodes_of
from ...ir.dims import Dim, Poly, substitute
from ...ops.layers import MadeLayer
from . import calls, classes, modules
from .signatures import inputs_of
from .values import Deferred, Either, Instance, Many, Mapping, Partial, Scalar, Sequence, Unknown, Untyped, UserClass, UserFunction, Value, Weight
from .walk import Frame, OutOfBudget, Walk
from .workspace import Used, dotted

STEPS = 20_000                                 # that the making of one object may take
OBJECTS = 10_000                               # that one walk may make; large models have two thousand


@dataclass(frozen=True)
class Kept:
    """An object, what its making looked at, and the symbols it uses."""

    instance: Instance
    used: Used
    symbols: frozenset[str]


def prototype(walk: Walk, owner: UserClass) -> Instance:
    """An object of a class with its constructor's defaults."""
    key = (owner.module.path, owner.name)
    kept = walk.workspace.prototypes.get((*key, walk.facts_only))
    if kept is None or not walk.workspace.unchanged(kept.used):
        used, symbols, walk.used = walk.used, set(walk.symbols), {key: owner.module.find(owner.name)}
        steps = walk.steps
        walk.steps = steps if walk.building else STEPS     # once for all methods: none of them pays
        try:
            made = _make(walk, owner)
        finally:
            own, walk.used, walk.steps = walk.used, {**used, **walk.used}, min(steps, walk.steps) if walk.building else steps
        kept = Kept(made, own, frozenset(walk.symbols - symbols))
        if not symbols and not walk.building:              # nothing of this walk is in it
            walk.workspace.prototypes[*key, walk.facts_only] = kept
    walk.used.update(kept.used)
    walk.symbols |= kept.symbols
    return copy(kept.instance, walk.created if walk.building else None)


def copy(instance: Instance, made_too: list[Instance] | None = None, sizes: dict[str, Dim] | None = None, late: bool = True) -> Instance:
    """An object with all objects, lists and dicts it holds, so that a walk can change it. made_too: takes the objects that are made;
    sizes: of symbols in it; late: what nobody changes is copied as far as it is looked at, for of a model most is not."""
    copies: dict[int, Value] = {}

    def of(value: Value) -> Value:
        match value:
            case Instance():
                if id(value) not in copies:
                    made = copies[id(value)] = object.__new__(Instance)
                    made.__dict__.update(value.__dict__)
                    if sizes and value.constructor:
                        made.constructor = sized(value.constructor, sizes)
                    if made_too is not None:
                        made_too.append(made)
                        if len(made_too) > OBJECTS:        # classes that hold each other twice double with every level, without a step
                            raise OutOfBudget
                    made.owner = (of(value.owner[0]), value.owner[1]) if value.owner is not None else None
                    made.__dict__.pop("attributes", None)
                    made.original = value, of, not sizes
                    if not late:
                        assert made.attributes is not None
                return copies[id(value)]
            case Weight(type=type, owner=owner):
                return value if owner is None and not sizes else replace(value, type=type.substitute(sizes) if sizes else type,
                                                                         owner=of(owner) if owner is not None else None)
            case Scalar(value=Poly() as size) if sizes:
                return Scalar(substitute(size, sizes))
            case Sequence(items=list() as items):
                if id(value) not in copies:
                    made = copies[id(value)] = Sequence([], "list")
                    made.items.extend(of(item) for item in items)
                return copies[id(value)]
            case Sequence(items=items):
                return Sequence(tuple(of(item) for item in items), value.kind)
            case Mapping(items=items):
                if id(value) not in copies:
                    made = copies[id(value)] = Mapping({}, value.kind)
                    made.items.update({name: of(item) for name, item in items.items()})
                return copies[id(value)]
            case Either(options=options):
                return Either(tuple(map(of, options)))
            case Many(item=item):
                return Many(of(item), value.kind)
            case Partial():
                return Partial(of(value.function), tuple(map(of, value.args)), tuple((key, of(item)) for key, item in value.keywords))
            case UserFunction(receiver=Instance() as receiver):
                return UserFunction(value.name, value.node, value.module, of(receiver), value.closure, value.owner, value.definition)
        return value

    return of(instance)


def sized(given: Any, sizes: dict[str, Dim]) -> Any:
    """The arguments of a layer's constructor, with sizes for symbols."""
    match given:
        case Poly():
            return substitute(given, sizes)
        case tuple():
            return tuple(sized(each, sizes) for each in given)
        case dict():
            return {name: sized(each, sizes) for name, each in given.items()}
        case MadeLayer(layer=layer, constructor=constructor):
            return MadeLayer(layer, sized(constructor, sizes))
    return given


def _constructors(walk: Walk, owner: UserClass) -> Iterator[cst.FunctionDef]:
    """The `__init__` of a class and those of the classes it derives from."""
    todo: list[Value] = [owner]
    for cls in islice(todo, classes.ANCESTORS):
        if isinstance(cls, UserClass):
            found = cls.module.syntax.by_name.get(f"{cls.name}.__init__")
            if found is not None and isinstance(found.node, cst.FunctionDef):
                yield found.node
            todo += classes.bases(walk, cls)


def _chosen_by_none(node: cst.FunctionDef) -> set[str]:
    """Attributes that an `__init__` sets to one thing where a parameter is None, as it is when nobody gives it, and to another where it is
    given: methods written for the other one are not wrong."""
    optional = {p.name.value for p in (*node.params.params, *node.params.kwonly_params) if isinstance(p.default, cst.Name) and p.default.value == "None"}
    found: set[str] = set()
    for each in nodes_of([node.body]) if optional else ():
        match each:
            case cst.If(test=cst.Comparison(left=cst.Name() | cst.Attribute() as left, comparisons=[cst.ComparisonTarget(
                    operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None"))]), body=body, orelse=cst.Else(body=other)):
                if dotted(left).removeprefix("self.") in optional:
                    found |= _set_on_self(body) & _set_on_self(other)
    return found


def _set_on_self(body: cst.BaseSuite) -> set[str]:
    return {target.target.attr.value for each in nodes_of([body]) if isinstance(each, cst.Assign) for target in each.targets
            if isinstance(target.target, cst.Attribute) and dotted(target.target.value) == "self"}


def _make(walk: Walk, owner: UserClass) -> Instance:
    """The object. A size without one (`width: int`) is a symbol, and a parameter of a class
    of the workspace (`config: Config`) is an object of that class, with its defaults."""
    found = classes.find_member(walk, owner, "__init__")
    if found is None or not isinstance(found[1].node, cst.FunctionDef):
        made = classes.instantiate(walk, owner, [], {}, None)
        if isinstance(made, Instance):
            made.complete = False
            return made
        return Instance(owner, complete=False)
    cls, definition = found
    instance = Instance(owner)
    function = UserFunction(definition.name, definition.node, cls.module, instance, (), cls, definition)
    frame = Frame(cls.module, definition, function=function, callers=())
    outer, module = walk.frame, classes.derives(walk, owner, classes.MODULE) is not False

    def work() -> None:
        walk.frame = frame
        for name, value in inputs_of(walk, function, None, None).items():         # no parameters of the function that is walked
            frame.names[name] = replace(value, index=-1) if isinstance(value, Untyped) else value
        for parameter in (*definition.node.params.params, *definition.node.params.kwonly_params):
            name, annotation = parameter.name.value, parameter.annotation
            if isinstance(frame.names.get(name), (Unknown, Untyped)) and annotation is not None and parameter.default is None:
                if isinstance(annotation.annotation, cst.Name) and annotation.annotation.value == "int":
                    frame.names[name] = Scalar(walk.fresh_symbol(name))
                elif isinstance(annotation.annotation, (cst.Name, cst.Attribute)) and len(walk.active) < 8:
                    kind = walk.evaluate(annotation.annotation)
                    if isinstance(kind, UserClass) and classes.derives(walk, kind, classes.MODULE) is not True:
                        frame.names[name] = prototype(walk, kind)
        calls.run_body(walk, function)

    recording, walk.recording = walk.recording, None
    walk.active.append(definition.node)
    try:
        classes.apart(walk, instance, owner, work)
    except OutOfBudget:
        if walk.building:
            raise
        instance.complete = False
    finally:
        walk.active.pop()
        walk.frame, walk.recording = outer, recording
    for name in {name for made_by in _constructors(walk, owner) for name in _chosen_by_none(made_by)}:
        if isinstance(instance.attributes.get(name), (Weight, Deferred)):
            instance.attributes[name] = Unknown("a weight of which another one takes the place where an argument is given")
    modules.of_self(walk, instance, module, owner.module.source.text, definition.text)
    return instance
