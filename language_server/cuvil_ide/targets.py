"""The versions a project runs with, read from its lock, requirement and environment files; nothing is installed or imported.

Per name the first that says something counts: `[tool.cuvil.targets]`, then lock files (uv.lock, poetry.lock, pdm.lock, pylock.toml),
then pins and bounds in requirements*.txt, pyproject.toml and environment.yml. Files are looked for in the folder of the code and
above it, up to the repository's root, the nearest first. Bounds allow many versions: the newest that Cuvil knows of is taken.
"""
from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuvil.frontends.python.targets import Targets

NAMES = ("python", "torch", "numpy", "onnxruntime", "transformers", "device")
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
CONDA = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
ALIASES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch", "onnxruntime-gpu": "onnxruntime", "numpy-base": "numpy"}
LAST = 9999                                      # "the last of a series": (1, 9999) is just below (2,)
LIMIT = 16 << 20                                 # bytes of a file that is read

_ENTRY = re.compile(r"""\s*(?:-\s+)?["']?(?:[\w.-]+::)?(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*(?P<spec>[=<>!~^(][^;#"']*)?""")
_CLAUSE = re.compile(r"(===|==|=|>=|<=|>|<|~=|!=|~|\^)?\s*v?(\d+(?:\.\d+)*)(\.\*)?")

_PACKAGE = re.compile(r'^name\s*=\s*"([\w.-]+)"\s*\nversion\s*=\s*"([^"]+)"', re.MULTILINE)      # locks are too long for a parser that is slow

Bounds = tuple[tuple[int, ...], tuple[int, ...] | None]      # lowest, and highest where there is one
Known = dict[tuple[str, Path], tuple[tuple[str, Bounds], ...]]


def targets(folder: str | Path, given: Mapping[str, str] = {}, known: Known | None = None) -> Targets:
    """The targets of code in a folder. given: what the settings say, as written. known: what was read before, and is not read again."""
    from cuvil.frontends.python.targets import DEFAULT_TARGETS, Targets
    versions = {name: _chosen(bounds, getattr(DEFAULT_TARGETS, name)) for name, bounds in declared(folder, given, known).items()}
    return Targets(**versions, device=given.get("device", ""))


def declared(folder: str | Path, given: Mapping[str, str] = {}, known: Known | None = None) -> dict[str, Bounds]:
    """What the files and the settings allow, by name, in the order of NAMES."""
    known = {} if known is None else known
    found: dict[str, Bounds] = {}
    places = list(_places(folder))
    for read in (_locked, _declared):
        for place in places:
            if (read.__name__, place) not in known:
                known[read.__name__, place] = tuple(read(place))
            for name, bounds in known[read.__name__, place]:
                found.setdefault(name, bounds)
    found.update((name, (numbers(version), numbers(version))) for name, version in given.items() if name != "device" and numbers(version))
    return {name: found[name] for name in NAMES if name in found}


def _chosen(bounds: Bounds, newest: tuple[int, ...]) -> tuple[int, ...]:
    """The newest version that is allowed and known; one that is not known yet only when nothing else is allowed."""
    lowest, highest = bounds
    return max(newest, lowest) if highest is None else max(min(newest, highest), lowest)


def numbers(version: str) -> tuple[int, ...]:
    """(2, 6, 0) of "2.6.0+cu124"; () for what is no version."""
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()


def _places(folder: str | Path) -> Iterator[Path]:
    """The folder and those above it, up to the root of the repository; without a repository, up to the first with a project's files."""
    above = [Path(os.path.abspath(folder)), *Path(os.path.abspath(folder)).parents]
    root = next((i for i, place in enumerate(above) if os.path.exists(place / ".git")), None)
    for i, place in enumerate(above):
        yield place
        if i == root or root is None and os.path.isfile(place / "pyproject.toml"):
            return


