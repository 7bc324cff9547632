"""Documentation is derived or checked, so that it cannot quietly go stale."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TOURS = [page for page in PAGES if page.name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") and page.parent == ROOT]
PATH_IN_CODE = re.compile(r"`((?:compiler|language_server|webview|vscode-extension|tests|tools|benchmarks|examples|docs)/[\w./-]*\w)`")


def test_rule_pages_are_what_the_rules_say():
    done = subprocess.run([sys.executable, ROOT / "tools/document_rules.py", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", TOURS, ids=lambda p: p.name)
def test_files_that_pages_name_exist(page: Path):
    """`compiler/cuvil/ops/softmax.py` in running text is a promise; `<op>.py` and `my_rules.py` are not."""
    for name in PATH_IN_CODE.findall(page.read_text("utf-8")):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_every_make_word_in_the_pages_is_a_target():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for page in PAGES:
        for word in re.findall(r"`make ([a-z-]+)`", page.read_text("utf-8")):
            assert word in targets, f"{page.name} speaks of `make {word}`"


def test_every_command_has_its_row_in_the_readme():
    from cuvil_cli.commands import COMMANDS
    table = set(re.findall(r"^\| `cuvil (\w+)", (ROOT / "README.md").read_text("utf-8"), flags=re.MULTILINE))
    assert table == set(COMMANDS)


@pytest.mark.native
def test_the_readme_s_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    torch = pytest.importorskip("torch")
    code = re.search(r"## In Python\n\n```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)[1]
    script = tmp_path / "readme.py"                              # a file: what is compiled is read from its source
    script.write_text(code)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme", "__file__": str(script)}
    exec(compile(code, script, "exec"), names)
    x = names["x"]
    torch.testing.assert_close(names["y"], torch.softmax(x, dim=-1))
    torch.testing.assert_close(names["f"](x), names["y"], rtol=0, atol=0)
    assert "kernel" in capsys.readouterr().out
    assert (tmp_path / "softmax.so").exists() and (tmp_path / "softmax.h").exists()
