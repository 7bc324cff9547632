"""Scores `cuvil lint` on a folder of cases: small files whose header says what a linter should find in them.

    python -m tests.cases.score DIR                        hits, misses and false alarms, and a table by kind
    python -m tests.cases.score DIR --format json          the same as a document
    python -m tests.cases.score DIR --kind mask-polarity   only expectations and findings of some kinds
    python -m tests.cases.score DIR --select CUV1          only some rules (as `cuvil lint --select`)
    python -m tests.cases.score DIR --min-recall 0.9 --max-clean 0 --max-false-alarms 3      exit code 1 when a bar is missed

A case starts with a YAML block in comments, from `# --- lint-case` to `# ---`: `id`, `category`, `clean`, and `expect`, a list of
{line, kind, message_words, alt_lines?}. Files are linted without their header, which would be a hint to a tool that reads comments;
lines are counted with it again in all that is printed. Files without such a header are left out.

    hit           a finding of the expected kind whose range touches `line` or one of `alt_lines`; a note when its message has none of the words
    miss          an expectation without a hit
    false alarm   any finding in a clean case, and in other cases a finding on no line that is listed
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

START, END = "# --- lint-case", "# ---"


@dataclass(frozen=True)
class Expectation:
    """lines: where a finding counts, the best one first."""

    lines: tuple[int, ...]
    kind: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """code: the file without its header. offset: the lines of the header."""

    name: str
    category: str
    clean: bool
    expect: tuple[Expectation, ...]
    code: str
    offset: int


@dataclass(frozen=True)
class Finding:
    """What of a finding counts here, in lines of the case as it stands in its folder."""

    case: str
    code: str
    name: str
    kind: str
    certainty: str
    first: int
    last: int
    message: str

    def touches(self, lines: tuple[int, ...]) -> bool:
        return any(self.first <= line <= self.last for line in lines)

    def __str__(self) -> str:
        return f"{self.case}:{self.first} {self.code} {self.name} [{self.kind}, {self.certainty}] {self.message.partition(chr(10))[0]}"


def read(file: Path) -> Case | None:
    """The case in a file; None when it has no header."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != START:
        return None
    end = next((i for i, line in enumerate(lines) if i and line.rstrip() == END), None)
    if end is None:
        raise ValueError(f"{file}: the header that starts on line 1 does not end; expected a line `{END}`")
    header = yaml.safe_load("".join(line[2:] for line in lines[1:end])) or {}
    expect = tuple(Expectation((e["line"], *e.get("alt_lines", ())), e["kind"], tuple(map(str, e.get("message_words", ()))))
                   for e in header.get("expect") or ())
    return Case(file.name, str(header.get("category", "")), bool(header.get("clean", not expect)), expect, "".join(lines[end + 1:]), end + 1)


def cases(folder: Path) -> list[Case]:
    return [case for case in map(read, sorted(folder.glob("*.py"))) if case]


def lint(found: list[Case], options: tuple[str, ...] = ()) -> list[Finding]:
    """What `cuvil lint` says of the cases, each in a file of its own without its header. Raises when it fails or could not check one."""
    offsets = {case.name: case.offset for case in found}
    with tempfile.TemporaryDirectory(prefix="cases-") as folder:
        for case in found:
            (Path(folder) / case.name).write_text(case.code, encoding="utf-8")
        command = [sys.executable, "-m", "cuvil_cli", "lint", ".", "--format", "json", "--exit-zero", *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"`cuvil lint` ended with {done.returncode}:\n{done.stderr}")
    document = json.loads(done.stdout)
    if document["problems"]:
        raise RuntimeError("\n".join(f"{p['path']}: {p['message']}" for p in document["problems"]))
    findings = []
    for f in document["findings"]:
        name = Path(f["path"]).name
        if name in offsets:                        # a remark about a file that is no case has no place here
            start, end = f["range"]["start"], f["range"]["end"]
            last = end["line"] - (end["column"] == 1 and end["line"] > start["line"])
            findings.append(Finding(name, f["code"], f["name"], f["kind"], f["certainty"], start["line"] + offsets[name], last + offsets[name], f["message"]))
    return findings


@dataclass(frozen=True)
class Score:
    """hits: (case, expectation, finding, its message is helpful). clean: the false alarms in clean cases, which are among false_alarms too."""

    cases: int
    hits: tuple[tuple[str, Expectation, Finding, bool], ...]
    misses: tuple[tuple[str, Expectation, tuple[Finding, ...]], ...]
    false_alarms: tuple[Finding, ...]
    clean: tuple[Finding, ...]

    @property
    def recall(self) -> float:
        whole = len(self.hits) + len(self.misses)
        return len(self.hits) / whole if whole else 1.0


