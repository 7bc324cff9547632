"""Which file of a project a dotted module name is, found by looking at the disk and nothing else.

An absolute name is looked for beside the file that imports it, under the root, and under root/src; a relative one from the file's folder.
A root that is itself a package is also found by its own name. What lies outside the root, also by a link, is no file of the project.
"""
from __future__ import annotations

import os
from pathlib import Path


class Places:
    """Each place is looked at once, until `forget`."""

    def __init__(self, root: str | Path = ".") -> None:
        self.root = str(root)
        self._real_root = os.path.realpath(root)
        self._found: dict[tuple[str, str, int], str | None] = {}
        self._package = package(self._real_root)

    def forget(self) -> None:
        self._found.clear()

    def place(self, dotted: str, folder: str, level: int) -> str | None:
        """The path of a module that a file in a folder imports; level: the dots before a relative name."""
        key = dotted, folder, level
        if key not in self._found:
            self._found[key] = self._look(dotted, Path(folder), level)
        return self._found[key]

    def _look(self, dotted: str, base: Path, level: int) -> str | None:
        parts = [part for part in dotted.split(".") if part]
        if level:
            for _ in range(level - 1):
                base = base.parent
            return self._module(str(base), parts)
        for start in dict.fromkeys((str(base), self.root, os.path.join(self.root, "src"))):
            found = self._module(start, parts)
            if found is not None:
                return found
        own = len(self._package)
        return self._module(self.root, parts[own:]) if own and parts[:own] == self._package else None

    def _module(self, base: str, parts: list[str]) -> str | None:
        place = os.path.join("" if base == "." else base, *parts)
        for candidate in (place + ".py" if parts else None, os.path.join(place, "__init__.py")):
            if candidate is not None and os.path.isfile(candidate) and self._inside(candidate):
                return candidate
        return None

    def _inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real == self._real_root or real.startswith(self._real_root.rstrip(os.sep) + os.sep)


def package(folder: str) -> list[str]:
    """The dotted name of a folder that is a package, in parts; [] for any other folder."""
    parts: list[str] = []
    while os.path.basename(folder).isidentifier() and os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.append(name)
    return parts[::-1]
