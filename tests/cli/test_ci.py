"""The GitHub Action and the pre-commit hooks, as their systems run them: the steps' own shell, with files in the place of GitHub's."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
LINT = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "lint")
BAD = "import torch\n\n\ndef f():\n    return torch.zeros(2, 3) @ torch.zeros(4, 5)\n"


@pytest.fixture
def step(tmp_path):
    """step(paths=...) -> (exit code, standard output, outputs of the step), inputs that are not given at their defaults."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, command in {"cuvil": "-m cuvil_cli", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        (tools / name).chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()

    def run(**inputs):
        values = {name: str(given["default"]) for name, given in ACTION["inputs"].items()} | inputs
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        environment = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: values[m[1]], text) for name, text in LINT["env"].items()}
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", LINT["run"]], cwd=work, capture_output=True, text=True, env={
            **os.environ, **environment, **{name: str(file) for name, file in files.items()}, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_ACTIONS": "true"})
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        return done.returncode, done.stdout, outputs
    run.work = work
    return run


def test_findings_fail_annotate_and_are_written(step):
    (step.work / "a b.py").write_text(BAD)
    code, out, outputs = step()
    assert code == 1 and outputs == {"sarif": "cuvil.sarif", "findings": "1"}
    assert out.startswith("::error file=a b.py,line=5")
    assert json.loads((step.work / "cuvil.sarif").read_text())["version"] == "2.1.0"


def test_clean_code_passes_and_arguments_reach_the_command(step):
    (step.work / "a.py").write_text(BAD)
    assert step(arguments="--ignore CUV101")[0] == 0
    assert step(paths="a.py nowhere.py", annotate="false")[0] == 2
    code, out, outputs = step(annotate="false", sarif="out/x.sarif")
    assert code == 2 and out == "", "the folder is not there"


# What inputs hold is never read as shell.
def test_inputs_are_not_code(step):
    (step.work / "a.py").write_text("x = 1\n")
    step(paths="a.py; touch hacked", arguments="$(touch hacked) `touch hacked`")
    assert not (step.work / "hacked").exists()
    assert all("${{" not in s.get("run", "") for s in ACTION["runs"]["steps"])


def test_every_input_is_documented():
    page = (ROOT / "docs/ci.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)) == set(ACTION["inputs"])
    assert all(given["description"] for given in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


@pytest.mark.parametrize("hook", yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")), ids=lambda hook: hook["id"])
def test_hooks(hook, cuvil, write):
    assert {"id", "name", "description", "entry", "language"} <= hook.keys()
    write("a.py", "flag = None == None\n")
    command, *arguments = hook["entry"].split()
    assert command == "cuvil"
    assert cuvil(*arguments, "a.py").code == (0 if "--fix" in arguments else 1)
