"""Kernels, the C runtime and a function's own C file into one shared library, by the C compiler that is there.

That is `cc`, or the `ziglang` wheel's on machines without one; CUVIL_CC names another. The library needs nothing but
libc and libm. The same input gives the same bytes wherever it is made.
"""
from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from ..diagnostics import CuvilError
from . import cache as kept
from .abi import EXPORTS

RUNTIME = Path(__file__).parents[1] / "runtime"
COMPILE = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-ident", "-Wall", "-Wextra")
SECONDS = 120                                # a first run of zig builds its C library


@cache
def compiler() -> tuple[str, ...]:
    """The command of a C compiler; CuvilError when there is none."""
    named = os.environ.get("CUVIL_CC")
    if named:
        return tuple(shlex.split(named))
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return (found,)
    if importlib.util.find_spec("ziglang"):
        return sys.executable, "-m", "ziglang", "cc"
    raise CuvilError("there is no C compiler to link with", expected="cc on the PATH, or the ziglang package",
                     hint="pip install ziglang", code="CUV011")


def link(kernels: bytes, program: str) -> bytes:
    """The bytes of the library. kernels: an object file; program: the text of artifact/abi.py."""
    with tempfile.TemporaryDirectory(prefix="cuvil-") as place:
        folder = Path(place)
        try:
            (folder / "kernels.o").write_bytes(kernels)
            (folder / "program.c").write_text(program, "utf-8")
            (folder / "exports").write_text("{ global: " + " ".join(f"{name};" for name in EXPORTS) + " local: *; };\n")
            runtime = [_runtime_object(source, folder) for source in sorted(RUNTIME.glob("*.c"))]
        except OSError as error:
            from .files import cannot_write
            raise cannot_write(folder, error) from None
        _run([*COMPILE, "-shared", "-I", str(RUNTIME), "program.c", "kernels.o", *runtime, "-Wl,--version-script=exports",
              "-Wl,-Bsymbolic", "-Wl,--gc-sections", "-lm", "-lpthread", "-o", "library.so"], folder)
        return (folder / "library.so").read_bytes()


def _runtime_object(source: Path, folder: Path) -> str:
    """The object of a runtime file, from the cache if it was compiled before."""
    text = source.read_bytes() + (RUNTIME / "abi.h").read_bytes()
    key = kept.key(text, *compiler())
    found = kept.find(key, ".o")
    if found is None:
        output = f"{source.stem}.o"
        _run([*COMPILE, f"-ffile-prefix-map={RUNTIME}=runtime", "-c", str(source), "-o", output], folder)
        found = kept.keep(key, ".o", (folder / output).read_bytes()) or folder / output
    return str(found)


def _run(arguments: list[str], folder: Path) -> None:
    command = [*compiler(), *arguments]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "0", "TMPDIR": str(folder), "LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CuvilError(f"the C compiler {compiler()[0]} could not be run: {error}", hint="set CUVIL_CC to a working one",
                         code="CUV011") from None
    if done.returncode:
        said = "\n    ".join(done.stderr.strip().splitlines()[:8])
        raise CuvilError(f"{' '.join(compiler())} failed with exit code {done.returncode}:\n    {said}",
                         hint="set CUVIL_CC to another C compiler", code="CUV011")
