"""Between Cuvil's plain data and the protocol's. Columns become UTF-8 or UTF-16 units here and nowhere else."""
from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from cuvil.diagnostics import CuvilError, Diagnostic
from cuvil.source import Edit, Source, Span
from cuvil_ide.assists.actions import Action
from cuvil_ide.assists.symbols import Symbol

SEVERITY = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning,
            "performance": lsp.DiagnosticSeverity.Information, "info": lsp.DiagnosticSeverity.Hint}
SYMBOL = {"class": lsp.SymbolKind.Class, "function": lsp.SymbolKind.Function, "method": lsp.SymbolKind.Method}


def path_of(uri: str) -> str:
    """CuvilError for what is not a file."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    if not path:
        raise CuvilError(f"{uri} is not a file", expected="a file: URI")
    return path


def uri_of(path: str) -> str:
    return from_fs_path(path) or path


@dataclass(frozen=True)
class Translator:
    """For one position encoding: "utf-8", "utf-16" or "utf-32"."""

    encoding: str

    def position(self, source: Source, line: int, column: int) -> lsp.Position:
        return lsp.Position(line - 1, source.index.to_units(line, column, self.encoding))

    def range(self, source: Source, span: Span) -> lsp.Range:
        return lsp.Range(self.position(source, span.line, span.column), self.position(source, span.end_line, span.end_column))

    def place(self, source: Source, position: lsp.Position) -> tuple[int, int]:
        """(line from 1, column in code points)"""
        return position.line + 1, source.index.from_units(position.line + 1, position.character, self.encoding)

    def span(self, source: Source, range: lsp.Range) -> Span:
        return Span(source.path, *self.place(source, range.start), *self.place(source, range.end))

    def diagnostic(self, source: Source, diagnostic: Diagnostic) -> lsp.Diagnostic:
        # A finding about another file (a setting) stands at the top of this one, and says where it belongs.
        elsewhere = diagnostic.span.path != source.path
        message = f"{diagnostic.message} ({diagnostic.span})" if elsewhere else diagnostic.message
        if diagnostic.fix is not None and diagnostic.fix.applicability == "display":
            message += f"\nInstead: {diagnostic.fix.title}"
        return lsp.Diagnostic(
            range=self.range(source, Span(source.path, 1, 0, 1, 0) if elsewhere else diagnostic.span),
            message=message,
            severity=SEVERITY[diagnostic.severity],
            code=diagnostic.code,
            code_description=lsp.CodeDescription(diagnostic.url) if diagnostic.url else None,
            source="cuvil",
            related_information=[
                lsp.DiagnosticRelatedInformation(lsp.Location(uri_of(e.span.path), self.range(source if e.span.path == source.path else Source(e.span.path, ""), e.span)), e.text)
                for e in diagnostic.evidence] or None,
            tags=[lsp.DiagnosticTag.Unnecessary] if diagnostic.name == "unused-suppression" else None,
            data=diagnostic.to_json())

    def edits(self, source: Source, edits: tuple[Edit, ...]) -> list[lsp.TextEdit]:
        return [lsp.TextEdit(self.range(source, edit.span), edit.text) for edit in edits]

    def action(self, source: Source, action: Action, version: int | None = None, confirms: bool = False) -> lsp.CodeAction:
        """confirms: the client can show edits and ask before it makes them; then those that may change results are asked about."""
        title, edits = action.title, self.edits(source, action.edits)
        if action.caution and confirms:
            annotated = [lsp.AnnotatedTextEdit(annotation_id="caution", range=e.range, new_text=e.new_text) for e in edits]
            document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri_of(source.path), version=version)
            change = lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(document, annotated)], change_annotations={
                "caution": lsp.ChangeAnnotation(label=action.title, needs_confirmation=True, description=action.caution)})
        else:
            change = lsp.WorkspaceEdit(changes={uri_of(source.path): edits})
            title += " (may change results)" if action.caution else ""
        return lsp.CodeAction(title=title, kind=action.kind, is_preferred=action.preferred or None,
                              diagnostics=[self.diagnostic(source, d) for d in action.diagnostics] or None, edit=change)

    def symbol(self, source: Source, symbol: Symbol) -> lsp.DocumentSymbol:
        return lsp.DocumentSymbol(
            name=symbol.name, kind=SYMBOL[symbol.kind], detail=symbol.detail or None,
            range=self.range(source, symbol.span), selection_range=self.range(source, symbol.name_span),
            children=[self.symbol(source, child) for child in symbol.children] or None)
