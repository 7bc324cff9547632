"""The command as a user runs it. `cuvil` calls its entry function in this process, which is quick; `process` starts a real one."""
import io
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

    def checked(self) -> "Done":
        assert "Traceback (most recent call last)" not in self.out + self.err, self.err
        assert "internal error" not in self.err, self.err
        return self


@pytest.fixture(autouse=True)
def quiet_terminal(tmp_path, monkeypatch):
    """A cache of its own, no colours, and the folder of the test as the current one."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CI": "1", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def cuvil(monkeypatch):
    """cuvil("lint", "x.py") -> Done. A traceback or an internal error fails the test."""
    from cuvil_cli import check
    from cuvil_cli.main import main

    def run(*arguments: object, stdin: str = "", cwd: Path | None = None, env: dict[str, str] | None = None) -> Done:
        check._session.cache_clear()
        check._plugins.cache_clear()
        check._settings_of.cache_clear()
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8")), encoding="utf-8"))
            if cwd:
                patch.chdir(cwd)
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            try:
                code = main([str(a) for a in arguments])
            except SystemExit as exit:
                code = exit.code or 0
        texts = []
        for stream in streams:
            stream.flush()
            texts.append(stream.buffer.getvalue().decode("utf-8"))
        return Done(code, *texts).checked()
    return run


@pytest.fixture
def process():
    """The same as a process of its own."""
    def run(*arguments: object, stdin: bytes = b"", env: dict[str, str] | None = None, timeout: float = 120) -> Done:
        done = subprocess.run([sys.executable, "-m", "cuvil_cli", *map(str, arguments)], env={**os.environ, **(env or {})}, timeout=timeout,
                              input=stdin, capture_output=True)
        return Done(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")).checked()
    return run


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path
    return write
