"""Runs every rule over whole public packages of working code and prints, as Markdown, what docs/quality.md shows.

    python tests/corpus/report.py                        all packages of requirements.txt
    python tests/corpus/report.py timm diffusers/models  these packages, folders, files
    python tests/corpus/report.py --minutes 10           what ten minutes allow; the next run goes on from there
    python tests/corpus/report.py --stale --sample 100   again 100 files, drawn at random from those that another commit read
    python tests/corpus/report.py --minutes 0 --proved   read nothing; each proved finding of what is kept, with its verdict

Code that many people run is taken as right until it was read: verdicts.json keeps what a reading of a finding gave ("right": the code does
what the message says; "wrong": it does not). A finding without a verdict is counted as "not read".
"""
import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import reading
from packages import corpus

VERDICTS = Path(__file__).with_name("verdicts.json")
OWN_FAULTS = ("CUV003", "CUV005")               # a rule that failed, a defect of the front end
PACKAGES = ("transformers", "diffusers", "timm", "torchvision")
SLOW = 5                                        # seconds: such a file is named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=PACKAGES, help="packages, or folders and files in them")
    parser.add_argument("--results", type=Path, help="where results are kept (default: beside the corpus)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many; the next run goes on from there")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one file")
    parser.add_argument("--stale", action="store_true", help="read again what another commit read")
    parser.add_argument("--sample", type=int, help="of what is to be read, so many files of each path, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--proved", action="store_true", help="list every proved finding")
    parser.add_argument("--all", action="store_true", help="list every finding")
    args = parser.parse_args()
    folder = corpus()
    kept = reading.Kept(args.results or folder.with_suffix(".jsonl"))
    wanted = {path: reading.files(folder, [path]) for path in args.paths}
    _read(args, folder, kept, wanted)
    verdicts = json.loads(VERDICTS.read_text())
    results = [kept.results[file] for files in wanted.values() for file in files if file in kept.results]
    for finding in (f for result in results for f in _findings(result)):
        if args.all or args.proved and finding["certainty"] == "proved":
            verdict = verdicts.get(key(finding), {})
            print(f"{key(finding)} {finding['certainty']} {finding['name']}: {finding['message']}\n    {verdict.get('verdict', 'not read')}"
                  f"{': ' + verdict['why'] if verdict else ''}")
    _print_packages(wanted, kept, verdicts)
    _print_faults(results)
    _print_rules(results, verdicts)


def _read(args: argparse.Namespace, folder: Path, kept: reading.Kept, wanted: dict[str, list[str]]) -> None:
    now, draw, end = reading.commit(), random.Random(args.seed), time.monotonic() + 60 * args.minutes
    left: list[str] = []
    for files in wanted.values():
        open_ones = [file for file in files if file not in kept.results or args.stale and kept.results[file]["commit"] != now]
        left += open_ones if args.sample is None else sorted(draw.sample(open_ones, min(args.sample, len(open_ones))))
    if args.minutes:
        for count, result in enumerate(reading.read(folder, left, args.limit), 1):
            kept.add(result)
            if result["fault"] or result["seconds"] > SLOW:
                print(f"{result['path']}: {result['seconds']} s {result['fault'] or ''}", file=sys.stderr)
            if count % 100 == 0:
                print(f"{count} of {len(left)} files", file=sys.stderr)
            if time.monotonic() > end:
                break


def key(finding: dict) -> str:
    """A name for a finding that holds as long as the package is pinned."""
    start = finding["range"]["start"]
    return f"{finding['code']} {finding['path']}:{start['line']}:{start['column']}"


def _findings(result: dict) -> list[dict]:
    return [f for f in result["findings"] if f["code"] not in OWN_FAULTS]


def _faults(result: dict) -> list[str]:
    return [*([result["fault"]] if result["fault"] else []), *(f"{f['code']}: {f['message']}" for f in result["findings"] if f["code"] in OWN_FAULTS)]


def _print_packages(wanted: dict[str, list[str]], kept: reading.Kept, verdicts: dict) -> None:
    print("| package | files | lines | own faults | findings | per 1,000 lines | right | wrong | not read | proved | of them right | understood | lines/s | MB | commits |")
    print("|" + "---|" * 15)
    for path, files in wanted.items():
        results = [kept.results[file] for file in files if file in kept.results]
        found = [f for result in results for f in _findings(result)]
        proved = [f for f in found if f["certainty"] == "proved"]
        said = Counter(verdicts.get(key(f), {}).get("verdict", "not read") for f in found)
        right = sum(verdicts.get(key(f), {}).get("verdict") == "right" for f in proved)
        lines, seconds = sum(r["lines"] for r in results), sum(r["seconds"] for r in results)
        understood = sum(r.get("understood", 0) for r in results)
        whole = understood + sum(sum(r.get("unknown", {}).values()) for r in results)
        commits = ", ".join(f"{name} ({count})" for name, count in Counter(r["commit"] for r in results).most_common())
        row = (path, f"{len(results):,}" + (f" of {len(files):,}" if len(results) < len(files) else ""), f"{lines:,}", sum(len(_faults(r)) for r in results),
               len(found), f"{1000 * len(found) / max(lines, 1):.2f}", said["right"], said["wrong"], said["not read"], len(proved), right,
               f"{100 * understood / max(whole, 1):.0f} %", f"{lines / max(seconds, 0.01):,.0f}", max((r.get("megabytes", 0) for r in results), default=0), commits)
        print("| " + " | ".join(map(str, row)) + " |")


def _print_faults(results: list[dict]) -> None:
    slow = sorted((r for r in results if r["seconds"] > SLOW), key=lambda r: -r["seconds"])
    print(f"\nFiles that took more than {SLOW} s: {len(slow)}." + "".join(f"\n* {r['path']}: {r['seconds']} s, {r['lines']:,} lines" for r in slow))
    faults = [(r["path"], fault) for r in results for fault in _faults(r)]
    print(f"\nCrashes, hangs and rules that failed: {len(faults)}." + "".join(f"\n* {path}: {fault}" for path, fault in faults))


def _print_rules(results: list[dict], verdicts: dict) -> None:
    found = [f for result in results for f in _findings(result)]
    rules = Counter((f["code"], f["name"], f["certainty"]) for f in found)
    right = Counter((f["code"], f["name"], f["certainty"]) for f in found if verdicts.get(key(f), {}).get("verdict") == "right")
    print("\n| rule | certainty | findings | right |\n|---|---|---|---|")
    for rule, count in rules.most_common():
        print(f"| {rule[0]} {rule[1]} | {rule[2]} | {count} | {right[rule]} |")
    reasons = sum((Counter(r.get("unknown", {})) for r in results), Counter())
    print("\nNot understood, by reason: " + "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(12)) + ".")


if __name__ == "__main__":
    main()
