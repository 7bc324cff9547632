"""`cuvil rule new` writes a rule that runs; its examples are checked; packages offer rules by an entry point."""
import importlib
import json

import pytest

from cuvil_ide.config import Config
from cuvil_ide.plugins import load_file, load_plugins

LOOP = "import torch\n\ndef f(x: torch.Tensor):\n    for i in range(3):\n        print((x * i).cpu())\n"


def test_a_new_rule_runs_as_it_is(cuvil, write, tmp_path):
    done = cuvil("rule", "new", "my-finding")
    assert done.code == 0 and "cuvil rule test my_finding.py" in done.out
    tested = cuvil("rule", "test", "my_finding.py")
    assert tested.code == 0 and "1 silent and 1 reported" in tested.out
    write("pyproject.toml", '[tool.cuvil]\nplugins = ["my_finding"]\nselect = ["my-finding"]\n')
    write("a.py", LOOP)
    found = json.loads(cuvil("lint", "a.py", "--trusted", "--format", "json").out)["findings"]
    assert [(f["name"], f["range"]["start"]["line"]) for f in found] == [("my-finding", 5)]
    again = cuvil("rule", "new", "my-finding")
    assert again.code == 2 and "there already" in again.err


@pytest.mark.parametrize("name", ["", "My", "a_b", "../x", "a--b"])
def test_names_are_words(cuvil, name):
    assert cuvil("rule", "new", *([name] if name else [])).code == 2


@pytest.mark.parametrize("old, new, words", [
    ("»(x * i).cpu()«", "»(x * i)«.cpu()", "expected one finding at '(x * i)'"), ('"in a loop"', '"elsewhere"', "expected the words 'elsewhere'"),
    ("return torch.stack(found).cpu()", "return [t.cpu() for t in found]", "must be silent"), ("»", "", "between one » and one «"),
    ("valid=VALID", "valid=()", "expected examples"),
])
def test_examples_that_do_not_hold_are_named(cuvil, tmp_path, old, new, words):
    cuvil("rule", "new", "my-finding")
    file = tmp_path / "my_finding.py"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    done = cuvil("rule", "test", "my_finding.py")
    assert done.code == 1 and words in done.out


def test_files_that_are_no_rules(cuvil, write):
    assert cuvil("rule", "test").code == cuvil("rule", "test", "nowhere.py").code == 2
    write("broken.py", "1 / 0\n")
    done = cuvil("rule", "test", "broken.py")
    assert done.code == 2 and "ZeroDivisionError" in done.err


# As an installed package has it: metadata with an entry point, and the module beside it.
def test_entry_points(cuvil, write, tmp_path, monkeypatch):
    cuvil("rule", "new", "my-finding")
    site = tmp_path / "site"
    write("site/acme_lints.py", (tmp_path / "my_finding.py").read_text(encoding="utf-8"))
    write("site/acme-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    write("site/acme-1.0.dist-info/entry_points.txt", "[cuvil.rules]\nacme = acme_lints\none = acme_lints:RULE\n")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    for name in ("acme", "one"):
        rules, notes = load_plugins(Config(str(tmp_path / "elsewhere"), plugins=(name,)), trusted=True)
        assert [rule.name for rule in rules] == ["my-finding"] and notes == []
    assert [rule.code for rule in load_file(site / "acme_lints.py")] == ["MY001"]
