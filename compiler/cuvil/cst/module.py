"""The syntax of one file as definitions, each parsed alone, on first use, and kept as long as its text does not change.

    module = parse(source, previous)         # cuvil.cst.parse
    module.definitions                       # functions and methods, class headers, single statements, in order
    module.span(node), module.parent(node), module.children(node), module.node_at(line, column)
    module.errors                            # what does not parse, with places

libcst trees are the trees of record. A definition stands in its tree at its own columns (an indented one is parsed under a
line `class _:`), only lines are counted from the definition's first, so a tree stays good when the definition moves.
What does not parse keeps the last good tree of that name and is `stale`; without one, the broken line alone is masked.
"""
from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import libcst as cst

from ..source import LineIndex, Source, Span
from .positions import Positions
from .scan import Piece, alone, begins, logical_lines, split
from .shown import below, hidden, walk

WRAPPER = "class _:\n"
NESTING_LIMIT, CHAIN_LIMIT = 200, 1200        # beyond these libcst's parser overflows its stack or takes seconds

# Nodes that parts of stand outside of what libcst calls their place: decorators before a def, annotations and defaults of parameters.
_BEYOND = (cst.FunctionDef, cst.ClassDef, cst.Parameters, cst.Param)


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Text that does not parse: where Python stops reading it, and why."""

    span: Span
    what: str
    definition: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """An entry of the outline."""

    name: str
    kind: str                                # "function", "method", "class"
    span: Span
    selection: Span                          # of the name
    children: tuple[Symbol, ...]


class Tree:
    """A parsed text. nodes: its statements; positions are worked out when first asked for."""

    def __init__(self, root: cst.Module, nodes: Sequence[cst.CSTNode], text: str, lead: int) -> None:
        self.root, self.nodes, self.text, self._lead = root, tuple(nodes), text, lead

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.root)

    @cached_property
    def index(self) -> LineIndex:
        return LineIndex(self.text)

    @cached_property
    def _parents(self) -> dict[int, cst.CSTNode | None]:
        """Of all nodes but the hidden ones; None of the top."""
        return {id(node): None for node in self.nodes} | {id(inner): node for node in self.walk() for inner in below(node)}

    def __contains__(self, node: cst.CSTNode) -> bool:
        return id(node) in self._parents or hidden(type(node)) and id(node) in self.positions.start

    def forget(self) -> None:
        """Let go of positions; they are worked out again when asked for. They are most of what a large file costs in memory."""
        self.__dict__.pop("positions", None)
        self.__dict__.pop("_parents", None)

    def offsets(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of a node in the text."""
        limit, key = len(self.text), id(node)
        return (min(max(self.positions.start[key] - self._lead, 0), limit), min(max(self.positions.end[key] - self._lead, 0), limit))

    def code(self, node: cst.CSTNode) -> str:
        start, end = self.offsets(node)
        return self.text[start:end]

    def children(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        return below(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self.positions.parent[id(node)] if hidden(type(node)) else self._parents[id(node)]

    def walk(self) -> Iterator[cst.CSTNode]:
        """All nodes but the hidden ones, parents first, in the order of the text."""
        return walk(self.nodes)


class Place(Span):
    """The span of a node, worked out when somebody asks for its lines: of the nodes that a walk meets most are never asked for."""

    __slots__ = ("definition", "node")

    def __init__(self, path: str, definition: Definition, node: cst.CSTNode) -> None:
        _set(self, "path", path)
        _set(self, "definition", definition)
        _set(self, "node", node)

    def __getattr__(self, name: str) -> int:
        if name not in _LINES:
            raise AttributeError(name)
        found = self.definition.span(self.node, self.path)
        for each in _LINES:
            _set(self, each, getattr(found, each))
        return getattr(found, name)

    def __reduce__(self) -> tuple:
        return Span, (self.path, self.line, self.column, self.end_line, self.end_column)


_set, _LINES = object.__setattr__, ("line", "column", "end_line", "end_column")


class Definition:
    """A piece of a file: kind, name, owner, indent and lines as in scan.Piece, its text, and its tree when asked for."""

    def __init__(self, piece: Piece, text: str, previous: Definition | None = None) -> None:
        self._stand(piece)
        self.text = text
        self._parsed: tuple[Tree | None, str, tuple[int, int]] | None = None
        self._fallback: Tree | Definition | None = previous._good if previous is not None else None
        self._mentions: dict[re.Pattern[str], bool] = {}
        self.stale = False

    def _stand(self, piece: Piece) -> None:
        self.piece = piece
        self.kind, self.name, self.owner, self.indent = piece.kind, piece.name, piece.owner, piece.indent
        self.first, self.header, self.last, self.body = piece.first, piece.header, piece.last, piece.body

    def mentions(self, where: re.Pattern[str]) -> bool:
        """Whether the pattern is found in the text; looked for once."""
        known = self._mentions.get(where)
        if known is None:
            known = self._mentions[where] = where.search(self.text) is not None
        return known

    def at(self, piece: Piece) -> Definition:
        """The same text in another place, with all that is known of it."""
        other = copy(self)
        other._stand(piece)
        return other

    @property
    def _good(self) -> Tree | Definition | None:
        """What a next version falls back on."""
        if self._parsed is None:
            return self._fallback or self
        return self._parsed[0] or self._fallback

    def _parse(self) -> tuple[Tree | None, str, tuple[int, int]]:
        if self._parsed is None:
            tree, what, place = parse_text(self.text, self.indent, self.kind == "class" and self.body is not None)
            if tree is None:
                fallback = self._fallback
                if isinstance(fallback, Definition):
                    fallback = fallback.tree if fallback.error is None else None
                self.stale = fallback is not None
                tree = fallback or _masked(self.text, self.indent, place[0])
            self._fallback = None if not what else self._fallback
            self._parsed = tree, what, place
        return self._parsed

    @property
    def tree(self) -> Tree | None:
        """The tree of this text; when it does not parse, the last good one, or one with the broken line left out."""
        return self._parse()[0]

    @property
    def error(self) -> str | None:
        return self._parse()[1] or None

    @property
    def error_place(self) -> tuple[int, int]:
        """Line of the file and column where parsing stopped."""
        line, column = self._parse()[2]
        return self.first + line - 1, column

    @property
    def parsed(self) -> bool:
        return self._parsed is not None

    @cached_property
    def python_reads(self) -> bool:
        """Python's own parser has no complaint."""
        lead, body = _body(self.text, self.indent, self.kind == "class" and self.body is not None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(lead + body)
            return True
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False

    @property
    def node(self) -> cst.CSTNode | None:
        """The function, class or statement itself."""
        return self.tree.nodes[0] if self.tree is not None and self.tree.nodes else None

    def span(self, node: cst.CSTNode, path: str) -> Span:
        tree = self.tree
        start, end = tree.offsets(node)
        line, column = tree.index.position(start)
        end_line, end_column = tree.index.position(end)
        shift = self.first - 1
        return Span(path, line + shift, column, end_line + shift, end_column)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name or 'module level'} {self.first}-{self.last}>"


class Module:
    """A file. definitions: all pieces in order, whatever their kind."""

    def __init__(self, source: Source, definitions: Sequence[Definition], closed: bool = True) -> None:
        self.source, self.definitions = source, tuple(definitions)
        self.closed = closed                                  # no string is left open
        self._all = self.definitions
        self._last: Definition | None = None

    def mentions(self, where: re.Pattern[str]) -> bool:
        """Whether the pattern is found in any definition of the file, be this a part of it or not."""
        return any(definition.mentions(where) for definition in self._all)

    def part(self, definitions: Iterable[Definition]) -> Module:
        """The file for who looks through a few of its definitions only; names and places are found in all of it."""
        part = copy(self)
        part.definitions = tuple(definitions)
        return part

    @cached_property
    def by_name(self) -> dict[str, Definition]:
        """Functions and classes by qualified name; of several with one name the last, as in Python."""
        return {d.name: d for d in self._all if d.kind != "statement"}

    @cached_property
    def members(self) -> dict[str, tuple[Definition, ...]]:
        """The definitions that stand directly in each class, by its name; "" is the module."""
        members: dict[str, list[Definition]] = {}
        for definition in self._all:
            members.setdefault(definition.owner, []).append(definition)
        return {owner: tuple(found) for owner, found in members.items()}

    @property
    def stale(self) -> frozenset[str]:
        """Names of definitions shown from their last good text; of those parsed so far."""
        return frozenset(d.name for d in self._all if d.parsed and d.stale)

    @property
    def errors(self) -> tuple[SyntaxProblem, ...]:
        """Parses what Python itself would not read. A definition costs one pass of Python's own parser, once."""
        problems = []
        for definition in self.definitions:
            if not definition.python_reads and definition.error is not None:
                line, column = definition.error_place
                end = max(len(self.source.line(line)), column + 1)
                problems.append(SyntaxProblem(Span(self.source.path, line, column, line, end), definition.error, definition.name))
        return tuple(problems)

    def owner(self, node: cst.CSTNode) -> Definition:
        """The definition a node stands in; KeyError if it is of none."""
        last = self._last
        if last is not None and node in last.tree:
            return last
        parsed = [d for d in self._all if d.parsed and d.tree is not None]
        for definition in sorted(parsed, key=lambda d: "positions" not in d.tree.__dict__):      # a node at hand was mostly met in a walk
            if node in definition.tree:
                self._last = definition
                return definition
        raise KeyError(node)

    def expect(self, definition: Definition) -> None:
        """The next questions are about nodes of this definition; saves looking for it in a long file."""
        self._last = definition

    def span(self, node: cst.CSTNode) -> Span:
        return self.owner(node).span(node, self.source.path)

    def code(self, node: cst.CSTNode) -> str:
        return self.owner(node).tree.code(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The enclosing node; None for the top of a definition."""
        return self.owner(node).tree.parent(node)

    def children(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The nodes directly in a node, without blanks and punctuation."""
        return self.owner(node).tree.children(node)

    def definition_at(self, line: int) -> Definition | None:
        """The definition whose lines hold the line."""
        at = bisect_right(self._all, line, key=lambda d: d.first) - 1
        return self._all[at] if at >= 0 and line <= self._all[at].last else None

    def node_at(self, line: int, column: int) -> cst.CSTNode | None:
        """The smallest node, blanks and punctuation aside, at a place; the last of equals, which is the innermost. None between definitions."""
        definition = self.definition_at(line)
        if definition is None or definition.tree is None:
            return None
        tree = definition.tree
        offset = tree.index.offset(line - definition.first + 1, column)
        best, size, todo = None, len(tree.text) + 1, list(reversed(tree.nodes))
        while todo:
            node = todo.pop()
            start, end = tree.offsets(node)
            around = start <= offset <= end
            if around and start < end and end - start <= size:
                best, size = node, end - start
            if around or isinstance(node, _BEYOND):
                todo += reversed(tree.children(node))
        return best

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The outline: classes with their methods, and functions. Found by the scan alone, so it is there in broken files too."""
        def outline(owner: str) -> tuple[Symbol, ...]:
            return tuple(entry(d) for d in self.members.get(owner, ()) if d.kind != "statement" and d.name != owner)

        def entry(d: Definition) -> Symbol:
            name = d.name.rpartition(".")[2]
            column = max(self.source.line(d.header).find(name, d.indent + 3), 0)
            last = max((m.last for m in self._all if m.owner == d.name or m.owner.startswith(d.name + ".")), default=d.last)
            last = last if d.kind == "class" else d.last
            kind = "class" if d.kind == "class" else "method" if d.owner else "function"
            return Symbol(name, kind, Span(self.source.path, d.first, d.indent, last, len(self.source.line(last))),
                          Span(self.source.path, d.header, column, d.header, column + len(name)),
                          outline(d.name) if d.kind == "class" else ())
        return outline("")


def parse(source: Source, previous: Module | None = None) -> Module:
    """The file's definitions, those of `previous` with the same text kept. Never raises; parses nothing yet."""
    edited = _edited(source, previous) if previous is not None and previous.closed else None
    if edited is not None:
        return Module(source, edited)
    text, index = source.text, source.index
    kept: dict[tuple[str, str, str], list[Definition]] = {}
    named: dict[tuple[str, str, int], Definition] = {}
    counts: dict[tuple[str, str], int] = {}
    for old in previous.definitions if previous is not None else ():
        kept.setdefault((old.kind, old.name, old.text), []).append(old)
        count = counts[old.kind, old.name] = counts.get((old.kind, old.name), -1) + 1
        named[old.kind, old.name, count] = old
    counts.clear()
    definitions = []
    pieces, closed = split(text, index)
    for piece in pieces:
        own = _lines(source, piece.first, piece.last)
        count = counts[piece.kind, piece.name] = counts.get((piece.kind, piece.name), -1) + 1
        same = kept.get((piece.kind, piece.name, own))
        old = same.pop(0) if same else named.get((piece.kind, piece.name, count)) if piece.kind != "statement" else None
        if old is None or old.text != own:
            definitions.append(Definition(piece, own, old))
        else:
            definitions.append(old if old.piece == piece else old.at(piece))
    return Module(source, definitions, closed)


def _edited(source: Source, previous: Module) -> list[Definition] | None:
    """The definitions of a text that differs from the last one inside one function or statement: only that one is split again. None when
    it is not so simple: the text then has to be split anew."""
    old, new = previous.source.text, source.text
    start = _common(len(old), len(new), lambda n: old.startswith(new[:n]))
    end = _common(len(old) - start, len(new) - start, lambda n: old.endswith(new[len(new) - n:]))
    first, last = previous.source.index.position(start)[0], previous.source.index.position(len(old) - end)[0]
    definitions = previous.definitions
    at = bisect_right(definitions, first, key=lambda d: d.first) - 1
    if at < 0 or definitions[at].last < last or definitions[at].kind == "class":
        return None
    edited, below, added = definitions[at], definitions[at + 1:], len(source.index) - len(previous.source.index)
    start = source.index.offset(edited.first, 0)
    if at and definitions[at - 1].piece.open and not begins(new, start + edited.indent):
        return None
    if below:
        own = new[start:source.index.offset(below[0].first + added, 0)].removesuffix("\n").removesuffix("\r")
        piece = alone(own, below[0].text)
    else:
        piece = alone(new[start:])
    word = edited.name.rpartition(".")[2] if edited.kind == "function" else ""
    if piece is None or (piece.kind, piece.name, piece.indent) != (edited.kind, word, edited.indent):
        return None
    piece = replace(piece.moved(edited.first - 1), name=edited.name, owner=edited.owner)
    changed = Definition(piece, _lines(source, piece.first, piece.last), edited)
    return [*definitions[:at], changed, *([d.at(d.piece.moved(added)) for d in below] if added else below)]


def _common(a: int, b: int, agrees: Callable[[int], bool]) -> int:
    """The largest n up to a and b for which it agrees; it agrees for all smaller ones too."""
    low, high = 0, min(a, b)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if agrees(middle) else (low, middle - 1)
    return low


def _lines(source: Source, first: int, last: int) -> str:
    index, text = source.index, source.text
    end = index.offset(last + 1, 0) if last < len(index) else len(text)
    return text[index.offset(first, 0):end].rstrip("\r\n")


def parse_text(text: str, indent: int, header_only: bool = False) -> tuple[Tree | None, str, tuple[int, int]]:
    """(tree, "", _) of a piece of a file, or (None, what is wrong, (line, column) in the text)."""
    lead, body = _body(text, indent, header_only)
    too_deep = _too_deep(text)
    if too_deep is not None:
        return None, *too_deep
    try:
        root = cst.parse_module(lead + body)
    except cst.ParserSyntaxError as error:
        return None, *_python_says(lead, body, text, error)
    except (RecursionError, ValueError, TypeError, AttributeError) as error:     # NUL characters, lone surrogates, nesting
        return None, f"this text cannot be read: {type(error).__name__}", (1, 0)
    nodes = root.body
    if lead:
        nodes = nodes[0].body.body
    return Tree(root, nodes, text, len(lead)), "", (1, 0)


def _body(text: str, indent: int, header_only: bool) -> tuple[str, str]:
    """What is parsed: a line before an indented text, and the text, with a body where it is only a header."""
    return WRAPPER if text[:1] in (" ", "\t") else "", text + ("\n" + " " * (indent + 1) + "pass\n" if header_only else "\n")


def _python_says(lead: str, body: str, text: str, error: cst.ParserSyntaxError) -> tuple[str, tuple[int, int]]:
    """The message and place of Python's own parser, which names the mistake; libcst names the tokens it expected."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(lead + body)
    except SyntaxError as found:
        line, column = (found.lineno or 1) - bool(lead), max((found.offset or 1) - 1, 0)
        lines = text.count("\n") + 1
        return found.msg, (min(max(line, 1), lines), column)
    except (ValueError, RecursionError, MemoryError):
        pass
    return "this does not parse", (max(error.raw_line + 1 - bool(lead), 1), max(error.raw_column, 0))


_CHAIN = re.compile(r"[-+*/%@&|^.(\[{~]")
_BRACKET = re.compile(r"[()\[\]{}]")


def _too_deep(text: str) -> tuple[str, tuple[int, int]] | None:
    """Expressions that libcst's recursive parser cannot take, found by counting. Text in strings counts too: it errs on the safe side
    only for lines of thousands of operators."""
    if len(text) < 2 * NESTING_LIMIT:
        return None
    depth = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        if depth > NESTING_LIMIT:
            line = text.count("\n", 0, match.start()) + 1
            return f"brackets are nested more than {NESTING_LIMIT} deep here; name the inner parts", (line, 0)
    for line in logical_lines(text, LineIndex(text)):
        if line.end - line.start > CHAIN_LIMIT:
            for part in text[line.start:line.end].split(","):
                if len(part) > CHAIN_LIMIT and len(_CHAIN.findall(part)) > CHAIN_LIMIT:
                    return f"one expression has more than {CHAIN_LIMIT} operators; name some parts of it", (line.first, line.indent)
    return None


def _masked(text: str, indent: int, broken: int) -> Tree | None:
    """The tree of a text with the logical lines that do not parse replaced by `pass`, up to three of them."""
    for _ in range(3):
        index = LineIndex(text)
        lines = logical_lines(text, index)
        at = next((i for i, line in enumerate(lines) if line.first <= broken <= line.last), None)
        if at is None:
            return None
        line = lines[at]
        opens = at + 1 < len(lines) and lines[at + 1].indent > line.indent
        stop = "if 1:" if opens else "pass"
        text = text[:line.start] + stop + "\n" * (line.last - line.first) + text[line.end:]
        tree, what, (broken, _column) = parse_text(text, indent)
        if tree is not None:
            return tree
    return None
