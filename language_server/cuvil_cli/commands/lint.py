"""Find mistakes in tensor code without running it, with the facts that prove them.

examples:
  cuvil lint model.py src/            files and folders; `-` reads standard input
  cuvil lint . --format sarif > out.sarif
  cuvil lint . --select CUV1 --fix    apply safe fixes of the rules CUV1xx
  cuvil lint . --baseline .cuvil-baseline.json --update-baseline     start from what is there; later, fail on more
  cuvil lint . --explain-unknown      how much of the tensor code was understood, and why not the rest

Exit code 1 when something is *proved* wrong (--fail-on says otherwise) or when there is more than the baseline knows, 2 when a file could not be read."""
from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from cuvil.diagnostics import CuvilError, Diagnostic
from cuvil.source import Source

from .. import baseline, files, notebook
from ..check import Rules, check, check_source, named
from ..findings import FileResult, Findings
from ..formats import FORMATS, render
from ..kept import Store
from ..repair import ROUNDS, repair
from ..terminal import Progress, colourful, plural, table

CERTAINTIES = ("hint", "likely", "proved")
LEVELS = ("proved", "likely", "hint", "never")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files or folders, `-` for standard input (default: .)")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--output-file", "--output", "-o", dest="output", metavar="FILE", help="write there instead of to standard output")
    parser.add_argument("--select", metavar="RULES", default="", help="only these: codes, prefixes of codes, names; comma-separated")
    parser.add_argument("--ignore", metavar="RULES", default="", help="all but these")
    parser.add_argument("--min-certainty", choices=CERTAINTIES, default="", help="show nothing weaker (default: hint, or what the settings say)")
    parser.add_argument("--fix", action="store_true", help="apply safe fixes")
    parser.add_argument("--unsafe-fixes", action="store_true", help="with --fix or --diff: also fixes that may change results")
    parser.add_argument("--diff", action="store_true", help="print what --fix would change, write nothing")
    parser.add_argument("--baseline", metavar="FILE", help="report only what is more than this file (or an earlier SARIF output) knows")
    parser.add_argument("--update-baseline", action="store_true", help="write the findings to the baseline; one that exists only shrinks")
    parser.add_argument("--statistics", action="store_true", help="print the number of findings of each rule")
    parser.add_argument("--explain-unknown", action="store_true", help="print tensor expressions understood and not, by reason")
    parser.add_argument("--no-cache", action="store_true", help="check everything again, keep nothing")
    parser.add_argument("--fail-on", choices=LEVELS, default="proved", help="the weakest certainty that fails (default: proved)")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 whatever is found")
    parser.add_argument("--jobs", "-j", type=int, default=0, metavar="N", help="worker processes (default: one for each core)")
    parser.add_argument("--stdin-filename", metavar="NAME", default="<stdin>", help="what to call standard input")
    parser.add_argument("--trusted", action="store_true", help="load rules from the project's own plugins (runs its code)")


def run(args: argparse.Namespace) -> int:
    if args.update_baseline and not args.baseline:
        raise CuvilError("--update-baseline without a baseline", expected="--baseline FILE, which is then written")
    rules = named(Rules(_rules(args.select), _rules(args.ignore), args.trusted, args.min_certainty, args.explain_unknown))
    texts: dict[str, files.File] = {}
    results = _check(args, rules, texts)
    changed = _repair(args, rules, texts, results) if args.fix or args.diff else {}
    findings, grown = Findings(tuple(results), files.repository(), _reader(texts)), []
    if args.baseline:
        if args.update_baseline:
            baseline.update(args.baseline, findings)
        new = baseline.news(findings, baseline.read(args.baseline))
        findings, grown = new, baseline.growth(findings, new)
    if args.diff:
        _print_diff(changed, texts)
    elif args.statistics or args.explain_unknown:
        _print(args, _numbers(findings, args))
    else:
        _print(args, render(args.format, findings, colourful() and not args.output))
    if args.fix and not args.diff and changed:
        print(f"Fixed {plural(sum(n for _, n in changed.values()), 'finding')} in {plural(len(changed), 'file')}.", file=sys.stderr)
    if grown:
        print("\n  ".join([f"More findings than {args.baseline} knows:", *grown]), file=sys.stderr)
    if args.exit_zero:
        return 0
    if findings.problems:
        return 2
    return 1 if grown and args.fail_on != "never" or _fails(findings, args.fail_on) or (args.diff and changed) else 0


