"""`cuvil lint` as it is used: on files, folders and standard input; with fixes, formats, settings, and files it cannot read."""
import json
import os

import pytest

BROADCAST = "import torch\n\n\ndef pairs():\n    return (torch.zeros(4, 1) - torch.zeros(4)).mean()\n"
CONSTANT = "def f(x):\n    if None == None:\n        return x\n    return x\n"
MISMATCH = "import torch\n\n\ndef f():\n    return torch.zeros(2, 3) @ torch.zeros(4, 5)\n"
CLEAN = "import torch\n\n\ndef f():\n    return torch.zeros(2, 3) @ torch.zeros(3, 5)\n"


def findings(done):
    return json.loads(done.out)["findings"]


# A real process, as a shell or CI starts it.
def test_as_a_process(process, write):
    write("proved.py", MISMATCH)
    done = process("lint", "proved.py")
    assert done.code == 1 and "proved.py:5:12" in done.out and done.err == ""
    assert process("lint", "-", stdin=CONSTANT.encode()).code == 1
    assert process("lint", "nowhere.py").code == 2


# Exit codes: proved findings fail, likely ones are shown.
def test_exit_codes(cuvil, write):
    write("clean.py", CLEAN)
    write("likely.py", BROADCAST)
    write("proved.py", MISMATCH)
    assert cuvil("lint", "clean.py").code == 0
    likely = cuvil("lint", "likely.py")
    assert likely.code == 0 and "outer-broadcast" in likely.out
    assert cuvil("lint", "likely.py", "--fail-on", "likely").code == 1
    proved = cuvil("lint", "proved.py")
    assert proved.code == 1 and "proved.py:5:12" in proved.out
    assert cuvil("lint", "proved.py", "--exit-zero").code == 0
    assert cuvil("lint", "proved.py", "--fail-on", "never").code == 0


def test_json_is_the_document_of_the_design(cuvil, write):
    write("proved.py", MISMATCH)
    document = json.loads(cuvil("lint", "proved.py", "--format", "json").out)
    (finding,) = document["findings"]
    assert (finding["path"], finding["kind"], finding["certainty"]) == ("proved.py", "shape-mismatch", "proved")
    assert finding["range"]["start"] == {"line": 5, "column": 12}
    assert document["summary"]["files"] == 1 and document["summary"]["tensor_expressions"]["understood"] >= 2


def test_sarif_of_a_repository_is_relative_to_its_root(cuvil, write, tmp_path):
    (tmp_path / ".git").mkdir()
    write("src/pkg/proved.py", MISMATCH)
    document = json.loads(cuvil("lint", "proved.py", "--format", "sarif", cwd=tmp_path / "src" / "pkg").out)
    location = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "src/pkg/proved.py", "uriBaseId": "SRCROOT"}


def test_output_goes_to_a_file(cuvil, write, tmp_path):
    write("proved.py", MISMATCH)
    done = cuvil("lint", "proved.py", "--format", "sarif", "--output", "out.sarif")
    assert done.out == "" and done.code == 1
    assert json.loads((tmp_path / "out.sarif").read_text())["version"] == "2.1.0"


# A baseline: what was there before is not news; what comes new is.
def test_baseline(cuvil, write):
    write("a.py", MISMATCH)
    cuvil("lint", "a.py", "--format", "sarif", "--output", "base.sarif")
    assert cuvil("lint", "a.py", "--baseline", "base.sarif").code == 0
    write("a.py", "# a line above\n" + MISMATCH + "\n\ndef g():\n    return torch.zeros(2, 3) + torch.zeros(4, 5)\n")
    done = cuvil("lint", "a.py", "--baseline", "base.sarif", "--format", "json")
    assert done.code == 1 and [f["range"]["start"]["line"] for f in findings(done)] == [10]
    write("not.sarif", "{}")
    assert cuvil("lint", "a.py", "--baseline", "not.sarif").code == 2


def test_select_and_ignore(cuvil, write):
    write("a.py", MISMATCH + CONSTANT)
    def names(*arguments):
        return {f["name"] for f in findings(cuvil("lint", "a.py", "--format", "json", *arguments))}
    assert names() == {"matmul-shape-mismatch", "constant-comparison"}
    assert names("--select", "CUV961") == names("--select", "constant-comparison") == names("--ignore", "CUV1") == {"constant-comparison"}
    assert names("--select", "CUV1,CUV9", "--ignore", "matmul-shape-mismatch") == {"constant-comparison"}


def test_settings_of_the_project(cuvil, write):
    write("pyproject.toml", '[tool.cuvil]\nignore = ["constant-comparison"]\n')
    write("a.py", CONSTANT)
    assert cuvil("lint", "a.py").code == 0
    assert cuvil("lint", "a.py", "--select", "CUV961", "--ignore", "CUV1").code == 1     # the command line decides


def test_fix(cuvil, write, tmp_path):
    path = write("a.py", CONSTANT.replace("\n", "\r\n"))
    path.chmod(0o640)
    done = cuvil("lint", "a.py", "--fix")
    assert done.code == 0 and "Fixed 1 finding in 1 file" in done.err
    assert path.read_bytes() == CONSTANT.replace("None == None", "True").replace("\n", "\r\n").encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.py"]


