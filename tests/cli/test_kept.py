"""Results of earlier runs are used exactly as long as nothing they hang on changed: the file, files it imports, modules it looks for, settings."""
import json
import os
import time

import pytest

from cuvil_cli import check as checking

MISMATCH = "import torch\n\n\ndef f():\n    return torch.zeros(2, 3) @ torch.zeros(4, 5)\n"
USER = "import torch\nfrom sizes import WIDTH\n\n\ndef f():\n    return torch.zeros(2, 3) @ torch.zeros(WIDTH, 5)\n"


@pytest.fixture
def lint(cuvil, write, tmp_path, monkeypatch):
    """lint(...) -> (names of findings, files that were analysed)."""
    analysed = []
    original = checking.check_text

    def counted(source, rules):
        analysed.append(os.path.basename(source.path))
        return original(source, rules)
    monkeypatch.setattr(checking, "check_text", counted)
    (tmp_path / ".git").mkdir()

    def run(*arguments):
        for file in tmp_path.rglob("*.py"):                  # only what was written before a run can be kept
            if file.stat().st_mtime > time.time() - 10:
                os.utime(file, (time.time() - 100, time.time() - 100))
        analysed.clear()
        done = cuvil("lint", ".", "--format", "json", *arguments)
        return [f["name"] for f in json.loads(done.out)["findings"]], sorted(analysed)
    return run


def test_nothing_changed_is_nothing_done(lint, write):
    write("a.py", MISMATCH)
    write("b.py", "x = 1\n")
    first = lint()
    assert first == (["matmul-shape-mismatch"], ["a.py", "b.py"])
    assert lint() == (first[0], [])
    assert lint("--no-cache") == first
    write("a.py", MISMATCH.replace("4, 5", "3, 5"))
    assert lint() == ([], ["a.py"])


# The same document to the letter, from the cache and without it.
def test_a_kept_result_is_the_same_result(cuvil, write, tmp_path):
    write("a.py", "import torch\n\n\ndef pairs():\n    return (torch.zeros(4, 1) - torch.zeros(4)).mean()\n" + MISMATCH)
    os.utime(tmp_path / "a.py", (1e9, 1e9))
    for format in ("json", "sarif", "text"):
        assert cuvil("lint", "a.py", "--format", format).out == cuvil("lint", "a.py", "--format", format, "--no-cache").out == cuvil(
            "lint", "a.py", "--format", format).out


def test_another_files_text_counts(lint, write):
    write("sizes.py", "WIDTH = 3\n")
    write("user.py", USER)
    assert lint()[0] == [] and lint()[1] == []
    write("sizes.py", "WIDTH = 4\n")
    assert lint() == (["matmul-shape-mismatch"], ["sizes.py", "user.py"])
    write("other.py", "x = 1\n")
    assert lint()[1] == ["other.py"]


# A module that was looked for and not found is a question too.
def test_a_file_that_appears_or_goes_counts(lint, write, tmp_path):
    write("user.py", USER)
    assert lint()[0] == []
    write("sizes.py", "WIDTH = 4\n")
    assert lint() == (["matmul-shape-mismatch"], ["sizes.py", "user.py"])
    (tmp_path / "sizes.py").unlink()
    assert lint() == ([], ["user.py"])


@pytest.mark.parametrize("name, text", [("pyproject.toml", "[tool.cuvil]\nignore = ['CUV101']\n"), ("requirements.txt", "torch==2.2.0\n")])
def test_settings_and_versions_count(lint, write, name, text):
    write("a.py", MISMATCH)
    lint()
    write(name, text)
    found, analysed = lint()
    assert analysed == ["a.py"] and (found == []) is (name == "pyproject.toml")


def test_options_count(lint, write):
    write("a.py", MISMATCH)
    lint()
    assert lint("--select", "CUV9") == ([], ["a.py"])
    assert lint("--select", "CUV9") == ([], [])


def test_a_file_written_during_the_run_is_not_kept(cuvil, write, tmp_path):
    path = write("a.py", MISMATCH)
    os.utime(path, (time.time() + 50, time.time() + 50))
    cuvil("lint", "a.py")
    store = [file for file in (tmp_path / "cache").rglob("*.lint") if b"a.py" in file.read_bytes()]
    assert store == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": 1, "questions": 3, "entries": {}}'])
def test_a_broken_store_is_no_store(lint, write, tmp_path, content):
    write("a.py", MISMATCH)
    first = lint()
    for file in (tmp_path / "cache").rglob("*.lint"):
        file.write_bytes(content)
    assert lint() == first


def test_no_place_to_keep_things_is_no_error(cuvil, write, tmp_path):
    write("a.py", MISMATCH)
    (tmp_path / "file").write_text("")
    assert cuvil("lint", "a.py", env={"XDG_CACHE_HOME": str(tmp_path / "file")}).code == 1