def _check(args: argparse.Namespace, rules: Rules, texts: dict[str, files.File]) -> list[FileResult]:
    results: list[FileResult] = []
    if "-" in args.paths:
        texts[args.stdin_filename] = files.decode(args.stdin_filename, sys.stdin.buffer.read())
        results.append(_standard_input(texts[args.stdin_filename].source, rules))
    paths, unreadable = files.collect((path for path in args.paths if path != "-"), (".py", notebook.SUFFIX))
    for error in unreadable:
        results.append(FileResult(error.span.path, problem=_unreadable(error)))
    with Progress("checking", len(paths)) as progress:
        results += check(paths, rules, args.jobs, progress.step, None if args.no_cache or not paths else Store(files.repository(), rules))
    return _once(results)


def _standard_input(source: Source, rules: Rules) -> FileResult:
    try:
        return check_source(source, rules)
    except CuvilError as error:
        return FileResult(source.path, problem=_unreadable(error))


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
            mend = notebook.repair if source.path.endswith(notebook.SUFFIX) else repair
            repaired, taken = mend(source, result.diagnostics, args.unsafe_fixes)
            if not taken or repaired.text == source.text:
                break
            after = check_source(repaired, rules)
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


def _fails(findings: Findings, level: str) -> bool:
    return any(LEVELS.index(d.certainty) <= LEVELS.index(level) and d.severity != "info" for d in findings.diagnostics) if level != "never" else False


def _numbers(findings: Findings, args: argparse.Namespace) -> str:
    if args.format != "text":
        import json
        return json.dumps(findings.summary(), indent=2)
    return "\n\n".join([*([_statistics(findings)] if args.statistics else []), *([_unknown(findings)] if args.explain_unknown else [])])


def _statistics(findings: Findings) -> str:
    counts = Counter((d.code, d.name) for d in findings.diagnostics)
    if not counts:
        return f"No findings in {plural(len(findings.results), 'file')}."
    rows = [(str(count), code, name) for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return table(rows, ("count", "code", "name"), right=frozenset({0}))


def _unknown(findings: Findings) -> str:
    """How many tensor expressions have a known value, and why the others have none."""
    known, unknown = findings.understood, findings.unknown
    whole = known + unknown.total()
    share = f"{100 * known / whole:.1f} %" if whole else "none found"
    rows = [(f"{known}", "understood", share)]
    rows += [(f"{count}", f"unknown: {reason}", f"{100 * count / whole:.1f} %") for reason, count in unknown.most_common()]
    return f"{plural(len(findings.results), 'file')}, {plural(whole, 'tensor expression')}\n{table(rows, right=frozenset({0, 2}))}"


def _reader(texts: dict[str, files.File]):
    """Texts by path, each read once; None for what cannot be read."""
    kept: dict[str, Source | None] = {}

    def read(path: str) -> Source | None:
        if path not in kept:
            file, cell = notebook.split(path)
            try:
                whole = texts[file].source if file in texts else files.read(file).source if Path(file).is_file() else None
                kept[path] = Source(path, notebook.read(whole).cells[cell - 1]) if cell and whole else whole
            except (CuvilError, IndexError):
                kept[path] = None
        return kept[path]

    return read


def _unreadable(error: CuvilError) -> Diagnostic:
    return replace(error.to_diagnostic(), name="unreadable-file", kind="unreadable-file", severity="error")


def _rules(text: str) -> tuple[str, ...]:
    return tuple(part for part in (p.strip() for p in text.split(",")) if part)
