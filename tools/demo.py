"""`make demo`: the whole product on one file, through its public doors only: the `cuvil` command and `cuvil.load`.

It lints the file, compiles its decorated functions to shared libraries, runs these against the reference (eager PyTorch where it is
installed, else Cuvil's own NumPy interpreter), sums up, writes report.html, and serves the studio until Ctrl+C. DEMO_SERVE=0 stops
after the summary. Exit status 1 if anything is wrong: a result too far from the reference, too.
"""
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cuvil as cu
from cuvil.frontends.python import capture
from cuvil.ir import interpret
from cuvil.source import Source

ROOT = Path(__file__).parents[1]
FILE = Path("examples/attention.py")
SIZES = {"b": 2, "t": 4, "past": 124, "rows": 256, "columns": 512, "tokens": 64}
LIBRARIES = Path("build/demo")
CUVIL = Path(sys.executable).with_name("cuvil")
TOLERANCE = 1e-5                             # of the largest number of a result: fp32 sums of a few thousand terms


def main() -> int:
    os.chdir(ROOT)
    heading(f"cuvil lint {FILE}")
    print(cuvil("lint", FILE, "--exit-zero"))
    findings = json.loads(cuvil("lint", FILE, "--exit-zero", "--format", "json"))

    heading(f"cuvil compile {FILE}")
    LIBRARIES.mkdir(parents=True, exist_ok=True)
    rows = [one(entry) for entry in entries()]
    print_table(rows)
    print(f"\n{findings['summary']['findings']} findings, {findings['summary']['fixable']} with a safe fix · "
          f"sizes {', '.join(f'{name} = {size}' for name, size in SIZES.items())} · libraries, headers, manifests: {LIBRARIES}/")

    heading("cuvil report")
    print(cuvil("report", FILE, "--output", "report.html"))
    wrong = [row["function"] for row in rows if not float(row["max error"]) <= TOLERANCE]
    if wrong:
        print(f"too far from the reference: {', '.join(wrong)}", file=sys.stderr)
        return 1
    if os.environ.get("DEMO_SERVE") == "0":
        return 0
    heading("cuvil studio: the panels at this address, until Ctrl+C")
    try:
        return subprocess.call([CUVIL, "studio", FILE, "--no-open"])
    except KeyboardInterrupt:
        return 0


def one(name: str) -> dict[str, str]:
    """Compile a function, run the library on seeded random numbers and compare: its row of the table."""
    function = capture(Source(str(FILE), FILE.read_text("utf-8")), name, None).substitute(SIZES)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(op.type.shape).astype(op.type.dtype.numpy) for op in function.inputs]
    shapes = [part for op in function.inputs for part in ("--shape", f"{op.label}={','.join(map(str, op.type.shape))}")]
    cuvil("compile", f"{FILE}:{name}", *shapes, "--output", LIBRARIES / f"lib{name}.so")

    compiled = cu.load(str(LIBRARIES / f"lib{name}.so"))
    references: dict[str, Callable[[], object]] = {"NumPy": lambda: tuple(interpret.run(function, arrays))}
    if torch_is_here():
        references = {"PyTorch": eager(name, arrays), **references}
    reference = next(iter(references))
    error = distance(compiled(*arrays), references[reference]())
    seconds = in_turn({"cuvil": lambda: compiled(*arrays), **references})
    manifest = compiled.manifest
    return {"function": name, "kernels": str(len(manifest["kernels"])), "MFLOP": f"{manifest['costs']['flops'] / 1e6:.1f}",
            "MB": f"{manifest['costs']['bytes'] / 1e6:.2f}", "max error": f"{error:.1e}", "against": reference,
            "ms": f"{seconds['cuvil'] * 1e3:.3f}", **{f"{who} ms": f"{seconds[who] * 1e3:.3f}" for who in references}}


def entries() -> list[str]:
    explained = json.loads(cuvil("explain", FILE, "--format", "json"))
    return [function["function"] for function in explained["functions"]]


def torch_is_here() -> bool:
    return importlib.util.find_spec("torch") is not None


def eager(name: str, arrays: list[np.ndarray]) -> Callable[[], object]:
    """The undecorated function on the same numbers as torch tensors."""
    import torch
    torch.set_grad_enabled(False)
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tensors = [torch.from_numpy(array) for array in arrays]
    return lambda: getattr(module, name).__wrapped__(*tensors)


def distance(found: object, expected: object) -> float:
    """The largest difference, as a part of the largest number expected; for tuples the worst of them."""
    pairs = zip(*(value if isinstance(value, tuple) else (value,) for value in (found, expected)), strict=True)
    return max(float(np.abs(np.asarray(f) - np.asarray(e)).max() / np.abs(np.asarray(e)).max()) for f, e in pairs)


def in_turn(calls: dict[str, Callable[[], object]], rounds: int = 30) -> dict[str, float]:
    """Median seconds of a call; they take turns, so that a busy machine slows all of them."""
    times: dict[str, list[float]] = {who: [] for who in calls}
    for _ in range(rounds):
        for who, call in calls.items():
            started = time.perf_counter()
            call()
            times[who].append(time.perf_counter() - started)
    return {who: statistics.median(values) for who, values in times.items()}


def cuvil(*arguments: object) -> str:
    """What the command prints; its messages, and an exit, if it fails."""
    done = subprocess.run([CUVIL, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"`cuvil {' '.join(map(str, arguments))}` ended with exit status {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


def heading(text: str) -> None:
    print(f"\n── {text} " + "─" * max(4, 110 - len(text)), flush=True)


def print_table(rows: list[dict[str, str]]) -> None:
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))))


if __name__ == "__main__":
    sys.exit(main())
