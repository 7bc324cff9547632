"""Input that nobody means to give: each time a clear message with its place and a plain exit status, and nothing lost.

Exit statuses: 0 fine, 1 findings or refusals, 2 usage or a file that cannot be read. From what happens every day to what hardly ever does.
"""
import json
import os
import subprocess
from pathlib import Path

import pytest
from shell import CUVIL, OBEY_PERMISSIONS, Shell

GOOD = """import torch
import cuvil as cu


@cu.compile(input_shapes={"x": (8, 16)})
def double(x):
    return torch.relu(x) * 2
"""
PAIRS = """import torch


def pairs():
    return (torch.zeros(4, 1) - torch.zeros(4)).abs().mean()
"""


def compiled(shell: Shell, name: str = "good.py") -> Path:
    """Write a good file, compile it, and give its library."""
    shell.write(name, GOOD)
    answer = shell.cuvil("compile", name, "--output", "lib.so")
    assert answer.status == 0, answer
    return shell.folder / "lib.so"


# -- what is typed ----------------------------------------------------------------------------------------------------------

def test_a_syntax_error_is_located_and_the_rest_of_the_file_still_counts(shell: Shell):
    shell.write("broken.py", PAIRS + "\n\ndef half(x:\n    return x /\n")
    answer = shell.cuvil("lint", "broken.py")
    assert answer.status == 1
    assert "broken.py:8" in answer.text or "broken.py:9" in answer.text
    assert "outer-broadcast" in answer.text


def test_a_syntax_error_is_not_compiled(shell: Shell):
    shell.write("broken.py", GOOD + "\n\ndef half(x:\n    return x /\n")
    answer = shell.cuvil("compile", "broken.py")
    assert answer.status in (0, 1)                      # `double` is whole; whether it may be built is the compiler's to say,
    assert answer.status == 0 or "broken.py:" in answer.text                                        # but not without a place


def test_an_unknown_name_is_refused_where_it_stands(shell: Shell):
    shell.write("names.py", GOOD.replace("torch.relu(x)", "reluu(x)"))
    answer = shell.cuvil("compile", "names.py:double")
    assert answer.status == 1
    assert "names.py:7:" in answer.text and "reluu" in answer.text


def test_an_unsupported_construct_is_refused_where_it_stands(shell: Shell):
    shell.write("rows.py", GOOD.replace("torch.relu(x) * 2", "x[x > 0]"))
    answer = shell.cuvil("compile", "rows.py:double")
    assert answer.status == 1
    assert "rows.py:7:" in answer.text


def test_shapes_that_clash_are_refused_with_both(shell: Shell):
    shell.write("clash.py", GOOD.replace("torch.relu(x) * 2", "x @ torch.zeros(5, 3)"))
    answer = shell.cuvil("compile", "clash.py:double")
    assert answer.status == 1
    assert "clash.py:7:" in answer.text and "16" in answer.text and "5" in answer.text


def test_a_function_that_is_not_there(shell: Shell):
    shell.write("good.py", GOOD)
    answer = shell.cuvil("compile", "good.py:treble")
    assert answer.status == 2
    assert "treble" in answer.text and "double" in answer.text, "says what was asked for, and what there is"


def test_a_file_without_entry_points(shell: Shell):
    shell.write("plain.py", "def f(x):\n    return x\n")
    answer = shell.cuvil("compile", "plain.py")
    assert answer.status in (1, 2)
    assert "plain.py" in answer.text and "cu.compile" in answer.text, "says how to make an entry point"


@pytest.mark.parametrize("command", ["lint", "compile", "explain", "report"])
def test_a_missing_file(shell: Shell, command: str):
    answer = shell.cuvil(command, "nowhere.py")
    assert answer.status == 2
    assert "nowhere.py" in answer.text


def test_arguments_that_make_no_sense(shell: Shell):
    shell.write("good.py", GOOD)
    for arguments in (["compile", "good.py", "--target", "toaster"], ["compile", "good.py", "--shape", "x=8,sixteen"],
                      ["lint", "good.py", "--format", "fancy"], ["lint", "good.py", "--select", "CUV999"], ["nonsense"]):
        answer = shell.cuvil(*arguments)
        assert answer.status == 2, (arguments, answer)
        assert arguments[-1].split("=")[-1].split(",")[-1] in answer.text, (arguments, answer)


def test_settings_that_make_no_sense_are_noted_and_defaults_hold(shell: Shell):
    shell.write("pyproject.toml", '[tool.cuvil]\nselect = "everything"\n')
    shell.write("pairs.py", PAIRS)
    answer = shell.cuvil("lint", "pairs.py")
    assert "select" in answer.text and "pyproject.toml:2" in answer.text
    assert "outer-broadcast" in answer.text


# -- what files hold --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("content", ["", "\n", "\ufeff", "\ufeffx = 1\r\ny = 2\r\n", "x = 1\ry = 2\r", "\x0cx = 1\n", "# only a remark"])
def test_odd_but_fine_files(shell: Shell, content: str):
    shell.write("odd.py", content)
    answer = shell.cuvil("lint", "odd.py")
    assert answer.status == 0, answer


@pytest.mark.parametrize("content", [b"name = '\xe9'\n", b"\xff\xfex\x00", b"x = 1\n\x00\x00\n"])
def test_a_file_that_is_not_utf8_text_is_named_and_the_others_are_still_read(shell: Shell, content: bytes):
    shell.write("bad.py", content)
    shell.write("pairs.py", PAIRS)
    answer = shell.cuvil("lint", ".")
    assert answer.status in (1, 2)
    assert "bad.py" in answer.text
    assert "outer-broadcast" in answer.text


