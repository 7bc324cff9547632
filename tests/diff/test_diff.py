"""Semantic diff: what a change of text does to what functions compute."""
from __future__ import annotations

import json

import pytest

from cuvil.source import Source
from cuvil_ide.diff import diff
from cuvil_ide.diff.tokens import tokens

HEAD = "import torch\nimport torch.nn.functional as F\nfrom jaxtyping import Float\nfrom torch import Tensor\n\n"
BASE = HEAD + '''def f(x: Float[Tensor, "b n"], y: Float[Tensor, "b n"]):
    h = torch.relu(x + y)
    return torch.softmax(h, dim=-1)
'''


def compare(a: str, b: str) -> dict:
    return {d.name: d for d in diff(Source("a.py", a), Source("b.py", b))}


def verdict(a: str, b: str) -> str:
    return compare(a, b)["f"].verdict


# Nothing changes

@pytest.mark.parametrize("a, b", [
    (BASE, BASE),
    (BASE, BASE.replace("    h =", "    # why\n    h =")),
    (BASE, BASE.replace("x + y", "x  +  y")),
    (BASE, "VERSION = 3\n" + BASE),
])
def test_comments_and_blanks_are_nothing(a, b):
    assert verdict(a, b) == "identical"


# The text changes, the meaning does not

@pytest.mark.parametrize("old, new", [
    ("h", "hidden"),                                                # names
    ("x + y", "y + x"),                                             # a commutative operation
    ("torch.relu(x + y)", "torch.relu(torch.relu(x + y))"),         # twice is once
    ("torch.relu(x + y)", "F.relu(torch.add(x, y))"),               # another spelling
    ("dim=-1", "dim=1"),                                            # the same axis from the front
    ('"b n"', '"batch width"'),                                     # names of sizes
    ("    return torch.softmax(h, dim=-1)", "    p = h.softmax(-1)\n    return p"),
    ("    h =", "    unused = x * 3\n    h ="),
])
def test_other_words_for_the_same(old, new):
    import re
    after = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new, BASE) if old.isalpha() else BASE.replace(old, new)
    assert after != BASE
    assert verdict(BASE, after) == "cosmetic"


def test_a_renamed_function_is_the_same_function():
    found = compare(BASE, BASE.replace("def f(", "def g("))
    assert {name: (d.verdict, d.reason) for name, d in found.items()} == {"g": ("cosmetic", "renamed from f")}


def test_a_helper_that_is_drawn_out_is_the_same():
    after = BASE.replace("def f(", "def helper(x, y):\n    return torch.relu(x + y)\n\ndef f(").replace(
        "torch.relu(x + y)\n    return torch.s", "helper(x, y)\n    return torch.s")
    assert verdict(BASE, after) == "cosmetic"


# The meaning changes

def test_another_axis_is_one_change_with_both_places():
    change = compare(BASE, BASE.replace("dim=-1", "dim=0"))["f"]
    assert change.verdict == "drift" and not change.added and not change.removed
    (one,) = change.changed
    assert one.what == "axis: 1 -> 0"
    assert (one.before_span.path, one.after_span.path, one.before_span.line) == ("a.py", "b.py", 8)


def test_an_added_operation_is_one_addition():
    change = compare(BASE, BASE.replace("torch.relu(x + y)", "torch.relu(x + y).exp()"))["f"]
    assert (len(change.added), len(change.removed), len(change.changed)) == (1, 0, 0)
    assert "exp" in change.added[0].after and change.added[0].after_span.line == 7


def test_a_removed_operation_is_one_removal():
    change = compare(BASE, BASE.replace("torch.relu(x + y)", "(x + y)"))["f"]
    assert change.verdict == "drift" and len(change.removed) >= 1 and not change.added
    assert change.removed[0].before_span.line == 7


@pytest.mark.parametrize("old, new", [
    ("x + y", "x - y"), ("x + y", "x + x"), ("return torch.softmax(h, dim=-1)", "return torch.softmax(h, dim=-1), h"),
    ("x + y", "x + 0.5"), ('x: Float[Tensor, "b n"]', 'x: Float[Tensor, "n b"]')])
def test_what_computes_something_else_drifts(old, new):
    assert verdict(BASE, BASE.replace(old, new)) in ("drift", "unknown")


def test_a_change_of_operands_alone_is_seen():
    a = BASE.replace("x + y", "x - y")
    change = compare(a, a.replace("x - y", "y - x"))["f"]
    assert change.verdict == "drift" and change.changed[0].what == "works on other operands"


def test_a_callee_that_changes_is_drift_of_the_caller():
    a = HEAD + 'def g(x):\n    return x * 2\n\ndef f(x: Float[Tensor, "n"]):\n    return g(x) + 1\n'
    change = compare(a, a.replace("* 2", "* 3"))["f"]
    assert (change.verdict, change.reason) == ("drift", "something it calls or reads changed")


def test_functions_that_come_and_go():
    found = compare(BASE, BASE + '\ndef g(x: Float[Tensor, "n"]):\n    return x.exp()\n')
    assert (found["g"].verdict, found["g"].reason) == ("drift", "only in the new text")


# What cannot be told

def test_what_is_not_captured_is_unknown_with_its_reason():
    a = HEAD + 'def f(x: Float[Tensor, "n"], model):\n    return model.run(x + 1)\n'
    change = compare(a, a.replace("+ 1", "+ 2"))["f"]
    assert change.verdict == "unknown" and "was not captured" in change.reason


def test_broken_code_is_no_crash():
    compare(BASE, BASE.replace("dim=-1)", "dim=-1"))
    compare("", BASE)
    compare(BASE, "\x00")


# As data

def test_json_has_both_places():
    change = compare(BASE, BASE.replace("dim=-1", "dim=0"))["f"].to_json()
    (one,) = json.loads(json.dumps(change))["changed"]
    assert one["before"]["range"]["start"]["line"] == one["after"]["range"]["start"]["line"] == 8
    assert one["before"]["path"] == "a.py" and "softmax" in one["after"]["op"]


def test_tokens_see_strings_but_not_comments():
    assert tokens("x = 1  # a\n") == tokens("x  =  1\n")
    assert tokens("x = 'a  b'\n") != tokens("x = 'a b'\n")
    assert tokens("    def f():\n        pass\n") == tokens("def f():\n  pass\n")
    assert tokens("x = (") != tokens("x = [")