def test_fix_keeps_the_encoding(cuvil, write):
    latin = "# -*- coding: latin-1 -*-\nname = 'é'\n"
    path = write("a.py", (latin + CONSTANT).encode("latin-1"))
    assert cuvil("lint", "a.py", "--fix").code == 0
    assert path.read_bytes() == (latin + CONSTANT.replace("None == None", "True")).encode("latin-1")
    path = write("bom.py", b"\xef\xbb\xbf" + CONSTANT.encode())
    assert cuvil("lint", "bom.py", "--fix").code == 0
    assert path.read_bytes().startswith(b"\xef\xbb\xbfdef f")


# Fixes that may change results are made only when asked for.
def test_unsafe_fixes(cuvil, write):
    path = write("a.py", BROADCAST)
    cuvil("lint", "a.py", "--fix")
    assert path.read_text() == BROADCAST
    cuvil("lint", "a.py", "--fix", "--unsafe-fixes")
    assert path.read_text() != BROADCAST and "squeeze(-1)" in path.read_text()


def test_diff_writes_nothing(cuvil, write):
    path = write("a.py", CONSTANT)
    done = cuvil("lint", "a.py", "--diff")
    assert done.code == 1 and path.read_text() == CONSTANT
    assert done.out.splitlines()[:2] == ["--- a/a.py", "+++ b/a.py"]
    assert "-    if None == None:" in done.out and "+    if True:" in done.out


def test_standard_input(cuvil):
    done = cuvil("lint", "-", "--stdin-filename", "editor.py", stdin=MISMATCH)
    assert done.code == 1 and "editor.py:5:12" in done.out
    fixed = cuvil("lint", "-", "--fix", stdin=CONSTANT)
    assert fixed.out == CONSTANT.replace("None == None", "True")


def test_what_was_not_understood_is_explained(cuvil, write):
    write("a.py", "import torch\nimport mystery\n\n\ndef f():\n    x = torch.zeros(2)\n    return mystery.thing(x) + x\n")
    done = cuvil("lint", "a.py", "--explain-unknown")
    assert done.code == 0 and "understood" in done.out and "unknown: " in done.out
    document = json.loads(cuvil("lint", "a.py", "--explain-unknown", "--format", "json").out)
    assert document["tensor_expressions"]["unknown"] and document["tensor_expressions"]["understood"] > 0


# Callers know what a function does not say; findings stay the same.
def test_what_callers_bring_is_counted_as_understood(cuvil, write):
    write("a.py", "import torch\n\n\ndef half(x):\n    y = x[:, :2]\n    return y * 0.5\n\n\ndef f(n: torch.Tensor):\n    return half(torch.zeros(2, 3))\n")
    plain = json.loads(cuvil("lint", "a.py", "--statistics", "--format", "json").out)
    whole = json.loads(cuvil("lint", "a.py", "--explain-unknown", "--format", "json").out)
    assert whole["tensor_expressions"]["understood"] > plain["tensor_expressions"]["understood"]
    assert plain["tensor_expressions"]["unknown"] and not whole["tensor_expressions"]["unknown"]
    assert {k: v for k, v in whole.items() if k != "tensor_expressions"} == {k: v for k, v in plain.items() if k != "tensor_expressions"}


# Folders: environments, hidden folders and caches are not code of the project.
def test_folders(cuvil, write):
    for name in ("pkg/a.py", "pkg/deep/b.py", ".venv/lib/c.py", "node_modules/d.py", "__pycache__/e.py", "env/lib/f.py", ".git/g.py", "pkg/notes.txt"):
        write(name, MISMATCH)
    write("env/pyvenv.cfg", "home = /usr/bin\n")
    paths = [f["path"] for f in findings(cuvil("lint", "--format", "json"))]
    assert paths == ["./pkg/a.py", "./pkg/deep/b.py"]


def test_an_empty_folder(cuvil, tmp_path):
    (tmp_path / "empty").mkdir()
    done = cuvil("lint", "empty")
    assert done.code == 0 and done.out == "No findings in 0 files.\n"


# Many files are checked by several processes, with the same answer in the same order.
def test_many_files(cuvil, write):
    for i in range(40):
        write(f"many/f{i:02}.py", MISMATCH if i % 10 == 0 else CLEAN)
    write("many/bad.py", b"name = '\xe9'\n")
    one, two = (cuvil("lint", "many", "--format", "json", "--jobs", jobs) for jobs in ("1", "2"))
    assert one.code == two.code == 2 and one.out == two.out
    assert [f["path"] for f in findings(one)] == [f"many/f{i:02}.py" for i in (0, 10, 20, 30)]


