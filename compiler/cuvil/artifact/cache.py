"""Objects kept by content in the user's cache folder, the least used ones dropped when it grows over a bound.

A key is a hash of everything that goes into an object, the compiler's own code included, so nothing is ever out of date.
When the folder cannot be written, things are made again each time; that is never an error.
"""
from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .. import __version__
from ..diagnostics import CuvilError
from . import files

LIMIT = 512 * 1024 * 1024                    # bytes


def folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and os.path.isabs(base) else Path(os.path.expanduser("~")) / ".cache"
    return root / "cuvil"


def key(*parts: str | bytes) -> str:
    """The hash of the parts; each is preceded by its length, so that none runs into the next."""
    digest = hashlib.sha256()
    for part in (toolchain(), *parts):
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def toolchain() -> str:
    """What the compiler itself is: its version, and the time and size of each of its files."""
    return stamps(Path(__file__).parents[1])


@cache
def stamps(folder: Path) -> str:
    """What the code in a folder is, without reading it."""
    found = []
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.c"), *folder.rglob("*.h")]):
        status = path.stat()
        found.append(f"{path.relative_to(folder)}:{status.st_size}:{status.st_mtime_ns}")
    return hashlib.sha256("\n".join([__version__, *found]).encode()).hexdigest()


def path_of(key: str, suffix: str) -> Path:
    return folder() / key[:2] / f"{key}{suffix}"


def find(key: str, suffix: str) -> Path | None:
    """The kept file, marked as used now; None if there is none."""
    path = path_of(key, suffix)
    try:
        os.utime(path)
    except OSError:
        return None
    return path


def keep(key: str, suffix: str, data: bytes) -> Path | None:
    """The file that now holds the data; None when the cache cannot be written."""
    path = path_of(key, suffix)
    try:
        if not folder().exists():
            folder().mkdir(mode=0o700, parents=True)         # libraries are loaded from here: nobody else writes to it
            files.write({folder() / "CACHEDIR.TAG": files.CACHEDIR_TAG.encode()})
        files.write({path: data})
    except (OSError, CuvilError):
        return None
    trim()
    return path


def trim(limit: int = LIMIT) -> None:
    """Drop the files used longest ago until the rest fits."""
    kept = sorted(entries(), key=lambda e: e[1].st_mtime_ns, reverse=True)
    total = 0
    for path, status in kept:
        total += status.st_size
        if total > limit:
            path.unlink(missing_ok=True)


def clear() -> int:
    """Drop everything; the number of bytes that were there."""
    return sum(_dropped(path, status.st_size) for path, status in list(entries()))


def entries() -> Iterator[tuple[Path, os.stat_result]]:
    """Each kept file and its status."""
    try:
        shelves = [entry.path for entry in os.scandir(folder()) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for shelf in shelves:
        for entry in os.scandir(shelf):
            try:
                yield Path(entry.path), entry.stat(follow_symlinks=False)
            except OSError:
                continue


def _dropped(path: Path, size: int) -> int:
    path.unlink(missing_ok=True)
    return size
