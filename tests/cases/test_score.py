"""The scorer on cases whose score is known, and on the shared cases where they are at hand: look-alikes must be silent."""
import json
import subprocess
import sys
from pathlib import Path

import pytest
from score import by_kind, cases, lint, read, score

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared/cases/lint"
HEADER = """# --- lint-case
# id: "x"
# category: SHAPE
# clean: {clean}
# observed: raises
# expect: {expect}
# ---
"""
MISMATCH = "import torch\n\n\ndef f():\n    a = torch.zeros(2, 3)\n    return a @ torch.zeros(4, 5)\n"


@pytest.fixture
def folder(tmp_path):
    def write(name: str, clean: bool, expect: str, code: str) -> None:
        (tmp_path / name).write_text(HEADER.format(clean=str(clean).lower(), expect=expect) + code)

    write("hit.py", False, '[{line: 13, kind: shape-mismatch, message_words: ["3"]}]', MISMATCH)
    write("alternative.py", False, '[{line: 12, kind: shape-mismatch, message_words: ["no such word"], alt_lines: [13]}]', MISMATCH)
    write("wrong_kind.py", False, "[{line: 13, kind: wrong-axis, message_words: []}]", MISMATCH)
    write("elsewhere.py", False, "[{line: 9, kind: shape-mismatch, message_words: []}]", MISMATCH)
    write("noisy.py", True, "[]", MISMATCH)
    write("silent.py", True, "[]", "import torch\n")
    (tmp_path / "no_case.py").write_text(MISMATCH)
    return tmp_path


def run(folder: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "tests.cases.score", str(folder), *options], cwd=ROOT, capture_output=True, text=True)


# Lines are those of the case with its header; a finding on a listed line is never a false alarm, whatever its kind.
def test_hits_misses_and_false_alarms(folder):
    document = json.loads(run(folder, "--format", "json").stdout)
    assert [(h["case"], h["finding"]["first"], h["helpful"]) for h in document["hits"]] == [("alternative.py", 13, False), ("hit.py", 13, True)]
    assert [(m["case"], [o["kind"] for o in m["others"]]) for m in document["misses"]] == [("elsewhere.py", []), ("wrong_kind.py", ["shape-mismatch"])]
    assert [f["case"] for f in document["false_alarms"]] == ["elsewhere.py", "noisy.py"]
    assert document["kinds"] == {"shape-mismatch": {"expected": 3, "hits": 2, "false_alarms": 2}, "wrong-axis": {"expected": 1, "hits": 0, "false_alarms": 0}}
    assert document["summary"] == {"cases": 6, "expected": 4, "hits": 2, "recall": 0.5, "false_alarms": 2, "false_alarms_in_clean_cases": 1,
                                   "unhelpful_messages": 1}


@pytest.mark.parametrize("options, code", [
    ((), 0), (("--min-recall", "0.5"), 0), (("--min-recall", "0.6"), 1), (("--max-clean", "1"), 0), (("--max-clean", "0"), 1),
    (("--max-false-alarms", "1"), 1), (("--kind", "wrong-axis", "--max-false-alarms", "0"), 0), (("--select", "CUV9", "--max-clean", "0"), 0),
])
def test_bars(folder, options, code):
    assert run(folder, *options).returncode == code


def test_a_folder_without_cases_and_a_header_without_end(tmp_path):
    assert run(tmp_path).returncode == 2
    (tmp_path / "a.py").write_text("# --- lint-case\n# id: x\n")
    with pytest.raises(ValueError, match="does not end"):
        read(tmp_path / "a.py")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")
def test_look_alikes_are_silent():
    found = cases(SHARED)
    result = score(found, lint(found))
    assert [str(f) for f in result.clean] == []
    assert sum(n["expected"] for n in by_kind(result).values()) == sum(len(case.expect) for case in found)
