"""Check that everything Cuvil needs is there and works: packages, linker, panels, cache, processor, and one real compile.

Each line is ok, note (works, with less) or bad (needs the step it names). Exit code 1 if anything is bad."""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..terminal import colourful, paint


@dataclass(frozen=True)
class Check:
    name: str
    state: str                               # ok, note, bad
    detail: str
    remedy: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    checks = []
    for check in CHECKS:
        try:
            checks += check()
        except Exception as error:           # a check that fails is a finding about the machine, not the end of the visit
            checks.append(Check(check.__name__.strip("_"), "bad", f"{type(error).__name__}: {error}"))
    if args.format == "json":
        print(json.dumps({"version": 1, "ok": all(c.state != "bad" for c in checks), "checks": [asdict(c) for c in checks]}, indent=2))
    else:
        tint, colour = {"ok": "green", "note": "yellow", "bad": "red"}, colourful()
        for c in checks:
            print(f"{paint(f'{c.state:<4}', tint[c.state], colour)}  {c.name:<10}  {c.detail}" + (f"\n      try: {c.remedy}" if c.remedy else ""))
    return 1 if any(c.state == "bad" for c in checks) else 0


def _python() -> list[Check]:
    shown = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})"
    return [Check("python", "ok" if sys.version_info >= (3, 11) else "bad", shown, "" if sys.version_info >= (3, 11) else "Python 3.11 or newer")]


def _packages() -> list[Check]:
    found = []
    for name in ("libcst", "llvmlite", "numpy", "pygls", "lsprotocol", "networkx", "safetensors"):
        found.append(_package(name, "bad", f"pip install {name}"))
    found.append(_package("torch", "note", "pip install torch, to call compiled functions with tensors and compare with eager"))
    found.append(_package("onnx", "note", "pip install onnx, to compile ONNX models"))
    return found


def _package(name: str, missing: str, remedy: str) -> Check:
    if importlib.util.find_spec(name) is None:
        return Check(name, missing, "not installed", remedy)
    try:
        return Check(name, "ok", version(name))
    except PackageNotFoundError:
        return Check(name, "ok", "installed, version unknown")


def _linker() -> list[Check]:
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [Check("linker", "ok", path)]
    if importlib.util.find_spec("ziglang"):
        return [Check("linker", "ok", f"zig cc, ziglang {version('ziglang')}")]
    return [Check("linker", "bad", "no C compiler found", "pip install ziglang, or install gcc or clang")]


def _panels() -> list[Check]:
    from cuvil.diagnostics import CuvilError

    from .. import page
    try:
        found = page.bundle()
    except CuvilError as error:
        return [Check("panels", "note", error.what, error.hint)]
    return [Check("panels", "ok", f"{found.script.parent} ({(found.script.stat().st_size + found.style.stat().st_size) / 1e3:.0f} kB)")]


def _machine() -> list[Check]:
    from cuvil.cost import detect
    return [Check("machine", "ok", str(detect()))]


def _cache() -> list[Check]:
    from cuvil.artifact.cache import folder
    place = folder()
    probe = next(p for p in (place, *place.parents) if p.exists())
    if not os.access(probe, os.W_OK):
        return [Check("cache", "note", f"{place} cannot be written: every compile starts from nothing", "set XDG_CACHE_HOME to a folder of yours")]
    return [Check("cache", "ok", str(place))]


PROBE = """import numpy as np
import cuvil as cu


@cu.compile(input_shapes={"x": (4, 8), "y": (8,)})
def probe(x, y):
    return np.maximum(x * y + 1.0, 0.0).sum(axis=1)
"""


def _compile() -> list[Check]:
    """A function through every stage: written, compiled to a library, loaded, called, compared with the interpreter's answer."""
    import numpy as np

    import cuvil
    from cuvil import pipeline
    with tempfile.TemporaryDirectory(prefix="cuvil-doctor-") as scratch:
        source = Path(scratch, "probe.py")
        source.write_text(PROBE, "utf-8")
        start = time.perf_counter()
        (built,) = pipeline.compile_file(str(source), "probe", output=Path(scratch, "libprobe.so"))
        seconds = time.perf_counter() - start
        x, y = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8), np.linspace(0, 1, 8, dtype=np.float32)
        got = cuvil.load(str(built.path))(x, y)
        worst = float(np.abs(got - np.maximum(x * y + 1.0, 0.0).sum(axis=1)).max())
    state = "ok" if worst < 1e-5 else "bad"
    return [Check("compile", state, f"source to loaded library in {seconds:.2f} s, largest error {worst:.1e}",
                  "" if state == "ok" else "report this with the output of `cuvil doctor --format json`")]


CHECKS: tuple[Callable[[], list[Check]], ...] = (_python, _packages, _linker, _panels, _machine, _cache, _compile)
