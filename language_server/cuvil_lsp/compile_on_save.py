"""Compile on save: the entry points of a saved file become libraries in `.cuvil/`, in a child process that may die.

One child at a time. A save while one runs ends it and starts again with the newest text. A child that is ended by a limit, or by
anything else, is one diagnostic, and its file is tried again after a pause that doubles each time; the last good artifact
stays where it is and is marked stale as soon as the text differs from the one it was made of.
"""
from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lsprotocol import types as lsp

from cuvil.diagnostics import CuvilError

from .translate import uri_of

if TYPE_CHECKING:
    from .server import CuvilServer

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0         # seconds before a file whose child died may be compiled again
PROGRESS_AFTER = 0.5                           # seconds; what is quicker needs no progress bar


@dataclass
class State:
    """What is known of one file. made_of: the hash of the text of the last good artifacts."""

    libraries: list[str] = field(default_factory=list)
    made_of: str = ""
    now: str = ""
    seconds: float = 0.0
    problem: str = ""                          # of the child itself; refusals of the compiler are in `refusals`
    refusals: list[dict[str, Any]] = field(default_factory=list)
    deaths: int = 0
    not_before: float = 0.0

    @property
    def stale(self) -> bool:
        return bool(self.made_of) and self.made_of != self.now


class Compiler:
    """The compilations of one server."""

    def __init__(self, server: CuvilServer) -> None:
        self.server = server
        self.states: dict[str, State] = {}
        self.running: tuple[str, asyncio.Task] | None = None
        self.children: set[asyncio.subprocess.Process] = set()

    # What others ask

    def text_changed(self, path: str) -> None:
        if path in self.states:
            self.states[path].now = fingerprint(self.server.session.source(path).text)

    def is_stale(self, path: str) -> bool:
        return path in self.states and self.states[path].stale

    @property
    def problem(self) -> str:
        return next((s.problem for s in self.states.values() if s.problem), "")

    def status(self) -> dict[str, Any]:
        return {path: {"libraries": s.libraries, "stale": s.stale, "seconds": s.seconds, "problem": s.problem,
                       "refusals": [r.get("message", "") for r in s.refusals], "running": bool(self.running and self.running[0] == path)}
                for path, s in self.states.items()}

    def diagnostics(self, path: str) -> list[lsp.Diagnostic]:
        """One for a child that died, at the top of the file. Refusals are shown where they stand, while the text is still that one."""
        state = self.states.get(path)
        if state is None:
            return []
        top = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        found = []
        if state.problem:
            found.append(lsp.Diagnostic(top, state.problem, severity=lsp.DiagnosticSeverity.Warning, code="CUV004", source="cuvil"))
        if not state.stale:
            source = self.server.session.source(path)
            for refusal in state.refusals:
                start, end = refusal["range"]["start"], refusal["range"]["end"]
                position = self.server.translator.position
                found.append(lsp.Diagnostic(
                    lsp.Range(position(source, start["line"], start["column"] - 1), position(source, end["line"], end["column"] - 1)),
                    refusal["message"], severity=lsp.DiagnosticSeverity.Information, code=refusal.get("code", "CUV001"), source="cuvil"))
        return found

    # What happens on a save

    async def compile(self, path: str) -> None:
        """Returns when a child for this text has ended, or one for a newer text has taken its place."""
        if self.running is not None:
            self.running[1].cancel()
        state = self.states.setdefault(path, State())
        state.now = fingerprint(self.server.session.source(path).text)
        task = asyncio.ensure_future(self._run(path, state))
        self.running = path, task
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            pass
        finally:
            if self.running is not None and self.running[1] is task and task.done():
                self.running = None

    async def _run(self, path: str, state: State) -> None:
        wait = state.not_before - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        entries = await self.server.ask(self._entries, path)
        if not entries:
            state.libraries, state.made_of, state.refusals = [], "", []
            return
        progress = asyncio.ensure_future(Progress.show(self.server, path, self))
        started, text = time.monotonic(), state.now
        try:
            outcome = await self._child(path, entries)
        finally:
            progress.cancel()
        state.seconds = round(time.monotonic() - started, 3)
        if isinstance(outcome, str):
            state.deaths += 1
            pause = min(FIRST_PAUSE * 2 ** (state.deaths - 1), LONGEST_PAUSE)
            state.not_before = time.monotonic() + pause
            state.problem = f"compiling {os.path.basename(path)}: {outcome}; the last good library is kept, the next try waits {pause:.0f} s"
            self.server.note(f"Cuvil: {state.problem}")
        else:
            state.deaths, state.not_before, state.problem = 0, 0.0, ""
            state.refusals = outcome.get("refusals", [])
            if outcome.get("libraries"):
                state.libraries, state.made_of = outcome["libraries"], text
        self.server.protocol.notify("cuvil/compiled", {"path": path, "textDocument": {"uri": uri_of(path)}, **self.status()[path]})
        self.server.refresh(path)

    def _entries(self, path: str) -> list[str]:
        try:
            return [f.name for f in self.server.session.facts(path).functions if f.entry is not None]
        except CuvilError:
            return []

    async def _child(self, path: str, entries: list[str]) -> dict[str, Any] | str:
        """What the child answered, or why there is no answer."""
        options = self.server.options
        request = json.dumps({"path": path, "functions": entries, "root": self.server.session.root,
                              "memory": options.compileMemory * 1_000_000}).encode()
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cuvil.artifact.child", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, cwd=self.server.session.root, start_new_session=True)
        self.children.add(child)
        try:
            output, errors = await asyncio.wait_for(child.communicate(request), options.compileTimeout)
        except asyncio.TimeoutError:
            return f"it took more than {options.compileTimeout:g} s and was ended"
        finally:
            end(child)
            self.children.discard(child)
        if child.returncode and child.returncode < 0:
            return f"the compiler was killed by {signal.Signals(-child.returncode).name}"
        try:
            return json.loads(output.decode().strip().rpartition("\n")[2])
        except ValueError:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            return f"the compiler ended with code {child.returncode}" + (f": {last}" if last else "")

    def stop(self) -> None:
        for child in list(self.children):
            end(child)


class Progress:
    """Work-done progress for a compilation that takes a while; cancelling it ends the child."""

    @staticmethod
    async def show(server: CuvilServer, path: str, compiler: Compiler) -> None:
        window = server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return
        await asyncio.sleep(PROGRESS_AFTER)
        token = str(uuid4())
        await server.work_done_progress.create_async(token)
        server.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title=f"Compiling {os.path.basename(path)}", cancellable=True))
        try:
            await asyncio.wrap_future(server.work_done_progress.tokens[token])
        except asyncio.CancelledError:
            if server.work_done_progress.tokens[token].cancelled() and compiler.running is not None:
                compiler.running[1].cancel()
        finally:
            server.work_done_progress.end(token, lsp.WorkDoneProgressEnd())
            server.work_done_progress.tokens.pop(token, None)


async def start(server: CuvilServer, path: str) -> None:
    if server.compiler is None:
        server.compiler = Compiler(server)
    await server.compiler.compile(path)


def end(child: asyncio.subprocess.Process) -> None:
    """The child and what it started."""
    if child.returncode is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (OSError, AttributeError):
            try:
                child.kill()
            except ProcessLookupError:
                pass


def fingerprint(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
