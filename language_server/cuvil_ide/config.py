"""Settings from `[tool.cuvil]` of the nearest pyproject.toml that has it. A bad setting becomes a note and its default stays in force.

    [tool.cuvil]
    extend = "../shared/cuvil.toml"                  # start from another file: this one's keys win, its tables are merged
    select = ["CUV1", "format-of-tensor"]            # codes, prefixes of codes, or names; default: all rules
    ignore = ["CUV942"]
    per-file-ignores = {"tests/*" = ["CUV1"]}
    severity = {outer-broadcast = "error"}
    min-certainty = "likely"                         # hint (all), likely, or proved
    plugins = ["my_rules"]                           # modules beside this file; run only where the user trusts the project
    targets = {torch = "2.6", device = "cuda"}       # instead of what lock and environment files say

`docs/configuration.md` is the page for users.
"""
from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from cuvil.diagnostics import Diagnostic
from cuvil.source import Span

SEVERITIES = ("error", "warning", "performance", "info")
CERTAINTIES = ("hint", "likely", "proved")
DEPTH = 16                                       # files that extend each other; more is a circle


@dataclass(frozen=True)
class Config:
    """root: the folder of the settings file, "" if there is none. notes: what was wrong with it. targets: (name, version as written)."""

    root: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: Mapping[str, str] = field(default_factory=dict)
    min_certainty: str = "hint"
    plugins: tuple[str, ...] = ()
    targets: tuple[tuple[str, str], ...] = ()
    notes: tuple[Diagnostic, ...] = ()

    def enabled(self, code: str, name: str, path: str) -> bool:
        """Whether a rule runs on a file. ignore wins over select."""
        if self.select and not matches(self.select, code, name):
            return False
        if matches(self.ignore, code, name):
            return False
        return not any(matches(rules, code, name) and self._covers(pattern, path) for pattern, rules in self.per_file_ignores)

    def _covers(self, pattern: str, path: str) -> bool:
        """A pattern is of the path below the settings file, of the file's name, or (from an extended file) of the whole path."""
        full = Path(os.path.abspath(path))
        relative = full.relative_to(self.root) if self.root and full.is_relative_to(self.root) else Path(path)
        return fnmatch(relative.as_posix(), pattern) or fnmatch(full.name, pattern) or os.path.isabs(pattern) and fnmatch(full.as_posix(), pattern)

    def apply(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """The diagnostic with the severity the user wants; None if the user does not want to see it."""
        if CERTAINTIES.index(diagnostic.certainty) < CERTAINTIES.index(self.min_certainty):
            return None
        severity = self.severity.get(diagnostic.name) or self.severity.get(diagnostic.code)
        return replace(diagnostic, severity=severity) if severity else diagnostic


def matches(patterns: tuple[str, ...], code: str, name: str) -> bool:
    return any(pattern in (name, "ALL") or code.startswith(pattern) for pattern in patterns)


def load(path: str | Path) -> Config:
    """The settings for a file or folder. Never raises: what cannot be read is a note."""
    start = os.path.abspath(path)
    for folder in (Path(start), *Path(start).parents):
        if (found := settings(folder)) is not None:
            return found
    return Config()


def settings(folder: str | Path) -> Config | None:
    """The settings that stand in a folder itself; None where there are none."""
    file = Path(folder) / "pyproject.toml"
    if not os.path.isfile(file):                   # also where it may not be looked at
        return None
    table, notes = _extended(file)
    return None if table is None else _read(table, file, notes)


@dataclass(frozen=True)
class _Key:
    """A value of a setting, and the file it stands in."""

    value: Any
    file: Path


def _extended(file: Path) -> tuple[dict[str, _Key] | None, list[Diagnostic]]:
    """The keys of a file over those of the files it extends; None when it has no settings at all."""
    chain: list[dict[str, _Key]] = []
    notes: list[Diagnostic] = []
    at: Path | None = file
    while at is not None and len(chain) < DEPTH:
        try:
            document = tomllib.loads(at.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            notes.append(_note(at if os.path.isfile(at) else file, "" if os.path.isfile(at) else "extend",
                               f"cannot read the settings in {at.name}: {getattr(error, 'strerror', None) or error}; defaults are used"))
            return {} if at is file else {name: key for each in reversed(chain) for name, key in each.items()}, notes
        tools = document.get("tool")
        table = tools.get("cuvil") if isinstance(tools, dict) else None
        if table is None and at is not file and at.name != "pyproject.toml":
            table = {name: value for name, value in document.items() if name != "tool"}       # a file of settings and nothing else
        if table is None:
            return (None if at is file else _merged(chain)), notes
        if not isinstance(table, dict):
            notes.append(_note(at, "", "[tool.cuvil] is not a table; defaults are used"))
            return _merged(chain), notes
        chain.append({name: _Key(value, at) for name, value in table.items() if name != "extend"})
        base = table.get("extend")
        if base is not None and not isinstance(base, str):
            notes.append(_note(at, "extend", "[tool.cuvil] extend: expected the path of a TOML file; it is ignored"))
            base = None
        at = Path(os.path.abspath(at.parent / base)) if base else None
    if at is not None:
        notes.append(_note(file, "extend", "[tool.cuvil] extend: the files extend each other in a circle"))
    return _merged(chain), notes


def _merged(chain: list[dict[str, _Key]]) -> dict[str, _Key]:
    """One table of a chain of tables, the nearest first: its keys win; keys that are tables themselves are merged, key by key."""
    merged: dict[str, _Key] = {}
    for table in reversed(chain):
        for name, key in table.items():
            base = merged.get(name)
            if isinstance(key.value, dict):
                inner = {inner_name: _Key(value, key.file) for inner_name, value in key.value.items()}
                merged[name] = _Key({**(base.value if base and isinstance(base.value, dict) else {}), **inner}, key.file)
            else:
                merged[name] = key
    return merged


def _read(table: dict[str, _Key], file: Path, notes: list[Diagnostic]) -> Config:
    root = str(file.parent)

    def reject(key: str, at: Path, expected: str, name: str = "") -> None:
        notes.append(_note(at, name or key, f"[tool.cuvil] {key}: expected {expected}; the default is used"))

    def strings(key: str) -> tuple[str, ...]:
        given = table.get(key, _Key([], file))
        if _is_strings(given.value):
            return tuple(given.value)
        reject(key, given.file, "a list of strings")
        return ()

    def entries(key: str, good, expected: str) -> dict[str, _Key]:
        given = table.get(key, _Key({}, file))
        if not isinstance(given.value, dict):
            reject(key, given.file, expected)
            return {}
        for name, inner in given.value.items():
            if not good(inner.value):
                reject(key, inner.file, expected)
        return {name: inner for name, inner in given.value.items() if good(inner.value)}

    known = {"select", "ignore", "per-file-ignores", "severity", "min-certainty", "plugins", "targets"}
    for key in table.keys() - known:
        notes.append(_note(table[key].file, key, f"[tool.cuvil] {key}: there is no such setting; it is ignored"))
    certainty = table.get("min-certainty", _Key("hint", file))
    if certainty.value not in CERTAINTIES:
        reject("min-certainty", certainty.file, f"one of {', '.join(CERTAINTIES)}")
        certainty = _Key("hint", file)
    ignored = entries("per-file-ignores", _is_strings, "a table of lists of strings")
    return Config(root, strings("select"), strings("ignore"),
                  tuple((_pattern(name, key.file, root), tuple(key.value)) for name, key in ignored.items()),
                  {name: key.value for name, key in entries("severity", lambda v: v in SEVERITIES, f"a table of rule = one of {', '.join(SEVERITIES)}").items()},
                  certainty.value, strings("plugins"), _targets(entries("targets", lambda v: isinstance(v, str), "a table of name = \"version\""), notes),
                  tuple(notes))


def _targets(given: dict[str, _Key], notes: list[Diagnostic]) -> tuple[tuple[str, str], ...]:
    from .targets import NAMES, numbers
    good = []
    for name, key in given.items():
        if name not in NAMES:
            notes.append(_note(key.file, name, f"[tool.cuvil.targets] {name}: expected one of {', '.join(NAMES)}; it is ignored"))
        elif name != "device" and not numbers(key.value):
            notes.append(_note(key.file, name, f"[tool.cuvil.targets] {name}: expected a version, as \"2.6\"; it is ignored"))
        else:
            good.append((name, key.value))
    return tuple(good)


def _pattern(pattern: str, file: Path, root: str) -> str:
    """A pattern of an extended file counts from that file's folder, unless it is of names alone."""
    return pattern if "/" not in pattern or str(file.parent) == root else f"{file.parent.as_posix()}/{pattern}"


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _note(file: Path, key: str, message: str) -> Diagnostic:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    line = next((i for i, line in enumerate(text.splitlines(), 1) if key and line.strip().lstrip("\"'").startswith(key)), 1)
    return Diagnostic("CUV002", "bad-setting", "configuration", message, Span(str(file), line, 0, line, 0), "proved", "info")
