"""Settings that extend others, and the versions that a project's files say it runs with."""
from pathlib import Path

import pytest

from cuvil.frontends.python.targets import DEFAULT_TARGETS
from cuvil_ide import config
from cuvil_ide.session import Session
from cuvil_ide.targets import targets


def words(loaded: config.Config) -> list[str]:
    return [note.message for note in loaded.notes]


# The nearest file with [tool.cuvil] counts; a pyproject.toml without it is a package's, not the linter's.
def test_a_pyproject_without_settings_is_passed_over(write, tmp_path):
    write("pyproject.toml", "[tool.cuvil]\nselect = ['CUV1']\n")
    write("package/pyproject.toml", "[project]\nname = 'inner'\n")
    loaded = config.load(tmp_path / "package")
    assert (loaded.select, loaded.root) == (("CUV1",), str(tmp_path))
    assert config.load(tmp_path / "nowhere").select == ("CUV1",)


def test_extend(write, tmp_path):
    write("shared/cuvil.toml", """
select = ["CUV1", "CUV2"]
min-certainty = "likely"
severity = {outer-broadcast = "error", bare-squeeze = "info"}
per-file-ignores = {"demo/*" = ["CUV1"], "test_*.py" = ["CUV2"]}
""")
    write("pyproject.toml", """
[tool.cuvil]
extend = "shared/cuvil.toml"
select = ["CUV9"]
severity = {bare-squeeze = "warning"}
per-file-ignores = {"mine/*" = ["CUV9"]}
""")
    loaded = config.load(tmp_path)
    assert loaded.notes == () and loaded.select == ("CUV9",) and loaded.min_certainty == "likely"
    assert loaded.severity == {"outer-broadcast": "error", "bare-squeeze": "warning"}
    assert not loaded.enabled("CUV961", "constant-comparison", str(tmp_path / "mine/a.py"))
    assert loaded.enabled("CUV961", "constant-comparison", str(tmp_path / "a.py"))
    # a pattern of the extended file counts from that file's folder, names count everywhere
    inherited = config.Config(per_file_ignores=loaded.per_file_ignores, root=loaded.root)
    assert not inherited.enabled("CUV108", "outer-broadcast", str(tmp_path / "shared/demo/a.py"))
    assert inherited.enabled("CUV108", "outer-broadcast", str(tmp_path / "demo/a.py"))
    assert not inherited.enabled("CUV209", "eps-vanishes", str(tmp_path / "deep/test_x.py"))


def test_patterns_hold_from_any_current_folder(write, tmp_path, monkeypatch):
    write("pyproject.toml", "[tool.cuvil]\nper-file-ignores = {\"pkg/*\" = [\"CUV9\"]}\n")
    write("pkg/a.py", "")
    loaded = config.load(tmp_path)
    monkeypatch.chdir(tmp_path / "pkg")
    assert not loaded.enabled("CUV961", "constant-comparison", "a.py")


@pytest.mark.parametrize("text, word", [
    ("extend = 'nowhere.toml'", "cannot read"), ("extend = 3", "extend"), ("extend = 'pyproject.toml'", "circle"),
    ("targets = {torch = 'new'}", "torch"), ("targets = {jax = '1.0'}", "jax"), ("targets = 3", "targets"), ("min-certainty = 'sure'", "min-certainty"),
])
def test_bad_settings_are_one_note_with_a_place(write, tmp_path, text, word):
    write("pyproject.toml", f"[tool.cuvil]\nignore = ['CUV942']\n{text}\n")
    loaded = config.load(tmp_path)
    assert loaded.ignore == ("CUV942",) and len(loaded.notes) == 1
    assert word in loaded.notes[0].message and loaded.notes[0].span.path == str(tmp_path / "pyproject.toml")


# Versions

UV = '''version = 1
requires-python = ">=3.11"

[[package]]
name = "numpy"
version = "1.26.4"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "numpy"
version = "2.2.6"

[[package]]
name = "torch"
version = "2.6.0+cu124"
'''


