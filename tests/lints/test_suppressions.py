"""Comments that silence findings, settings, and plugins."""
from __future__ import annotations

import pytest

from cuvil.frontends import python
from cuvil.source import Source, apply_edits
from cuvil_ide import lints
from cuvil_ide.config import Config, load
from cuvil_ide.plugins import load_plugins
from cuvil_ide.session import Session

BAD = "flag = None == None"


def names(code: str, config: Config = Config()) -> list[str]:
    return [d.name for d in lints.check(python.analyze(Source("example.py", code)), config)]


@pytest.mark.parametrize("code", [
    f"{BAD}  # noqa: CUV961\n",
    f"{BAD}  # noqa: E501, CUV961\n",
    f"{BAD}  # cuvil: ignore[constant-comparison]\n",
    f"{BAD}  # cuvil: ignore[CUV961] kept as a switch\n",
    f"{BAD}  # type: ignore  # cuvil: ignore[constant-comparison]\n",
    # alone on its line: for the next statement, over blank lines and other comments
    f"# cuvil: ignore[constant-comparison]\n\n# a switch\n{BAD}\n",
    # the finding starts on another line than the comment
    "flag = (None ==\n        None)  # noqa: CUV961\n",
    f"# cuvil: file-ignore[constant-comparison]\nx = 1\n{BAD}\n",
])
def test_a_named_rule_is_silenced(code):
    assert names(code) == []


def test_a_blanket_noqa_silences_nothing():
    assert names(f"{BAD}  # noqa\n") == ["constant-comparison"]


def test_a_comment_in_a_string_silences_nothing():
    assert names("flag = '# noqa: CUV961' and None == None\n") == ["constant-comparison"]


def test_broken_code_keeps_its_suppressions():
    assert "constant-comparison" not in names(f"x = (\n\ndef f():\n    {BAD}  # noqa: CUV961\n")


def test_unused_suppressions_are_taken_out_one_by_one():
    source = Source("example.py", f"{BAD}  # cuvil: ignore[outer-broadcast, constant-comparison]\n")
    (found,) = lints.check(python.analyze(source))
    assert apply_edits(source, found.fix.edits) == f"{BAD}  # cuvil: ignore[constant-comparison]\n"


# Settings

def test_select_and_ignore_take_codes_prefixes_and_names():
    assert names(BAD, Config(select=("CUV1",))) == []
    assert names(BAD, Config(select=("constant-comparison",))) == ["constant-comparison"]
    assert names(BAD, Config(select=("CUV9",), ignore=("CUV961",))) == []
    assert names(BAD, Config(per_file_ignores=(("exam*.py", ("CUV9",)),))) == []


def test_an_ignored_rule_makes_no_suppression_unused():
    assert names(f"{BAD}  # noqa: CUV961\n", Config(ignore=("CUV961",))) == []


def test_the_nearest_settings_win_and_bad_ones_are_notes(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.cuvil]\nselect = ['CUV1']\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert load(inner / "a.py").select == ("CUV1",)
    (inner / "pyproject.toml").write_text("[tool.cuvil]\nignore = ['CUV9']\nselect = 3\nseverity = {x = 'bad'}\ncolour = 'red'\n")
    config = load(inner / "a.py")
    assert (config.select, config.ignore, config.severity) == ((), ("CUV9",), {})
    assert sorted(note.message.split(":")[0].split()[-1] for note in config.notes) == ["colour", "select", "severity"]
    assert {note.span.line for note in config.notes} == {3, 4, 5}


@pytest.mark.parametrize("text", ["[tool.cuvil\n", "tool = 3\n", "[tool]\ncuvil = 3\n", "\xff"])
def test_unreadable_settings_are_one_note(tmp_path, text):
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    config = load(tmp_path)
    assert config.select == () and len(config.notes) <= 1


def test_severity_can_be_set():
    (found,) = lints.check(python.analyze(Source("example.py", BAD)), Config(severity={"constant-comparison": "error"}))
    assert found.severity == "error"


# Plugins

RULE = '''"""Names called tmp."""
import libcst
from cuvil_ide.lints.rule import Rule

def check(facts):
    for name in ("tmp",):
        at = facts.source.text.find(name)
        if at >= 0:
            yield RULE.finding("tmp says nothing", facts.source.span(at, at + 3))

RULE = Rule("MY001", "tmp-name", kind="style", severity="info", certainty="hint", check=check, manual=__doc__)
'''


def project(tmp_path, plugin: str) -> str:
    (tmp_path / "pyproject.toml").write_text("[tool.cuvil]\nplugins = ['my_rules']\n")
    (tmp_path / "my_rules.py").write_text(plugin)
    (tmp_path / "a.py").write_text("tmp = 1\n")
    return str(tmp_path / "a.py")


def test_plugins_run_only_where_the_project_is_trusted(tmp_path):
    path = project(tmp_path, RULE)
    assert [d.name for d in Session(tmp_path, trusted=True).diagnostics(path)] == ["tmp-name"]
    assert Session(tmp_path, trusted=False).diagnostics(path) == []


@pytest.mark.parametrize("plugin, words", [
    ("import nonsense_that_is_not_there\n", "ModuleNotFoundError"),
    ("x = (\n", "SyntaxError"),
    ("import sys\nsys.exit(3)\n", "SystemExit"),
    ("RULES = [3]\n", "TypeError"),
    ("x = 1\n", "AttributeError"),
])
def test_a_broken_plugin_is_one_clear_message(tmp_path, plugin, words):
    path = project(tmp_path, plugin)
    (found,) = Session(tmp_path, trusted=True).diagnostics(path)
    assert found.name == "broken-plugin" and "my_rules" in found.message and words in found.message


def test_a_rule_that_fails_leaves_the_others_alone(tmp_path):
    path = project(tmp_path, RULE.replace("for name in", "1 / 0\n    for name in"))
    (tmp_path / "a.py").write_text(BAD)
    found = {d.name: d.message for d in Session(tmp_path, trusted=True).diagnostics(path)}
    assert found.keys() == {"rule-failed", "constant-comparison"} and "tmp-name" in found["rule-failed"]


def test_a_missing_plugin_says_where_it_was_looked_for(tmp_path):
    project(tmp_path, RULE)
    rules, notes = load_plugins(Config(str(tmp_path), plugins=("other",)), trusted=True)
    assert rules == [] and str(tmp_path / "other.py") in notes[0].message
