"""`--format sarif`: SARIF 2.1.0, for code scanning.

Paths are relative to the repository root (uriBaseId SRCROOT), columns count code points from 1, evidence becomes related
locations, fixes are artifact changes, and each result has a fingerprint that survives edits elsewhere in the file.
Standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/
"""
from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from cuvil.diagnostics import Diagnostic
from cuvil.source import Span

from ..findings import Findings
from ..main import version
from ..notebook import split

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "performance": "warning", "info": "note"}


def render(findings: Findings) -> str:
    from cuvil_ide.lints import RULES
    used = {d.code: d for d in findings.diagnostics}
    manuals = {rule.code: rule for rule in RULES}
    rules = [_rule(code, used[code], manuals.get(code)) for code in sorted(used)]
    order = {rule["id"]: i for i, rule in enumerate(rules)}
    run = {
        "tool": {"driver": {"name": "cuvil", "version": version(), "rules": rules}},
        "originalUriBaseIds": {"SRCROOT": {"uri": findings.root.as_uri().rstrip("/") + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, order[d.code], findings) for d in findings.diagnostics],
        "invocations": [{"executionSuccessful": not findings.problems,
                         "toolExecutionNotifications": [_notification(d, findings) for d in findings.problems]}],
        "properties": findings.summary(),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str, example: Diagnostic, rule: Any) -> dict:
    entry = {"id": code, "name": "".join(part.title() for part in example.name.split("-")),
             "shortDescription": {"text": rule.summary if rule else example.name},
             "defaultConfiguration": {"level": LEVELS[rule.severity if rule else example.severity]},
             "properties": {"tags": [example.kind]}}
    if rule:
        entry["help"] = {"text": rule.manual.strip(), "markdown": rule.manual.strip()}
    return entry


def _result(d: Diagnostic, rule: int, findings: Findings) -> dict:
    _, cell = split(d.span.path)
    result = {"ruleId": d.code, "ruleIndex": rule, "level": LEVELS[d.severity], "message": {"text": f"cell {cell}: {d.message}" if cell else d.message},
              "locations": [_location(d.span, findings)],
              "partialFingerprints": {"cuvilFinding/v1": findings.fingerprints[d]},
              "properties": {"certainty": d.certainty, "kind": d.kind}}
    if d.evidence:
        result["relatedLocations"] = [{"id": i, **_location(e.span, findings), "message": {"text": e.text}}
                                      for i, e in enumerate(d.evidence, 1)]
    if d.fix and d.fix.edits and d.fix.applicability != "display" and not cell:       # a cell's lines are not the file's
        by_file: dict[str, list[dict]] = {}
        for edit in d.fix.edits:
            by_file.setdefault(edit.span.path, []).append({"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}})
        result["fixes"] = [{"description": {"text": d.fix.title}, "artifactChanges": [
            {"artifactLocation": _artifact(path, findings), "replacements": changes} for path, changes in by_file.items()]}]
    return result


def _notification(d: Diagnostic, findings: Findings) -> dict:
    return {"level": "error", "message": {"text": d.message}, "locations": [_location(d.span, findings)]}


def _location(span: Span, findings: Findings) -> dict:
    file, cell = split(span.path)
    place = {"physicalLocation": {"artifactLocation": _artifact(file, findings), "region": _region(span)}}
    return {**place, "logicalLocations": [{"name": f"cell {cell}", "kind": "cell"}]} if cell else place


def _artifact(path: str, findings: Findings) -> dict:
    shown = findings.relative(path)
    if shown.startswith("/") or ":" in shown[:3]:        # outside the repository: an absolute URI stands by itself
        from pathlib import Path
        return {"uri": Path(path).absolute().as_uri()}
    return {"uri": quote(shown.encode("utf-8", "surrogateescape")), "uriBaseId": "SRCROOT"}


def _region(span: Span) -> dict:
    return {"startLine": span.line, "startColumn": span.column + 1, "endLine": span.end_line, "endColumn": span.end_column + 1}
