"""Calls: what a name of the module means, how arguments bind, and following functions of the workspace."""
from __future__ import annotations

import builtins

import libcst as cst

from ...cst import Definition
from ...ops import SPELLINGS
from . import classes, pythons
from .facts import CallFact
from .library import apply, dtype_named
from .mutation import in_place
from .values import (NONE, Instance, Library, Mapping, Scalar, Sequence, Tensor, Unknown, Untyped, UserClass, UserFunction, UserModule, Value)
from .walk import DEPTH, SAME_FUNCTION, Frame, Walk, contains_tensor
from .workspace import Namespace, dotted, library

KEYWORDS = {"True": Scalar(True), "False": Scalar(False), "None": NONE, "NotImplemented": Library("builtins.NotImplemented"),
            "__name__": Unknown("a name of the interpreter"), "__file__": Unknown("a name of the interpreter")}
TRANSPARENT = ("cuvil.", "torch.no_grad", "torch.inference_mode", "torch.compile", "torch.jit.", "torch.compiler.", "functools.lru_cache",
               "functools.cache", "functools.wraps", "typing.", "jaxtyping.", "beartype", "typeguard.", "abc.abstractmethod",
               "builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.cached_property", "numba.", "torch.fx.")


# --- names of a module ----------------------------------------------------------------------------------------------

def global_value(walk: Walk, namespace: Namespace, word: str, node: cst.CSTNode | None) -> Value:
    """What a name means at the top of a file, else among Python's builtins."""
    known = KEYWORDS.get(word)
    if known is not None:
        return known
    key = (namespace.path, word)
    if key in walk.constants:
        return walk.constants[key]
    found = namespace.find(word)
    walk.used[key] = found
    shared = namespace.values.get(word)
    if shared is not None and shared[2] == walk.workspace.looks:
        value, used, _ = shared
        walk.used.update(used)
        walk.constants[key] = value
        return value
    if not found:
        return Library(f"builtins.{word}") if hasattr(builtins, word) else walk.unknown("a name that is not defined here", node)
    walk.constants[key] = Unknown("a definition that needs itself")
    used, walk.used = walk.used, {}
    try:
        value = _defined(walk, namespace, word, found[-1])
    finally:
        used.update(walk.used)
        own, walk.used = walk.used, used
    walk.constants[key] = value
    if _same_everywhere(value):
        namespace.values[word] = value, own, walk.workspace.looks
    return value


def _same_everywhere(value: Value) -> bool:
    """A value that has nothing to do with the walk that worked it out, and cannot be changed."""
    match value:
        case Library(receiver=None) | UserClass() | UserModule():
            return True
        case UserFunction(receiver=None, closure=()):
            return True
        case Scalar(value=inner):
            return inner is None or isinstance(inner, (bool, int, float, str))
        case Sequence(items=tuple() as items):
            return all(map(_same_everywhere, items))
        case Unknown(reason="a module that was not found" | "a name that its module does not define"):
            return True
    return False


def _defined(walk: Walk, namespace: Namespace, word: str, definition: Definition) -> Value:
    node = definition.node
    if definition.kind == "function" and isinstance(node, cst.FunctionDef):
        return function_value(walk, namespace, definition)
    if definition.kind == "class" and isinstance(node, cst.ClassDef):
        return UserClass(definition.name, node, namespace)
    if definition.tree is None:
        return Unknown("a statement that does not parse")
    frame = run_apart(walk, Frame(namespace, definition), lambda: [walk.execute(each) for each in definition.tree.nodes])
    for name, value in frame.names.items():
        walk.fix(value, f"`{name}` belongs to the module")
        walk.constants.setdefault((namespace.path, name), value)
    return frame.names.get(word, Unknown("a name bound in a way that is not understood"))


def run_apart(walk: Walk, frame: Frame, work) -> Frame:
    """Work in another frame whose problems are not this function's: they are found where that code is walked by itself."""
    outer, recording, origins = walk.frame, walk.recording, walk.builder.origins
    walk.frame, walk.recording = frame, None
    walk.weak += 1
    walk.quiet += 1
    try:
        work()
    finally:
        walk.weak -= 1
        walk.quiet -= 1
        walk.frame, walk.recording, walk.builder.origins = outer, recording, origins
    return frame


