"""Find mistakes in tensor code without running it, with the facts that prove them.

examples:
  cuvil lint model.py src/            files and folders; `-` reads standard input
  cuvil lint . --format sarif > out.sarif
  cuvil lint . --select CUV1 --fix    apply safe fixes of the rules CUV1xx
  cuvil lint . --statistics           how much of the tensor code was understood

Exit code 1 when something is *proved* wrong (--fail-on says otherwise), 2 when a file could not be read."""
from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from cuvil.diagnostics import CuvilError, Diagnostic
from cuvil.source import Source

from .. import files
from ..check import Rules, check, check_text, named
from ..findings import FileResult, Findings
from ..formats import FORMATS, render
from ..repair import ROUNDS, repair
from ..terminal import Progress, colourful, plural, table

LEVELS = ("proved", "likely", "hint", "never")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files or folders, `-` for standard input (default: .)")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--output", "-o", metavar="FILE", help="write there instead of to standard output")
    parser.add_argument("--select", metavar="RULES", default="", help="only these: codes, prefixes of codes, names; comma-separated")
    parser.add_argument("--ignore", metavar="RULES", default="", help="all but these")
    parser.add_argument("--fix", action="store_true", help="apply safe fixes")
    parser.add_argument("--unsafe-fixes", action="store_true", help="with --fix or --diff: also fixes that may change results")
    parser.add_argument("--diff", action="store_true", help="print what --fix would change, write nothing")
    parser.add_argument("--baseline", metavar="FILE", help="leave out findings that an earlier SARIF output has")
    parser.add_argument("--statistics", action="store_true", help="tensor expressions understood and not, by reason")
    parser.add_argument("--fail-on", choices=LEVELS, default="proved", help="the weakest certainty that fails (default: proved)")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 whatever is found")
    parser.add_argument("--jobs", "-j", type=int, default=0, metavar="N", help="worker processes (default: one for each core)")
    parser.add_argument("--stdin-filename", metavar="NAME", default="<stdin>", help="what to call standard input")
    parser.add_argument("--trusted", action="store_true", help="load rules from the project's own plugins (runs its code)")


def run(args: argparse.Namespace) -> int:
    rules = named(Rules(_rules(args.select), _rules(args.ignore), args.trusted))
    texts: dict[str, files.File] = {}
    results = _check(args, rules, texts)
    changed = _repair(args, rules, texts, results) if args.fix or args.diff else {}
    findings = _known(args.baseline, Findings(tuple(results), files.repository(), _reader(texts)))
    if args.diff:
        _print_diff(changed, texts)
    elif args.statistics:
        _print(args, _statistics(findings, args.format))
    else:
        _print(args, render(args.format, findings, colourful() and not args.output))
    if args.fix and not args.diff and changed:
        print(f"Fixed {plural(sum(n for _, n in changed.values()), 'finding')} in {plural(len(changed), 'file')}.", file=sys.stderr)
    if args.exit_zero:
        return 0
    if findings.problems:
        return 2
    return 1 if _fails(findings, args.fail_on) or (args.diff and changed) else 0


def _check(args: argparse.Namespace, rules: Rules, texts: dict[str, files.File]) -> list[FileResult]:
    results: list[FileResult] = []
    if "-" in args.paths:
        texts[args.stdin_filename] = files.decode(args.stdin_filename, sys.stdin.buffer.read())
        results.append(check_text(texts[args.stdin_filename].source, rules))
    paths, unreadable = files.collect(path for path in args.paths if path != "-")
    for error in unreadable:
        results.append(FileResult(error.span.path, problem=_unreadable(error)))
    with Progress("checking", len(paths)) as progress:
        results += check(paths, rules, args.jobs, progress.step)
    return _once(results)


def _once(results: list[FileResult]) -> list[FileResult]:
    """Remarks about the settings belong to no file of the run: each is made once, with the first file."""
    seen: set[Diagnostic] = set()
    kept = []
    for result in results:
        notes = [d for d in result.diagnostics if d.kind == "configuration"]
        new = {d for d in notes if d not in seen}
        seen |= new
        kept.append(replace(result, diagnostics=tuple(d for d in result.diagnostics if d in new or d.kind != "configuration")) if notes else result)
    return kept