# What cannot be read is named with its place; the rest is checked, and the exit code says that something was not.
@pytest.mark.parametrize("content, words", [
    (b"x = 1\nname = '\xe9'\n", "bad.py:2:9: not utf-8"), (b"# -*- coding: no-such -*-\nx = 1\n", "unknown encoding"), (b"\xff\xfex\x00", "bad.py:1:1"),
])
def test_files_that_are_not_text(cuvil, write, content, words):
    write("bad.py", content)
    write("proved.py", MISMATCH)
    done = cuvil("lint", "bad.py", "proved.py")
    assert done.code == 2 and "bad.py:" in done.out and "proved.py:5:12" in done.out
    document = json.loads(cuvil("lint", "bad.py", "proved.py", "--format", "json").out)
    assert [p["name"] for p in document["problems"]] == ["unreadable-file"] and len(document["findings"]) == 1


def test_missing_and_special_files(cuvil):
    missing = cuvil("lint", "nowhere.py")
    assert missing.code == 2 and "nowhere.py" in missing.out and "no such file" in missing.out
    device = cuvil("lint", "/dev/zero")
    assert device.code == 2 and "not a file" in device.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(cuvil, write):
    write("closed.py", CLEAN).chmod(0)
    done = cuvil("lint", "closed.py")
    assert done.code == 2 and "Permission denied" in done.out


def test_a_syntax_error_is_a_finding_with_its_place(cuvil, write):
    write("broken.py", MISMATCH + "\n\ndef half(x:\n    return x /\n")
    done = cuvil("lint", "broken.py", "--format", "json")
    assert done.code == 1
    found = {f["name"]: f["range"]["start"]["line"] for f in findings(done)}
    assert found["matmul-shape-mismatch"] == 5 and found["syntax-error"] in (8, 9)


def test_unknown_rules_and_bad_settings(cuvil, write):
    write("a.py", CONSTANT)
    done = cuvil("lint", "a.py", "--select", "CUV999")
    assert done.code == 2 and "CUV999" in done.err
    write("pyproject.toml", '[tool.cuvil]\nselect = "everything"\n')
    write("b.py", CONSTANT)
    noted = cuvil("lint", "a.py", "b.py")
    assert noted.code == 1 and noted.out.count("pyproject.toml:2") == 1


# Rules of the project are code of the project: they run only where the user says so.
PLUGIN = '''"""A print is left.

Fix: display
"""
from cuvil.source import Span
from cuvil_ide.lints.rule import Rule


def check(facts):
    for n in range(1, len(facts.source.index) + 1):
        if "print(" in facts.source.line(n):
            yield RULE.finding("print is left here", Span(facts.source.path, n, 0, n, 5))


RULE = Rule("MY001", "print-left", "debug", "warning", "proved", check, __doc__)
'''


def test_plugins_need_trust(cuvil, write):
    write("pyproject.toml", '[tool.cuvil]\nplugins = ["my_rules"]\n')
    write("my_rules.py", PLUGIN)
    write("a.py", "print(1)\n")
    assert cuvil("lint", "a.py").code == 0
    done = cuvil("lint", "a.py", "--trusted")
    assert done.code == 1 and "warning[MY001]: print is left here" in done.out


def test_code_that_never_ends_when_run_is_linted(cuvil, write):
    write("loop.py", "import torch\n\n\ndef f(x):\n    return g(x)\n\n\ndef g(x):\n    return f(x)\n\n\ny = f(torch.zeros(3))\n")
    assert cuvil("lint", "loop.py").code == 0


def test_fifty_thousand_lines(cuvil, write):
    write("long.py", MISMATCH + "x = 1\n" * 50_000)
    done = cuvil("lint", "long.py", "--format", "json")
    assert done.code == 1 and [f["range"]["start"]["line"] for f in findings(done)] == [5]


# No terminal, no progress and no colours; with FORCE_COLOR there are colours.
def test_quiet_in_pipes(cuvil, write):
    write("a.py", CONSTANT)
    done = cuvil("lint", "a.py")
    assert done.err == "" and "\x1b" not in done.out
    assert "\x1b[" in cuvil("lint", "a.py", env={"FORCE_COLOR": "1", "NO_COLOR": ""}).out


def test_module_entry_is_the_command(process):
    assert process("--version").out.startswith("cuvil ")


def test_min_certainty(cuvil, write):
    write("a.py", BROADCAST + MISMATCH.replace("import torch\n", "").replace("def f", "def g"))
    def certainties(*arguments):
        return sorted(f["certainty"] for f in findings(cuvil("lint", "a.py", "--format", "json", *arguments)))
    assert certainties() == certainties("--min-certainty", "likely") == ["likely", "proved"]
    assert certainties("--min-certainty", "proved") == ["proved"]
    write("pyproject.toml", "[tool.cuvil]\nmin-certainty = 'proved'\n")
    assert certainties() == ["proved"] and certainties("--min-certainty", "hint") == ["likely", "proved"]


def test_statistics_count_by_rule(cuvil, write):
    write("a.py", MISMATCH + CONSTANT + CONSTANT.replace("def f", "def g"))
    lines = [line.split() for line in cuvil("lint", "a.py", "--statistics").out.splitlines()]
    assert lines == [["count", "code", "name"], ["2", "CUV961", "constant-comparison"], ["1", "CUV101", "matmul-shape-mismatch"]]