def function_value(walk: Walk, namespace: Namespace, definition: Definition, owner: UserClass | None = None,
                   receiver: Value | None = None) -> Value:
    for name in decorators(walk, namespace, definition.node):
        if not name.startswith(TRANSPARENT):
            return Unknown("a function with an unknown decorator")
    return UserFunction(definition.name, definition.node, namespace, receiver, (), owner, definition)


def decorators(walk: Walk, namespace: Namespace, node: cst.FunctionDef | cst.ClassDef) -> list[str]:
    """The full dotted names of decorators, "" for what is not a name."""
    return [decorator_name(walk, namespace, decorator) for decorator in node.decorators]


def decorator_name(walk: Walk, namespace: Namespace, decorator: cst.Decorator) -> str:
    expression = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
    name = dotted(expression)
    first, _, rest = name.partition(".")
    if not first:
        return ""
    value = global_value(walk, namespace, first, None) if walk.frame else Unknown("a decorator")
    if isinstance(value, Library):
        return library(f"{value.name}.{rest}" if rest else value.name).name
    return name if not isinstance(value, (UserFunction, UserClass, UserModule)) else ""


def import_names(walk: Walk, node: cst.Import | cst.ImportFrom) -> dict[str, Value]:
    """What an import statement binds. Modules under the root are read as text; all others are libraries by name."""
    found: dict[str, Value] = {}
    if isinstance(node, cst.Import):
        for alias in node.names:
            name = dotted(alias.name)
            if alias.asname is not None:
                found[alias.asname.name.value] = _module(walk, name, 0)
            else:
                first = name.partition(".")[0]
                found[first] = _module(walk, first, 0)
        return found
    home, level = dotted(node.module), len(node.relative)
    if isinstance(node.names, cst.ImportStar):
        return found
    for alias in node.names:
        name = alias.name.value
        bound = alias.asname.name.value if alias.asname is not None else name
        found[bound] = _imported(walk, home, name, level, node)
    return found


def _module(walk: Walk, name: str, level: int) -> Value:
    path = None if name.partition(".")[0] in LIBRARIES and not level else walk.workspace.resolve(name, walk.frame.namespace.path, level)
    namespace = walk.workspace.namespace(path) if path is not None else None
    return UserModule(namespace) if namespace is not None else Unknown("a module that was not found") if level else library(name)


def _imported(walk: Walk, home: str, name: str, level: int, node: cst.CSTNode) -> Value:
    if level == 0 and home.partition(".")[0] in LIBRARIES:
        from .attributes import get
        return get(walk, library(home), name, node)
    module = _module(walk, home, level)
    if isinstance(module, UserModule):
        if module.namespace.find(name):
            return global_value(walk, module.namespace, name, node)
        inner = _module(walk, f"{home}.{name}" if home else name, level)
        return inner if isinstance(inner, UserModule) else Unknown("a name that its module does not define")
    if isinstance(module, Library):
        return library(f"{home}.{name}")
    return module


LIBRARIES = frozenset(("torch", "numpy", "math", "cuvil", "typing", "typing_extensions", "jaxtyping", "dataclasses", "functools", "collections",
                       "operator", "itertools", "abc", "os", "sys", "logging", "warnings", "einops", "transformers", "scipy", "cv2", "PIL"))


# --- calls ----------------------------------------------------------------------------------------------------------

def call_node(walk: Walk, function: Value, node: cst.Call) -> Value:
    """The value of a call whose callee is evaluated."""
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    unknown: Unknown | None = None
    for arg in node.args:
        value = walk.evaluate(arg.value)
        if arg.star == "*":
            from .expressions import iterate
            items = iterate(walk, value)
            if items is None:
                unknown = walk.unknown("arguments that are not known one by one", arg)
            else:
                args += items
        elif arg.star == "**":
            if isinstance(value, Mapping) and all(isinstance(key, str) for key in value.items):
                keywords.update(value.items)
            else:
                unknown = walk.unknown("arguments that are not known one by one", arg)
        elif arg.keyword is not None:
            keywords[arg.keyword.value] = value
        else:
            args.append(value)
    result = unknown or call(walk, function, args, keywords, node)
    if unknown is not None and any(map(contains_tensor, args)):
        walk.refuse(unknown.reason, node)
    if walk.frame is walk.recording:
        name = function.name if isinstance(function, (Library, UserFunction, UserClass)) else \
            getattr(function.of, "name", "") if isinstance(function, Instance) else ""
        walk.calls[id(node)] = node, CallFact(walk.span(node), name, tuple(args), tuple(keywords.items()), result)
    return result


