"""A baseline as counts: fewer is free, more fails, lines may move."""
import json

import pytest

BAD = "import torch\n\n\ndef f():\n    return torch.zeros(2, 3) @ torch.zeros(4, 5)\n"
MORE = "\n\ndef g():\n    return torch.zeros(2, 7) @ torch.zeros(4, 5)\n"


@pytest.fixture
def lint(cuvil):
    def run(*arguments):
        done = cuvil("lint", ".", "--baseline", "known.json", "--format", "json", *arguments)
        return done.code, [f["range"]["start"]["line"] for f in json.loads(done.out)["findings"]]
    return run


def counts(tmp_path):
    return {file: {code: known["count"] for code, known in rules.items()}
            for file, rules in json.loads((tmp_path / "known.json").read_text())["files"].items()}


def test_growth_fails_and_shrinking_is_free(lint, write, tmp_path):
    write("a.py", BAD)
    assert lint("--update-baseline") == (0, []) and counts(tmp_path) == {"a.py": {"CUV101": 1}}
    write("a.py", "# moved\n" + BAD + MORE)
    assert lint() == (1, [10])
    # a baseline that exists takes nothing new
    assert lint("--update-baseline") == (1, [10]) and counts(tmp_path) == {"a.py": {"CUV101": 1}}
    write("a.py", "x = 1\n")
    assert lint() == (0, []) and counts(tmp_path) == {"a.py": {"CUV101": 1}}
    assert lint("--update-baseline") == (0, []) and counts(tmp_path) == {}
    write("a.py", BAD)
    assert lint()[0] == 1


# An edit of the line makes another fingerprint, but not another finding; the same in another file is one.
def test_counts_decide_and_fingerprints_tell_which(lint, write):
    write("a.py", BAD)
    lint("--update-baseline")
    write("a.py", BAD.replace("return", "y ="))
    assert lint() == (0, [])
    write("a.py", BAD.replace("def f", "def e") + BAD.replace("import torch\n", "").replace("2, 3", "6, 7"))
    assert lint() == (1, [9])
    write("b.py", BAD)
    assert lint()[1] == [9, 5]


def test_files_that_were_not_checked_stay(cuvil, write, tmp_path):
    write("a.py", BAD)
    write("b.py", BAD)
    cuvil("lint", ".", "--baseline", "known.json", "--update-baseline")
    write("a.py", "x = 1\n")
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    cuvil("lint", "a.py", "--baseline", "known.json", "--update-baseline")
    assert counts(tmp_path) == {}
    write("b.py", BAD)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"files": {"a.py": {"CUV101": {}}}}', '{"runs": 3}'])
def test_what_is_no_baseline(cuvil, write, text):
    write("a.py", BAD)
    write("known.json", text)
    done = cuvil("lint", "a.py", "--baseline", "known.json")
    assert done.code == 2 and "known.json is no baseline" in done.err


def test_update_needs_a_file(cuvil):
    assert cuvil("lint", "--update-baseline").code == 2
    assert cuvil("lint", "--baseline", "nowhere.json").code == 2


# A likely finding alone does not fail; one more of them than the baseline knows does, and standard error says of what.
LIKELY = "import torch\n\n\ndef f(x: torch.Tensor, n: int):\n    parts = x\n    for i in range(n):\n        parts = torch.cat([parts, x])\n    return parts\n"


def test_growth_fails_whatever_its_certainty_and_says_of_what(cuvil, write):
    write("a.py", LIKELY)
    run = lambda *arguments: cuvil("lint", ".", "--baseline", "known.json", "--select", "CUV802", *arguments)
    assert cuvil("lint", ".", "--select", "CUV802").code == 0 and run("--update-baseline").code == 0
    write("a.py", LIKELY + LIKELY.replace("import torch\n", "").replace("def f", "def g"))
    write("b.py", LIKELY)
    done = run()
    assert done.code == 1
    assert done.err.splitlines() == ["More findings than known.json knows:", "  a.py: CUV802 growing-concat, 1 -> 2", "  b.py: CUV802 growing-concat, 0 -> 1"]
    assert run("--fail-on", "never").code == run("--exit-zero").code == 0
    write("a.py", "x = 1\n")
    write("b.py", "x = 1\n")
    assert run().code == 0 and run().err == ""


def test_what_an_earlier_sarif_output_does_not_know_is_growth(cuvil, write):
    write("a.py", LIKELY)
    assert cuvil("lint", ".", "--select", "CUV802", "--format", "sarif", "--output-file", "known.sarif").code == 0
    assert cuvil("lint", ".", "--select", "CUV802", "--baseline", "known.sarif").code == 0
    write("a.py", LIKELY + LIKELY.replace("import torch\n", "").replace("def f", "def g"))
    done = cuvil("lint", ".", "--select", "CUV802", "--baseline", "known.sarif")
    assert done.code == 1 and "a.py: CUV802 growing-concat, 1 -> 2" in done.err
