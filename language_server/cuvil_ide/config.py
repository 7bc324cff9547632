"""Settings from `[tool.cuvil]` of the nearest pyproject.toml. A bad setting becomes a note and its default stays in force.

    [tool.cuvil]
    select = ["CUV1", "format-of-tensor"]            # codes, prefixes of codes, or names; default: all rules
    ignore = ["CUV942"]
    per-file-ignores = {"tests/*" = ["CUV1"]}
    severity = {outer-broadcast = "error"}
    min-confidence = "likely"                        # hint (all), likely, or proved
    plugins = ["my_rules"]                           # modules beside this file; run only where the user trusts the project
"""
from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from cuvil.diagnostics import Diagnostic
from cuvil.source import Span

SEVERITIES = ("error", "warning", "performance", "info")
CERTAINTIES = ("hint", "likely", "proved")


@dataclass(frozen=True)
class Config:
    """root: the folder of the pyproject.toml, "" if there is none. notes: what was wrong with it."""

    root: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severity: dict[str, str] = field(default_factory=dict)
    min_confidence: str = "hint"
    plugins: tuple[str, ...] = ()
    notes: tuple[Diagnostic, ...] = ()

    def enabled(self, code: str, name: str, path: str) -> bool:
        """Whether a rule runs on a file. ignore wins over select."""
        if self.select and not matches(self.select, code, name):
            return False
        if matches(self.ignore, code, name):
            return False
        return not any(matches(rules, code, name) for pattern, rules in self.per_file_ignores if self._covers(pattern, path))

    def _covers(self, pattern: str, path: str) -> bool:
        full = Path(path)
        relative = full.as_posix()
        if self.root and full.is_absolute() and full.is_relative_to(self.root):
            relative = full.relative_to(self.root).as_posix()
        return fnmatch(relative, pattern) or fnmatch(full.name, pattern)

    def apply(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """The diagnostic with the severity the user wants; None if the user does not want to see it."""
        if CERTAINTIES.index(diagnostic.certainty) < CERTAINTIES.index(self.min_confidence):
            return None
        severity = self.severity.get(diagnostic.name) or self.severity.get(diagnostic.code)
        return replace(diagnostic, severity=severity) if severity else diagnostic


def matches(patterns: tuple[str, ...], code: str, name: str) -> bool:
    return any(pattern in (name, "ALL") or code.startswith(pattern) for pattern in patterns)


def load(path: str | Path) -> Config:
    """The settings for a file or folder. Never raises: what cannot be read is a note."""
    start = Path(path).absolute()
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            break
    else:
        return Config()
    try:
        text = file.read_text(encoding="utf-8")
        tools = tomllib.loads(text).get("tool")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Config(str(folder), notes=(_note(file, "", f"cannot read the settings: {error}; defaults are used"),))
    return _read(tools.get("cuvil", {}) if isinstance(tools, dict) else {}, text, file)


def _read(table: Any, text: str, file: Path) -> Config:
    config, notes = Config(str(file.parent)), []

    def reject(key: str, expected: str) -> None:
        notes.append(_note(file, text, f"[tool.cuvil] {key}: expected {expected}; the default is used", key))

    def strings(key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        reject(key, "a list of strings")
        return ()

    if not isinstance(table, dict):
        notes.append(_note(file, text, "[tool.cuvil] is not a table; defaults are used"))
        return replace(config, notes=tuple(notes))
    for key in table.keys() - {"select", "ignore", "per-file-ignores", "severity", "min-confidence", "plugins", "targets"}:
        notes.append(_note(file, text, f"[tool.cuvil] {key}: there is no such setting; it is ignored", key))

    per_file = table.get("per-file-ignores", {})
    if not (isinstance(per_file, dict) and all(isinstance(v, list) and all(isinstance(i, str) for i in v) for v in per_file.values())):
        reject("per-file-ignores", "a table of lists of strings")
        per_file = {}
    severity = table.get("severity", {})
    if not (isinstance(severity, dict) and all(v in SEVERITIES for v in severity.values())):
        reject("severity", f"a table of rule = one of {', '.join(SEVERITIES)}")
        severity = {}
    confidence = table.get("min-confidence", "hint")
    if confidence not in CERTAINTIES:
        reject("min-confidence", f"one of {', '.join(CERTAINTIES)}")
        confidence = "hint"
    return replace(config, select=strings("select"), ignore=strings("ignore"), plugins=strings("plugins"), severity=severity,
                   per_file_ignores=tuple((k, tuple(v)) for k, v in per_file.items()), min_confidence=confidence,
                   notes=tuple(notes))


def _note(file: Path, text: str, message: str, key: str = "") -> Diagnostic:
    line = next((i for i, line in enumerate(text.splitlines(), 1) if key and line.strip().startswith(key)), 1)
    return Diagnostic("CUV002", "bad-setting", "configuration", message, Span(str(file), line, 0, line, 0), "proved", "info")
