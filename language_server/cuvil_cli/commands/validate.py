"""Everything that must hold before a release, in one verdict: lint, compile, fidelity of the mapping, and meaning against a base.

examples:
  cuvil validate src/
  cuvil validate model.py --strict --base origin/main

Without --strict only proved findings and refused entry points fail. With it, likely findings, drift against the base, entry
points without their place in the source, and rules that could not run fail as well."""
from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from cuvil.diagnostics import CuvilError

from .. import files
from ..check import Rules, check
from ..target import Target, opened
from ..terminal import Progress, colourful, paint, plural


@dataclass(frozen=True)
class Check:
    """One thing that must hold of one file. state: ok, failed, warning, skipped."""

    path: str
    name: str
    state: str
    detail: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--strict", action="store_true", help="warnings fail")
    parser.add_argument("--base", metavar="REVISION", help="git revision that the functions must still mean the same as")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    paths, unreadable = files.collect(args.paths)
    checks = [Check(e.span.path, "read", "failed", e.what) for e in unreadable]
    with Progress("validating", len(paths)) as progress:
        for path in paths:
            progress.step(path)
            checks += validate(path, args.base)
    failing = [c for c in checks if c.state == "failed" or (args.strict and c.state == "warning")]
    if args.format == "json":
        print(json.dumps({"version": 1, "valid": not failing, "strict": args.strict, "checks": [asdict(c) for c in checks]}, indent=2))
    else:
        _print(checks, failing, len(paths))
    return 1 if failing else 0


def validate(path: str, base: str | None) -> Iterator[Check]:
    try:
        session = opened(Target(path))
    except CuvilError as error:
        yield Check(path, "read", "failed", error.what)
        return
    yield from _lint(path)
    for function in session.facts(path).functions:
        if function.entry is not None:
            yield from _compile(session, path, function)
    if base:
        yield from _meaning(path, session.source(path), base)


def _lint(path: str) -> Iterator[Check]:
    result = next(check([path], Rules()))
    if result.problem:
        yield Check(path, "lint", "failed", result.problem.message)
        return
    for d in result.diagnostics:
        state = "failed" if d.certainty == "proved" and d.severity != "info" else "warning" if d.certainty != "hint" else "ok"
        yield Check(path, "lint", state, f"{d.span}: {d.code} {d.message.partition(chr(10))[0]}")
    if not result.diagnostics:
        yield Check(path, "lint", "ok", "no findings")


def _compile(session, path: str, function) -> Iterator[Check]:
    """An entry point goes through every stage up to native code, at example sizes where its own are open."""
    from cuvil_ide.views.subject import failed, sizes

    from .explain import audit
    name = f"compile {function.name}"
    try:
        stages = session.stages(path, function.name)
        dims = sizes(stages.function)
        native = stages.at(**dims) if dims else stages
        size = len(native.object)
    except Exception as error:
        yield Check(path, name, "failed", str(failed(error, function)).replace("\n", "; "))
        return
    yield Check(path, name, "ok", f"{plural(len(native.kernels.kernels), 'kernel')}, {size} bytes of native code")
    lost = [f"{op} after {stage}" for stage, after in native.optimized.history
            for op in audit(after, session.source(path), native.optimized.history[0][1])["lost"]]
    yield Check(path, f"places {function.name}", "warning" if lost else "ok", "; ".join(lost[:5]) or "every op has its place and its name")


def _meaning(path: str, source, base: str) -> Iterator[Check]:
    from cuvil_ide.diff import diff

    from .diff import load
    try:
        old = load(f"{base}:{os.path.relpath(path)}")
    except CuvilError as error:
        yield Check(path, "meaning", "skipped", error.what)
        return
    for f in diff(old, source):
        state = {"drift": "warning", "unknown": "warning"}.get(f.verdict, "ok")
        yield Check(path, f"meaning {f.name}", state, f"{f.verdict}{': ' + f.reason if f.reason else ''} against {base}")


def _print(checks: list[Check], failing: list[Check], count: int) -> None:
    colour = colourful()
    tints = {"ok": "green", "failed": "red", "warning": "yellow", "skipped": "dim"}
    for c in checks:
        print(f"{paint(f'{c.state:<7}', tints[c.state], colour)}  {c.path}  {c.name}  {c.detail}".rstrip())
    verdict = f"not valid: {plural(len(failing), 'check')} failed" if failing else "valid"
    print(f"{verdict} ({plural(len(checks), 'check')} on {plural(count, 'file')})")