def call(walk: Walk, function: Value, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    match function:
        case Library():
            return call_library(walk, function, args, keywords, node)
        case UserFunction():
            return follow(walk, function, args, keywords, node)
        case UserClass():
            return classes.instantiate(walk, function, args, keywords, node)
        case Instance():
            return classes.call_instance(walk, function, args, keywords, node)
    reason = function.reason if isinstance(function, (Unknown, Untyped)) else "a call of something that is not a function"
    if any(map(contains_tensor, (*args, *keywords.values()))):
        name = dotted(node.func) if isinstance(node, cst.Call) else ""
        walk.refuse(f"a tensor is given to {name or 'a function'}, which is not known: {reason}", node, "functions of the file, its workspace, torch or NumPy")
    return Unknown(reason, walk.span(node))


def call_library(walk: Walk, function: Library, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
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
    if name in SPELLINGS:
        value = apply(walk, name, args, keywords, node)
        return in_place(walk, args[0], value, node, name) if isinstance(inplace, Scalar) and inplace.value is True and args else value
    if name.endswith("_") and not name.endswith("__") and name[:-1] in SPELLINGS and isinstance(function.receiver, Tensor):
        return in_place(walk, function.receiver, apply(walk, name[:-1], args, keywords, node), node, name.rpartition(".")[2])
    layer = classes.library_class(walk, name, args, keywords, node)
    if layer is not None:
        return layer
    if dtype_named(name) is not None and name.startswith("numpy.") and len(args) == 1:
        return apply(walk, "numpy.array", args, {"dtype": function}, node, name)
    return pythons.fallback(walk, name, args, keywords, node)


def follow(walk: Walk, function: UserFunction, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    """The result of a function of the workspace for these arguments: its body is walked in a frame of its own."""
    if len(walk.frame.callers) >= DEPTH or sum(each is function.node for each in walk.active) >= SAME_FUNCTION:
        return walk.refuse(f"`{function.name}` calls itself without an end that is known while compiling", node,
                           f"at most {SAME_FUNCTION} calls of one function inside another")
    if function.receiver is not None:
        args = [function.receiver, *args]
    if isinstance(function.node, cst.FunctionDef) and function.node.asynchronous is not None:
        return walk.refuse("a coroutine is not compiled", node)
    frame = Frame(function.module, function.definition, closure=function.closure, callers=(walk.span(node), *walk.frame.callers),
                  function=function)
    wrong = bind(walk, frame, function, args, keywords)
    if wrong:
        return walk.problem("argument", f"`{function.name}`: {wrong}", "arguments that its signature takes", node, function.name)
    outer, origins = walk.frame, walk.builder.origins
    walk.frame = frame
    walk.active.append(function.node)
    try:
        return run_body(walk, function)
    finally:
        walk.active.pop()
        walk.frame, walk.builder.origins = outer, origins


def run_body(walk: Walk, function: UserFunction) -> Value:
    """Walk the body in the current frame; what it returns, all returns joined."""
    frame = walk.frame
    if isinstance(function.node, cst.Lambda):
        return walk.evaluate(function.node.body)
    left = walk.execute(function.node.body)
    values = [value for value, _ in frame.returns]
    if left is None:
        values.append(NONE)
    if not values:
        return Unknown("a function that always raises")
    result = values[0]
    for value in values[1:]:
        result = walk.join(result, value)
    return walk.resolve(result)


def bind(walk: Walk, frame: Frame, function: UserFunction, args: list[Value], keywords: dict[str, Value]) -> str:
    """Put arguments under the names of parameters; what is wrong with them, or ""."""
    parameters = function.node.params
    positional = [*parameters.posonly_params, *parameters.params]
    keywords = dict(keywords)
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
        elif parameter.default is not None:
            frame.names[name] = default_value(walk, function, parameter.default)
        else:
            return f"no argument for `{name}`"
    if parameters.star_kwarg is not None:
        frame.names[parameters.star_kwarg.name.value] = Mapping(keywords)
    elif keywords:
        known = next((name for name in keywords if name in frame.names), None)
        return f"two arguments for `{known}`" if known else f"it has no parameter `{next(iter(keywords))}`"
    return ""


def default_value(walk: Walk, function: UserFunction, node: cst.BaseExpression) -> Value:
    found: list[Value] = []
    frame = Frame(function.module, function.definition, closure=function.closure)
    run_apart(walk, frame, lambda: found.append(walk.evaluate(node)))
    return found[0]
