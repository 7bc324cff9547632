"""From a keystroke to diagnostics: `cuvil lsp` over stdio, each character answered before the next is typed.

Milliseconds from didChange to the answer of the pull request for that text, p50 and p95 of EDITS characters inside a function
in the middle of the file, while most of the prefixes do not parse. The goal is a p95 under 100 ms for 1,000 lines. `vs ast`
is the p50 over what Python's own parser needs for the same text in the same run, so that machines can be compared.
`open` is from the start of the process to the first diagnostics. Files given as arguments are measured as well.
"""
import ast
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

EDITS = 60
TYPED = "probe = torch.softmax(x @ x.transpose(-2, -1), dim=-1)"
FUNCTION = '''

def block_{n}(x: Float[Tensor, "b t 64"], w: Float[Tensor, "64 64"], scale: Float[Tensor, "64"]):
    h = torch.relu(x @ w) * scale
    scores = torch.softmax(h @ h.transpose(-2, -1) / 8.0, dim=-1)
    mixed = scores @ h
    mean = mixed.mean(dim=-1, keepdim=True)
    spread = ((mixed - mean) ** 2).mean(dim=-1, keepdim=True)
    normal = (mixed - mean) / torch.sqrt(spread + 1e-5)
    print(f"block {n}: {{normal.shape}}")
    return normal * scale + x
'''


class Server:
    """`cuvil lsp`, spoken to in plain JSON-RPC, with one file open."""

    def __init__(self, folder: Path, name: str, text: str) -> None:
        self.uri, self.version, self.id = (folder / name).as_uri(), 0, 0
        started = time.perf_counter()
        self.process = subprocess.Popen([sys.executable, "-m", "cuvil_lsp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.ask("initialize", {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": {
            "textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": True}}}})
        self.tell("initialized", {})
        self.tell("textDocument/didOpen", {"textDocument": {"uri": self.uri, "languageId": "python", "version": 0, "text": text}})
        self.pull()
        self.opened = time.perf_counter() - started

    def type(self, line: int, column: int, character: str) -> float:
        """The seconds until the diagnostics of the text with this character."""
        self.version += 1
        place = {"line": line, "character": column}
        started = time.perf_counter()
        self.tell("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version},
                                             "contentChanges": [{"range": {"start": place, "end": place}, "text": character}]})
        self.pull()
        return time.perf_counter() - started

    def pull(self) -> dict:
        return self.ask("textDocument/diagnostic", {"textDocument": {"uri": self.uri}})

    def ask(self, method: str, params: dict) -> dict:
        self.id += 1
        self.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            message = read(self.process.stdout)
            if message.get("id") == self.id and "method" not in message:
                return message["result"]

    def tell(self, method: str, params: dict) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message: dict) -> None:
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(10)


def measure() -> list[Row]:
    head = "import torch\nfrom jaxtyping import Float\nfrom torch import Tensor\n"
    texts = {"1,000 lines": head + "".join(FUNCTION.format(n=n) for n in range(83))}
    texts |= {Path(name).name: Path(name).read_text(encoding="utf-8") for name in sys.argv[1:] if not name.startswith("-")}
    with tempfile.TemporaryDirectory() as folder:
        return [_measure(Path(folder), what, text) for what, text in texts.items()]


def _measure(folder: Path, what: str, text: str) -> Row:
    lines = text.split("\n")
    line = next((i for i in range(len(lines) // 2, len(lines)) if lines[i].lstrip().startswith("return ")), None)
    if line is None:
        sys.exit(f"{what} has no function in its second half")
    indent = lines[line][:len(lines[line]) - len(lines[line].lstrip())]
    server = Server(folder, "edited.py", text)
    try:
        server.type(line, 0, indent + "\n")
        seconds = [server.type(line, len(indent) + i, character) for i, character in enumerate((TYPED + " ; " + TYPED)[:EDITS])]
    finally:
        server.end()
    times = []
    for _ in range(9):
        started = time.perf_counter()
        ast.parse(text)
        times.append(time.perf_counter() - started)
    ordered, median = sorted(seconds), statistics.median(seconds)
    return {"file": what, "lines": len(lines) - 1, "open ms": server.opened * 1e3, "p50 ms": median * 1e3,
            "p95 ms": ordered[-(-95 * len(ordered) // 100) - 1] * 1e3, "vs ast": median / statistics.median(times)}


if __name__ == "__main__":
    main(__doc__, measure)
