"""How a function is named on a command line: FILE.py, or FILE.py:function, FILE.py:Class.method."""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError

from . import files

if TYPE_CHECKING:
    from cuvil_ide.session import Session


@dataclass(frozen=True)
class Target:
    """function: "" for all of the file that can be meant."""

    path: str
    function: str = ""


def parse(text: str) -> Target:
    """A path that exists is a path, whatever colons are in it; else what follows the last colon names the function."""
    if os.path.exists(text):
        return Target(text)
    path, colon, function = text.rpartition(":")
    if colon and path and function.replace(".", "").isidentifier():
        return Target(path, function)
    return Target(text)


def opened(target: Target) -> Session:
    """A session on the file's repository, with the file as it is on disk; CuvilError when it cannot be read."""
    from cuvil_ide.session import Session
    text = files.read(target.path).source.text
    session = Session(files.repository(str(Path(target.path).parent)))
    session.update(target.path, text)
    return session


def chosen(facts, target: Target) -> list:
    """The functions that are meant: the named one, else the decorated ones, else all with tensor code."""
    if target.function:
        found = facts.function(target.function)
        if found is None:
            known = ", ".join(f.name for f in facts.functions) or "none"
            raise CuvilError(f"there is no function {target.function} in {target.path}", expected=f"one of: {known}")
        return [found]
    entries = [f for f in facts.functions if f.entry is not None]
    return entries or [f for f in facts.functions if f.function is not None] or [f for f in facts.functions if f.refusal is not None]