def test_places_after_wide_characters_are_counted_in_characters(shell: Shell):
    shell.write("数据/мир 🚀.py", PAIRS.replace("return ", 'label = "🚀数据"; return '))
    answer = shell.cuvil("lint", "数据", "--format", "json")
    finding = next(f for f in json.loads(answer.out)["findings"] if f["name"] == "outer-broadcast")
    assert finding["path"].endswith("мир 🚀.py")
    assert finding["range"]["start"] == {"line": 5, "column": 28}


@pytest.mark.parametrize("body", ["return f(x + 1)", "return g(x)", "return (lambda y: f(y))(x)"])
def test_endless_recursion_ends(shell: Shell, body: str):
    shell.write("loop.py", f"""import torch
import cuvil as cu


@cu.compile(input_shapes={{"x": (4,)}})
def f(x):
    {body}


def g(x):
    return f(x)
""")
    assert shell.cuvil("lint", "loop.py").status == 0
    answer = shell.cuvil("compile", "loop.py:f")
    assert answer.status == 1
    assert "loop.py:" in answer.text


@pytest.mark.parametrize("expression", ["x" + " + x" * 3000, "(" * 80 + "x" + ")" * 80, "-" * 3000 + "x", "x" + ".relu()" * 3000])
def test_deep_expressions_are_answered(shell: Shell, expression: str):
    """Python's own parser refuses some of these; then so may we, with a place."""
    shell.write("deep.py", f"import torch\n\n\ndef f(x: torch.Tensor):\n    return {expression}\n" + PAIRS.replace("import torch", ""))
    answer = shell.cuvil("lint", "deep.py", timeout=120)
    assert answer.status in (0, 1)
    assert answer.status == 0 or "deep.py:" in answer.text


@pytest.mark.slow
def test_fifty_thousand_lines(shell: Shell):
    one = "\n\ndef f{i}(x, w):\n    h = x @ w\n    h = h - h.mean(dim=-1, keepdim=True)\n    y = h * h\n    return y.sum(dim=-1)\n\n# {i}\n"
    shell.write("long.py", PAIRS + "".join(one.format(i=i) for i in range(50_000 // 9)))
    answer = shell.cuvil("lint", "long.py", timeout=300)
    assert answer.status in (0, 1)
    assert "outer-broadcast" in answer.text


# -- what machines do -------------------------------------------------------------------------------------------------------

def test_a_folder_without_permission(shell: Shell):
    shell.write("closed/secret.py", PAIRS)
    shell.write("open.py", PAIRS)
    (shell.folder / "closed").chmod(0)
    try:
        answer = shell.cuvil("lint", ".", before=OBEY_PERMISSIONS)
        assert answer.status in (1, 2)
        assert "closed" in answer.text and "ermission" in answer.text
        assert "open.py:5" in answer.text
        alone = shell.cuvil("lint", "closed/secret.py", before=OBEY_PERMISSIONS)
        assert alone.status == 2 and "secret.py" in alone.text
    finally:
        (shell.folder / "closed").chmod(0o700)


def test_a_folder_that_may_not_be_written(shell: Shell):
    shell.write("good.py", GOOD)
    (shell.folder / "closed").mkdir(mode=0o500)
    answer = shell.cuvil("compile", "good.py", "--output", "closed/lib.so", before=OBEY_PERMISSIONS)
    assert answer.status == 2
    assert "closed" in answer.text and "ermission" in answer.text
    assert list((shell.folder / "closed").iterdir()) == []


def test_a_folder_that_is_a_file(shell: Shell):
    shell.write("good.py", GOOD)
    shell.write("taken", "mine")
    answer = shell.cuvil("compile", "good.py", "--output", "taken/lib.so")
    assert answer.status == 2 and "taken" in answer.text
    assert (shell.folder / "taken").read_text() == "mine"


def test_a_failed_compile_keeps_the_last_good_library(shell: Shell):
    library = compiled(shell)
    before = library.read_bytes()
    shell.write("good.py", GOOD.replace("torch.relu(x)", "reluu(x)"))
    assert shell.cuvil("compile", "good.py", "--output", "lib.so").status == 1
    assert library.read_bytes() == before


def test_a_full_disk_loses_nothing(shell: Shell):
    """A real one, where the system lets us make it: a file system of 64 KiB."""
    library = compiled(shell)
    before = library.read_bytes()
    disk = shell.folder / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        (disk / "lib.so").write_bytes(before[:20_000])
        (disk / "filler").write_bytes(b"x" * 40_000)
        kept = (disk / "lib.so").read_bytes()
        answer = shell.cuvil("compile", "good.py", "--output", "disk/lib.so")
        assert answer.status == 2
        assert "disk" in answer.text and "space" in answer.text
        assert (disk / "lib.so").read_bytes() == kept
        assert sorted(p.name for p in disk.iterdir()) == ["filler", "lib.so"], "nothing half-written stays"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_reader_that_goes_away(shell: Shell):
    """`cuvil lint | head -1`"""
    for i in range(200):
        shell.write(f"many/f{i}.py", PAIRS)
    done = subprocess.run(f"{CUVIL} lint many | head -1", shell=True, cwd=shell.folder, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
