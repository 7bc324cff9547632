"""`--format github`: workflow commands, which GitHub shows beside the lines of a pull request.

Format: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""
from __future__ import annotations

from cuvil.diagnostics import Diagnostic

from ..findings import Findings
from ..notebook import split

LEVELS = {"error": "error", "warning": "warning", "performance": "warning", "info": "notice"}


def render(findings: Findings) -> str:
    return "\n".join(_command(d, findings) for d in [*findings.problems, *findings.diagnostics])


def _command(d: Diagnostic, findings: Findings) -> str:
    file, cell = split(d.span.path)
    properties = {"file": findings.relative(file), "line": d.span.line, "endLine": d.span.end_line, "title": f"{d.code} {d.name}"}
    if d.span.line == d.span.end_line:       # GitHub takes columns only within one line
        properties |= {"col": d.span.column + 1, "endColumn": d.span.end_column + 1}
    message = "\n".join([f"cell {cell}: {d.message}" if cell else d.message, *(f"{findings.relative(e.span.path)}:{e.span.line}: {e.text}" for e in d.evidence)])
    return f"::{LEVELS[d.severity]} {','.join(f'{k}={_property(str(v))}' for k, v in properties.items())}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
