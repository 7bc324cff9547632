"""Real files of transformers and timm, read whole: no crash, no hang, and nothing *proved* against code that works.

The numbers that `--explain-unknown` prints for them are kept in docs/quality.md.
"""
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
CUVIL = Path(sys.executable).parent / "cuvil"
FILES = [
    "transformers/models/llama/modeling_llama.py",
    "transformers/models/bert/modeling_bert.py",
    "transformers/models/resnet/modeling_resnet.py",
    "timm/models/vision_transformer.py",
]


def lint(corpus: Path, file: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([CUVIL, "lint", file, *options], cwd=corpus, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("file", FILES)
def test_working_code_has_no_proved_finding(corpus: Path, file: str):
    answer = json.loads(lint(corpus, file, "--format", "json").stdout)
    assert [f for f in answer["findings"] if f["certainty"] == "proved"] == []
    counts = answer["summary"]["tensor_expressions"]
    assert answer["summary"]["unreadable"] == 0
    assert counts["understood"] > 0, "a file of tensor code of which nothing is understood was not read"


@pytest.mark.parametrize("file", FILES)
def test_statistics_say_what_was_not_understood_and_why(corpus: Path, file: str):
    counts = json.loads(lint(corpus, file, "--format", "json", "--explain-unknown").stdout)["tensor_expressions"]
    shown = lint(corpus, file, "--explain-unknown", "--exit-zero").stdout
    assert f"{counts['understood']:,}" in shown or str(counts["understood"]) in shown
    for reason in list(counts["unknown"])[:3]:
        assert reason in shown
