"""Compilations in a process of their own: `python -m cuvil.artifact.child` reads requests on stdin, a line of JSON each, and answers each
with a line on stdout, until stdin ends. What stays the same from one request to the next is not read again.

    {"path": "/w/model.py", "functions": ["attention"], "root": "/w", "memory": 2000000000, "output": "/w/.cuvil"}
    {"libraries": ["/w/.cuvil/libattention.so"], "artifacts": [...], "refusals": [{"function", "message", "range", ...}], "seconds": 0.31}

memory is a limit in bytes on the address space of the process, 0 for none. A refused function does not stop the others. What is not a
refusal (a fault of the compiler) ends the process with code 2 and one line on stderr; files are written whole or not at all.
"""
from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from ..diagnostics import CuvilError


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Compile what is asked for. The libraries go to `.cuvil/` of the root unless `output` says otherwise."""
    from ..artifact.files import output_folder
    from ..pipeline.files import compile_function, entry_points, facts_of, read
    started = time.perf_counter()
    path, root = request["path"], Path(request.get("root") or Path(request["path"]).parent)
    artifacts, refusals = [], []
    try:
        source = read(path)
        facts = facts_of(source, root)
        names = request.get("functions") or entry_points(facts)
        folder = Path(request["output"]) if request.get("output") else output_folder(root)
    except CuvilError as error:
        names = []
        refusals.append({"function": "", **error.to_diagnostic(path).to_json()})
    for name in names:
        try:
            artifacts.append(compile_function(source, name, folder, request.get("shapes"), request.get("target", "cpu"), root=root, facts=facts))
        except CuvilError as error:
            refusals.append({"function": name, **error.to_diagnostic(path).to_json()})
    return {"libraries": [str(a.path) for a in artifacts], "artifacts": [a.to_json() for a in artifacts], "refusals": refusals,
            "seconds": round(time.perf_counter() - started, 4)}


def limit_memory(size: int) -> None:
    """The kernel refuses more address space than this, so a runaway compilation fails alone."""
    if size > 0 and sys.platform != "win32":
        import resource
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))


def main() -> int:
    try:
        for line in sys.stdin:
            request = json.loads(line)
            limit_memory(int(request.get("memory") or 0))
            print(json.dumps(answer(request)), flush=True)
        return 0
    except MemoryError:
        print("out of memory", file=sys.stderr)
    except Exception as error:                       # one line is all a parent process can show
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
