"""Compile on save: the entry points of a saved file become libraries in `.cuvil/`, made by a child process that may die.

One child works at a time and serves one save after another, so that a save waits neither for imports nor for what did not change;
saving a file again while it is compiled ends the child and starts anew with the newest text. A child that is ended by a
limit, or dies, is one diagnostic, and its file is tried again after a pause that doubles each time. The last good libraries
stay where they are, and count as stale as soon as the text is not the one they were made of.
"""
from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lsprotocol import types as lsp

from cuvil.diagnostics import CuvilError

from .translate import uri_of

if TYPE_CHECKING:
    from .server import CuvilServer

log = logging.getLogger("cuvil")
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0         # seconds before a file whose child died is tried again
PROGRESS_AFTER = 0.5                           # seconds; what is quicker needs no progress bar
REQUESTS = 200                                 # after so many a child ends, and with it what it gathered in memory
ANSWER = 64 * 1024 * 1024                      # bytes of one answer: manifests of large models
CHILD = "import cuvil.frontends.python, cuvil.llvm, cuvil.loops, cuvil.pipeline.files; import cuvil.artifact.child as c; raise SystemExit(c.main())"


@dataclass
class State:
    """What is known of one file. made_of: fingerprint of the text of the last good libraries; now: of the newest text."""

    libraries: list[str] = field(default_factory=list)
    made_of: str = ""
    now: str = ""
    seconds: float = 0.0
    problem: str = ""                          # of the child itself; what the compiler refused is in `refusals`
    refusals: list[dict[str, Any]] = field(default_factory=list)
    refused_text: str = ""
    deaths: int = 0
    not_before: float = 0.0

    @property
    def stale(self) -> bool:
        return bool(self.made_of) and self.made_of != self.now