@pytest.mark.parametrize("name, text, torch, numpy", [
    ("uv.lock", UV, (2, 6, 0), (2, 2, 6)),
    ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.4.1"\ndescription = "x"\n', (2, 4, 1), None),
    ("pdm.lock", '[[package]]\nname = "torch"\nversion = "2.5.0"\n', (2, 5, 0), None),
    ("pylock.toml", 'lock-version = "1.0"\n[[packages]]\nname = "torch"\nversion = "2.7.1"\n', (2, 7, 1), None),
    ("requirements.txt", "# pins\n-r other.txt\ntorch==2.3.0+cpu  # cpu\nnumpy >= 1.20 , < 2 ; python_version < '3.13'\n", (2, 3, 0), (1, 9999)),
    ("requirements-gpu.txt", "torch[opt]~=2.4.0 \\\n    --hash=sha256:00\n", (2, 4, 9999), None),
    ("pyproject.toml", '[project]\ndependencies = ["torch<2.5", "numpy>=1.20"]\nrequires-python = ">=3.13"\n', (2, 4, 9999), None),
    ("pyproject.toml", '[project.optional-dependencies]\nx = ["PyTorch==2.1"]\n[dependency-groups]\ndev = ["numpy!=2.0", {include-group = "y"}]\n', (2, 1), None),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.2"\nnumpy = {version = "~1.24"}\n', None, (1, 24, 9999)),
    ("environment.yml", "dependencies:\n  - python=3.11\n  - pytorch::pytorch=2.5\n  - pip:\n    - \"numpy==2.0.1\"\n", (2, 5, 9999), (2, 0, 1)),
    ("pyproject.toml", '[project]\ndependencies = ["torch>=2.40"]\n', (2, 40), None),
    ("uv.lock", "[[package]\nname = ", None, None), ("pyproject.toml", "[project]\ndependencies = 'torch'\n[tool]\npoetry = 3\n", None, None),
])
def test_versions_come_from_the_projects_files(write, tmp_path, name, text, torch, numpy):
    write(".git/HEAD", "")
    write(name, text)
    write("pkg/deep/a.py", "")
    found = targets(tmp_path / "pkg/deep")
    assert found.torch == (torch or DEFAULT_TARGETS.torch) and found.numpy == (numpy or DEFAULT_TARGETS.numpy)


# A lock above says more than a bound nearby; what the settings say is final. Nothing above the repository counts.
def test_order(write, tmp_path):
    write("uv.lock", UV)
    write("repo/.git/HEAD", "")
    write("repo/package/pyproject.toml", '[project]\ndependencies = ["torch>=2.1,<2.3"]\n')
    assert targets(tmp_path / "repo/package").torch == (2, 2, 9999)
    write("repo/uv.lock", UV)
    assert targets(tmp_path / "repo/package").torch == (2, 6, 0)
    given = targets(tmp_path / "repo/package", {"torch": "2.5", "device": "cuda"})
    assert (given.torch, given.device, given.numpy) == ((2, 5), "cuda", (2, 2, 6))


def test_facts_know_the_targets_of_their_folder(write, tmp_path):
    write(".git/HEAD", "")
    write("old/requirements.txt", "torch==2.1.0\n")
    write("new/pyproject.toml", "[tool.cuvil.targets]\ntorch = '2.9'\ndevice = 'cuda'\n")
    session = Session(tmp_path)
    code = "import torch\n\ndef f(x: torch.Tensor):\n    return x + 1\n"
    for name in ("old/a.py", "new/a.py", "a.py"):
        session.update(str(tmp_path / name), code)
    facts = {name: session.facts(str(tmp_path / name)).targets for name in ("old/a.py", "new/a.py", "a.py")}
    assert facts["old/a.py"].torch == (2, 1, 0) and facts["a.py"] == DEFAULT_TARGETS
    assert (facts["new/a.py"].torch, facts["new/a.py"].device) == ((2, 9), "cuda")
    Path(tmp_path / "old/requirements.txt").write_text("torch==2.2.0\n")
    session.forget_settings()
    assert session.facts(str(tmp_path / "old/a.py")).targets.torch == (2, 2, 0)
