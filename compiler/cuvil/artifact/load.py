"""`cu.load("libf.so")`: a compiled library as a Python function."""
from __future__ import annotations

import ctypes
import json
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from ..diagnostics import CuvilError
from . import files
from .build import Built, beside
from .call import caller, mismatch
from .explain import explain
from .signature import Signature


class Library:
    """A loaded library. Call it with NumPy arrays or torch tensors; `manifest` says what it is."""

    def __init__(self, path: str | os.PathLike[str], parameters: str | os.PathLike[str] | None = None, threads: int = 0,
                 only: str | None = None) -> None:
        """parameters: the .safetensors file, by default the one beside the library; threads: 0 for all processors; only: "numpy" or
        "torch", if it is to be called with arrays or tensors alone.

        CuvilError when it is not a library of Cuvil, or its parameters are missing or of another model."""
        self.path = Path(path).absolute()
        self._library = _open(self.path)
        self.manifest_text = self._library.cuvil_manifest().decode()
        self.signature = Signature.of_json(self.manifest["name"], self.manifest["signature"])
        self.parameters = Path(parameters) if parameters is not None else beside(self.path, ".safetensors") if self.signature.parameters else None
        self._model = self._library.cuvil_load(os.fsencode(self.parameters) if self.parameters else None, threads)
        if not self._model:
            raise CuvilError(self._library.cuvil_last_error().decode("utf-8", "replace"), code="CUV022")
        self.call = caller(self.signature, self._library, self._model, only)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return json.loads(self.manifest_text)

    def __call__(self, *arguments: Any) -> Any:
        result = self.call(arguments)
        if result is NotImplemented:
            raise mismatch(self.signature, arguments)
        return result

    def explain(self) -> str:
        """Kernels, sizes and costs, as text."""
        return explain(self.manifest)

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Copy the library with its header, manifest and parameters; the paths, the library first."""
        from .header import header
        target = Path(path).absolute()
        out = {beside(target, ".h"): header(self.signature).encode(), beside(target, ".json"): self.manifest_text.encode()}
        if self.parameters:
            out[beside(target, ".safetensors")] = self.parameters.read_bytes()
        out[target] = self.path.read_bytes()
        files.write(out)
        return target, *(p for p in out if p != target)

    def __del__(self) -> None:
        model = getattr(self, "_model", None)
        if model:
            self._library.cuvil_free(model)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{slot.name}: {slot.type}" for slot in self.signature.inputs)
        outputs = ", ".join(str(slot.type) for slot in self.signature.outputs)
        return f"<{self.signature.name}({inputs}) -> {outputs}, compiled for {self.manifest['target']['name']}>"


def load(path: str | os.PathLike[str], parameters: str | os.PathLike[str] | None = None, threads: int = 0) -> Library:
    """Load a library that `cuvil compile` or `.save` wrote."""
    return Library(path, parameters, threads)


def load_built(built: Built, only: str | None = None) -> Library:
    """What was just built, from the cache; through a file that is gone again when there is no cache."""
    if built.cached is not None and built.parameters is None:
        return Library(built.cached, only=only)
    with tempfile.TemporaryDirectory(prefix="cuvil-") as folder:
        path = Path(folder, f"lib{built.signature.c_name}.so")
        built.write(path)                    # mapped files stay readable when their names are gone
        return Library(path, only=only)


def _open(path: Path) -> ctypes.CDLL:
    if not path.is_file():
        raise CuvilError(f"there is no file {path}", expected="a library written by cuvil compile or .save", code="CUV022")
    try:
        library = ctypes.CDLL(str(path))
        library.cuvil_manifest.restype = ctypes.c_char_p
        library.cuvil_last_error.restype = ctypes.c_char_p
        library.cuvil_load.argtypes, library.cuvil_load.restype = [ctypes.c_char_p, ctypes.c_int32], ctypes.c_void_p
        library.cuvil_free.argtypes, library.cuvil_free.restype = [ctypes.c_void_p], None
    except (OSError, AttributeError) as error:
        raise CuvilError(f"{path} is not a library of Cuvil: {error}", expected="a library written by cuvil compile or .save",
                         code="CUV022") from None
    return library
