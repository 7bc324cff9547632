"""A file's functions against the last committed version, for the lens in the editor. Reads git objects; runs no hook or filter."""
from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cuvil.source import Source

if TYPE_CHECKING:
    from ..session import Session
    from . import FunctionDiff

FRESH = 2.0            # seconds for which a blob id is trusted, so that the lenses of one file ask git once
TIMEOUT = 5.0

_blobs: dict[str, tuple[float, str]] = {}
_results: WeakKeyDictionary[Session, dict[str, tuple[str, str, dict[str, FunctionDiff]]]] = WeakKeyDictionary()


def against_head(session: Session, path: str, function: str) -> tuple[str, str]:
    """(one word for the lens, the longer reason). No commit to compare with is an answer too."""
    blob = _blob(path)
    if not blob:
        return "not committed", "this file is not in the last commit"
    text = session.source(path).text
    kept = _results.setdefault(session, {})
    if path not in kept or kept[path][:2] != (blob, text):
        from cuvil.frontends import python
        from cuvil.frontends.python.workspace import Workspace

        from . import compare
        old = python.analyze(Source(path, _git(path, "cat-file", "blob", blob)), Workspace(session.root))
        kept[path] = blob, text, {d.name: d for d in compare(old, session.facts(path))}
    change = kept[path][2].get(function)
    if change is None:
        return "unknown", "the function could not be compared"
    if change.reason == "only in the new text":
        return "new", "this function is not in the last commit"
    details = [f"+ {c.after}" for c in change.added] + [f"- {c.before}" for c in change.removed] + [f"~ {c.after}  ({c.what})" for c in change.changed]
    counts = f" (+{len(change.added)} -{len(change.removed)} ~{len(change.changed)})" if change.verdict == "drift" and details else ""
    return change.verdict + counts, "\n".join(([change.reason] if change.reason else []) + details[:12])


def _blob(path: str) -> str:
    asked, blob = _blobs.get(path, (0.0, ""))
    if time.monotonic() - asked > FRESH or asked == 0.0:
        blob = _git(path, "rev-parse", "--verify", "--quiet", f"HEAD:./{Path(path).name}").strip()
        _blobs[path] = time.monotonic(), blob
    return blob


def _git(path: str, *arguments: str) -> str:
    """The output, "" on any failure: no git, no repository, no such file in it."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    try:
        done = subprocess.run(["git", "-c", "core.fsmonitor=false", *arguments], cwd=str(Path(path).absolute().parent), env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=True)
        return done.stdout.decode("utf-8")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
