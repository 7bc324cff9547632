"""Lints many files: reads each, asks the session, and never lets one file stop the others."""
from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from cuvil.diagnostics import CuvilError, Diagnostic
from cuvil.source import Source, Span

from . import files, notebook
from .findings import FileResult
from .parallel import resident, spread

MEMORY = 400 << 20                           # bytes of a process at which it lets go of what it knows


@dataclass(frozen=True)
class Rules:
    """What to look for; what is empty means what pyproject.toml says."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    trusted: bool = False
    min_certainty: str = ""
    explain_unknown: bool = False                 # count what is not known after all that callers and documentation bring


def check(paths: Sequence[str], rules: Rules, jobs: int = 0, step: Callable[[str], None] = lambda path: None, store=None) -> Iterator[FileResult]:
    """The result of each file, in the order given. store: results of earlier runs (kept.Store), used and added to; None for none."""
    found = {} if store is None else _kept(paths, rules, store)
    fresh = spread([path for path in paths if path not in found], partial(_check_chunk, rules=rules), _killed, jobs)
    for path in paths:
        result = found.get(path) or next(fresh)
        if store is not None and not result.kept and (settings := _settings(path, rules)):
            store.keep(_own(result), settings)
        step(path)
        yield result
    if store is not None:
        store.save()


def _kept(paths: Sequence[str], rules: Rules, store) -> dict[str, FileResult]:
    found = {}
    for path in paths:
        settings = _settings(path, rules)
        result = store.find(path, settings) if settings else None
        if result is not None:
            found[path] = replace(result, diagnostics=result.diagnostics + _session(rules.trusted).config(path).notes)
    return found


def _settings(path: str, rules: Rules) -> str:
    """What a file is checked with beside the rules themselves; "" when plugins are, whose code may do anything."""
    return _settings_of(os.path.dirname(path), rules)


@lru_cache(maxsize=4096)
def _settings_of(folder: str, rules: Rules) -> str:
    session, path = _session(rules.trusted), os.path.join(folder, "a.py")
    config = session.config(path)
    return "" if rules.trusted and config.plugins else repr((replace(config, notes=()), session.declared(path)))


def _own(result: FileResult) -> FileResult:
    """Without remarks about the settings, which belong to no file."""
    return replace(result, diagnostics=tuple(d for d in result.diagnostics if d.kind != "configuration"))


def _killed(path: str) -> FileResult:
    return _failed(path, "the worker process that checked this file was killed; is there enough memory?")


def check_path(path: str, rules: Rules) -> FileResult:
    try:
        return check_source(files.read(path).source, rules)
    except CuvilError as error:
        return FileResult(path, problem=_problem(error, path))


def check_source(source: Source, rules: Rules) -> FileResult:
    """The findings of a file's text: of Python, or of a notebook."""
    return notebook.check(source, rules) if source.path.endswith(notebook.SUFFIX) else check_text(source, rules)


def check_text(source: Source, rules: Rules) -> FileResult:
    """The findings of a text that stands for its path."""
    from cuvil_ide import lints
    path = source.path
    session = _session(rules.trusted)
    session.update(path, source.text)
    try:
        analysis = session.analysis(path)
        config = session.config(path)
        config = replace(config, select=rules.select or config.select, ignore=rules.ignore or config.ignore,
                         min_certainty=rules.min_certainty or config.min_certainty)
        plugins, notes = _plugins(config.root, config.plugins, rules.trusted)
        found = lints.check(analysis.facts, config, plugins)
        if analysis.failure:
            return FileResult(path, problem=analysis.failure)
        facts = session.whole(path) if rules.explain_unknown else analysis.facts
        unread = [d for d in lints.syntax_error.check(facts) if d not in found]        # said whatever rules are selected
        found = sorted([*unread, *found], key=lambda d: (d.span, d.code)) + notes + list(config.notes)
        looked_at, looked_for = session.workspace(path).asked(path)
        asked = (*((name,) for name in sorted(looked_at)), *sorted(looked_for))
        return FileResult(path, tuple(found), None, facts.understood, facts.unknown, asked)
    except (RecursionError, MemoryError) as error:
        return _failed(path, f"the code is nested too deeply to be checked ({type(error).__name__})")
    finally:
        session.forget(path)


def _check_chunk(paths: Sequence[str], rules: Rules) -> list[FileResult]:
    """In a worker. What is known of the files serves the next ones, until it takes much memory: a large project does not fit at once."""
    try:
        return [check_path(path, rules) for path in paths]
    finally:
        if resident() > MEMORY:
            _session.cache_clear()
            gc.collect()


@lru_cache(maxsize=2)
def _session(trusted: bool):
    from cuvil_ide.session import Session
    return Session(files.repository(), trusted)


@lru_cache(maxsize=64)
def _plugins(root: str, names: tuple[str, ...], trusted: bool) -> tuple[list, list[Diagnostic]]:
    if not names:
        return [], []
    from cuvil_ide.config import Config
    from cuvil_ide.plugins import load_plugins
    return load_plugins(Config(root, plugins=names), trusted)


def named(rules: Rules) -> Rules:
    """The same rules; CuvilError for a code, prefix or name in them that no rule has."""
    if not rules.select and not rules.ignore:
        return rules
    from cuvil_ide.config import matches
    from cuvil_ide.lints import RULES
    for pattern in (*rules.select, *rules.ignore):
        if not rules.trusted and not any(matches((pattern,), r.code, r.name) for r in RULES):    # a plugin's rules are not known yet
            raise CuvilError(f"there is no rule {pattern}", expected="codes, prefixes of codes, or names that `cuvil rule` lists", hint="cuvil rule")
    return rules


def _failed(path: str, why: str) -> FileResult:
    return FileResult(path, problem=_problem(CuvilError(why, Span(path, 1, 0, 1, 0), code="CUV003"), path))


def _problem(error: CuvilError, path: str) -> Diagnostic:
    return replace(error.to_diagnostic(path), name="unreadable-file" if error.code == "CUV004" else "analysis-failed",
                   kind="unreadable-file", severity="error")
