"""Calls: how arguments bind, what is called, and following functions of the workspace."""
from __future__ import annotations

import re
from dataclasses import replace

import libcst as cst

from ...ops import SPELLINGS
from . import answers, classes, context, copies, derived, devices, hub, joins, layers, modes, objects, pythons, records, regions, scope, summaries
from .facts import Context
from .library import apply, dtype_named
from .modules import given_away
from .mutation import in_place, overwritten, reshaped
from .values import (
    NONE,
    RAISES,
    Either,
    Instance,
    Library,
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
    contains_tensor,
)
from .walk import DEPTH, SAME_FUNCTION, Frame, Walk
from .workspace import dotted

UNGIVEN = "arguments of a constructor that is walked by itself"
assert copies and modes                        # importing them fills pythons.FUNCTIONS


def call_node(walk: Walk, function: Value, node: cst.Call) -> Value:
    """The value of a call whose callee is evaluated."""
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    unknown: Unknown | None = None
    more: Unknown | None = None
    for arg in node.args:
        value = walk.evaluate(arg.value)
        if arg.star == "*":
            from .expressions import iterate
            items = iterate(walk, value)
            if items is None and isinstance(function, Library) and function.name in ("torch.nn.Sequential", "torch.nn.Sequential.__init__"):
                args.append(value)
            elif items is None and isinstance(value, Unknown) and value.reason == UNGIVEN and (
                    isinstance(function, UserFunction) or isinstance(function, Library) and function.name in SETS_UP):
                more = value
            elif items is None:
                unknown = walk.unknown("arguments that are not known one by one", arg)
            else:
                args += items
        elif arg.star == "**":
            if isinstance(value, Mapping) and all(isinstance(key, str) for key in value.items):
                keywords.update(value.items)
            else:
                ungiven = isinstance(value, Unknown) and value.reason == UNGIVEN
                more = value if ungiven else walk.unknown("arguments that are not known one by one", arg)
        elif arg.keyword is not None:
            keywords[arg.keyword.value] = value
        else:
            args.append(value)
    training = function.training if isinstance(function, Instance) else None
    result = unknown or call(walk, function, args, keywords if more is None else {**keywords, MORE: more}, node)
    unknown = unknown or more
    if unknown is not None and any(map(contains_tensor, args)):
        walk.refuse(unknown.reason, node)
    records.called(walk, function, args, keywords, result, training, node)
    return result


SETS_UP = ("torch.nn.Module.__init__", "builtins.object.__init__")
MORE = "**"                                    # among keywords: there may be others, which are not known