def score(found: list[Case], findings: list[Finding], kinds: frozenset[str] = frozenset()) -> Score:
    by_case: dict[str, list[Finding]] = {case.name: [] for case in found}
    for finding in findings:
        if not kinds or finding.kind in kinds:
            by_case[finding.case].append(finding)
    hits, misses, alarms, in_clean = [], [], [], []
    for case in found:
        here = by_case[case.name]
        for e in case.expect:
            if kinds and e.kind not in kinds:
                continue
            right = [f for f in here if f.kind == e.kind and f.touches(e.lines)]
            if right:
                helpful = [f for f in right if not e.words or any(w.lower() in f.message.lower() for w in e.words)]
                hits.append((case.name, e, (helpful or right)[0], bool(helpful)))
            else:
                misses.append((case.name, e, tuple(f for f in here if f.touches(e.lines))))
        listed = tuple(line for e in case.expect for line in e.lines)
        wrong = here if case.clean else [f for f in here if not f.touches(listed)]
        alarms += wrong
        in_clean += wrong if case.clean else []
    return Score(len(found), tuple(hits), tuple(misses), tuple(alarms), tuple(in_clean))


def by_kind(result: Score) -> dict[str, dict[str, int]]:
    """kind -> how often it was expected, hit, and a false alarm."""
    hit = Counter(e.kind for _, e, _, _ in result.hits)
    missed = Counter(e.kind for _, e, _ in result.misses)
    alarms = Counter(f.kind for f in result.false_alarms)
    return {kind: {"expected": hit[kind] + missed[kind], "hits": hit[kind], "false_alarms": alarms[kind]} for kind in sorted(hit | missed | alarms)}


def document(result: Score) -> dict:
    return {
        "version": 1,
        "summary": {"cases": result.cases, "expected": len(result.hits) + len(result.misses), "hits": len(result.hits), "recall": round(result.recall, 4),
                    "false_alarms": len(result.false_alarms), "false_alarms_in_clean_cases": len(result.clean),
                    "unhelpful_messages": sum(not helpful for *_, helpful in result.hits)},
        "kinds": by_kind(result),
        "hits": [{"case": case, "expected": asdict(e), "finding": asdict(f), "helpful": helpful} for case, e, f, helpful in result.hits],
        "misses": [{"case": case, "expected": asdict(e), "others": [asdict(f) for f in others]} for case, e, others in result.misses],
        "false_alarms": [asdict(f) for f in result.false_alarms],
    }


def text(result: Score) -> str:
    lines = [f"hit    {f}" + ("" if helpful else f"  (none of the words {', '.join(e.words)})") for _, e, f, helpful in result.hits]
    for case, e, others in result.misses:
        lines.append(f"miss   {case}:{e.lines[0]} {e.kind}" + (f"  (found there: {', '.join(f.kind for f in others)})" if others else ""))
    lines += [f"false  {f}" for f in result.false_alarms]
    width = max([4, *map(len, by_kind(result))])
    lines += ["", f"{'kind':<{width}}  expected  hits  false alarms"]
    lines += [f"{kind:<{width}}  {n['expected']:>8}  {n['hits']:>4}  {n['false_alarms']:>12}" for kind, n in by_kind(result).items()]
    whole = len(result.hits) + len(result.misses)
    lines += ["", f"{len(result.hits)} of {whole} hit ({100 * result.recall:.1f} %), {len(result.false_alarms)} false alarms "
                  f"({len(result.clean)} in clean cases), {result.cases} cases"]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.cases.score", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--kind", action="append", default=[], metavar="KIND", help="only this kind; may be repeated")
    parser.add_argument("--select", metavar="RULES", default="", help="only these rules")
    parser.add_argument("--min-recall", type=float, default=0.0, metavar="SHARE", help="the share of expectations that must be hit")
    parser.add_argument("--max-false-alarms", type=int, metavar="N", help="how many there may be in all")
    parser.add_argument("--max-clean", type=int, metavar="N", help="how many there may be in clean cases")
    args = parser.parse_args(argv)
    found = cases(args.folder)
    if not found:
        print(f"{args.folder}: no cases; expected *.py files that start with `{START}`", file=sys.stderr)
        return 2
    result = score(found, lint(found, ("--select", args.select) if args.select else ()), frozenset(args.kind))
    print(json.dumps(document(result), indent=2) if args.format == "json" else text(result))
    low = result.recall < args.min_recall
    loud = args.max_false_alarms is not None and len(result.false_alarms) > args.max_false_alarms
    unclean = args.max_clean is not None and len(result.clean) > args.max_clean
    return 1 if low or loud or unclean else 0


if __name__ == "__main__":
    sys.exit(main())
