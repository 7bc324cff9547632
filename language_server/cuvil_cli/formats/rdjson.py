"""`--format rdjson`: the Reviewdog Diagnostic Format, for review comments with suggestions. Its columns count UTF-8 bytes.

Format: https://github.com/reviewdog/reviewdog/tree/master/proto/rdf
"""
from __future__ import annotations

import json

from cuvil.diagnostics import Diagnostic
from cuvil.source import Span

from ..findings import Findings
from ..notebook import split

SEVERITIES = {"error": "ERROR", "warning": "WARNING", "performance": "INFO", "info": "INFO"}


def render(findings: Findings) -> str:
    return json.dumps({"source": {"name": "cuvil"}, "diagnostics": [_diagnostic(d, findings) for d in [*findings.problems, *findings.diagnostics]]},
                      indent=2)


def _diagnostic(d: Diagnostic, findings: Findings) -> dict:
    entry = {"message": d.message, "location": _location(d.span, findings), "severity": SEVERITIES[d.severity], "code": {"value": d.code}}
    if d.evidence:
        entry["relatedLocations"] = [{"message": e.text, "location": _location(e.span, findings)} for e in d.evidence]
    if d.fix and d.fix.applicability != "display" and d.fix.edits:
        entry["suggestions"] = [{"range": _range(e.span, findings), "text": e.text} for e in d.fix.edits]
    return entry


def _location(span: Span, findings: Findings) -> dict:
    return {"path": findings.relative(split(span.path)[0]), "range": _range(span, findings)}


def _range(span: Span, findings: Findings) -> dict:
    source = findings.read(span.path)

    def place(line: int, column: int) -> dict:
        return {"line": line, "column": (source.index.to_units(line, column, "utf-8") if source else column) + 1}
    return {"start": place(span.line, span.column), "end": place(span.end_line, span.end_column)}
