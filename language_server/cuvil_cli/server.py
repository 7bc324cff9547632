"""The studio's web server: the panels in a browser, on this machine only.

    GET /?token=T                                     the page
    GET /panels.js  /panels.css                       the bundle
    GET /api/panels                                   [PanelInfo]
    GET /api/functions[?path=P]                       {"files": [{"path", "functions"}]}
    GET /api/version?path=P                           {"version"}: changes with the file's text
    GET /api/view?panel=&path=&function=&line=&column=   a payload of cuvil_ide/protocol.py
    GET /api/lint?path=P                              findings, as `cuvil lint --format json` prints them

It listens on 127.0.0.1, answers only requests that name it as their Host (so no web page can reach it by another name), wants the
random token (in the page's address, and in the header X-Cuvil-Token for api/), sends no CORS headers, and reads nothing outside the
folder it was started on. It never writes.
"""
from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cuvil.diagnostics import CuvilError

from . import files, page
from .findings import FileResult, Findings

TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
HEADERS = {"Content-Security-Policy": page.STUDIO_POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
           "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store"}


class NotHere(Exception):
    """404, with a sentence for people."""


class Studio:
    """What the studio answers, apart from HTTP. target: a folder, or one file in its folder."""

    def __init__(self, target: str) -> None:
        from cuvil_ide.session import Session
        resolved = Path(target).resolve()
        if not resolved.exists():
            raise CuvilError(f"{target}: there is no such file or folder", hint="cuvil studio examples")
        self.root = resolved if resolved.is_dir() else resolved.parent
        self.first = resolved.name if resolved.is_file() else ""
        self.session = Session(self.root)
        self.token = secrets.token_urlsafe(24)
        self.bundle = page.bundle()

    def page(self, query: dict[str, str]) -> str:
        path = query.get("path") or self.first or next(iter(self.paths()), "")
        return page.studio(f"Cuvil: {path}", self.token, query.get("panel", "drilldown"), path, query.get("function", ""))

    def panels(self, query: dict[str, str]) -> object:
        from cuvil_ide import views
        from cuvil_ide.protocol import to_json
        return to_json([panel.INFO for panel in views.PANELS])

    def functions(self, query: dict[str, str]) -> object:
        """By the scan of each file's text alone, so that a large folder is listed at once."""
        from cuvil.cst import parse
        paths = [query["path"]] if query.get("path") else self.paths()
        listed = []
        for path in paths:
            try:
                source = files.read(self._inside(path)).source
                listed.append({"path": path, "functions": [d.name for d in parse(source).definitions if d.kind == "function"]})
            except CuvilError as error:
                listed.append({"path": path, "functions": [], "problem": error.what})
        return {"files": listed}

    def version(self, query: dict[str, str]) -> object:
        from cuvil_ide.views.subject import version
        return {"version": version(files.read(self._inside(query.get("path", ""))).source.text)}

    def view(self, query: dict[str, str]) -> object:
        from cuvil_ide import views
        from cuvil_ide.protocol import Position, ViewRequest, to_json
        line = _number(query, "line")
        position = Position(line, _number(query, "column") or 1) if line else None
        request = ViewRequest(query.get("panel", ""), self._inside(query.get("path", "")), position, query.get("function", ""))
        return self._from_root(to_json(views.view(self.session, request)))

    def lint(self, query: dict[str, str]) -> object:
        from .formats import render
        full = self._inside(query.get("path", ""))
        found = tuple(self.session.diagnostics(full))
        return json.loads(render("json", Findings((FileResult(full, found),), self.root, lambda path: None)))

    def paths(self) -> list[str]:
        return [files.relative(path, self.root) for path in files.collect([str(self.root)])[0]][:500]

    def _from_root(self, data):
        """The same data with paths relative to the studio's folder: it is what people named, and the address of a page holds no more."""
        if isinstance(data, dict):
            return {key: files.relative(value, self.root) if key == "path" and isinstance(value, str) else
                    value.replace(f"{self.root}{os.sep}", "") if key == "problem" else self._from_root(value) for key, value in data.items()}
        return [self._from_root(item) for item in data] if isinstance(data, list) else data

    def _inside(self, path: str) -> str:
        """The file of the studio's folder that is meant; NotHere for anything else, wherever it points."""
        try:
            full = (self.root / path).resolve()
            if path and "\0" not in path and full.is_relative_to(self.root) and full.is_file() and full.suffix == ".py":
                return str(full)
        except (OSError, ValueError):
            pass
        raise NotHere(f"there is no Python file {path!r} in {self.root.name}")


def serve(studio: Studio, port: int = 0) -> ThreadingHTTPServer:
    """A bound server; call serve_forever. Port 0 takes a free one. Its address with the token is in `.url`."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, studio))
    except OSError as error:
        raise CuvilError(f"cannot listen on port {port}: {error.strerror}", hint="another --port, or none for any free one") from None
    server.daemon_threads = True
    server.url = f"http://127.0.0.1:{server.server_address[1]}/?token={studio.token}"
    return server


class Handler(BaseHTTPRequestHandler):
    protocol_version, server_version, sys_version = "HTTP/1.1", "cuvil", ""
    timeout = 60

    def __init__(self, studio: Studio, *args) -> None:
        self.studio = studio
        super().__init__(*args)

    def do_GET(self) -> None:
        try:
            address = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(address.query).items()}
            self._answer(address.path, query)
        except NotHere as error:
            self._error(404, str(error))
        except CuvilError as error:
            self._error(422, str(error))
        except (BrokenPipeError, ConnectionResetError):
            pass                             # the browser went away
        except Exception as error:           # ours to fix; the server goes on
            self._error(500, f"internal error: {type(error).__name__}: {error}")

    def _answer(self, path: str, query: dict[str, str]) -> None:
        if not self._for_us():
            return self._error(403, "this server answers only to its own address")
        if path == "/":
            if not self._has(query.get("token", "")):
                return self._error(403, "open the address that `cuvil studio` printed: it has a token")
            return self._send(200, self.studio.page(query).encode("utf-8"), "text/html; charset=utf-8")
        if path in ("/panels.js", "/panels.css"):
            file = self.studio.bundle.script if path.endswith(".js") else self.studio.bundle.style
            return self._send(200, file.read_bytes(), TYPES[file.suffix])
        if path.startswith("/api/"):
            if not self._has(self.headers.get("X-Cuvil-Token", "")):
                return self._error(403, "wrong or missing X-Cuvil-Token")
            answer: Callable[[dict[str, str]], object] | None = _API.get(path.removeprefix("/api/"))
            if answer is not None:
                return self._send(200, json.dumps(answer(self.studio, query)).encode("utf-8"), "application/json")
        raise NotHere("there is nothing here")

    def _for_us(self) -> bool:
        port = self.server.server_address[1]
        return self.headers.get("Host", "") in (f"127.0.0.1:{port}", f"localhost:{port}")

    def _has(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.studio.token.encode())

    def _error(self, status: int, message: str) -> None:
        self._send(status, json.dumps({"error": message}).encode("utf-8"), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args) -> None:
        if os.environ.get("CUVIL_DEBUG"):
            super().log_message(format, *args)


_API = {"panels": Studio.panels, "functions": Studio.functions, "version": Studio.version, "view": Studio.view, "lint": Studio.lint}


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise CuvilError(f"{name} is {text!r}", expected="a number from 1")
    return int(text[:9] or 0)
