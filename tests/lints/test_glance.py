"""Findings while someone types: never one that the whole file would not give, and none that flickers."""
import pytest

from cuvil.frontends import python
from cuvil.source import Source
from cuvil_ide import lints
from cuvil_ide.glance import at_a_glance
from cuvil_ide.session import Session


@pytest.mark.parametrize("rule", lints.RULES, ids=lambda rule: rule.name)
def test_a_rule_that_sees_one_function_says_nothing_that_the_file_does_not_bear_out(rule):
    """Of each example, each definition alone."""
    for example in (*rule.valid, *(invalid.code.replace("»", "").replace("«", "") for invalid in rule.invalid)):
        facts = python.analyze(Source("example.py", example), python.Workspace("."))
        whole = {(d.code, d.span) for d in lints.find(facts, [rule])}
        for definition in facts.module.definitions:
            if definition.kind != "class":
                seen = at_a_glance(None, python.Glance(facts, (definition,), False), [rule])
                assert {(d.code, d.span) for d in seen.found} <= whole, f"{definition} of:\n{example}"


CODE = """\
import torch


def first(x: torch.Tensor):
    flag = None == None
    return x


def second(y: torch.Tensor):
    return (torch.zeros(4, 1) - torch.zeros(4)).mean()
"""


def lines(found) -> list[tuple[str, int]]:
    return [(d.name, d.span.line) for d in found]


def test_findings_stay_where_their_lines_are_while_others_are_typed():
    session = Session(".")
    session.update("a.py", CODE, 1)
    assert lines(session.diagnostics("a.py")) == [("constant-comparison", 5), ("outer-broadcast", 10)]
    for text in ("    z", "    z = f(", "    z = f(x", "    z = f(x)"):
        session.update("a.py", CODE.replace("    return x\n", f"{text}\n    return x\n"), 2)
        found = session.quick_diagnostics("a.py")
        assert [d for d in lines(found) if d[0] != "syntax-error"] == [("constant-comparison", 5), ("outer-broadcast", 11)], text
        assert any(d.name == "syntax-error" for d in found) == ("(" in text and ")" not in text)
        assert not session.settled("a.py")


def test_what_is_typed_is_found_at_once_and_what_is_mended_goes():
    session = Session(".")
    session.update("a.py", CODE, 1)
    session.diagnostics("a.py")
    session.update("a.py", CODE.replace("return x", "return None == None"), 2)
    assert ("constant-comparison", 6) in lines(session.quick_diagnostics("a.py"))
    session.update("a.py", CODE.replace("None == None", "x.shape"), 3)
    assert lines(session.quick_diagnostics("a.py")) == [("outer-broadcast", 10)]
    assert lines(session.diagnostics("a.py")) == [("outer-broadcast", 10)] and session.settled("a.py")


def test_what_was_typed_is_found_when_somebody_asked_for_the_facts_of_all_first():
    session = Session(".")
    session.update("a.py", CODE, 1)
    session.diagnostics("a.py")
    session.update("a.py", CODE.replace("return x", "return None == None"), 2)
    session.facts("a.py")
    assert lines(session.quick_diagnostics("a.py")) == [("constant-comparison", 5), ("constant-comparison", 6), ("outer-broadcast", 10)]


def test_evidence_and_fixes_move_with_their_finding():
    session = Session(".")
    session.update("a.py", CODE, 1)
    before = {d.name: d for d in session.diagnostics("a.py")}["outer-broadcast"]
    session.update("a.py", CODE.replace("import torch\n", "import torch\n\n\nSIZE = 3\n"), 2)
    after = {d.name: d for d in session.quick_diagnostics("a.py")}["outer-broadcast"]
    assert after.evidence == tuple(type(e)(e.span.lower(3), e.text) for e in before.evidence)
    assert after == {d.name: d for d in session.diagnostics("a.py")}["outer-broadcast"]


def test_a_text_that_is_no_longer_the_newest_is_not_looked_at_to_its_end():
    from cuvil.interrupted import Interrupted
    session = Session(".")
    session.update("a.py", CODE, 1)
    rule = lints.RULES[0]
    plugin = lints.Rule("X001", "typing", rule.kind, "warning", "hint", lambda facts: session.update("a.py", CODE + "\n", 2) or iter(()), "Typing.")
    session._load_plugins = lambda config: ([plugin, plugin], [])
    with pytest.raises(Interrupted):
        session.diagnostics("a.py")
