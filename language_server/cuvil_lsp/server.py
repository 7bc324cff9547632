"""`cuvil lsp`: the server process. What it answers is in handlers.py, how it compiles on save in compile_on_save.py.

One thread analyses; the event loop only reads, answers and forgets. A question waits for its turn in that thread and is then
answered from the newest text, whatever was typed meanwhile, so a burst of keystrokes costs one analysis. Diagnostics are answered
twice: at a glance after each keystroke, and whole when the typing pauses; work on the whole of a text ends when a newer one comes.
Every request gets an answer; an error of ours is a short message and a line in the log (stderr), never a traceback to the client.
"""
from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCNotification, LanguageServerProtocol, default_converter, lsp_method

from cuvil.diagnostics import CuvilError
from cuvil.interrupted import Interrupted
from cuvil_ide.session import Session

from .options import Options
from .translate import Translator, uri_of

log = logging.getLogger("cuvil")
Answer = TypeVar("Answer")

# Between two bytecodes of the analysing thread the reader gets its turn after this long, in seconds (Python's default is 5 ms).
SWITCH_INTERVAL = 0.001
REQUEST_FAILED = -32803
PAUSE = 0.35                     # seconds without a keystroke, after which the whole file is looked at


class Protocol(LanguageServerProtocol):
    """pygls's, except: utf-8 wherever the client can, virtual documents offered, malformed requests answered, no tracebacks."""

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams):
        general = params.capabilities.general
        if general is not None and "utf-8" in [str(getattr(e, "value", e)) for e in general.position_encodings or ()]:
            general.position_encodings = [lsp.PositionEncodingKind.Utf8]
        result = yield from super().lsp_initialize(params)
        if not self._server.pulls:                     # who cannot be told to ask again is told
            result.capabilities.diagnostic_provider = None
        result.capabilities.workspace.text_document_content = lsp.TextDocumentContentOptions(schemes=["cuvil"])
        result.capabilities.experimental = {"cuvil": {"version": 1, "requests": [
            "cuvil/panels", "cuvil/view", "cuvil/reveal", "cuvil/status", "cuvil/virtualDocument"]}}
        return result

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            return JsonRPCNotification(method="$/malformed", jsonrpc="2.0", params=None)

    def _send_response(self, msg_id: Any, result: Any = None, error: lsp.ResponseError | None = None) -> None:
        if error is not None and isinstance(error.data, dict) and "traceback" in error.data:
            error.data = None
        super()._send_response(msg_id, result, error)


