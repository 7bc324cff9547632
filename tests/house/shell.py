"""The product as its user meets it: the installed `cuvil` command, in a folder of its own."""
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CUVIL = Path(sys.executable).parent / "cuvil"
# As root every permission is granted; without these two capabilities root is told "no" as everybody is.
OBEY_PERMISSIONS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []


@dataclass(frozen=True)
class Answer:
    """status: the exit status; text: all that was printed, as people see it."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Shell:
    """A folder to work in, and a `cuvil` in it."""

    folder: Path

    def write(self, name: str, text: str | bytes) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def cuvil(self, *arguments: object, before: list[str] = [], timeout: float = 60) -> Answer:
        """Whatever happens, no traceback reaches a user, and a crash of the process is never an answer."""
        environment = os.environ | {"XDG_CACHE_HOME": str(self.folder / "cache"), "NO_COLOR": "1"}
        done = subprocess.run([*before, str(CUVIL), *map(str, arguments)], cwd=self.folder, env=environment, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        answer = Answer(done.returncode, done.stdout, done.stderr)
        assert "Traceback (most recent call last)" not in answer.text, answer.text
        assert answer.status in (0, 1, 2), answer
        return answer
