"""Cuvil's own requests. They are few and generic; a new panel needs none.

    cuvil/panels            {} -> PanelInfo[]
    cuvil/view              {panel, path | textDocument, position?, function?} -> the panel's payload
    cuvil/reveal            {path, range} -> {shown}: asks the client to show a place (window/showDocument)
    cuvil/status            {} -> {health, message, version, encoding, trusted, compile}
    cuvil/virtualDocument   {uri} -> {text}: for clients without workspace/textDocumentContent
    cuvil/viewChanged       notification {path, textDocument, version}: payloads for this file are out of date
    cuvil/compiled          notification {path, textDocument, libraries, stale, seconds, problem, refusals, ...}: a compilation ended

Payload types are in cuvil_ide/protocol.py. Lines and columns in these messages count from 1, in code points.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from cuvil.diagnostics import CuvilError

from .translate import path_of, uri_of

if TYPE_CHECKING:
    from .server import CuvilServer


async def panels(server: CuvilServer, params: Any) -> Any:
    from cuvil_ide.protocol import to_json
    from cuvil_ide.views import PANELS
    infos = PANELS.values() if isinstance(PANELS, dict) else PANELS
    return to_json([getattr(panel, "info", getattr(panel, "INFO", panel)) for panel in infos])


async def view(server: CuvilServer, params: Any) -> Any:
    from cuvil_ide import views
    from cuvil_ide.protocol import Position, ViewRequest, to_json
    asked = _plain(params)
    path = asked.get("path") or path_of((asked.get("textDocument") or {}).get("uri", ""))
    if not asked.get("panel"):
        raise CuvilError("cuvil/view needs a panel", expected="{panel, path or textDocument, position?, function?}")
    position = asked.get("position")
    request = ViewRequest(asked["panel"], path, position and Position(int(position["line"]), int(position["column"])),
                          asked.get("function") or "")
    server.viewed.add(path)
    return await server.ask(lambda: to_json(views.view(server.session, request)))


async def reveal(server: CuvilServer, params: Any) -> Any:
    asked = _plain(params)
    source = server.session.source(asked["path"])
    start, end = asked["range"]["start"], asked["range"]["end"]
    translate = server.translator
    range = lsp.Range(translate.position(source, start["line"], start["column"] - 1), translate.position(source, end["line"], end["column"] - 1))
    window = server.client_capabilities.window
    if window is None or window.show_document is None:
        return {"shown": False}
    result = await server.window_show_document_async(lsp.ShowDocumentParams(uri_of(asked["path"]), take_focus=True, selection=range))
    return {"shown": result.success}


async def status(server: CuvilServer, params: Any) -> Any:
    compiler = server.compiler
    return {"health": "ok" if compiler is None or not compiler.problem else "warning",
            "message": compiler.problem if compiler is not None else "",
            "version": server.version, "encoding": server.translator.encoding, "trusted": server.options.trusted,
            "compile": compiler.status() if compiler is not None else {}}


async def virtual_document(server: CuvilServer, params: Any) -> Any:
    return {"text": await server.ask(server.session.document, _plain(params)["uri"])}


def view_changed(server: CuvilServer, path: str, version: int | None) -> None:
    """Told only about files of which a view was asked for."""
    if path not in server.viewed:
        return
    server.protocol.notify("cuvil/viewChanged", {"path": path, "textDocument": {"uri": uri_of(path)}, "version": version})


def _plain(params: Any) -> dict[str, Any]:
    from .handlers import plain
    value = plain(params)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CuvilError(f"parameters must be an object, not {value!r}")
    return value


FEATURES = [
    ("cuvil/panels", panels, None),
    ("cuvil/view", view, None),
    ("cuvil/reveal", reveal, None),
    ("cuvil/status", status, None),
    ("cuvil/virtualDocument", virtual_document, None),
]
