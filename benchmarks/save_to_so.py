"""From a save in the editor to new shared libraries: `cuvil lsp` over stdio, examples/attention.py, a new constant each time.

Wall seconds from didSave to the server's `cuvil/compiled`, p50 and p95 of SAVES; nothing comes from the cache of compiled
objects, which starts empty and sees every text once. The goal is a p50 under 1 s. The last row is the command, cold.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from messages import read
from report import Row, main

SAVES = 9
ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples/attention.py"
# What each save changes: one function, or all three that are compiled.
ONE = ("float(\"-inf\")", "-1e{n}")
ALL = ONE, ("weights / weights.sum", "{n} * weights / weights.sum"), ("F.gelu(x @ w_up", "F.gelu({n} * x @ w_up")


class Server:
    """`cuvil lsp`, spoken to in plain JSON-RPC."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "attention.py"
        self.process = subprocess.Popen([sys.executable, "-m", "cuvil_lsp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")})
        self.version = 1
        self.send("initialize", {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": {}, "initializationOptions": {"trusted": True},
                                 "workspaceFolders": [{"uri": folder.as_uri(), "name": "bench"}]}, id=1)
        self.wait(lambda message: message.get("id") == 1)
        self.send("initialized", {})
        self.send("textDocument/didOpen", {"textDocument": {"uri": self.file.as_uri(), "languageId": "python", "version": 1,
                                                            "text": self.file.read_text()}})

    def save(self, text: str) -> float:
        """Type the text, save it, and wait for its libraries: the seconds since the save."""
        self.version += 1
        self.send("textDocument/didChange", {"textDocument": {"uri": self.file.as_uri(), "version": self.version},
                                             "contentChanges": [{"text": text}]})
        self.file.write_text(text)
        started = time.perf_counter()
        self.send("textDocument/didSave", {"textDocument": {"uri": self.file.as_uri()}})
        answer = self.wait(lambda message: message.get("method") == "cuvil/compiled")["params"]
        seconds = time.perf_counter() - started
        if answer["problem"] or answer["refusals"] or len(answer["libraries"]) != 3:
            sys.exit(f"the save was not compiled: {answer}")
        return seconds

    def send(self, method: str, params: dict, **more: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def wait(self, wanted) -> dict:
        while True:
            message = read(self.process.stdout)
            if "method" in message and "id" in message:       # a question of the server's: this client has nothing to say
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": None}).encode()
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                self.process.stdin.flush()
            if wanted(message):
                return message

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)


def measure() -> list[Row]:
    original = EXAMPLE.read_text()

    def changed(changes, n: int) -> str:
        text = original
        for old, new in changes:
            if old not in text:
                sys.exit(f"{EXAMPLE} has no {old}")
            text = text.replace(old, new.format(n=n))
        return text

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "attention.py").write_text(original)
        server = Server(folder)
        try:
            server.save(original)
            rows = [_row("save, one function changed", [server.save(changed([ONE], 5 + n)) for n in range(SAVES)]),
                    _row("save, all three changed", [server.save(changed(ALL, 25 + n)) for n in range(SAVES)])]
        finally:
            server.end()
        cold = []
        for n in range(3):
            (folder / "attention.py").write_text(changed(ALL, 20 - n))
            started = time.perf_counter()
            subprocess.run([Path(sys.executable).with_name("cuvil"), "compile", "attention.py"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=os.environ | {"XDG_CACHE_HOME": str(folder / f"cache{n}")})
            cold.append(time.perf_counter() - started)
        return [*rows, _row("cuvil compile attention.py, cold", cold)]


def _row(what: str, seconds: list[float]) -> Row:
    ordered = sorted(seconds)
    return {"what": what, "n": len(seconds), "p50 s": statistics.median(seconds), "p95 s": ordered[-(-95 * len(ordered) // 100) - 1]}


if __name__ == "__main__":
    main(__doc__, measure)
