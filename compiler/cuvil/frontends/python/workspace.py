"""Files of a workspace as text, and what names mean at module level. Nothing is imported or run; only text under the root is read.

    workspace = Workspace(root)
    namespace = workspace.namespace(path)           # or workspace.open(source) for a text that is being edited
    namespace.find("helper")                        # the definitions that bind a name, found without parsing the others
"""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import libcst as cst

from ...cst import Definition, Module, parse
from ...places import Places
from ...source import Source
from .targets import DEFAULT_TARGETS, Targets
from .values import Library

SIZE_LIMIT = 4_000_000                        # characters; a larger file is not a program
# What a walk looked at: (path, name) -> the definitions found there; (module, importing file, dots before it) -> its path
Used = dict[tuple[str, str] | tuple[str, str, int], tuple[Definition, ...] | str | None]
_NAME = re.compile(r"[^\W\d]\w*")
_STAR = re.compile(r"^from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\*", re.MULTILINE)
_COMPOUND = re.compile(r"\s*(?:if|try|with|for|while|match|async)\b")


class Workspace:
    """The files under a root, and the versions they are for. `open` puts an editor's text in the place of the file on disk."""

    def __init__(self, root: str | Path = ".", targets: Targets = DEFAULT_TARGETS) -> None:
        self.root = Path(root)
        self.targets = targets
        self.places = Places(root)
        self._namespaces: dict[str, Namespace] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._opened: set[str] = set()
        self._asked_for: set[str] = set()                  # read from the disk for other files
        self._fresh: dict[str, Namespace | None] = {}      # looked at since `look_again`
        self._imports: dict[str, set[tuple[str, str, int]]] = {}           # what was looked for on behalf of each file
        self.looks = 0
        self.answers: dict[Any, Any] = {}                  # kept by answers.py
        self.prototypes: dict[tuple[str, str], Any] = {}   # kept by prototypes.py
        self.analyzer: Any = None                          # kept by analysis.py
        self.stop: Callable[[], bool] = bool               # asked at each statement that is walked: whether somebody waits for a newer text

    def look_again(self) -> None:
        """Files may have changed: ask the disk once more. Until then a file or a place is looked at once."""
        self._fresh.clear()
        self.places.forget()
        self.looks += 1

    def asked(self, path: str) -> tuple[frozenset[str], frozenset[tuple[str, str, int]]]:
        """What the facts of a file hang on beside its text, right after they were made: the files that were read for them, and the
        modules that were looked for, as arguments of `Places.place`. While all these are the same, so are the facts."""
        files = frozenset(self._fresh) - {path}
        return files, frozenset(looked for name in (path, *files) for looked in self._imports.get(name, ()))

    def open(self, source: Source, previous: Module | None = None) -> Namespace:
        """The namespace of a text, kept until the text changes."""
        self._opened.add(source.path)
        return self._take(source, previous)

    def close(self, path: str) -> None:
        """The file on disk counts again."""
        self._opened.discard(path)
        self._stamps.pop(path, None)

    def forget(self, path: str) -> None:
        """Nobody will ask for the facts of a file again. What its names mean stays for the files that have asked."""
        if self.analyzer is not None:
            self.analyzer.forget(path)
        if path not in self._asked_for:
            self._namespaces.pop(path, None)
            self.answers = {asked: kept for asked, kept in self.answers.items() if kept.path != path}
            self.prototypes = {key: kept for key, kept in self.prototypes.items() if key[0] != path}

    def _take(self, source: Source, previous: Module | None = None) -> Namespace:
        known = self._namespaces.get(source.path)
        if known is not None and known.source.text == source.text:
            return known
        module = parse(source, previous or (known.syntax if known is not None else None))
        self._fresh.pop(source.path, None)
        if known is None:
            known = self._namespaces[source.path] = Namespace(self, module)
        else:
            known.renew(module)
            self.answers.clear()
            self.looks += 1
        return known

    def namespace(self, path: str) -> Namespace | None:
        """The namespace of a file, None when it cannot be read as UTF-8 text or is too large."""
        if path in self._opened:
            return self._namespaces[path]
        if path not in self._fresh:
            self._fresh[path] = self._read(path)
        return self._fresh[path]

    def _read(self, path: str) -> Namespace | None:
        try:
            status = Path(path).stat()
            stamp = status.st_mtime_ns, status.st_size
            if self._stamps.get(path) == stamp and path in self._namespaces:
                return self._namespaces[path]
            if status.st_size > SIZE_LIMIT:
                return None
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            return None
        self._stamps[path] = stamp
        self._asked_for.add(path)
        return self._take(Source(path, text))

    def unchanged(self, used: Used) -> bool:
        """All names still mean what they meant, and all modules are where they were."""
        for key, definitions in used.items():
            if len(key) == 3:
                if self.resolve(*key) != definitions:
                    return False
                continue
            path, name = key
            namespace = self.namespace(path)
            if namespace is None:
                return False
            found = namespace.find(name)
            if len(found) != len(definitions) or any(a is not b for a, b in zip(found, definitions)):
                return False
        return True

    def resolve(self, dotted: str, importer: str, level: int = 0) -> str | None:
        """The path of a module named by an import in a file, if it lies under the root. Relative imports count from the file."""
        key = dotted, importer.rpartition("/")[0], level
        self._imports.setdefault(importer, set()).add(key)
        return self.places.place(*key)


