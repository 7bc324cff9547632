"""Every rule's own examples: the good ones are silent, the bad ones are found at the marked text, in these words, and fixed so."""
from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cuvil.frontends import python
from cuvil.source import Source, apply_edits
from cuvil_ide import lints
from cuvil_ide.lints import RULES

VALID = [pytest.param(rule, code, id=f"{rule.name}-{i}") for rule in RULES for i, code in enumerate(rule.valid)]
INVALID = [pytest.param(rule, example, id=f"{rule.name}-{i}") for rule in RULES for i, example in enumerate(rule.invalid)]


def findings(code: str) -> tuple[Source, list]:
    source = Source("example.py", code)
    return source, lints.check(python.analyze(source))


@pytest.mark.parametrize("rule, code", VALID)
def test_good_code_is_silent(rule, code):
    assert [f"{d.name}: {d.message}" for d in findings(code)[1]] == []


@pytest.mark.parametrize("rule, example", INVALID)
def test_bad_code_is_found(rule, example):
    start, end = example.code.index("»"), example.code.index("«") - 1
    source, found = findings(example.code.replace("»", "").replace("«", ""))
    own = [d for d in found if d.name == rule.name]
    assert [source.slice(d.span) for d in own] == [source.text[start:end]]
    finding = own[0]
    assert example.words in finding.message
    assert (finding.code, finding.kind) == (rule.code, rule.kind)
    assert bool(finding.fix and finding.fix.edits) == bool(example.fixed)
    if example.fixed:
        assert finding.fix.applicability == rule.fix, "the manual and the fix agree on how safe it is"
        after = apply_edits(source, finding.fix.edits)
        assert after == example.fixed
        ast.parse(after)
        assert rule.name not in [d.name for d in findings(after)[1]], "the fix leaves nothing to find"


def test_manuals_are_complete():
    for rule in RULES:
        for heading in ("What:", "Why:", "Example:", "Instead:"):
            assert heading in rule.manual, f"{rule.name} has no {heading}"
        assert rule.summary.endswith(".") and len(rule.summary) < 100
        assert rule.valid and rule.invalid
        if any(example.fixed for example in rule.invalid):
            assert rule.fix in ("safe", "unsafe"), f"{rule.name} has fixes and does not say how safe they are"


def test_codes_and_names_are_unique_and_every_file_is_in_the_list():
    assert len({r.code for r in RULES}) == len({r.name for r in RULES}) == len(RULES)
    folder = Path(lints.__file__).parent
    files = {file.stem.replace("_", "-") for file in folder.glob("*.py") if "\nRULE = Rule(" in file.read_text(encoding="utf-8")}
    assert files == {rule.name for rule in RULES}
