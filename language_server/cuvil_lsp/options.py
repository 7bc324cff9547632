"""What the client chose: `initializationOptions` and the settings section `cuvil`. A wrong value is a note and the default."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Options:
    """trusted          the user trusts this workspace: its code may be compiled and its plugins run
    compileOnSave    compile the entry points of a file when it is saved (needs trust)
    compileTimeout   seconds after which a compilation is ended
    compileMemory    megabytes of address space that a compilation may use; 0 for no limit
    inlayHints, codeLens   whether to answer these at all
    """

    trusted: bool = False
    compileOnSave: bool = True
    compileTimeout: float = 60
    compileMemory: int = 8192
    inlayHints: bool = True
    codeLens: bool = True

    def updated(self, values: Any, trusting: bool = False) -> tuple[Options, list[str]]:
        """These options with the given ones laid over them, and what was wrong with the given ones.

        trusting: `trusted` may be among them. Only the client itself says it, at the start; settings may come with the workspace.
        """
        if values is None:
            return self, []
        if not isinstance(values, Mapping):
            return self, [f"Cuvil settings must be an object, not {type(values).__name__}; defaults are used"]
        kinds = {f.name: type(getattr(Options(), f.name)) for f in fields(self)}
        good, notes = {}, []
        for key, value in values.items():
            kind = kinds.get(key) if value is not None else None
            if kind is None or key == "trusted" and not trusting:      # settings of the extension alone are none of ours
                continue
            if isinstance(value, bool) != (kind is bool) or not isinstance(value, (int, float)):
                notes.append(f"cuvil.{key} must be {'true or false' if kind is bool else 'a number'}, not {value!r}; it stays {getattr(self, key)}")
            else:
                good[key] = value
        return replace(self, **good), notes
