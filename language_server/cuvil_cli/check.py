"""Lints many files: reads each, asks the session, and never lets one file stop the others.

Few files are checked in this process; many are shared out to worker processes in chunks, and results come back in the order of
the files, so the output is the same for any number of workers.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from cuvil.diagnostics import CuvilError, Diagnostic
from cuvil.source import Source, Span

from . import files
from .findings import FileResult

CHUNK = 16                                   # files per task: enough to hide the cost of sending it
ALONE = 24                                   # up to so many files one process is quicker than starting others


@dataclass(frozen=True)
class Rules:
    """What to look for; empty select and ignore mean what pyproject.toml says."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    trusted: bool = False


def check(paths: Sequence[str], rules: Rules, jobs: int = 0, step: Callable[[str], None] = lambda path: None) -> Iterator[FileResult]:
    """The result of each file, in the order given. jobs: worker processes, 0 for as many as there are cores."""
    chunks = [paths[i:i + CHUNK] for i in range(0, len(paths), CHUNK)]
    jobs = min(jobs or _cores(), len(chunks))
    if jobs <= 1 or len(paths) <= ALONE:
        for result in (check_path(path, rules) for path in paths) if len(paths) <= ALONE else chain.from_iterable(_check_chunk(c, rules) for c in chunks):
            step(result.path)
            yield result
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        tasks = [pool.submit(_check_chunk, chunk, rules) for chunk in chunks]
        for chunk, task in zip(chunks, tasks):
            try:
                results: Iterable[FileResult] = task.result()
            except BrokenProcessPool:        # a worker was killed (memory): its files are named, the others are kept
                results = [_failed(path, "the worker process that checked this file was killed; is there enough memory?") for path in chunk]
            for result in results:
                step(result.path)
                yield result


def check_path(path: str, rules: Rules) -> FileResult:
    try:
        return check_text(files.read(path).source, rules)
    except CuvilError as error:
        return FileResult(path, problem=_problem(error, path))


def check_text(source: Source, rules: Rules) -> FileResult:
    """The findings of a text that stands for its path."""
    from cuvil_ide import lints
    path = source.path
    session = _session(rules.trusted)
    session.update(path, source.text)
    try:
        analysis = session.analysis(path)
        config = session.config(path)
        config = replace(config, select=rules.select or config.select, ignore=rules.ignore or config.ignore)
        plugins, notes = _plugins(config.root, config.plugins, rules.trusted)
        found = lints.check(analysis.facts, config, plugins)
        if analysis.failure:
            return FileResult(path, problem=analysis.failure)
        facts = analysis.facts
        unread = [d for d in lints.syntax_error.check(facts) if d not in found]        # said whatever rules are selected
        found = sorted([*unread, *found], key=lambda d: (d.span, d.code)) + notes + list(config.notes)
        return FileResult(path, tuple(found), None, facts.understood, facts.unknown)
    except (RecursionError, MemoryError) as error:
        return _failed(path, f"the code is nested too deeply to be checked ({type(error).__name__})")
    finally:
        session.close(path)


def _check_chunk(paths: Sequence[str], rules: Rules) -> list[FileResult]:
    """In a worker. What is known of the files is let go after each chunk: a large project does not fit into memory at once."""
    try:
        return [check_path(path, rules) for path in paths]
    finally:
        _session.cache_clear()


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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