class Namespace:
    """What names mean at the top of a file. It stays the same object while the text changes, so that a class or function that was found
    in it is looked up in the newest text."""

    def __init__(self, workspace: Workspace, syntax: Module) -> None:
        self.workspace = workspace
        self.values: dict[str, tuple] = {}                 # of names that mean the same in every walk: scope.global_value
        self.renew(syntax)

    def renew(self, syntax: Module) -> None:
        """The text changed. Values stay for as long as the definitions they came from do."""
        self.syntax = syntax
        for worked_out in ("_mentions", "_bound", "stars", "library"):
            self.__dict__.pop(worked_out, None)
        self.shares: tuple[int, ...] | None = None         # steps that each of its functions may take: analysis.budget
        self.handed: dict[str, tuple] | None = None        # what is handed to a compiler: kept by regions.py

    @property
    def source(self) -> Source:
        return self.syntax.source

    @property
    def path(self) -> str:
        return self.syntax.source.path

    @cached_property
    def _mentions(self) -> dict[str, list[Definition]]:
        """Names to the module-level definitions that may bind them: by text alone, so that data is not parsed."""
        found: dict[str, list[Definition]] = {}
        for definition in self.syntax.members.get("", ()):
            for name in binding_words(definition):
                found.setdefault(name, []).append(definition)
        return found

    @cached_property
    def _bound(self) -> dict[str, tuple[Definition, ...]]:
        return {}

    def find(self, name: str) -> tuple[Definition, ...]:
        """The module-level definitions that bind a name, in order; of `Class.name`, those that stand in the class; `Class.` are its
        statements."""
        found = self._bound.get(name)
        if found is None:
            owner, dot, word = name.rpartition(".")
            found = self._bound[name] = tuple(d for d in (self.syntax.members.get(owner, ()) if dot else self._mentions.get(name, ()))
                                              if self._binds(d, name, word))
        return found

    @staticmethod
    def _binds(definition: Definition, name: str, word: str) -> bool:
        if definition.kind != "statement":
            return definition.name == name
        return not word or word in definition.text and word in bound_names(definition)

    @cached_property
    def stars(self) -> tuple[tuple[str, int], ...]:
        """Modules all of whose names are imported: (dotted name, leading dots)."""
        return tuple((match[2], len(match[1])) for match in _STAR.finditer(self.source.text)) if "import *" in self.source.text else ()

    @cached_property
    def library(self) -> str:
        """Whose rules hold where a file does not say: torch if it is imported, else NumPy's."""
        return "torch" if re.search(r"^\s*(?:import|from)\s[^#\n]*\btorch\b", self.source.text, re.MULTILINE) else "numpy"


