"""Runs every rule over whole public packages of working code and prints, as Markdown, what docs/quality.md shows.

    python tests/corpus/report.py                        all packages of requirements.txt
    python tests/corpus/report.py timm torchvision       these
    python tests/corpus/report.py --proved               each proved finding, with its verdict

Code that many people run is taken as right until it was read: verdicts.json keeps, by fingerprint, what a reading of a proved finding gave
("right": the code does what the message says; "wrong": it does not). A proved finding without a verdict is counted as "not read".
"""
import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from packages import corpus

CUVIL = Path(sys.executable).with_name("cuvil")
VERDICTS = Path(__file__).with_name("verdicts.json")
OWN_FAULTS = ("CUV003", "CUV005")               # a rule that failed, a defect of the front end
PACKAGES = ("transformers", "diffusers", "timm", "torchvision")


def lint(package: str, folder: Path, seconds: int = 1800) -> dict:
    """One run over a package: the JSON answer, with wall and CPU seconds, lines and peak memory of a process added."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([CUVIL, "lint", package, "--format", "json", "--exit-zero", "--no-cache", "--jobs", "2"], cwd=folder, capture_output=True, text=True,
                          timeout=seconds)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or "Traceback" in done.stderr:
        sys.exit(f"cuvil lint {package} failed with code {done.returncode}:\n{done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    lines = sum(path.read_bytes().count(b"\n") for path in (folder / package).rglob("*.py"))
    return answer | {"package": package, "lines": lines, "wall": time.perf_counter() - started, "megabytes": after.ru_maxrss / 1024,
                     "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def key(finding: dict, folder: Path) -> str:
    """A name for a finding that holds as long as the package is pinned."""
    start = finding["range"]["start"]
    path = Path(finding["path"])
    return f"{finding['code']} {path.relative_to(folder) if path.is_absolute() else path}:{start['line']}:{start['column']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--proved", action="store_true", help="list every proved finding")
    parser.add_argument("--all", action="store_true", help="list every finding")
    args = parser.parse_args()
    folder, verdicts = corpus(), json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    rows, rules, read, reasons = [], Counter(), Counter(), Counter()
    for package in args.packages:
        answer = lint(package, folder)
        found, summary = answer["findings"], answer["summary"]
        faults = sum(1 for f in found if f["code"] in OWN_FAULTS) + summary["unreadable"]
        found = [f for f in found if f["code"] not in OWN_FAULTS]
        proved = [f for f in found if f["certainty"] == "proved"]
        rules.update((f["code"], f["name"], f["certainty"]) for f in found)
        read.update(verdicts.get(key(f, folder), {}).get("verdict", "not read") for f in proved)
        counts = summary["tensor_expressions"]
        reasons.update(counts["unknown"])
        whole = counts["understood"] + sum(counts["unknown"].values())
        rows.append((package, f"{summary['files']:,}", f"{answer['lines']:,}", faults, len(found), f"{1000 * len(found) / max(answer['lines'], 1):.2f}",
                     len(proved), f"{100 * counts['understood'] / max(whole, 1):.0f} %", f"{answer['lines'] / answer['wall']:,.0f}", f"{answer['megabytes']:.0f}"))
        for finding in found if args.all else proved if args.proved else ():
            verdict = verdicts.get(key(finding, folder), {})
            print(f"{key(finding, folder)} {finding['certainty']} {finding['name']}: {finding['message']}\n    {verdict.get('verdict', 'not read')}"
                  f"{': ' + verdict['why'] if verdict else ''}")
    print("| package | files | lines | own faults | findings | per 1,000 lines | proved | understood | lines/s | MB |\n|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(f"\nProved findings: {read.total()}" + "".join(f", {count} {verdict}" for verdict, count in sorted(read.items())) + ".")
    print("\n| rule | certainty | findings |\n|---|---|---|")
    for (code, name, certainty), count in rules.most_common():
        print(f"| {code} {name} | {certainty} | {count} |")
    print("\nNot understood, by reason: " + "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(12)) + ".")


if __name__ == "__main__":
    main()
