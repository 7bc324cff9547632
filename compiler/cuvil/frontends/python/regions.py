"""Code that a compiler or tracer reads: functions with its decorator, and what is handed to it anywhere in the file.

    @torch.compile                         torch.jit.trace(model, example)      torch.onnx.export(Net().eval(), ...)
    step = torch.compile(step)             self.net = torch.compile(Net())      model.compile()
"""
from __future__ import annotations

import ast
import re
import warnings
from dataclasses import replace
from functools import lru_cache

import libcst as cst

from ...cst import Definition
from ...source import Span
from . import calls, scope
from .context import within
from .facts import Region
from .pythons import fallback, python
from .values import NONE, Instance, Library, Mapping, Scalar, Sequence, UserFunction, Value
from .walk import Walk
from .workspace import Namespace

HOW = {"torch.compile": "compile", "cuvil.compile": "compile", "torch.jit.trace": "trace", "torch.jit.trace_module": "trace", "torch.onnx.export": "trace",
       "torch.fx.symbolic_trace": "trace", "torch.export.export": "export", "torch.export.draft_export": "export", "torch.onnx.dynamo_export": "export",
       "torch.jit.script": "script", "torch.jit.script_method": "script", "torch.cuda.make_graphed_callables": "cudagraph"}
LEFT_OUT = ("torch.compiler.disable", "torch._dynamo.disable", "torch.jit.ignore", "torch.jit.unused")
GRAPH_MODES = ("reduce-overhead", "max-autotune")
_HANDED = re.compile(r"(?<!re)(?<!\w)(?:compile|trace|trace_module|script|export|symbolic_trace|make_graphed_callables)\(")
_LAST = {name.rpartition(".")[2]: how for name, how in HOW.items() if not name.startswith("cuvil.")}


def around(walk: Walk, function: UserFunction) -> tuple[Region, ...] | None:
    """What reads a function because of its decorators or of a call elsewhere in its file; None when a decorator keeps it out."""
    found = list(handed(function.module).get(function.definition.name, ())) if function.definition is not None and not function.closure else []
    for decorator in getattr(function.node, "decorators", ()):
        name = scope.decorator_name(walk, function.module, decorator)
        if name in LEFT_OUT:
            return None
        if name in HOW:
            call = decorator.decorator
            mode = next((arg.value.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "mode"
                         and isinstance(arg.value, cst.SimpleString)), "") if isinstance(call, cst.Call) else ""
            found += _regions(HOW[name], mode.strip("\"'"), function.definition.span(decorator, function.module.path))
    return tuple(found)


def _regions(how: str, mode: str, span: Span) -> list[Region]:
    return [Region(how, span), *([Region("cudagraph", span)] if how == "compile" and mode in GRAPH_MODES else [])]


# --- handed over elsewhere in the file ------------------------------------------------------------------------------

def handed(namespace: Namespace) -> dict[str, tuple[Region, ...]]:
    """Functions and methods of a file by name, and where they are handed to a compiler. Kept with the namespace."""
    if namespace.handed is None:
        namespace.handed = {}
        if namespace.library == "torch":
            for definition in namespace.syntax.definitions:
                if definition.kind != "class" and _hands(definition.text):
                    for name, regions in _handed_in(namespace, definition):
                        namespace.handed[name] = (*namespace.handed.get(name, ()), *regions)
    return namespace.handed


@lru_cache(16384)
def _hands(text: str) -> bool:
    return _HANDED.search(text) is not None


def _handed_in(namespace: Namespace, definition: Definition) -> list[tuple[str, list[Region]]]:
    tree, bound = _parsed(definition.text, definition.indent)
    shift, found = definition.first - (2 if definition.indent else 1), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            callee = ast.unparse(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
            home, _, last = callee.rpartition(".")
            if last in _LAST and (home.partition(".")[0] == "torch" or not home and namespace.find(last)):
                name = _what(namespace, definition, node.args[0], bound)
                if name:
                    mode = next((k.value.value for k in node.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)), "")
                    place = Span(namespace.path, node.lineno + shift, node.col_offset, node.end_lineno + shift, node.end_col_offset)
                    found.append((name, _regions(_meant(callee), mode, place)))
    return found


