"""Cold starts: a whole `cuvil lint`, and what `import cuvil` costs beyond Python itself.

Wall times of new processes, p50 of RUNS. The file system's cache is warm, as it is for anyone's second run. Goals: lint under
600 ms, import under 60 ms with neither libcst nor llvmlite nor torch loaded.
"""
import statistics
import subprocess
import sys
import time
from pathlib import Path

from report import Row, main

RUNS = 9
ROOT = Path(__file__).parents[1]
CUVIL = Path(sys.executable).parent / "cuvil"


def wall(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def modules_after(statement: str) -> set[str]:
    command = [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def measure() -> list[Row]:
    bare = [sys.executable, "-c", "pass"]
    imported = [sys.executable, "-c", "import cuvil"]
    lint = [str(CUVIL), "lint", "--exit-zero", "examples/attention.py"]
    pairs = [(wall(bare), wall(imported), wall(lint)) for _ in range(RUNS + 1)][1:]
    python, with_cuvil, whole_lint = (statistics.median(column) * 1000 for column in zip(*pairs))
    loaded = modules_after("import cuvil") - modules_after("pass")
    heavy = ", ".join(sorted({"libcst", "llvmlite", "torch"} & loaded))
    return [
        {"what": "python -c pass", "p50 ms": python, "note": ""},
        {"what": "import cuvil, beyond it", "p50 ms": with_cuvil - python, "note": f"{len(loaded)} modules, heavy: {heavy or 'none'}"},
        {"what": "cuvil lint examples/attention.py", "p50 ms": whole_lint, "note": "whole process"},
    ]


if __name__ == "__main__":
    main(__doc__, measure)
