"""The built packages as a user meets them: an empty environment, `pip install`, first commands. `make package` builds them."""
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
MIB = 1 << 20


def built(pattern: str) -> Path:
    found = sorted((ROOT / "dist").glob(pattern))
    assert len(found) == 1, f"dist/{pattern}: {len(found)} files; try: make package"
    return found[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it depends on: no torch, no compiler in sight, nothing of this folder."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True, timeout=120)
    wheel = f"{built('*.whl')}[zig]"
    subprocess.run([folder / "env/bin/pip", "install", "-q", "--disable-pip-version-check", wheel], check=True, timeout=600)
    for name in ("attention.py", "numpy_pipeline.py"):
        (folder / name).write_bytes((ROOT / "examples" / name).read_bytes())
    return folder


def run(home: Path, *command: str, timeout: float = 180) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(home / "env/bin"), "HOME": str(home), "LANG": os.environ.get("LANG", "C.UTF-8")}
    return subprocess.run([home / "env/bin" / command[0], *command[1:]], cwd=home, env=environment, timeout=timeout,
                          capture_output=True, text=True)


def test_the_wheel_holds_four_packages_the_panels_and_the_licence():
    with zipfile.ZipFile(built("*.whl")) as wheel:
        names = wheel.namelist()
    assert {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")} == {
        "cuvil", "cuvil_ide", "cuvil_lsp", "cuvil_cli"}
    assert any(name.startswith("cuvil_cli/studio/") and name.endswith(".js") for name in names)
    assert any(name.startswith("cuvil/runtime/") and name.endswith(".c") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "cuvil/rules/outer-broadcast.md" in names, "the page behind the code of a finding"
    assert not [name for name in names if "test" in name.lower() or "node_modules" in name]


def test_the_extension_is_small_and_complete():
    package = built("*.vsix")
    assert package.stat().st_size < 2 * MIB
    with zipfile.ZipFile(package) as extension:
        names = set(extension.namelist())
        manifest = json.loads(extension.read("extension/package.json"))
        assert f"extension/{manifest['main'].removeprefix('./')}" in names
    assert "extension/dist/webview/panels.js" in names
    assert any(name.lower().startswith("extension/license") for name in names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".map"))]


def test_lint_works_in_an_empty_environment(home: Path):
    done = run(home, "cuvil", "lint", "attention.py", "--format", "json")
    found = json.loads(done.stdout)["findings"]
    assert {"outer-broadcast", "constant-comparison"} <= {finding["name"] for finding in found}, done.stderr


def test_compile_works_without_a_compiler_on_the_path(home: Path):
    done = run(home, "cuvil", "compile", "numpy_pipeline.py:postprocess", "--shape", "logits=8,1000", "--output", "libpost.so")
    assert done.returncode == 0, done.stdout + done.stderr
    script = """
import numpy as np, cuvil as cu
x = np.random.default_rng(0).standard_normal((8, 1000)).astype(np.float32)
p, best, sure = cu.load("libpost.so")(x)
e = np.exp(x - x.max(-1, keepdims=True))
np.testing.assert_allclose(p, e / e.sum(-1, keepdims=True), rtol=1e-5)
assert (best == x.argmax(-1)).all()
np.testing.assert_allclose(sure, p.max(-1), rtol=1e-6)
print("equal")
"""
    answer = run(home, "python", "-c", script)
    assert answer.stdout == "equal\n", answer.stderr


def test_a_report_needs_nothing_else(home: Path):
    done = run(home, "cuvil", "report", "attention.py", "-o", "report.html")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (home / "report.html").read_text("utf-8")
    assert 'id="cuvil-payloads"' in page and "cached_attention" in page
    assert "https://" not in page.split("<body", 1)[0], "nothing is loaded from elsewhere"


def test_the_doctor_finds_everything(home: Path):
    done = run(home, "cuvil", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
