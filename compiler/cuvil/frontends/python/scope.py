"""What a name means at the top of a file: definitions, constants, imports, Python's builtins.

A module-level statement is walked when a name it binds is first asked for. What it means the same in every walk is kept
with the file's namespace.
"""
from __future__ import annotations

import builtins

import libcst as cst

from ...cst import Definition
from . import decorating
from .context import MODULE_LEVEL
from .modules import of_the_file
from .values import NONE, Either, Library, Partial, Scalar, Sequence, Unknown, UserClass, UserFunction, UserModule, Value
from .walk import Frame, Walk
from .workspace import Namespace, dotted, library

KEYWORDS = {"True": Scalar(True), "False": Scalar(False), "None": NONE, "NotImplemented": Library("builtins.NotImplemented"),
            "__name__": Unknown("a name of the interpreter"), "__file__": Unknown("a name of the interpreter")}
TRANSPARENT = ("cuvil.", "torch.no_grad", "torch.inference_mode", "torch.compile", "torch.jit.", "torch.compiler.", "functools.lru_cache",
               "functools.cache", "functools.wraps", "typing.", "jaxtyping.", "beartype", "typeguard.", "abc.abstractmethod",
               "builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.cached_property", "numba.", "torch.fx.")
LIBRARIES = frozenset(("torch", "numpy", "math", "cuvil", "typing", "typing_extensions", "jaxtyping", "dataclasses", "functools", "collections",
                       "operator", "itertools", "abc", "os", "sys", "logging", "warnings", "einops", "transformers", "scipy", "cv2", "PIL"))


_NOTHING: tuple = None, {}, 0


def global_value(walk: Walk, namespace: Namespace, word: str, node: cst.CSTNode | None) -> Value:
    """What a name means at the top of a file, else among Python's builtins."""
    known = KEYWORDS.get(word)
    if known is not None:
        return known
    key = (namespace.path, word)
    if key in walk.constants:
        if walk.answering:
            walk.used[key] = namespace.find(word)
            walk.used.update(namespace.values.get(word, _NOTHING)[1])
        return walk.constants[key]
    found = namespace.find(word)
    walk.used[key] = found
    shared = namespace.values.get(word)
    if shared is not None and (shared[2] == walk.workspace.looks or walk.workspace.unchanged(shared[1])):
        value, used, _ = shared
        namespace.values[word] = value, used, walk.workspace.looks
        walk.used.update(used)
        walk.constants[key] = value
        return value
    if not found:
        for home, level in namespace.stars:               # from .activations import *
            path = _place(walk, home, namespace.path, level)
            other = walk.workspace.namespace(path) if path is not None and path != namespace.path else None
            if other is not None and not word.startswith("_") and other.find(word):
                return global_value(walk, other, word, node)
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
        namespace.values[word] = value, {**own, key: found}, walk.workspace.looks
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
        case Unknown(reason="a module that was not found" | "a name that its module does not define" | "a formatted string" | "an isinstance test"):
            return True
        case Either(options=options):
            return all(map(_same_everywhere, options))
        case Partial(function=function, args=args, keywords=keywords):
            return all(map(_same_everywhere, (function, *args, *(value for _, value in keywords))))
    return False


def _defined(walk: Walk, namespace: Namespace, word: str, definition: Definition) -> Value:
    node = definition.node
    if definition.kind == "function" and isinstance(node, cst.FunctionDef):
        return function_value(walk, namespace, definition)
    if definition.kind == "class" and isinstance(node, cst.ClassDef):
        return UserClass(definition.name, node, namespace)
    if definition.tree is None:
        return Unknown("a statement that does not parse")
    outer, walk.naming = walk.naming, word
    frame = run_apart(walk, Frame(namespace, definition), lambda: [walk.execute(each) for each in definition.tree.nodes])
    walk.naming = outer
    for name, value in frame.names.items():
        walk.fix(value, f"`{name}` belongs to the module")
        of_the_file(namespace.source.text, definition, name, value)
        walk.constants.setdefault((namespace.path, name), value)
    return frame.names.get(word, Unknown("a name bound in a way that is not understood"))


def run_apart(walk: Walk, frame: Frame, work) -> Frame:
    """Work in another frame whose problems are not this function's: they are found where that code is walked by itself."""
    outer, recording, origins, context = walk.frame, walk.recording, walk.builder.origins, walk.context
    walk.frame, walk.recording, walk.context = frame, None, MODULE_LEVEL
    walk.weak += 1
    walk.quiet += 1
    try:
        work()
    finally:
        walk.weak -= 1
        walk.quiet -= 1
        walk.frame, walk.recording, walk.builder.origins, walk.context = outer, recording, origins, context
    return frame


def function_value(walk: Walk, namespace: Namespace, definition: Definition, owner: UserClass | None = None,
                   receiver: Value | None = None) -> Value:
    if not all(transparent(walk, namespace, decorator) for decorator in definition.node.decorators):
        return Unknown("a function with an unknown decorator")
    return UserFunction(definition.name, definition.node, namespace, receiver, (), owner, definition)


def decorators(walk: Walk, namespace: Namespace, node: cst.FunctionDef | cst.ClassDef) -> list[str]:
    """The full dotted names of decorators, "" for what is not a name."""
    return [decorator_name(walk, namespace, decorator) for decorator in node.decorators]


def transparent(walk: Walk, namespace: Namespace, decorator: cst.Decorator) -> bool:
    """What the decorated function gives is what its body gives."""
    if decorator_name(walk, namespace, decorator).startswith(TRANSPARENT):
        return True
    name = dotted(decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator)
    value = global_value(walk, namespace, name, None) if name and "." not in name and name not in decorating.SEEN_THROUGH else NONE
    return decorating.seen_through(name.rpartition(".")[2], value)


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


def import_names(walk: Walk, node: cst.Import | cst.ImportFrom, only: str | None = None) -> dict[str, Value]:
    """What an import statement binds. Modules under the root are read as text; all others are libraries by name. only: the one name
    that is asked for."""
    found: dict[str, Value] = {}
    if isinstance(node, cst.Import):
        for alias in node.names:
            name = dotted(alias.name)
            module = name if alias.asname is not None else name.partition(".")[0]
            bound = alias.asname.name.value if alias.asname is not None else module
            if only in (None, bound):
                found[bound] = _module(walk, module, 0)
        return found
    home, level = dotted(node.module), len(node.relative)
    if isinstance(node.names, cst.ImportStar):
        return found
    for alias in node.names:
        name = alias.name.value
        bound = alias.asname.name.value if alias.asname is not None else name
        if only in (None, bound):
            found[bound] = _imported(walk, home, name, level, node)
    return found


def _module(walk: Walk, name: str, level: int) -> Value:
    path = None if name.partition(".")[0] in LIBRARIES and not level else _place(walk, name, walk.frame.namespace.path, level)
    namespace = walk.workspace.namespace(path) if path is not None else None
    return UserModule(namespace) if namespace is not None else Unknown("a module that was not found") if level else library(name)


def _place(walk: Walk, name: str, importer: str, level: int) -> str | None:
    path = walk.used[name, importer, level] = walk.workspace.resolve(name, importer, level)
    return path


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
