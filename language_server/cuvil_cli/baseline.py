"""A baseline: the findings that a project starts with, as counts for each file and rule, so that only more of them is news.

    {"version": 1, "files": {"src/model.py": {"CUV108": {"count": 2, "fingerprints": ["…", "…"]}}}}

Fewer findings than the baseline has is always fine, and `--update-baseline` writes that down; more is reported, first those whose
fingerprints it does not know, and fails by itself, whatever the certainty. A baseline that exists only ever shrinks. An earlier SARIF
output serves too, by its fingerprints.
"""
from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass, replace

from cuvil.diagnostics import CuvilError, Diagnostic

from . import files
from .findings import Findings
from .notebook import split

Group = tuple[str, str]                      # file, relative to the repository's root, and code


@dataclass(frozen=True)
class Known:
    """count: None when only the fingerprints count."""

    count: int | None
    fingerprints: frozenset[str]


def read(path: str) -> dict[Group, Known]:
    """What a baseline allows. CuvilError for what is none."""
    try:
        document = json.loads(files.read(path).source.text)
        if "runs" in document:
            prints = frozenset(p for run in document["runs"] for r in run["results"] for p in r.get("partialFingerprints", {}).values())
            return defaultdict(lambda: Known(None, prints))
        return {(file, code): Known(int(known["count"]), frozenset(known["fingerprints"]))
                for file, rules in document["files"].items() for code, known in rules.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CuvilError(f"{path} is no baseline", expected="what `cuvil lint --baseline FILE --update-baseline` or `--format sarif` writes") from None


def news(findings: Findings, known: dict[Group, Known]) -> Findings:
    """The findings that the baseline does not cover."""
    new: set[Diagnostic] = set()
    for group, found in groups(findings).items():
        old = known[group] if group in known or isinstance(known, defaultdict) else Known(0, frozenset())
        unknown = [d for d in found if findings.fingerprints[d] not in old.fingerprints]
        if old.count is None:
            new.update(unknown)
        else:
            more = max(0, len(found) - old.count)
            new.update([*unknown, *(d for d in reversed(found) if d not in unknown)][:more])
    left = tuple(replace(r, diagnostics=tuple(d for d in r.diagnostics if d in new)) for r in findings.results)
    return Findings(left, findings.root, findings.read)


def growth(findings: Findings, new: Findings) -> list[str]:
    """A line for each file and rule of which there is more than the baseline has: how many there were, how many there are."""
    now = groups(findings)
    return [f"{file}: {code} {found[0].name}, {len(now[file, code]) - len(found)} -> {len(now[file, code])}"
            for (file, code), found in sorted(groups(new).items())]


def groups(findings: Findings) -> dict[Group, list[Diagnostic]]:
    found: dict[Group, list[Diagnostic]] = {}
    for d in findings.diagnostics:
        found.setdefault((findings.relative(split(d.span.path)[0]), d.code), []).append(d)
    return found


def update(path: str, findings: Findings) -> None:
    """Write the findings as a baseline; one that is there becomes no larger. What was not checked this time stays as it was."""
    old = read(path) if os.path.exists(path) else None
    checked = {findings.relative(result.path) for result in findings.results}
    written: dict[Group, Known] = {}
    for group, found in groups(findings).items():
        prints = [findings.fingerprints[d] for d in found]
        if old is not None and not isinstance(old, defaultdict):
            before = old.get(group, Known(0, frozenset()))
            prints = sorted(prints, key=lambda p: p not in before.fingerprints)[:before.count]
        if prints:
            written[group] = Known(len(prints), frozenset(prints))
    if old is not None:
        written |= {group: known for group, known in old.items() if group[0] not in checked and (findings.root / group[0]).exists()}
    document: dict[str, dict] = {}
    for (file, code), known in sorted(written.items()):
        document.setdefault(file, {})[code] = {"count": known.count, "fingerprints": sorted(known.fingerprints)}
    files.write(path, json.dumps({"version": 1, "files": document}, indent=1) + "\n")