def _meant(callee: str) -> str:
    """What a call does by the words the file has for it: `onnx.export` after `from torch import onnx`."""
    return HOW.get(callee) or next((how for name, how in HOW.items() if "." in callee and name.endswith(f".{callee}")), _LAST[callee.rpartition(".")[2]])


@lru_cache(64)
def _parsed(text: str, indent: int) -> tuple[ast.Module, dict[str, ast.expr]]:
    """Python's own tree of a definition, and what names are bound to in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                   # a text with an odd escape is the user's affair
        try:
            tree = ast.parse(("class _:\n" if indent else "") + text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Module([], [])
    return tree, _bound(tree)


def _bound(tree: ast.Module) -> dict[str, ast.expr]:
    """What names and attributes are bound to, by their text. `f = torch.compile(f)` says nothing of f: what was there before counts."""
    return {ast.unparse(target): node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and not _is_reader(node.value)
            for target in node.targets if isinstance(target, (ast.Name, ast.Attribute))}


def _is_reader(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)) and ast.unparse(node.func).rpartition(".")[2] in _LAST


def _what(namespace: Namespace, definition: Definition, node: ast.expr, bound: dict[str, ast.expr]) -> str:
    """The function or method of the file that an expression stands for: `f`, `Net()`, `Net().to(d).eval()`, `model.decode`; "" if none."""
    method = "forward"
    for _ in range(20):
        if isinstance(node, ast.Call):
            node = node.func
            while isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):      # Net(...).to(device).eval
                node = node.value.func
        elif isinstance(node, (ast.Name, ast.Attribute)):
            text = ast.unparse(node)
            owner, _, last = text.rpartition(".")
            if text in bound:
                node = bound[text]
                continue
            kinds = {each.kind for each in namespace.find(text)} if not owner else set()
            if kinds == {"statement"}:                    # model = Net() at the top of the file
                for each in namespace.find(text):
                    bound = {**_parsed(each.text, each.indent)[1], **bound}
                if text in bound:
                    continue
            if "function" in kinds:
                return text
            if "class" in kinds:
                return f"{text}.{method}"
            if owner == "self" and definition.owner and namespace.find(f"{definition.owner}.{last}"):
                return f"{definition.owner}.{last}"
            if owner and owner in bound:
                method, node = last, bound[owner]
                continue
            return f"{definition.owner}.forward" if text == "self" and definition.owner else ""
        else:
            return ""
    return ""


# --- handed over in the code that is walked -------------------------------------------------------------------------

def _reader(name: str, how: str) -> None:
    def function(walk: Walk, args, keywords, node) -> Value | None:
        return _read(walk, name, how, args, keywords, node)
    python(name)(function)


def _read(walk: Walk, name: str, how: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    mode = keywords.get("mode")
    regions = tuple(_regions(how, mode.value if isinstance(mode, Scalar) and isinstance(mode.value, str) else "", walk.span(node)))
    what = args[0] if args else None
    if what is None and how == "compile":
        return Library(name)                              # torch.compile(mode=...)(f)
    if how in ("trace", "export") and what is not None:   # it runs once with the example
        example = keywords.get("args", keywords.get("example_inputs", args[1] if len(args) > 1 else None))
        given = list(example.items) if isinstance(example, Sequence) else [example] if example is not None else []
        with within(walk, regions=(*regions, *walk.context.regions)), walk.unsure():
            calls.call(walk, what, [value for value in given if not isinstance(value, Mapping)], {}, node)
        fallback(walk, name, args, keywords, node)
        return what if name.startswith("torch.jit.") else walk.unknown(f"the result of {name}", node)
    if isinstance(what, UserFunction):
        return replace(what, regions=(*regions, *what.regions))
    if isinstance(what, Instance):
        what.regions = (*regions, *what.regions)
        return what
    return None


for _name, _how in HOW.items():
    if not _name.startswith("cuvil."):
        _reader(_name, _how)


@python("torch.nn.Module.compile")
def compile_module(walk: Walk, args, keywords, node) -> Value | None:
    _read(walk, "torch.compile", "compile", args, keywords, node)
    return NONE
