"""Where nodes stand and what encloses them, from one rendering of a tree.

libcst nodes hold no positions; printing a node yields exactly its text, so a print that only counts characters passes every
node at its offset. This is what libcst's PositionProvider does, without line arithmetic, tokens and metadata: the spans are
the same (a test compares them). Parents come from the nesting of the same walk.
"""
from __future__ import annotations

from libcst import CSTNode, Module


class Positions:
    """start and end: offsets in the rendered text by id of a node; parent: its parent node; order: nodes as printed."""

    __slots__ = ("start", "end", "parent", "order")

    def __init__(self, root: Module) -> None:
        state = _Counter(root.default_indent, root.default_newline)
        root._codegen(state)
        self.start, self.end, self.parent, self.order = state.start, state.end, state.parent, state.order


class _Counter:
    """Takes the place of libcst's CodegenState."""

    __slots__ = ("default_indent", "default_newline", "indent_tokens", "tokens", "offset", "start", "end", "parent", "order",
                 "stack")

    def __init__(self, default_indent: str, default_newline: str) -> None:
        self.default_indent, self.default_newline = default_indent, default_newline
        self.indent_tokens: list[str] = []
        self.tokens: list[str] = [""]            # only looked at to see whether anything was printed
        self.offset = 0
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.parent: dict[int, CSTNode] = {}
        self.order: list[CSTNode] = []
        self.stack: list[tuple[CSTNode | None, int]] = [(None, 0)]

    def increase_indent(self, value: str) -> None:
        self.indent_tokens.append(value)

    def decrease_indent(self) -> None:
        self.indent_tokens.pop()

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.offset += len(token)

    def add_token(self, value: str) -> None:
        self.offset += len(value)

    def pop_trailing_newline(self) -> None:
        self.offset -= len(self.default_newline)

    def before_codegen(self, node: CSTNode) -> None:
        self.parent[id(node)] = self.stack[-1][0]
        self.order.append(node)
        self.stack.append((node, self.offset))

    def after_codegen(self, node: CSTNode) -> None:
        _, start = self.stack.pop()
        if id(node) not in self.start:
            self.start[id(node)], self.end[id(node)] = start, self.offset

    def record_syntactic_position(self, node: CSTNode, *, start_node: CSTNode | None = None,
                                  end_node: CSTNode | None = None) -> _Syntactic:
        return _Syntactic(self, node, start_node, end_node)


class _Syntactic:
    """The extent of a node without the blanks and comments that belong to it."""

    __slots__ = ("counter", "node", "first", "last", "begin")

    def __init__(self, counter: _Counter, node: CSTNode, first: CSTNode | None, last: CSTNode | None) -> None:
        self.counter, self.node, self.first, self.last = counter, node, first, last

    def __enter__(self) -> None:
        self.begin = self.counter.offset

    def __exit__(self, *_: object) -> None:
        counter, key = self.counter, id(self.node)
        counter.start[key] = self.begin if self.first is None else counter.start[id(self.first)]
        counter.end[key] = counter.offset if self.last is None else counter.end[id(self.last)]