class CuvilServer(LanguageServer):
    """The state of one connection: the session, the thread that works for it, and what the client can do."""

    def __init__(self) -> None:
        from cuvil import __version__
        super().__init__("cuvil", __version__, protocol_cls=Protocol, converter_factory=default_converter, max_workers=4)
        self.session = Session()
        self.options = Options()
        self.worker = ThreadPoolExecutor(1, "cuvil-analysis")
        self.compiler = None                          # compile_on_save.Compiler, made on the first save
        self.pending_notes: list[str] = []           # about settings; shown once the client is ready
        self.viewed: set[str] = set()                 # files of which a view was asked for
        self.told: dict[str, list[lsp.Diagnostic]] = {}          # the diagnostics that the client has of a file
        self._publishing: set[str] = set()
        self._pauses: dict[str, asyncio.TimerHandle] = {}

    # Asking

    async def ask(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        """Answer a question in the analysing thread. A cancelled request whose turn has not come is never computed; one that a newer
        text interrupts is asked again after those that came meanwhile."""
        while True:
            try:
                return await self.ask_once(question, *arguments)
            except Interrupted:
                continue

    async def ask_once(self, question: Callable[..., Answer], *arguments: Any) -> Answer:
        """Interrupted when a newer text came."""
        return await asyncio.get_running_loop().run_in_executor(self.worker, question, *arguments)

    @property
    def translator(self) -> Translator:
        encoding = self.workspace.position_encoding
        return Translator(str(getattr(encoding, "value", encoding)))

    # Telling

    def publish(self, path: str) -> None:
        """Push diagnostics to a client that cannot pull. Calls that come while one waits for its turn are one."""
        if path not in self._publishing:
            self._publishing.add(path)
            asyncio.get_running_loop().create_task(self._publish(path))

    async def _publish(self, path: str) -> None:
        def newest():
            self._publishing.discard(path)
            return self.session.version(path), self.diagnostics(path)
        try:
            version, items = await self.ask(newest)
        except CuvilError:
            version, items = None, []
        if version == self.session.version(path):     # otherwise a newer one is on its way
            self._tell(path, version, items)

    def _tell(self, path: str, version: int | None, items: list[lsp.Diagnostic]) -> None:
        self.told[path] = items
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri_of(path), self.with_compiler(path, items), version))

    def diagnostics(self, path: str, whole: bool = False) -> list[lsp.Diagnostic]:
        """Those of the newest text, at a glance or whole. For the analysing thread."""
        source = self.session.source(path)
        found = self.session.diagnostics(path) if whole else self.session.quick_diagnostics(path)
        translate = self.translator
        return [translate.diagnostic(source, d) for d in found]

    def with_compiler(self, path: str, items: list[lsp.Diagnostic]) -> list[lsp.Diagnostic]:
        return items + self.compiler.diagnostics(path) if self.compiler is not None else items

    def look_again(self, path: str, pause: float = PAUSE) -> None:
        """Look at the whole of a file after a pause, unless its text changes before."""
        if path in self._pauses:
            self._pauses.pop(path).cancel()
        loop = asyncio.get_running_loop()
        self._pauses[path] = loop.call_later(pause, lambda: loop.create_task(self._look(path)))

    async def _look(self, path: str) -> None:
        self._pauses.pop(path, None)
        version = self.session.version(path)
        try:
            items = await self.ask_once(self.diagnostics, path, True)
        except (CuvilError, Interrupted):              # closed, and gone from disk; or a newer text, which has its own pause
            return
        if version == self.session.version(path) and items != self.told.get(path):
            if self.pulls:
                self.refresh(path)
            else:
                self._tell(path, version, items)
        await self._bring(path, version)

    async def _bring(self, path: str, version: int | None) -> None:
        """What callers say of the functions of a file, one walk at a time between other questions, for hover and hints."""
        try:
            while version == self.session.version(path) and not await self.ask_once(self.session.bring, path):
                pass
        except (CuvilError, Interrupted):
            return
        if version == self.session.version(path) and self.session.brings(path) and self._can("inlay_hint"):
            self.workspace_inlay_hint_refresh(None)

    def refresh(self, path: str) -> None:
        """What is shown for a file changed for another reason than its text (a compile ended, settings changed)."""
        if not self.pulls:
            self.publish(path)
        elif self._can("diagnostics"):
            self.workspace_diagnostic_refresh(None)
        if self._can("code_lens"):
            self.workspace_code_lens_refresh(None)

    @property
    def pulls(self) -> bool:
        """The client asks for diagnostics, and asks again when it is told to."""
        document = self.client_capabilities.text_document
        return document is not None and document.diagnostic is not None and self._can("diagnostics")

    @property
    def confirms(self) -> bool:
        """The client shows edits and asks before it makes them, where an edit says so."""
        workspace = self.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace else None
        return bool(edits and edits.document_changes and edits.change_annotation_support)

    def _can(self, what: str) -> bool:
        workspace = self.client_capabilities.workspace
        part = getattr(workspace, what, None) if workspace else None
        return bool(part and part.refresh_support)

    def note(self, message: str, type: lsp.MessageType = lsp.MessageType.Warning) -> None:
        self.window_show_message(lsp.ShowMessageParams(type, message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        log.error("%s: %s", getattr(source, "__name__", source), error)

    def shutdown(self) -> None:
        self.worker.shutdown(wait=False, cancel_futures=True)
        if self.compiler is not None:
            self.compiler.stop()
        super().shutdown()


def guarded(handler: Callable) -> Callable:
    """A handler whose errors are answers: refusals in their own words, malformed parameters by name, defects in one line."""
    async def answer(server: CuvilServer, params: Any) -> Any:
        try:
            return await handler(server, params)
        except CuvilError as error:
            raise JsonRpcException(message=str(error), code=REQUEST_FAILED) from None
        except (JsonRpcException, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("%s failed", handler.__name__)
            raise JsonRpcInternalError(message=f"Cuvil could not answer: {type(error).__name__}: {error}") from None
    answer.__name__ = handler.__name__
    return answer


def make() -> CuvilServer:
    from .handlers import FEATURES
    server = CuvilServer()
    for method, handler, options in FEATURES:
        answer = guarded(handler)
        # pygls passes the server to handlers whose first parameter is so named or typed; binding it here needs no magic.
        async def bound(params: Any = None, answer=answer) -> Any:
            return await answer(server, params)
        server.feature(method, options)(bound)
    return server


def main(argv: list[str] | None = None) -> int:
    """Serve over stdin and stdout until the client goes away."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="cuvil lsp: %(levelname)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.freeze()                                                 # what is loaded now stays; looking at it again and again costs a sixth
    gc.set_threshold(50_000, 20, 20)                            # of the time that syntax trees take
    output, sys.stdout = sys.stdout.buffer, sys.stderr          # a stray print must not tear the protocol
    make().start_io(stdout=output)
    return 0


