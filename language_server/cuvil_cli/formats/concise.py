"""`--format concise`: one line a finding, as compilers write them, for terminals, grep, and editors that read such lines."""
from __future__ import annotations

from ..findings import Findings
from .frames import closing


def render(findings: Findings) -> str:
    found = sorted([*findings.problems, *findings.diagnostics], key=lambda d: (d.span.path, d.span))
    lines = [f"{d.span}: {d.severity} {d.code} {d.name}: {' '.join(d.message.split())}" + (" [*]" if d.fix and d.fix.applicability == "safe" else "")
             for d in found]
    return "\n".join([*lines, closing(findings)])