def _repair(args: argparse.Namespace, rules: Rules, texts: dict[str, files.File], results: list[FileResult]) -> dict[str, tuple[Source, int]]:
    """Fix what can be fixed; the results of changed files are replaced by those of their new text. Path -> (old text, fixes made)."""
    changed: dict[str, tuple[Source, int]] = {}
    for i, result in enumerate(results):
        if not any(d.fix for d in result.diagnostics):
            continue
        file = texts.get(result.path) or files.read(result.path)
        source, fixed = file.source, 0
        for _ in range(ROUNDS):
            repaired, taken = repair(source, result.diagnostics, args.unsafe_fixes)
            if not taken or repaired.text == source.text:
                break
            after = check_text(repaired, rules)
            if after.problem:                # never leave a file worse than it was
                break
            source, result, fixed = repaired, after, fixed + len(taken)
        if fixed:
            changed[result.path] = file.source, fixed
            texts[result.path] = files.File(source, file.encoding)
            if not args.diff:
                results[i] = result
                if result.path == args.stdin_filename:
                    sys.stdout.write(source.text)
                else:
                    files.write(result.path, source.text, file.encoding)
    return changed


def _print_diff(changed: dict[str, tuple[Source, int]], texts: dict[str, files.File]) -> None:
    import difflib
    for path, (before, _) in changed.items():
        old, new = before.text.splitlines(keepends=True), texts[path].source.text.splitlines(keepends=True)
        for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
            sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")


def _print(args: argparse.Namespace, text: str) -> None:
    if args.output:
        files.write(args.output, text + "\n")
    elif text and not (args.fix and "-" in args.paths):      # then standard output is the repaired text
        print(text)


def _known(baseline: str | None, findings: Findings) -> Findings:
    """The findings without those whose fingerprints the baseline has."""
    if baseline is None:
        return findings
    import json
    try:
        document = json.loads(files.read(baseline).source.text)
        known = {p for run in document["runs"] for r in run["results"] for p in r.get("partialFingerprints", {}).values()}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise CuvilError(f"{baseline} is no SARIF file", expected="what `cuvil lint --format sarif -o FILE` writes") from None
    left = tuple(FileResult(r.path, tuple(d for d in r.diagnostics if findings.fingerprints[d] not in known), r.problem, r.understood, r.unknown)
                 for r in findings.results)
    return Findings(left, findings.root, findings.read)


def _fails(findings: Findings, level: str) -> bool:
    return any(LEVELS.index(d.certainty) <= LEVELS.index(level) and d.severity != "info" for d in findings.diagnostics) if level != "never" else False


def _statistics(findings: Findings, format: str) -> str:
    """How many tensor expressions have a known value, and why the others have none."""
    if format != "text":
        import json
        return json.dumps(findings.summary(), indent=2)
    known, unknown = findings.understood, findings.unknown
    whole = known + unknown.total()
    share = f"{100 * known / whole:.1f} %" if whole else "none found"
    rows = [(f"{known}", "understood", share)]
    rows += [(f"{count}", f"unknown: {reason}", f"{100 * count / whole:.1f} %") for reason, count in unknown.most_common()]
    counts = findings.summary()["rules"]
    rules = "\n".join(f"  {code}  {count}" for code, count in counts.items())
    return (f"{plural(len(findings.results), 'file')}, {plural(whole, 'tensor expression')}\n{table(rows, right=frozenset({0, 2}))}\n"
            + (f"\nfindings by rule\n{rules}" if rules else "\nno findings"))


def _reader(texts: dict[str, files.File]):
    """Texts by path, each read once; None for what cannot be read."""
    kept: dict[str, Source | None] = {}

    def read(path: str) -> Source | None:
        if path in texts:
            return texts[path].source
        if path not in kept:
            try:
                kept[path] = files.read(path).source if Path(path).is_file() else None
            except CuvilError:
                kept[path] = None
        return kept[path]

    return read


def _unreadable(error: CuvilError) -> Diagnostic:
    return replace(error.to_diagnostic(), name="unreadable-file", kind="unreadable-file", severity="error")


def _rules(text: str) -> tuple[str, ...]:
    return tuple(part for part in (p.strip() for p in text.split(",")) if part)
