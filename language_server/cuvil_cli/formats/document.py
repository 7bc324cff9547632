"""`--format json`: one document, as the design words it: {"version": 1, "findings": [...], "summary": {...}}."""
from __future__ import annotations

import json

from ..findings import Findings


def render(findings: Findings) -> str:
    return json.dumps({"version": 1, "findings": [d.to_json() for d in findings.diagnostics],
                       "problems": [d.to_json() for d in findings.problems], "summary": findings.summary()}, indent=2)