def binding_words(definition: Definition) -> frozenset[str]:
    """Words of a definition that it may bind."""
    known = getattr(definition, "_words", None)
    if known is None:
        if definition.kind != "statement":
            known = frozenset({definition.name.rpartition(".")[2]})
        else:
            text = definition.text
            if not _COMPOUND.match(text) and not text.startswith(("import", "from")):
                text = text.partition("=")[0] if "=" in text else ""
            known = frozenset(_NAME.findall(text))
        definition._words = known
    return known


def bound_names(definition: Definition) -> frozenset[str]:
    """The names a module-level statement binds."""
    known = getattr(definition, "_names", None)
    if known is None:
        known = definition._names = frozenset(bindings(definition.tree.nodes)) if definition.tree is not None else frozenset()
    return known


# Asked before the others: nodes are of abstract classes, and asking those takes long.
_BLOCKS = frozenset((cst.IndentedBlock, cst.SimpleStatementLine, cst.SimpleStatementSuite))
_BIND_NOTHING = frozenset((cst.Expr, cst.Return, cst.Raise, cst.Pass, cst.Break, cst.Continue, cst.Assert, cst.Attribute, cst.Subscript))


def bindings(nodes) -> dict[str, cst.CSTNode]:
    """Names bound by statements of one scope, nested blocks included, with the node that binds each last."""
    found: dict[str, cst.CSTNode] = {}
    todo = list(reversed(nodes))
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind in _BLOCKS:
            todo += reversed(node.body)
            continue
        if kind in _BIND_NOTHING:
            continue
        match node:
            case cst.Name(value=name):
                found[name] = node
            case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
                found[name.value] = node
            case cst.Assign():
                todo += [target.target for target in reversed(node.targets)]
            case cst.AnnAssign(target=target) | cst.AugAssign(target=target) | cst.NamedExpr(target=target):
                todo.append(target)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                todo += [element.value for element in reversed(elements)]
            case cst.StarredElement(value=value):
                todo.append(value)
            case cst.Import(names=names):
                for alias in names:
                    found[alias.asname.name.value if alias.asname else dotted(alias.name).partition(".")[0]] = node
            case cst.ImportFrom(names=names) if not isinstance(names, cst.ImportStar):
                for alias in names:
                    found[alias.asname.name.value if alias.asname else alias.name.value] = node
            case cst.For(target=target, body=body, orelse=orelse):
                todo += [part for part in (orelse, body, target) if part is not None]
            case cst.With(items=items, body=body):
                todo.append(body)
                todo += [item.asname.name for item in items if item.asname]
            case cst.If(body=body, orelse=orelse) | cst.While(body=body, orelse=orelse):
                todo += [part for part in (orelse, body) if part is not None]
            case cst.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final) | cst.TryStar(
                    body=body, handlers=handlers, orelse=orelse, finalbody=final):
                todo += [part for part in (final, orelse, *reversed(handlers), body) if part is not None]
            case cst.Match(cases=cases):
                todo += [case.body for case in cases]
            case cst.ExceptHandler(body=body) | cst.Else(body=body) | cst.Finally(body=body) | cst.ExceptStarHandler(body=body):
                todo.append(body)
    return found


def dotted(node: cst.BaseExpression | None) -> str:
    """`a.b.c` of nested Attributes; "" for anything else."""
    parts = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    return ".".join(reversed([*parts, node.value])) if isinstance(node, cst.Name) else ""


def library(name: str) -> Library:
    """A library object under the name its own documentation uses."""
    for alias, full in ALIASES:
        if name == alias or name.startswith(alias + "."):
            name = full + name[len(alias):]
    return Library(name)


ALIASES = (("torch.functional", "torch"), ("torch.special", "torch"), ("torch.nn.modules", "torch.nn"), ("torch.nn.parameter", "torch.nn"))
