"""What the server answers: each handler fetches its document, asks the session, and translates. FEATURES lists them all."""
from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp

from cuvil.diagnostics import CuvilError
from cuvil.source import Span
from cuvil_ide.assists.actions import FIX_ALL, QUICKFIX
from cuvil_ide.assists.lenses import COST, Lens

from . import requests
from .server import PAUSE, CuvilServer
from .translate import path_of, uri_of

# The connection

async def initialize(server: CuvilServer, params: lsp.InitializeParams) -> None:
    root = next((f.uri for f in params.workspace_folders or ()), params.root_uri)
    server.session.root = str(path_of(root)) if root and root.startswith("file:") else str(Path.cwd())
    apply_options(server, params.initialization_options, starting=True)
    server.worker.submit(warm)                         # while the client answers, what the first question needs is loaded


def warm() -> None:
    from cuvil.frontends import python
    from cuvil.source import Source
    from cuvil_ide import lints
    lints.check(python.analyze(Source("", "")))


async def initialized(server: CuvilServer, params: Any) -> None:
    for note in server.pending_notes:
        server.note(note)
    server.pending_notes.clear()
    await pull_settings(server)


async def did_change_configuration(server: CuvilServer, params: lsp.DidChangeConfigurationParams) -> None:
    settings = plain(params.settings)
    if isinstance(settings, dict) and "cuvil" in settings:
        apply_options(server, settings["cuvil"])
    else:
        await pull_settings(server)
    forget_and_refresh(server)


async def pull_settings(server: CuvilServer) -> None:
    """Ask a client that keeps settings for its section `cuvil`."""
    workspace = server.client_capabilities.workspace
    if workspace is not None and workspace.configuration:
        answer = await server.workspace_configuration_async(lsp.ConfigurationParams([lsp.ConfigurationItem(section="cuvil")]))
        apply_options(server, answer[0] if answer else None)


async def did_change_watched_files(server: CuvilServer, params: lsp.DidChangeWatchedFilesParams) -> None:
    forget_and_refresh(server)


def apply_options(server: CuvilServer, values: Any, starting: bool = False) -> None:
    server.options, notes = server.options.updated(plain(values), trusting=starting)
    server.session.trusted = server.options.trusted
    if starting:
        server.pending_notes += notes
    else:
        for note in notes:
            server.note(note)


def forget_and_refresh(server: CuvilServer) -> None:
    server.session.forget_settings()
    for uri in list(server.workspace.text_documents):
        if uri.startswith("file:"):
            server.refresh(path_of(uri))


# Texts

async def did_open(server: CuvilServer, params: lsp.DidOpenTextDocumentParams) -> None:
    changed(server, params.text_document.uri, pause=0)


async def did_change(server: CuvilServer, params: lsp.DidChangeTextDocumentParams) -> None:
    changed(server, params.text_document.uri)


async def did_close(server: CuvilServer, params: lsp.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    if uri.startswith("file:"):
        server.session.close(path_of(uri))
        if not server.pulls:
            server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


async def did_save(server: CuvilServer, params: lsp.DidSaveTextDocumentParams) -> None:
    if server.options.trusted and server.options.compileOnSave and params.text_document.uri.startswith("file:"):
        if server.compiler is None:
            from .compile_on_save import Compiler
            server.compiler = Compiler(server)
        server.compiler.saved(path_of(params.text_document.uri))


def changed(server: CuvilServer, uri: str, pause: float = PAUSE) -> None:
    if not uri.startswith("file:"):
        return
    document, path = server.workspace.get_text_document(uri), path_of(uri)
    server.session.update(path, document.source, document.version)
    if server.compiler is not None:
        server.compiler.text_changed(path)
    if not server.pulls:
        server.publish(path)
    server.look_again(path, pause)
    requests.view_changed(server, path, document.version)


# Questions about a document

async def diagnostic(server: CuvilServer, params: lsp.DocumentDiagnosticParams) -> Any:
    path = path_of(params.text_document.uri)

    def answer():
        try:
            return server.diagnostics(path)
        except CuvilError:                             # closed, and gone from disk
            return []

    server.told[path] = items = await server.ask(answer)
    items = server.with_compiler(path, items)
    result_id = digest(server, items)
    if params.previous_result_id == result_id:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
    return lsp.RelatedFullDocumentDiagnosticReport(items=items, result_id=result_id)


async def hover(server: CuvilServer, params: lsp.HoverParams) -> lsp.Hover | None:
    path = path_of(params.text_document.uri)

    def answer():
        source = server.session.source(path)
        found = server.session.hover(path, *server.translator.place(source, params.position))
        return found and lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown),
                                   server.translator.range(source, found.span))
    return await server.ask(answer)


