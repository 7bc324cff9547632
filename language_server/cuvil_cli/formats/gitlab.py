"""`--format gitlab`: a Code Quality report, which GitLab shows in merge requests. It tells new findings by their fingerprints.

Format: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""
from __future__ import annotations

import json

from ..findings import Findings
from ..notebook import split

SEVERITIES = {"error": "critical", "warning": "major", "performance": "minor", "info": "info"}


def render(findings: Findings) -> str:
    names = findings.fingerprints
    return json.dumps([{
        "description": f"{d.name}: {' '.join(d.message.split())}" + (f" (cell {cell})" if cell else ""),
        "check_name": d.code,
        "fingerprint": names.get(d) or findings.fingerprint(d, 0),
        "severity": SEVERITIES[d.severity],
        "location": {"path": findings.relative(file), "positions": {
            "begin": {"line": d.span.line, "column": d.span.column + 1}, "end": {"line": d.span.end_line, "column": d.span.end_column + 1}}},
    } for d in [*findings.problems, *findings.diagnostics] for file, cell in [split(d.span.path)]], indent=2)
