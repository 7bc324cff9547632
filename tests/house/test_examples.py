"""The examples do what they say: each runs as a program and finds its compiled functions equal to eager; the lints see the two slips."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shell import Shell

ROOT = Path(__file__).parents[2]
FUNCTIONS = {
    "attention": ["cached_attention", "stable_softmax", "mlp"],
    "mlp": ["gated_mlp"],
    "convnet": ["ConvNet"],
    "numpy_pipeline": ["preprocess", "postprocess", "to_pixels"],
    "decoder_block": ["DecoderBlock"],
}


@pytest.mark.native
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_equals_eager(name: str, tmp_path: Path):
    if name != "numpy_pipeline":
        pytest.importorskip("torch")
    done = subprocess.run([sys.executable, ROOT / f"examples/{name}.py"], capture_output=True, text=True, timeout=240,
                          env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    differences = dict(re.findall(r"^(\w+): max difference (\S+)$", done.stdout, flags=re.MULTILINE))
    assert list(differences) == FUNCTIONS[name]
    assert all(float(value) < 1e-4 for value in differences.values()), differences


def test_the_lints_see_the_two_deliberate_mistakes_and_nothing_else(shell: Shell):
    answer = shell.cuvil("lint", ROOT / "examples", "--format", "json")
    found = [(Path(f["path"]).name, f["name"], f["fix"] and f["fix"]["applicability"]) for f in json.loads(answer.out)["findings"]]
    assert found == [("attention.py", "outer-broadcast", "unsafe"), ("attention.py", "constant-comparison", "safe")]
    assert answer.status == 1


def test_the_safe_fix_is_applied_and_leaves_the_rest_alone(shell: Shell):
    before = (ROOT / "examples/attention.py").read_text("utf-8")
    shell.write("attention.py", before)
    shell.cuvil("lint", "attention.py", "--fix")
    assert (shell.folder / "attention.py").read_text("utf-8") == before.replace("if None == None:", "if True:")
