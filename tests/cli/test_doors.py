"""What every command promises: help, exit codes, one message and no traceback for whatever goes wrong."""
import json
import os

import pytest

from cuvil_cli.commands import COMMANDS


def test_help_lists_all_commands(cuvil):
    done = cuvil("--help")
    assert done.code == 0
    assert all(f"  {name} " in done.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(cuvil, name):
    done = cuvil(name, "--help")
    assert done.code == 0 and done.out.startswith(f"usage: cuvil {name}")


def test_no_command_is_usage(cuvil):
    assert cuvil().code == 2


def test_version(cuvil):
    done = cuvil("--version")
    assert done.code == 0 and done.out.startswith("cuvil ")


def test_a_misspelt_command_is_corrected(cuvil):
    done = cuvil("lnit")
    assert done.code == 2 and "did you mean `cuvil lint`" in done.err and done.out == ""


def test_a_wrong_option_is_usage(cuvil):
    done = cuvil("lint", "--no-such-option")
    assert done.code == 2 and "--no-such-option" in done.err


# An internal error is one line and a hint; the traceback is for CUVIL_DEBUG=1.
def test_internal_errors_are_one_message(capsys, monkeypatch):
    from cuvil_cli import main as door
    from cuvil_cli.commands import rule

    def broken(args):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(rule, "run", broken)
    monkeypatch.delenv("CUVIL_DEBUG", raising=False)
    assert door.main(["rule"]) == 2
    err = capsys.readouterr().err
    assert "internal error in `cuvil rule`: ZeroDivisionError: a defect" in err and "Traceback" not in err
    monkeypatch.setenv("CUVIL_DEBUG", "1")
    assert door.main(["rule"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_refusals_with_a_place_are_findings_and_others_are_usage(capsys, monkeypatch):
    from cuvil.diagnostics import CuvilError
    from cuvil.source import Span
    from cuvil_cli import main as door
    from cuvil_cli.commands import rule

    def refuse(error):
        def run(args):
            raise error
        monkeypatch.setattr(rule, "run", run)
        return door.main(["rule"]), capsys.readouterr().err

    assert refuse(CuvilError("no", Span("m.py", 3, 4, 3, 9), hint="yes")) == (1, "cuvil: m.py:3:5: no\n  try: yes\n")
    assert refuse(CuvilError("no")) == (2, "cuvil: no\n")
    assert refuse(PermissionError(13, "Permission denied", "m.py")) == (2, "cuvil: m.py: Permission denied\n")
    assert refuse(KeyboardInterrupt()) == (130, "")


def test_rule_lists_and_explains(cuvil):
    listed = cuvil("rule")
    assert listed.code == 0 and "outer-broadcast" in listed.out
    by_code, by_name = cuvil("rule", "CUV108"), cuvil("rule", "outer-broadcast")
    assert by_code.out == by_name.out and by_code.code == 0
    assert "noqa: CUV108" in by_code.out
    entries = json.loads(cuvil("rule", "--format", "json").out)["rules"]
    assert len({e["code"] for e in entries}) == len(entries) >= 5
    assert all(e["summary"] and e["kind"] for e in entries)


def test_unknown_rule(cuvil):
    done = cuvil("rule", "outer-brodcast")
    assert done.code == 2 and "cuvil rule outer-broadcast" in done.err


def test_cache_is_shown_and_cleared(cuvil, tmp_path):
    shown = json.loads(cuvil("cache", "--format", "json").out)
    assert shown["files"] == 0 and shown["path"] == str(tmp_path / "cache" / "cuvil")
    kept = tmp_path / "cache" / "cuvil" / "ab" / "abcd.o"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * 1000)
    assert json.loads(cuvil("cache", "--format", "json").out)["bytes"] == 1000
    assert json.loads(cuvil("cache", "clear", "--format", "json").out)["cleared"] == 1000
    assert not kept.exists()


# A reader that has seen enough ends the command quietly.
def test_closed_pipe(tmp_path):
    import subprocess
    import sys
    done = subprocess.run(f"{sys.executable} -m cuvil_cli rule --format json | head -c 10", shell=True, cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "NO_COLOR": "1"}, timeout=60)
    assert done.stderr == ""


# Editors end the server by closing its input.
def test_lsp_ends_with_its_input(process):
    done = process("lsp", timeout=60)
    assert done.code == 0 and done.out == ""


@pytest.mark.parametrize("arguments, words", [(["nowhere"], "nowhere"), ([".", "--port", "99999"], "65535"), ([".", "--port", "-1"], "port")])
def test_studio_usage(cuvil, arguments, words):
    done = cuvil("studio", "--no-open", *arguments)
    assert done.code == 2 and words in done.err


@pytest.mark.parametrize("command", ["explain", "compile", "report", "diff", "view"])
def test_files_that_cannot_be_read(cuvil, write, command):
    write("latin.py", b"name = '\xe9'\n")
    for path in ("nowhere.py", "latin.py", "."):
        arguments = {"diff": [path, path], "view": ["drilldown", path]}.get(command, [path])
        done = cuvil(command, *arguments)
        assert done.code == 2 and path in done.err and done.out == "", (command, path, done)
