"""Files named on a command line: finding them, reading them as Python does, writing them so that nothing is ever half written.

A file that cannot be read is a CuvilError with its place, never an exception of the operating system. Folders are walked in sorted
order; hidden folders, virtual environments, node_modules and caches are not entered, links to folders are not followed.
"""
from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cuvil.diagnostics import CuvilError
from cuvil.source import Source, Span

SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "__pypackages__"})
LIMIT = 32 << 20                             # bytes; the largest Python files people write are a tenth of this


@dataclass(frozen=True)
class File:
    """A file as read. encoding: by its BOM or PEP 263 cookie, needed to write it back as it was."""

    source: Source
    encoding: str


def collect(paths: Iterable[str], suffix: str | tuple[str, ...] = ".py") -> tuple[list[str], list[CuvilError]]:
    """The files behind the names, each once, and what could not be looked into. A file named outright is taken whatever its suffix."""
    found: dict[str, None] = {}
    problems: list[CuvilError] = []
    for path in paths:
        if not os.path.isdir(path):
            found[path] = None
            continue
        def unreadable(error: OSError) -> None:
            problems.append(_problem(error.filename or path, f"cannot list the folder: {error.strerror}"))
        for folder, subfolders, names in os.walk(path, onerror=unreadable):
            subfolders[:] = sorted(name for name in subfolders if not _skipped(folder, name))
            found.update((os.path.join(folder, name), None) for name in sorted(names) if name.endswith(suffix))
    return list(found), problems


def _skipped(folder: str, name: str) -> bool:
    return name.startswith(".") or name in SKIPPED or os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))


def read(path: str) -> File:
    """A file's text, decoded as Python decodes it; line ends are kept. Raises CuvilError that says what is wrong with it and where."""
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise _problem(path, "not a file" if not stat.S_ISDIR(mode) else "is a folder", "the path of a Python file")
        with open(path, "rb") as stream:
            content = stream.read(LIMIT + 1)
    except FileNotFoundError:
        raise _problem(path, "there is no such file", hint="check the spelling; paths are relative to the current folder") from None
    except OSError as error:
        raise _problem(path, f"cannot read the file: {error.strerror}") from None
    if len(content) > LIMIT:
        raise _problem(path, f"the file is larger than {LIMIT >> 20} MiB", "Python source")
    return decode(path, content)


def decode(path: str, content: bytes) -> File:
    import tokenize
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        return File(Source(path, content.decode(encoding)), encoding)
    except UnicodeDecodeError as error:
        before = content[:error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1:].decode("utf-8", "replace"))
        raise CuvilError(f"not {error.encoding}: byte 0x{content[error.start]:02x} ({error.reason})", Span(path, line, column, line, column + 1),
                         "UTF-8, or the encoding that a `# -*- coding: ... -*-` line names", "save the file as UTF-8", code="CUV004") from None
    except (SyntaxError, LookupError, ValueError) as error:      # the cookie names no encoding of text, or the first lines are not what it says
        raise _problem(path, str(getattr(error, "msg", None) or error), "UTF-8, or the encoding that a `# -*- coding: ... -*-` line names") from None


def write(path: str, text: str, encoding: str = "utf-8") -> None:
    """Replace a file in one step, keeping its permissions; on any error the old file is untouched. Links are written through."""
    import tempfile
    target = os.path.realpath(path)
    content = text.encode(encoding)
    folder = os.path.dirname(target) or "."
    try:
        handle, temporary = tempfile.mkstemp(prefix=".cuvil-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            mode = os.stat(target).st_mode & 0o7777 if os.path.exists(target) else 0o666 & ~_umask()
            os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise CuvilError(f"{path}: cannot write the file: {error.strerror}", hint="check the folder's permissions and free space") from None


def repository(path: str = ".") -> Path:
    """The nearest folder above with a `.git`, else the current folder: what paths in machine-readable output are relative to."""
    start = Path(path).resolve()
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), Path.cwd())


def relative(path: str, root: Path) -> str:
    """A path with forward slashes, relative to root where it lies below it."""
    full = Path(os.path.abspath(path))
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else full.as_posix()


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def _problem(path: str, what: str, expected: str = "", hint: str = "") -> CuvilError:
    return CuvilError(what, Span(path, 1, 0, 1, 0), expected, hint, code="CUV004")