async def inlay_hint(server: CuvilServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    path = path_of(params.text_document.uri)
    if not server.options.inlayHints:
        return []

    def answer():
        source = server.session.source(path)
        return [lsp.InlayHint(server.translator.position(source, h.line, h.column), h.label, lsp.InlayHintKind.Type,
                              padding_left=False, data={"tooltip": h.tooltip})
                for h in server.session.hints(path, params.range.start.line + 1, params.range.end.line + 1)]
    return await server.ask(answer)


async def inlay_hint_resolve(server: CuvilServer, params: lsp.InlayHint) -> lsp.InlayHint:
    params.tooltip = plain(params.data)["tooltip"] if params.data else None
    return params


async def code_lens(server: CuvilServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    path = path_of(params.text_document.uri)
    if not server.options.codeLens:
        return []

    def answer():
        source = server.session.source(path)
        return [lsp.CodeLens(server.translator.range(source, lens.span),
                             data={"path": path, "kind": lens.kind, "function": lens.function})
                for lens in server.session.lenses(path)]
    return await server.ask(answer)


async def code_lens_resolve(server: CuvilServer, params: lsp.CodeLens) -> lsp.CodeLens:
    data = plain(params.data)
    path, kind, function = data["path"], data["kind"], data["function"]
    line = params.range.start.line + 1
    lens = await server.ask(server.session.resolve_lens, path, Lens(Span(path, line, 0, line, 0), kind, function))
    stale = server.compiler is not None and kind == COST and server.compiler.is_stale(path)
    params.command = lsp.Command(
        title=lens.title + (" · binary is of an older text" if stale else ""), tooltip=lens.tooltip or None,
        command="cuvil.openDrilldown" if kind == COST else "cuvil.showDiff",
        arguments=[{"uri": uri_of(path), "path": path, "function": function, "line": line}])
    return params


async def code_action(server: CuvilServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    path, only = path_of(params.text_document.uri), params.context.only

    def answer():
        source = server.session.source(path)
        found = server.session.actions(path, server.translator.span(source, params.range))
        return [server.translator.action(source, a, server.session.version(path), server.confirms) for a in found
                if not only or any(a.kind == str(getattr(k, "value", k)) or a.kind.startswith(f"{getattr(k, 'value', k)}.") for k in only)]
    return await server.ask(answer)


async def document_symbol(server: CuvilServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    path = path_of(params.text_document.uri)

    def answer():
        source = server.session.source(path)
        return [server.translator.symbol(source, s) for s in server.session.symbols(path)]
    return await server.ask(answer)


async def text_document_content(server: CuvilServer, params: lsp.TextDocumentContentParams) -> lsp.TextDocumentContentResult:
    return lsp.TextDocumentContentResult(await server.ask(server.session.document, params.uri))


def digest(server: CuvilServer, items: list[lsp.Diagnostic]) -> str:
    """A result id that is equal exactly for equal answers, in this process or another."""
    data = json.dumps(items, default=server.protocol._serialize_message, sort_keys=True)
    return hashlib.blake2b(data.encode(), digest_size=12).hexdigest()


def plain(value: Any) -> Any:
    """pygls turns untyped objects into named tuples; here they are dicts and lists again."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


FEATURES = [
    (lsp.INITIALIZE, initialize, None),
    (lsp.INITIALIZED, initialized, None),
    (lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, did_change_configuration, None),
    (lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, did_change_watched_files, None),
    (lsp.TEXT_DOCUMENT_DID_OPEN, did_open, None),
    (lsp.TEXT_DOCUMENT_DID_CHANGE, did_change, None),
    (lsp.TEXT_DOCUMENT_DID_CLOSE, did_close, None),
    (lsp.TEXT_DOCUMENT_DID_SAVE, did_save, None),
    (lsp.TEXT_DOCUMENT_DIAGNOSTIC, diagnostic, lsp.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="cuvil")),
    (lsp.TEXT_DOCUMENT_HOVER, hover, None),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, inlay_hint, lsp.InlayHintOptions(resolve_provider=True)),
    (lsp.INLAY_HINT_RESOLVE, inlay_hint_resolve, None),
    (lsp.TEXT_DOCUMENT_CODE_LENS, code_lens, lsp.CodeLensOptions(resolve_provider=True)),
    (lsp.CODE_LENS_RESOLVE, code_lens_resolve, None),
    (lsp.TEXT_DOCUMENT_CODE_ACTION, code_action, lsp.CodeActionOptions(code_action_kinds=[QUICKFIX, FIX_ALL])),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, document_symbol, None),
    (lsp.WORKSPACE_TEXT_DOCUMENT_CONTENT, text_document_content, None),
    *requests.FEATURES,
]
