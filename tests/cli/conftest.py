"""The command as a user runs it: a process with arguments, exit code and two streams."""
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def cuvil(tmp_path, monkeypatch):
    """cuvil("lint", "x.py") -> Done; runs in tmp_path with a cache of its own. A traceback in either stream fails the test."""
    def run(*arguments: str, stdin: str | bytes = b"", cwd: Path | None = None, env: dict[str, str] | None = None, timeout: float = 120) -> Done:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CI": "1", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", **(env or {})}
        done = subprocess.run([sys.executable, "-m", "cuvil_cli", *map(str, arguments)], cwd=cwd or tmp_path, env=environment, timeout=timeout,
                              input=stdin.encode("utf-8") if isinstance(stdin, str) else stdin, capture_output=True)
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        assert "Traceback (most recent call last)" not in out + err, err
        assert "internal error" not in err, err
        return Done(done.returncode, out, err)
    return run


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path
    return write
