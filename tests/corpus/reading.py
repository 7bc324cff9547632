"""Reads the corpus file by file and keeps what it found, so that a run of an hour can be cut into slices, stopped, and taken up again.

Each file is checked as `cuvil lint` checks it, by one process that is told one path at a time. A file that takes longer than the limit has its
process ended and is named as a hang; one that ends its process is named as a crash. The kept results are lines of JSON, the last line of a
file counts, and each says which commit of Cuvil made it.
"""
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHUNK = 64                                   # files that share what is known of their imports; it is let go before it fills the memory


class Kept:
    """Results by path, in a file that only ever grows by lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, dict] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                result = json.loads(line)
                self.results[result["path"]] = result

    def add(self, result: dict) -> None:
        self.results[result["path"]] = result
        with self.path.open("a") as stream:
            stream.write(json.dumps(result) + "\n")


def files(folder: Path, prefixes: Iterable[str]) -> list[str]:
    """The corpus's Python files below packages, folders or files, relative to its folder."""
    return [path.relative_to(folder).as_posix() for prefix in prefixes
            for path in (sorted((folder / prefix).rglob("*.py")) if (folder / prefix).is_dir() else [folder / prefix])]


def commit() -> str:
    """The commit that is read with; a plus sign when the tree is not as it was committed."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "compiler", "language_server") else "")


def read(folder: Path, paths: list[str], limit: float) -> Iterator[dict]:
    """The result of each file, in order. limit: seconds for one."""
    name, reader = commit(), None
    for path in paths:
        if reader is None or reader.poll() is not None:
            reader = subprocess.Popen([sys.executable, __file__], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env=os.environ | {"PYTHONPATH": f"{ROOT / 'compiler'}:{ROOT / 'language_server'}"})
            if reader.stdout.readline() != "ready\n":
                sys.exit("Cuvil does not start")
        started = time.perf_counter()
        reader.stdin.write(path + "\n")
        reader.stdin.flush()
        answered = select.select([reader.stdout], [], [], limit)[0]
        line = reader.stdout.readline() if answered else ""
        result = json.loads(line) if line else {"findings": [], "fault": "crash" if answered else f"hang: ended after {limit:.0f} s"}
        if not line:
            reader.kill()
            reader.wait()
        lines = (folder / path).read_bytes().count(b"\n")
        yield {"path": path, "commit": name, "seconds": round(time.perf_counter() - started, 2), "lines": lines} | result
    if reader is not None:
        reader.stdin.close()
        reader.wait()


def _answer() -> None:
    """In the process that reads: a path comes in on each line, its findings go out on one."""
    from cuvil_cli import check
    from cuvil_ide import lints  # noqa: F401    (loaded before the clock runs)
    print("ready", flush=True)
    for count, line in enumerate(sys.stdin):
        if count % CHUNK == 0:
            check._session.cache_clear()
        result = check.check_path(line.rstrip("\n"), check.Rules())
        print(json.dumps({"findings": [d.to_json() for d in result.diagnostics], "fault": result.problem and f"{result.problem.code}: {result.problem.message}",
                          "understood": result.understood, "unknown": dict(result.unknown),
                          "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}), flush=True)


if __name__ == "__main__":
    _answer()