class Compiler:
    """The compilations of one server. All methods run in its event loop."""

    def __init__(self, server: CuvilServer) -> None:
        self.server = server
        self.states: dict[str, State] = {}
        self.waiting: dict[str, None] = {}
        self.path = ""                         # of the file being compiled
        self.child: Process | None = None      # the one that compiles now
        self.idle: Process | None = None       # the one that waits for the next save
        self.served = 0                        # requests it has answered
        self.ended_by: str = ""                # why we ended the child ourselves
        self.work: asyncio.Task | None = None

    # What others ask

    def saved(self, path: str) -> None:
        self.states.setdefault(path, State())
        self.text_changed(path)
        self.waiting[path] = None
        if self.path == path:
            self.end("superseded")
        if self.work is None or self.work.done():
            self.work = asyncio.get_running_loop().create_task(self._work())

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
                       "refusals": [r["message"] for r in s.refusals], "running": path == self.path,
                       "pid": self.child.pid if path == self.path and self.child else None}
                for path, s in self.states.items()}

    def diagnostics(self, path: str) -> list[lsp.Diagnostic]:
        """A child that died stands at the top of the file; refusals stand in their places, while the text is still that one."""
        state = self.states.get(path)
        if state is None:
            return []
        found = []
        if state.problem:
            found.append(lsp.Diagnostic(lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)), state.problem,
                                        severity=lsp.DiagnosticSeverity.Warning, code="CUV004", source="cuvil"))
        if state.refused_text == state.now:
            source, position = self.server.session.source(path), self.server.translator.position
            for refusal in state.refusals:
                if refusal["path"] == path:
                    start, end = refusal["range"]["start"], refusal["range"]["end"]
                    found.append(lsp.Diagnostic(
                        lsp.Range(position(source, start["line"], start["column"] - 1), position(source, end["line"], end["column"] - 1)),
                        f"not compiled: {refusal['message']}", severity=lsp.DiagnosticSeverity.Information, code=refusal["code"], source="cuvil"))
        return found

    def end(self, why: str) -> None:
        """End the child that works now."""
        if self.child is not None:
            self.ended_by = why
            kill(self.child)

    def stop(self) -> None:
        self.waiting.clear()
        for child in (self.child, self.idle):
            if child is not None:
                kill(child)

    # How it is done

    async def _work(self) -> None:
        while self.waiting:
            path = min(self.waiting, key=lambda p: self.states[p].not_before)
            pause = self.states[path].not_before - time.monotonic()
            if pause > 0:                      # every file that waits had a child that died; a new save may come in between
                await asyncio.sleep(min(pause, 0.1))
                continue
            del self.waiting[path]
            try:
                await self._compile(path, self.states[path])
            except Exception as error:         # a defect of ours must not end compiling for the whole session
                log.exception("compiling %s failed", path)
                self.states[path].problem = f"compiling {os.path.basename(path)}: Cuvil failed ({type(error).__name__}: {error})"
                self.server.refresh(path)

    async def _compile(self, path: str, state: State) -> None:
        entries = await self.server.ask(self._entries, path)
        if not entries:
            state.libraries, state.made_of, state.refusals = [], "", []
            return
        self.path, self.ended_by, text, started = path, "", state.now, time.monotonic()
        progress = asyncio.get_running_loop().create_task(self._progress(path))
        try:
            outcome = await self._ask_child(path, entries)
        finally:
            self.path, self.child = "", None
            progress.cancel()
        state.seconds = round(time.monotonic() - started, 3)
        if self.ended_by in ("superseded", "cancelled"):
            return
        if isinstance(outcome, str):
            state.deaths += 1
            pause = min(FIRST_PAUSE * 2 ** (state.deaths - 1), LONGEST_PAUSE)
            state.not_before = time.monotonic() + pause
            state.problem = f"compiling {os.path.basename(path)}: {outcome}. The last good library is kept; the next try is at least {pause:.0f} s away"
            self.server.note(f"Cuvil: {state.problem}")
        else:
            state.deaths, state.not_before, state.problem = 0, 0.0, ""
            state.refusals, state.refused_text = outcome["refusals"], text
            if outcome["libraries"]:
                state.libraries, state.made_of = outcome["libraries"], text
        self.server.protocol.notify("cuvil/compiled", {"path": path, "textDocument": {"uri": uri_of(path)}, **self.status()[path]})
        self.server.refresh(path)

    def _entries(self, path: str) -> list[str]:
        try:
            return [f.name for f in self.server.session.facts(path).functions if f.entry is not None]
        except CuvilError:
            return []

    async def _ask_child(self, path: str, entries: list[str]) -> dict[str, Any] | str:
        """What the child answered, or why there is no answer."""
        options = self.server.options
        request = json.dumps({"path": path, "functions": entries, "root": self.server.session.root,
                              "memory": int(options.compileMemory * 1_000_000)}).encode() + b"\n"
        idle, self.idle = self.idle, None
        if idle is None or idle.returncode is not None:
            idle, self.served = await self._start(), 0
        child = self.child = idle
        answer = ""
        try:
            child.stdin.write(request)
            line = (await asyncio.wait_for(child.stdout.readline(), options.compileTimeout)).decode()
            answer = line if line.endswith("\n") else ""          # one that died while it wrote has not answered
        except asyncio.TimeoutError:
            return f"it took more than {options.compileTimeout:g} s and was ended"
        finally:
            self.served += 1
            if answer and not self.ended_by and self.served < REQUESTS:
                self.idle = child
            elif answer or not child.stdout.at_eof():       # what is at its end says why, below
                kill(child)
        if answer:
            return json.loads(answer)
        errors = (await child.stderr.read()).decode(errors="replace").strip().rpartition("\n")[2]
        code = await child.wait()
        if code < 0 and not errors:
            return f"the compiler was ended by {signal.Signals(-code).name}"
        return f"the compiler ended with code {code}" + (f" ({errors})" if errors else "")

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=ANSWER,
                                                    cwd=self.server.session.root, start_new_session=True)

    async def _progress(self, path: str) -> None:
        """A progress bar for what takes a while; cancelling it ends the child."""
        window, progress = self.server.client_capabilities.window, self.server.work_done_progress
        if window is None or not window.work_done_progress:
            return
        await asyncio.sleep(PROGRESS_AFTER)
        token = str(uuid4())
        await progress.create_async(token)
        progress.begin(token, lsp.WorkDoneProgressBegin(title=f"Compiling {os.path.basename(path)}", cancellable=True))
        try:
            while not progress.tokens[token].cancelled():
                await asyncio.sleep(0.05)
            self.end("cancelled")
        finally:
            progress.end(token, lsp.WorkDoneProgressEnd())
            progress.tokens.pop(token, None)


def kill(child: Process) -> None:
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
