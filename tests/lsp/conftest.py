"""A real server over stdio, driven by pytest-lsp. `editor` is a small editor: it opens, types, pulls, and keeps versions.

Tests of a module share the server of `editor`, each in a folder of its own; `fresh` has a server that nobody talked to yet,
for tests of how one starts.
"""
from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pygls.uris import from_fs_path
from pytest_lsp import ClientServerConfig, LanguageClient

SERVER = [sys.executable, "-m", "cuvil_lsp"]


def capabilities(pull: bool = True, encodings: list[str] | None = None,
                 workspace: lsp.WorkspaceClientCapabilities | None = None) -> lsp.ClientCapabilities:
    workspace = workspace or lsp.WorkspaceClientCapabilities()
    workspace.diagnostics = workspace.diagnostics or lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=pull)
    return lsp.ClientCapabilities(
        workspace=workspace,
        general=lsp.GeneralClientCapabilities(position_encodings=encodings),
        window=lsp.WindowClientCapabilities(work_done_progress=True, show_document=lsp.ShowDocumentClientCapabilities(support=True)),
        text_document=lsp.TextDocumentClientCapabilities(diagnostic=lsp.DiagnosticClientCapabilities() if pull else None))


class Editor:
    """One client and its documents."""

    def __init__(self, client: LanguageClient, root: Path) -> None:
        self.client, self.root, self.texts, self.versions = client, root, {}, {}

    async def start(self, pull: bool = True, encodings: list[str] | None = None, workspace: lsp.WorkspaceClientCapabilities | None = None,
                    **options) -> lsp.InitializeResult:
        self.result = await self.client.initialize_session(lsp.InitializeParams(
            capabilities=capabilities(pull, encodings, workspace), root_uri=from_fs_path(str(self.root)), initialization_options=options,
            workspace_folders=[lsp.WorkspaceFolder(from_fs_path(str(self.root)), "root")]))
        return self.result

    def uri(self, name: str) -> str:
        return from_fs_path(str(self.root / name))

    def document(self, name: str) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri(name))

    def open(self, name: str, text: str, save: bool = False) -> None:
        if save:
            (self.root / name).write_text(text, encoding="utf-8")
        self.texts[name], self.versions[name] = text, 1
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(self.uri(name), "python", 1, text)))

    def type(self, name: str, text: str) -> None:
        """The whole document is now this text."""
        self.texts[name], self.versions[name] = text, self.versions[name] + 1
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name)),
            [lsp.TextDocumentContentChangeWholeDocument(text)]))

    def edit(self, name: str, range: lsp.Range, text: str) -> None:
        """A part of the document; units of the range are the connection's."""
        self.versions[name] += 1
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name)), [lsp.TextDocumentContentChangePartial(range, text)]))

    def save(self, name: str) -> None:
        (self.root / name).write_text(self.texts[name], encoding="utf-8")
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(self.document(name)))

    async def pull(self, name: str, previous: str | None = None):
        return await self.client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(self.document(name), previous_result_id=previous))

    async def findings(self, name: str) -> list[lsp.Diagnostic]:
        return list((await self.pull(name)).items)

    async def pushed(self, name: str, wanted, seconds: float = 10) -> list[lsp.Diagnostic]:
        """The diagnostics that were pushed, once they are as wanted."""
        for _ in range(int(seconds * 50)):
            found = self.client.diagnostics.get(self.uri(name))
            if found is not None and wanted(list(found)):
                return list(found)
            await asyncio.sleep(0.02)
        raise AssertionError(f"never pushed; last: {self.client.diagnostics.get(self.uri(name))}")

    async def ask(self, method: str, params) -> object:
        return await self.client.protocol.send_request_async(method, params)

    async def until(self, condition, seconds: float = 30) -> object:
        """Wait for something the server does by itself."""
        for _ in range(int(seconds * 20)):
            result = condition()
            if asyncio.iscoroutine(result):
                result = await result
            if result:
                return result
            await asyncio.sleep(0.05)
        raise AssertionError(f"it did not happen in time; last: {result}; messages: {self.client.messages}")


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER), loop_scope="module")
async def client(lsp_client: LanguageClient):
    yield
    await asyncio.wait_for(lsp_client.shutdown_session(), 10)


@pytest.fixture
def fresh(client: LanguageClient, tmp_path: Path) -> Editor:
    return Editor(client, tmp_path)


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER), scope="module", loop_scope="module")
async def shared_client(lsp_client: LanguageClient, tmp_path_factory):
    await Editor(lsp_client, tmp_path_factory.mktemp("root")).start()
    yield
    await asyncio.wait_for(lsp_client.shutdown_session(), 10)


@pytest.fixture
def editor(shared_client: LanguageClient, tmp_path: Path) -> Editor:
    shared_client.messages.clear()
    shared_client.shown_documents.clear()
    return Editor(shared_client, tmp_path)
