"""Device code as files: `<name>.ptx` or `<name>.spv` with a manifest (`<name>.ptx.json`) that says how to launch it, and a `.cubin` where ptxas is found.

A host allocates the scratch block, passes each kernel the pointers its `arguments` name, and launches the kernels in order.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnostics import CuvilError
from . import files
from .signature import Signature

if TYPE_CHECKING:
    from ..pipeline import Stages


@dataclass(frozen=True)
class DeviceCode:
    """suffix: ".ptx" or ".spv", of `code`; cubin: None without ptxas."""

    signature: Signature
    code: bytes
    suffix: str
    manifest_text: str
    cubin: bytes | None = None

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads(self.manifest_text)

    def write(self, path: Path) -> tuple[Path, ...]:
        """path: of the code; the manifest and the cubin beside it. All or none."""
        out = {path.with_name(f"{path.name}.json"): self.manifest_text.encode()}     # `<name>.json` is that of the library
        if self.cubin is not None:
            out[path.with_suffix(".cubin")] = self.cubin
        out[path] = self.code
        files.write(out)
        return path, *(p for p in out if p != path)


def build_device(stages: Stages, dims: Mapping[str, int] | None = None) -> DeviceCode:
    """CuvilError, with its place, for a kernel that the target cannot run."""
    from .manifest import manifest
    signature = Signature.of(stages.optimized.function)
    module = stages.llvm
    described = json.loads(manifest(stages, signature, None, dims or {}))
    described["launch"] = [{"kernel": kernel.name, "blocks": kernel.grid[0], "threads_per_block": kernel.grid[1],
                            "arguments": [{"kind": home.kind, "position": home.position} for home in kernel.arguments]}
                           for kernel in module.kernels]
    text = json.dumps(described, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    cubin = assemble(module.code, module.target.cpu) if module.suffix == ".ptx" else None
    return DeviceCode(signature, module.code, module.suffix, text, cubin)


def assemble(ptx: bytes, chip: str) -> bytes | None:
    """The cubin, None where there is no ptxas; CuvilError with its words when it refuses what was written."""
    ptxas = find_ptxas()
    if ptxas is None:
        return None
    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        source, target = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_bytes(ptx)
        try:
            done = subprocess.run([ptxas, f"-arch={chip}", "kernels.ptx", "-o", "kernels.cubin"], cwd=folder, capture_output=True, text=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CuvilError(f"{ptxas} could not be run: {error}", code="CUV011") from None
        if done.returncode:
            said = "\n    ".join((done.stderr or done.stdout).strip().splitlines()[:5])
            raise CuvilError(f"ptxas refused the PTX:\n    {said}", code="CUV011")
        return target.read_bytes()


def find_ptxas() -> str | None:
    """On the PATH, or in the CUDA toolkit that CUDA_HOME or CUDA_PATH names."""
    homes = [Path(os.environ[name], "bin", "ptxas") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return shutil.which("ptxas") or next((str(path) for path in homes if path.is_file()), None)
