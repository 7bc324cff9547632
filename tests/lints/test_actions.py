"""The comment that an editor writes to silence a finding is a comment, wherever the finding stands."""
from __future__ import annotations

import pytest

from cuvil.diagnostics import Diagnostic
from cuvil.frontends import python
from cuvil.source import Source, Span, apply_edits
from cuvil_ide import lints
from cuvil_ide.assists.actions import suppression

MARK = "  # cuvil: ignore[constant-comparison]"


@pytest.mark.parametrize("before, after", [
    ("x = None == None\n", f"x = None == None{MARK}\n"),
    ("x = None == None   \r\n", f"x = None == None{MARK}\r\n"),
    ("x = None == None  # why\n", f"x = None == None  # why{MARK}\n"),
    ("x = None == None  # cuvil: ignore[other]\n", "x = None == None  # cuvil: ignore[constant-comparison, other]\n"),
    ("x = (None ==\n     None)\n", f"x = (None =={MARK}\n     None)\n"),
    ("x = [None == None, '''\n''']\n", None),
    ("x = None == None, \\\n    1\n", None),
])
def test_silencing(before, after):
    source = Source("a.py", before)
    found = [d for d in lints.check(python.analyze(source)) if d.name == "constant-comparison"]
    edit = suppression(source, found[0])
    if after is None:
        assert edit is None
        return
    assert apply_edits(source, [edit]) == after
    assert "constant-comparison" not in [d.name for d in lints.check(python.analyze(Source("a.py", after)))]


# Behind a backslash there is no room for a comment; a later line of the finding may have some.
def test_a_finding_over_a_continued_line():
    source = Source("a.py", "x = a == \\\n    a\n")
    finding = Diagnostic("CUV961", "constant-comparison", "x", "m", Span("a.py", 1, 4, 2, 5))
    assert apply_edits(source, [suppression(source, finding)]) == f"x = a == \\\n    a{MARK}\n"