def call(walk: Walk, function: Value, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    function = joins.given(function)
    if MORE in keywords and isinstance(function, Library) and function.name in SETS_UP:
        keywords = {}
    if MORE in keywords and (isinstance(function, Library) or isinstance(function, Instance) and isinstance(function.of, Library)):
        return keywords[MORE]
    match function:
        case Either():
            return joins.each(walk, function, lambda option: call(walk, option, list(args), dict(keywords), node))
        case Partial(function=inner, args=first, keywords=more):
            return call(walk, inner, [*first, *args], {**dict(more), **keywords}, node)
        case Library():
            return call_library(walk, function, args, keywords, node)
        case UserFunction():
            return follow(walk, function, args, keywords, node)
        case UserClass():
            return classes.instantiate(walk, function, args, keywords, node)
        case Instance():
            value = objects.call_object(walk, function, args, keywords, node)
            return value if value is not None else layers.call_instance(walk, function, args, keywords, node)
    given_away((*args, *keywords.values()))
    reason = function.reason if isinstance(function, (Unknown, Untyped)) else "a call of something that is not a function"
    if any(map(contains_tensor, (*args, *keywords.values()))):
        name = dotted(node.func) if isinstance(node, cst.Call) else ""
        walk.refuse(f"a tensor is given to {name or 'a function'}, which is not known: {reason}", node, "functions of the file, its workspace, torch or NumPy")
    return Unknown(reason, walk.span(node))


def call_library(walk: Walk, function: Library, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    """Where a tensor is made says nothing of its values: device= and pin_memory= are taken apart."""
    if ("device" in keywords or "pin_memory" in keywords) and function.name.startswith("torch.") and function.name not in devices.FUNCTIONS_OF_DEVICES:
        rest = {key: value for key, value in keywords.items() if key not in ("device", "pin_memory")}
        return devices.asked(walk, _library(walk, function, args, rest, node), keywords.get("device"), keywords.get("pin_memory"), node)
    value = _library(walk, function, args, keywords, node)
    if "requires_grad" in keywords and isinstance(value, Tensor):
        asked = keywords["requires_grad"]
        return walk.own(replace(value, grad=asked.value if isinstance(asked, Scalar) and isinstance(asked.value, bool) else None))
    return value


def _library(walk: Walk, function: Library, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    name = function.name
    if function.receiver is not None:
        args = [function.receiver, *args]
    known = pythons.FUNCTIONS.get(name)
    if known is not None:
        value = known(walk, args, keywords, node)
        if value is not None:
            return value
    inplace = keywords.get("inplace")
    if isinstance(inplace, Scalar):
        keywords = {key: value for key, value in keywords.items() if key != "inplace"}
    if args and isinstance(args[0], Instance) and name in ("numpy.array", "numpy.asarray"):
        picture = objects.array_of_picture(walk, args[0], node)
        args = [picture, *args[1:]] if picture is not None else args
    out = walk.resolve(keywords["out"]) if "out" in keywords else None
    if isinstance(out, Tensor) and name in SPELLINGS:
        value = apply(walk, name, args, {key: value for key, value in keywords.items() if key != "out"}, node)
        walk.refuse(f"{name} with out= is not compiled", node, hint="use its result")
        return in_place(walk, out, value, node, "out=", devices.argument(node, "out", 1 << 30))
    if name in SPELLINGS:
        value = apply(walk, name, args, keywords, node)
        return in_place(walk, args[0], value, node, name) if isinstance(inplace, Scalar) and inplace.value is True and args else value
    if name.startswith("torch.Tensor.") and name.rpartition(".")[2] in RESHAPED and isinstance(function.receiver, Tensor):
        return reshaped(walk, function.receiver, apply(walk, name[:-1], args, keywords, node), node, name)
    if name.endswith("_") and not name.endswith("__") and name[:-1] in SPELLINGS and isinstance(function.receiver, Tensor):
        return in_place(walk, function.receiver, apply(walk, name[:-1], args, keywords, node), node, name.rpartition(".")[2])
    if isinstance(function.receiver, Tensor) and name.startswith("torch.Tensor.") and name.endswith("_") and not name.endswith("__"):
        written = overwritten_by(walk, function.receiver, args, keywords, node, name)
        if written is not None:
            return written
    layer = derived.called(walk, name, args, keywords, node)
    if layer is None:
        layer = layers.library_class(walk, name, args, keywords, node)
    if layer is not None:
        return layer
    if dtype_named(name) is not None and name.startswith("numpy.") and len(args) == 1:
        return apply(walk, "numpy.array", args, {"dtype": function}, node, name)
    value = objects.found(walk, name, args, keywords, node)
    return value if value is not None else pythons.fallback(walk, name, args, keywords, node)


RESHAPED = frozenset(("unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_"))
NO_WRITE = frozenset(("requires_grad_", "share_memory_", "resize_", "resize_as_", "set_", "rename_", "retain_grad_", "apply_", "map_", "as_strided_"))


def overwritten_by(walk: Walk, target: Tensor, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode, name: str) -> Value | None:
    """A method that writes into its tensor and has no spelling: copy_, fill_, scatter_, normal_."""
    last = name.rpartition(".")[2]
    if last in NO_WRITE:
        return None
    walk.refuse(f"{name} is not in the vocabulary", node, "a function that `cuvil explain --mapping` lists")
    source = next((value for value in map(walk.resolve, (*args[1:], *keywords.values())) if isinstance(value, Tensor)), None)
    records.written(walk, target, last, source or walk.unknown("values that are not known", node), node)
    return overwritten(walk, target, source or NONE, node, name)


FILLS = re.compile(r"(?:^|[._])(?:init|reset|fix)_\w*(?:weights?|parameters|bias)\w*$|(?:^|\.)_?(?:init_weights?|load_weights|load_pretrained|named_apply)\w*$"
                   r"|(?:normal|uniform|xavier|kaiming|variance_scaling)\w*_$")


def follow(walk: Walk, function: UserFunction, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    """The result of a function of the workspace for these arguments: its body is walked in a frame of its own."""
    if len(walk.frame.callers) >= DEPTH or sum(each is function.node for each in walk.active) >= SAME_FUNCTION:
        walk.cuts += 1
        return walk.refuse(f"`{function.name}` calls itself without an end that is known while compiling", node,
                           f"at most {SAME_FUNCTION} calls of one function inside another")
    if function.receiver is not None:
        args = [function.receiver, *args]
    if walk.building and FILLS.search(function.name):         # weights get other values, and the same shapes
        return args[0] if args else NONE
    said = hub.known(walk, function, args, keywords, node)
    if said is not None:
        return said
    if isinstance(function.node, cst.FunctionDef) and function.node.asynchronous is not None:
        return walk.refuse("a coroutine is not compiled", node)
    if function.receiver is None and not function.closure and "." not in function.name and (walk.quiet or _elsewhere(walk, function)):
        asked = answers.key(walk, function.node, args, keywords)
        if asked is not None:
            return answers.answered(walk, asked, (function.module, function.name), args, keywords, lambda: _followed(walk, function, args, keywords, node))
    return _followed(walk, function, args, keywords, node)


def _elsewhere(walk: Walk, function: UserFunction) -> bool:
    """It stands in another file than the code that is walked for its facts: what it does with plain values is said there."""
    return walk.recording is not None and function.module is not walk.recording.namespace


def _followed(walk: Walk, function: UserFunction, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    frame = Frame(function.module, function.definition, closure=function.closure, callers=walk.frame.callers if node is None else (walk.span(node), *walk.frame.callers),
                  function=function, chain=hash((walk.frame.chain, id(node))))
    alike = summaries.key(walk, function, args, keywords) if walk.facts_only else None
    if alike is not None and alike in walk.summaries:
        return summaries.again(walk, walk.summaries[alike], function.name, args, node)
    wrong = bind(walk, frame, function, args, keywords)
    if wrong:
        return walk.refuse(f"`{function.name}`: {wrong}", node, "arguments that its signature takes")      # type checkers find this; it is no finding here
    outer, origins, around = walk.frame, walk.builder.origins, walk.context
    walk.frame = frame
    walk.context = inside(walk, function, around)
    walk.active.append(function.node)
    steps, forms = walk.steps, walk.forms
    try:
        result = run_body(walk, function)
        if alike is not None and walk.forms is forms and steps - walk.steps >= summaries.WORTH:
            walk.summaries[alike] = result
        return result
    finally:
        walk.active.pop()
        walk.frame, walk.builder.origins, walk.context = outer, origins, around


def inside(walk: Walk, function: UserFunction, around: Context) -> Context:
    """The context of a function's body: that of the call, and what its decorators and torch.compile add."""
    decorated = context.decorated(scope.decorators(walk, function.module, function.node)) if getattr(function.node, "decorators", ()) else ""
    readers = regions.around(walk, function)
    all_readers = () if readers is None else tuple(dict.fromkeys((*readers, *function.regions, *around.regions)))
    return Context(walk.frame.callers, around.loops, decorated if decorated != "" else around.grad, all_readers, around.tests, around.caught,
                   around.autocast)


def run_body(walk: Walk, function: UserFunction) -> Value:
    """Walk the body in the current frame; what it returns, all returns joined."""
    frame = walk.frame
    if walk.building and isinstance(function.node, cst.FunctionDef) and function.node.decorators:
        _registered(function, frame)
    if isinstance(function.node, cst.Lambda):
        return walk.evaluate(function.node.body)
    left = walk.execute(function.node.body)
    values = [value for value, _ in frame.returns]
    if left is None:
        values.append(NONE)
    if not values:
        return RAISES
    result = values[0]
    for value in values[1:]:
        result = walk.join(result, value)
    return walk.resolve(result)


def _registered(function: UserFunction, frame: Frame) -> None:
    """diffusers' `@register_to_config` keeps what an `__init__` was called with as `self.config`."""
    if isinstance(function.receiver, Instance) and any(dotted(each.decorator).endswith("register_to_config") for each in function.node.decorators):
        given = {name: value for name, value in frame.names.items() if value is not function.receiver}
        function.receiver.attributes["config"] = Mapping(given, "diffusers.FrozenDict")


def bind(walk: Walk, frame: Frame, function: UserFunction, args: list[Value], keywords: dict[str, Value]) -> str:
    """Put arguments under the names of parameters; what is wrong with them, or ""."""
    parameters = function.node.params
    positional = [*parameters.posonly_params, *parameters.params]
    keywords = dict(keywords)
    more = keywords.pop(MORE, None)
    for parameter, value in zip(positional, args):
        frame.names[parameter.name.value] = value
    extra = args[len(positional):]
    if isinstance(parameters.star_arg, cst.Param):
        frame.names[parameters.star_arg.name.value] = Sequence(tuple(extra))
    elif extra:
        return f"{len(args)} arguments for {len(positional)} parameters"
    for parameter in (*positional[len(args):], *parameters.kwonly_params):
        name = parameter.name.value
        if name in keywords:
            frame.names[name] = keywords.pop(name)
        elif more is not None:
            frame.names[name] = _ungiven(walk, function, parameter) if more.reason == UNGIVEN else more
        elif parameter.default is not None:
            frame.names[name] = default_value(walk, function, parameter.default)
        else:
            return f"no argument for `{name}`"
    if parameters.star_kwarg is not None:
        frame.names[parameters.star_kwarg.name.value] = Mapping(keywords) if more is None else more
    elif keywords:
        known = next((name for name in keywords if name in frame.names), None)
        return f"two arguments for `{known}`" if known else f"it has no parameter `{next(iter(keywords))}`"
    return ""


def _ungiven(walk: Walk, function: UserFunction, parameter: cst.Param) -> Value:
    """A parameter to which `super().__init__(*args, **kwargs)` passes on what nobody gave: as if the class were made by itself."""
    if parameter.default is not None:
        return default_value(walk, function, parameter.default)
    name = parameter.name.value
    whole = parameter.annotation is not None and dotted(parameter.annotation.annotation) == "int"
    return Scalar(walk.fresh_symbol(name)) if whole else Untyped(name, -1, function.definition.span(parameter, function.module.path))


def default_value(walk: Walk, function: UserFunction, node: cst.BaseExpression) -> Value:
    found: list[Value] = []
    frame = Frame(function.module, function.definition, closure=function.closure)
    scope.run_apart(walk, frame, lambda: found.append(walk.evaluate(node)))
    return found[0]
