"""Faults of Cuvil itself: they cost as little as possible and are said once, in words."""
from __future__ import annotations

import pytest

from cuvil.frontends.python import calls
from cuvil_ide.session import Session

TEXT = """import torch

def good():
    return torch.zeros(2, 3) @ torch.zeros(4, 2)

def odd(x: torch.Tensor):
    return x.exp()
"""


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def test_a_definition_that_breaks_the_analysis_costs_only_itself(session, monkeypatch):
    original = calls.run_body

    def broken(walk, function, *rest):
        if function.name == "odd":
            raise KeyError("gone")
        return original(walk, function, *rest)
    monkeypatch.setattr(calls, "run_body", broken)
    session.update("a.py", TEXT, 1)
    found = session.diagnostics("a.py")
    assert [d.code for d in found] == ["CUV101", "CUV005"]
    assert found[1].span.line == 6 and "KeyError" in found[1].message and "report" in found[1].message


def test_an_analysis_that_fails_leaves_the_last_good_facts(session, monkeypatch):
    from cuvil.frontends import python
    session.update("a.py", TEXT, 1)
    before = session.facts("a.py")
    monkeypatch.setattr(python, "analyze", lambda *_: 1 / 0)
    session.update("a.py", TEXT + "\n", 2)
    assert session.facts("a.py") is before
    assert [d.name for d in session.diagnostics("a.py")] == ["matmul-shape-mismatch", "analysis-failed"]
