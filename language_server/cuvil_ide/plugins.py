"""Rules from the user's project: `[tool.cuvil] plugins = ["my_rules"]`, a module beside the pyproject.toml, or the name under which an
installed package offers rules: its entry point in the group `cuvil.rules`.

A plugin is a rule file like those in lints/ (it has RULE), or a module with a list RULES of such rules; `cuvil rule new` writes one.
Loading runs the project's code, so it happens only where the user said that the project is trusted (CI and an explicit setting).
"""
from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from cuvil.diagnostics import Diagnostic
from cuvil.source import Span

from .config import Config
from .lints.rule import Rule

GROUP = "cuvil.rules"


def load_plugins(config: Config, trusted: bool = False) -> tuple[list[Rule], list[Diagnostic]]:
    """The rules, and one note for each plugin that could not be used. Untrusted: nothing runs and nothing is said."""
    rules: list[Rule] = []
    notes: list[Diagnostic] = []
    if not trusted:
        return rules, notes
    for name in config.plugins:
        try:
            rules += _load(Path(config.root), name)
        except (Exception, SystemExit) as error:     # the user's module may raise anything; it is theirs to fix, so say it once
            note = f"plugin {name} cannot be used: {type(error).__name__}: {error}"
            file = Path(config.root) / "pyproject.toml"
            notes.append(Diagnostic("CUV002", "broken-plugin", "configuration", note, Span(str(file), 1, 0, 1, 0), "proved", "info"))
    return rules, notes


def _load(root: Path, name: str) -> list[Rule]:
    """The module beside the settings, else the entry point of that name."""
    file = root.joinpath(*name.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if file.is_file():
        return load_file(file)
    from importlib.metadata import entry_points
    for point in entry_points(group=GROUP, name=name):
        return _rules(point.load())
    raise FileNotFoundError(f"no file {file}, and no installed package has an entry point {name} in {GROUP}")


def load_file(file: str | Path) -> list[Rule]:
    """The rules in a file. Runs it; raises whatever it raises."""
    file = Path(file)
    name = file.parent.name if file.name == "__init__.py" else file.stem
    spec = importlib.util.spec_from_file_location(f"cuvil_plugin_{name}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return _rules(module)


def _rules(module: Any) -> list[Rule]:
    """The rules of a module, or of an entry point that names a rule or a list of them itself."""
    rules = [module] if isinstance(module, Rule) else list(module) if isinstance(module, (list, tuple)) else list(
        getattr(module, "RULES", None) or [module.RULE])
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TypeError(f"{rule!r} in RULES is not a cuvil_ide.lints.rule.Rule")
    return rules
