"""Debug metadata: every instruction names the Python file and line it comes from, and the loop statement that made it.

One DISubprogram for each emitted function, one DILexicalBlockFile for each loop statement: its discriminator is the
statement's number in the module, so that the statement can be read back from optimised code (module.py).
"""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath

from ..source import Span


@dataclass
class Debug:
    """The metadata of one module, numbered in order. statements: ids of loop statements by discriminator - 1."""

    producer: str = "cuvil"
    kind: str = "LineTablesOnly"             # GPUs take DebugDirectivesOnly: line directives, no DWARF sections
    statements: list[str] = field(default_factory=list)
    _nodes: list[str] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)
    _discriminators: dict[str, int] = field(default_factory=dict)

    def node(self, text: str) -> str:
        """A reference to a metadata node; equal nodes are one, distinct ones excepted."""
        if text in self._known:
            return f"!{self._known[text]}"
        self._nodes.append(text)
        self._known[text] = len(self._nodes) - 1
        return f"!{len(self._nodes) - 1}"

    def file(self, path: str) -> str:
        pure = PurePath(path)
        folder = str(pure.parent) if pure.is_absolute() else "."
        return self.node(f"!DIFile(filename: {_quoted(pure.name if pure.is_absolute() else path)}, directory: {_quoted(folder)})")

    def subprogram(self, name: str, span: Span | None) -> str:
        file = self.file(span.path if span else "<cuvil>")
        unit = self._unit(file)
        kind = self.node("!DISubroutineType(types: " + self.node("!{null}") + ")")
        line = span.line if span else 0
        return self.node(f"distinct !DISubprogram(name: {_quoted(name)}, linkageName: {_quoted(name)}, scope: {file}, file: {file}, line: {line}, "
                         f"type: {kind}, scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: {unit})")

    def location(self, subprogram: str, span: Span | None, statement: str) -> str:
        """A location inside a function, for the instructions of one loop statement ("" for code that belongs to none)."""
        scope = subprogram
        if statement:
            number = self._discriminators.get(statement)
            if number is None:
                self.statements.append(statement)
                number = self._discriminators[statement] = len(self.statements)
            file = self.file(span.path if span else "<cuvil>")
            scope = self.node(f"!DILexicalBlockFile(scope: {subprogram}, file: {file}, discriminator: {number})")
        line, column = (span.line, span.column + 1) if span else (0, 0)
        return self.node(f"!DILocation(line: {line}, column: {min(column, 65535)}, scope: {scope})")

    @property
    def text(self) -> str:
        flags = [self.node('!{i32 2, !"Debug Info Version", i32 3}'), self.node('!{i32 7, !"Dwarf Version", i32 4}'),
                 self.node('!{i32 8, !"PIC Level", i32 2}')]
        units = [f"!{i}" for i, node in enumerate(self._nodes) if node.startswith("distinct !DICompileUnit")]
        return "\n".join([f"!llvm.dbg.cu = !{{{', '.join(units)}}}", f"!llvm.module.flags = !{{{', '.join(flags)}}}",
                          *(f"!{i} = {node}" for i, node in enumerate(self._nodes))])

    def _unit(self, file: str) -> str:
        return self.node(f"distinct !DICompileUnit(language: DW_LANG_Python, file: {file}, producer: {_quoted(self.producer)}, "
                         f"isOptimized: true, runtimeVersion: 0, emissionKind: {self.kind})")


def _quoted(text: str) -> str:
    return '"' + "".join(c if 32 <= ord(c) < 127 and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode()) for c in text) + '"'
