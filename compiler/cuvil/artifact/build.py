"""From the stages of a function to its files: library, header, manifest, parameters. Kept by content, so the second time is quick."""
from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.function import Function
from ..ir.text import print_function
from ..lineage import Origin
from ..source import Span
from . import abi, files, parameters
from . import cache as kept
from .header import header
from .link import compiler, link
from .signature import Signature

if TYPE_CHECKING:
    from ..pipeline import Stages


@dataclass(frozen=True)
class Built:
    """Everything about one compiled function, not written anywhere yet.

    cached      where the library lies in the cache, to be loaded from there; None when there is no cache
    parameters  the bytes of the .safetensors file, None for a function without parameters
    """

    signature: Signature
    library: bytes
    manifest_text: str
    parameters: bytes | None = None
    cached: Path | None = None

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads(self.manifest_text)

    def write(self, library: Path) -> tuple[Path, ...]:
        """The library and, beside it, its header, manifest and parameters: all or none. The paths, the library first."""
        out = {beside(library, ".h"): header(self.signature).encode(), beside(library, ".json"): self.manifest_text.encode()}
        if self.parameters is not None:
            out[beside(library, ".safetensors")] = self.parameters
        out[library] = self.library                    # last: who waits for the library finds the rest
        files.write(out)
        return library, *(path for path in out if path != library)


def beside(library: Path, suffix: str) -> Path:
    """`libmlp.so` -> `mlp.h`."""
    return library.with_name(library.stem.removeprefix("lib") + suffix)


def build(stages: Stages, values: Mapping[str, Any] | None = None, dims: Mapping[str, int] | None = None) -> Built:
    """Compile and link. values: tensors by parameter name; dims: the sizes that symbols were given, for the manifest."""
    signature = Signature.of(stages.optimized.function)        # of the parameters that are read
    data = parameters.safetensors(signature, values or {}) if signature.parameters else None
    key = kept.key(print_function(stages.function, locations=True), stages.target, host() if stages.target == "cpu" else "",
                   str(stages.opt_level), json.dumps(dict(dims or {})), hashlib.sha256(data).hexdigest() if data is not None else "", *compiler())
    library, text = kept.find(key, ".so"), kept.find(key, ".json")
    if library is not None and text is not None:
        return Built(signature, library.read_bytes(), text.read_text("utf-8"), data, library)
    from .manifest import manifest
    described = manifest(stages, signature, data, dims or {})
    program = stages.program
    code = abi.program(signature, described, program.scratch, program.prepared, stages.llvm.checks, program.target)
    made = link(stages.object, code)
    kept.keep(key, ".json", described.encode())
    return Built(signature, made, described, data, kept.keep(key, ".so", made))


@cache
def host() -> str:
    """What tells one kind of processor from another: objects for "cpu" are kept per kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), "") or platform.machine()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"


def relative_to(function: Function, root: str) -> Function:
    """The function with paths in its origins relative to a folder, so that what is made of it does not name this machine's folders."""
    from os.path import isabs, relpath
    known: dict[Any, Any] = {}

    def span(s: Span) -> Span:
        return s.of(relpath(s.path, root).replace("\\", "/")) if isabs(s.path) else s

    def origin(o: Origin) -> Origin:
        if o not in known:
            known[o] = Origin(span(o.span), o.node, tuple(map(span, o.callers)))
        return known[o]

    ops = tuple(replace(op, origins=tuple(map(origin, op.origins))) for op in function.ops)
    return replace(function, ops=ops, origin=function.origin and origin(function.origin))
