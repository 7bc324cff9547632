"""`--format json-lines`: one finding a line, as in the json document; files that could not be read come with kind "unreadable-file"."""
from __future__ import annotations

import json

from ..findings import Findings


def render(findings: Findings) -> str:
    return "\n".join(json.dumps(d.to_json()) for d in [*findings.problems, *findings.diagnostics])
