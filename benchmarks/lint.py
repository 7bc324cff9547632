"""Linting a package of working code with every rule: cold, warm, one file changed; beside the linters that are there.

    python benchmarks/lint.py [--slice N] [FOLDER]       default: timm of the pinned corpus; --slice: every Nth file

Wall times of whole processes, two workers where a tool has them. Goals for timm: 8,000 lines/s cold, 1 s when nothing changed, 2 s when one
file did, 600 MB in a process; 0.4 s for one small file. `of ruff` and the like are ratios of lines/s in this run. Peers are looked for on PATH
(ruff, ty, pyrefly, flake8, pylint, fixit); none is installed for this. It fails when a file could not be checked or a rule failed.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import Row, main

ROOT = Path(__file__).parents[1]
CUVIL = [sys.executable, "-m", "cuvil_cli"]
FAULTS = ("CUV003", "CUV005")                    # a rule that failed, a defect of the front end
PEERS = {"ruff": ["check", "--no-cache", "-q", "--exit-zero"], "ty": ["check", "-q", "--exit-zero"], "pyrefly": ["check", "--summary=none"],
         "flake8": ["-j", "2", "--exit-zero", "-q"], "pylint": ["-j", "2", "--exit-zero", "-sn"], "fixit": ["lint"]}


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    """The seconds of a process, and what it printed."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / ".cache")}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=3600)
    return time.perf_counter() - started, done.stdout


def package(folder: Path, into: Path, every: int) -> list[str]:
    """A copy of the package with each of so many files to check; the others are there to be imported."""
    shutil.copytree(folder, into / folder.name)
    (into / "pyproject.toml").write_text("[project]\nname = 'measured'\nversion = '0'\n")
    (into / ".git").mkdir()
    return [path.relative_to(into).as_posix() for path in sorted((into / folder.name).rglob("*.py"))][::every]


def measure() -> list[Row]:
    words = [word for word in sys.argv[1:] if word != "--json"]
    every = int(words.pop(words.index("--slice") + 1)) if "--slice" in words else 1
    given = next((word for word in words if not word.startswith("-")), None)
    if given is None:
        sys.path.insert(0, str(ROOT / "tests" / "corpus"))
        from packages import corpus
    with tempfile.TemporaryDirectory() as scratch:
        into = Path(scratch)
        files = package(Path(given) if given is not None else corpus() / "timm", into, every)
        lines = sum((into / name).read_bytes().count(b"\n") for name in files)
        lint = [*CUVIL, "lint", "--format", "json", "--exit-zero", *files]
        cold, printed = timed([*lint, "--no-cache"], into)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        found = json.loads(printed)
        faults = [each for each in found["findings"] if each["code"] in FAULTS]
        if faults or found.get("problems"):
            sys.exit("could not be checked: " + json.dumps(faults or found["problems"])[:2000])
        filled, _ = timed(lint, into)
        warm, _ = timed(lint, into)
        longest = max(files, key=lambda name: (into / name).stat().st_size)
        with (into / longest).open("a") as stream:
            stream.write("\nCHANGED = 1\n")
        changed, _ = timed(lint, into)
        small, _ = timed([*CUVIL, "lint", "--no-cache", "--exit-zero", "attention.py"], ROOT / "examples")
        what = f"{len(files)} files, {lines:,} lines"
        rows = [row(f"cuvil, {what}, no cache", cold, lines, f"{largest:.0f} MB in the largest process"), row("cuvil, filling its cache", filled, lines, ""),
                row("cuvil, nothing changed", warm, lines, "goal 1 s"), row(f"cuvil, {Path(longest).name} changed", changed, lines, "goal 2 s"),
                row("cuvil, examples/attention.py alone", small, (ROOT / "examples/attention.py").read_bytes().count(b"\n"), "goal 0.4 s")]
        for name, options in PEERS.items():
            if shutil.which(name):
                seconds, _ = timed([name, *options, *files], into)
                rows.append(row(name, seconds, lines, f"{cold / seconds:.2f} x cuvil's lines/s"))
        return rows


def row(what: str, seconds: float, lines: int, note: str) -> Row:
    return {"what": what, "s": seconds, "lines/s": lines / seconds, "note": note}


if __name__ == "__main__":
    main(__doc__, measure)
