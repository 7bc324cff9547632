"""Writing files so that nobody ever sees half of one: a set of files appears whole, or nothing of the old is touched."""
from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from ..diagnostics import CuvilError

# https://bford.info/cachedir/
# Seconds after which a temporary file belongs to nobody: no compilation takes so long.
UNFINISHED = 3600
CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds files that Cuvil made and can make again.\n"


def write(files: Mapping[Path, bytes]) -> None:
    """All files under temporary names first, then renamed in the order given. CuvilError when one cannot be written."""
    ready: list[tuple[str, Path]] = []
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            ready.append((temporary, path))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o755 if path.suffix in (".so", ".dylib", ".dll") else 0o644)
        for temporary, path in ready:
            os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(Path(error.filename or path), error) from None
    finally:
        for temporary, _ in ready:
            Path(temporary).unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> CuvilError:
    return CuvilError(f"cannot write {path}: {error.strerror or error}", expected="a folder that can be written, with space left",
                      hint="choose another place with --output", code="CUV010")


def output_folder(root: Path) -> Path:
    """`.cuvil/` in a workspace, marked so that version control and backups pass it by. What a killed process left unfinished goes."""
    folder = root / ".cuvil"
    for left in folder.glob(".*.*.????????"):
        try:
            if time.time() - left.stat().st_mtime > UNFINISHED:
                left.unlink()
        except OSError:
            continue
    missing = {folder / name: text.encode() for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", CACHEDIR_TAG))
               if not (folder / name).exists()}
    if missing:
        write(missing)
    return folder