def _locked(folder: Path) -> Iterator[tuple[str, Bounds]]:
    for file in LOCKS:
        best: dict[str, tuple[int, ...]] = {}
        for name, version in _PACKAGE.findall(_text(folder / file)):
            if _name(name) in NAMES:
                best[_name(name)] = max(best.get(_name(name), ()), numbers(version))      # a lock may hold one for each version of Python
        yield from ((name, (version, version)) for name, version in best.items())


def _declared(folder: Path) -> Iterator[tuple[str, Bounds]]:
    lines: list[str] = []
    try:
        names = sorted(os.listdir(folder), key=lambda name: (name != "requirements.txt", name))
    except OSError:
        names = []
    for name in names:
        if name.startswith("requirements") and name.endswith((".txt", ".in")) or name in CONDA:
            lines += _text(folder / name).splitlines()
    yield from _of_lines(lines)
    project = _toml(folder / "pyproject.toml")
    if project:
        yield from _of_project(project)


def _of_project(document: Mapping[str, Any]) -> Iterator[tuple[str, Bounds]]:
    project, tools = _table(document.get("project")), _table(document.get("tool"))
    lines = [*_list(project.get("dependencies"))]
    for group in (project.get("optional-dependencies"), document.get("dependency-groups")):
        lines += [line for each in _table(group).values() for line in _list(each)]
    yield from _of_lines([line for line in lines if isinstance(line, str)])
    poetry = _table(tools.get("poetry"))
    wanted = [poetry.get("dependencies"), *(_table(group).get("dependencies") for group in _table(poetry.get("group")).values())]
    for name, value in (pair for each in wanted for pair in _table(each).items()):
        version = value if isinstance(value, str) else _table(value).get("version")
        if _name(name) in NAMES and isinstance(version, str) and (bounds := _bounds(version, bare="^")):
            yield _name(name), bounds
    python = project.get("requires-python")
    if isinstance(python, str) and (bounds := _bounds(python)):
        yield "python", bounds


def _of_lines(lines: list[str]) -> Iterator[tuple[str, Bounds]]:
    for line in lines:
        match = _ENTRY.match(line)
        if match and match["spec"] and (name := _name(match["name"])) in NAMES and (bounds := _bounds(match["spec"])):
            yield name, bounds


def _bounds(spec: str, bare: str = "==") -> Bounds | None:
    """The lowest and highest version that a specifier allows. bare: what a version without an operator means."""
    lowest: tuple[int, ...] = ()
    highest: tuple[int, ...] | None = None
    for match in _CLAUSE.finditer(spec.partition("||")[0]):
        operator, version = match[1] or bare, tuple(map(int, match[2].split(".")))
        top: tuple[int, ...] | None = None
        match operator:
            case "==" | "===" | "=":
                lowest, top = max(lowest, version), (*version, LAST) if match[3] or operator == "=" else version
            case ">=" | ">":
                lowest = max(lowest, version)
            case "<=":
                top = version
            case "<":
                top = _below(version)
            case "~=":
                lowest, top = max(lowest, version), (*version[:-1], LAST)
            case "~":
                lowest, top = max(lowest, version), (*version[:2], LAST)
            case "^":
                zeros = next((i for i, n in enumerate(version) if n), len(version) - 1)
                lowest, top = max(lowest, version), (*version[:zeros + 1], LAST)
            case _:
                continue
        highest = top if highest is None or top is not None and top < highest else highest
    return (lowest, highest) if lowest or highest else None


def _below(version: tuple[int, ...]) -> tuple[int, ...] | None:
    """The last version before another: (1, 9999) for 2.0, (2, 4, 9999) for 2.5."""
    while version and version[-1] == 0:
        version = version[:-1]
    return (*version[:-1], version[-1] - 1, LAST) if version else None


def _name(name: str) -> str:
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return ALIASES.get(plain, plain)


def _toml(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_text(file))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _text(file: Path) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read(LIMIT)
    except OSError:
        return ""


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, (dict, str))] if isinstance(value, list) else []
