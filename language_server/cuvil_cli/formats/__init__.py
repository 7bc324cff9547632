"""Output formats of `cuvil lint`: name -> module here with `render(findings) -> str`; a module is imported when it is asked for."""
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..findings import Findings

FORMATS = {"text": "frames", "concise": "concise", "json": "document", "json-lines": "lines", "sarif": "sarif", "github": "github", "gitlab": "gitlab",
           "junit": "junit", "rdjson": "rdjson"}


def render(name: str, findings: Findings, colour: bool = False) -> str:
    module = import_module(f".{FORMATS[name]}", __name__)
    return module.render(findings, colour) if name == "text" else module.render(findings)
