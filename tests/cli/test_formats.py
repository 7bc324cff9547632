"""Output formats of `cuvil lint`, from the same two findings: one with evidence and a fix, one plain."""
import json
import xml.etree.ElementTree as xml
from collections import Counter

import pytest

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Source, Span
from cuvil_cli.findings import FileResult, Findings
from cuvil_cli.formats import FORMATS, render

TEXT = "labels = batch[0]\nscores = head(x)\nloss = (scores - labels).mean()\n  值 = '%d' % scores  # emoji 😀 here\n"
BROADCAST = Diagnostic(
    "CUV108", "outer-broadcast", "silent-broadcast", "(N, 1) - (N,) is (N, N)\nwhich is then averaged", Span("src/loss.py", 3, 8, 3, 23), "likely", "warning",
    (Evidence(Span("src/loss.py", 1, 0, 1, 6), "f32[N]"), Evidence(Span("src/other file.py", 9, 0, 9, 1), "f32[N, 1]")),
    Fix("unsafe", "Squeeze the last axis", (Edit(Span("src/loss.py", 3, 8, 3, 14), "scores.squeeze(-1)"),)))
FORMAT = Diagnostic("CUV941", "format-of-tensor", "format-error", "%d of a tensor, 100% wrong", Span("src/loss.py", 4, 6, 4, 19), "proved", "error")


@pytest.fixture
def findings(tmp_path, monkeypatch):
    sources = {"src/loss.py": Source("src/loss.py", TEXT)}
    monkeypatch.chdir(tmp_path)
    return Findings((FileResult("src/loss.py", (BROADCAST, FORMAT), None, 7, Counter({"call of an unknown function": 2})), FileResult("src/clean.py")),
                    tmp_path, sources.get)


def test_text_shows_the_line_the_facts_and_the_fix(findings):
    assert render("text", findings).splitlines()[:15] == [
        "warning[CUV108]: (N, 1) - (N,) is (N, N)",
        "  which is then averaged",
        " --> src/loss.py:3:9",
        "  |",
        "3 | loss = (scores - labels).mean()",
        "  |         ^^^^^^^^^^^^^^^",
        "1 | labels = batch[0]",
        "  | ------ f32[N]",
        " ::: src/other file.py:9:1",
        "  = src/other file.py:9:1: f32[N, 1]",
        "  |",
        "  = fix (unsafe): Squeeze the last axis",
        "  |   3:9: write `scores.squeeze(-1)`",
        "  = likely; `cuvil rule CUV108` explains outer-broadcast",
        "",
    ]
    assert render("text", findings).splitlines()[-1] == "2 findings (1 proved, 1 likely) in 2 files."


# A wide character takes two cells, so the mark starts further right than its column.
def test_text_marks_wide_characters(findings):
    lines = render("text", findings).splitlines()
    at = next(i for i, line in enumerate(lines) if "值" in line)
    assert lines[at + 1] == "  | " + " " * 7 + "^" * 13


def test_text_of_no_findings(tmp_path):
    assert render("text", Findings((FileResult("a.py"),), tmp_path, lambda p: None)) == "No findings in 1 file."


def test_text_cuts_endless_lines(tmp_path):
    long = Source("a.py", "x = [" + "1, " * 100_000 + "]\n")
    d = Diagnostic("CUV961", "constant-comparison", "x", "m", Span("a.py", 1, 150_000, 1, 150_004))
    text = render("text", Findings((FileResult("a.py", (d,)),), tmp_path, {"a.py": long}.get))
    assert max(map(len, text.splitlines())) < 200 and "^^^^" in text


def test_colours_only_when_asked(findings):
    assert "\x1b[" not in render("text", findings) and "\x1b[1;31m" in render("text", findings, colour=True)


# The document of the design: these keys, these places, counted from 1.
def test_json(findings):
    document = json.loads(render("json", findings))
    assert document["version"] == 1 and document["problems"] == []
    first = document["findings"][0]
    assert list(first) == ["code", "name", "kind", "certainty", "severity", "message", "path", "range", "evidence", "fix", "url"]
    assert first["range"] == {"start": {"line": 3, "column": 9}, "end": {"line": 3, "column": 24}}
    assert first["fix"]["edits"] == [
        {"path": "src/loss.py", "range": {"start": {"line": 3, "column": 9}, "end": {"line": 3, "column": 15}}, "text": "scores.squeeze(-1)"}]
    assert document["findings"][1]["fix"] is None
    assert document["summary"]["tensor_expressions"] == {"understood": 7, "unknown": {"call of an unknown function": 2}}
    assert document["summary"]["certainty"] == {"likely": 1, "proved": 1}


def test_json_lines(findings):
    assert [json.loads(line)["code"] for line in render("json-lines", findings).splitlines()] == ["CUV108", "CUV941"]


def test_github(findings):
    lines = render("github", findings).splitlines()
    assert lines[0] == ("::warning file=src/loss.py,line=3,endLine=3,title=CUV108 outer-broadcast,col=9,endColumn=24::"
                        "(N, 1) - (N,) is (N, N)%0Awhich is then averaged"
                        "%0Asrc/loss.py:1: f32[N]%0Asrc/other file.py:9: f32[N, 1]")
    assert lines[1].startswith("::error ") and lines[1].endswith("%25d of a tensor, 100%25 wrong")


def test_junit(findings):
    suite = xml.fromstring(render("junit", findings).encode()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert len(suite.findall("testcase/failure")) == 2


def test_sarif_is_valid(findings):
    model = pytest.importorskip("pydantic_sarif.model")
    model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate_json(render("sarif", findings))


def test_sarif(findings):
    run = json.loads(render("sarif", findings))["runs"][0]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["CUV108", "CUV941"]
    assert run["columnKind"] == "unicodeCodePoints"
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "CUV108"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/loss.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 3, "startColumn": 9, "endLine": 3, "endColumn": 24}
    assert [r["message"]["text"] for r in result["relatedLocations"]] == ["f32[N]", "f32[N, 1]"]
    assert result["relatedLocations"][1]["physicalLocation"]["artifactLocation"]["uri"] == "src/other%20file.py"
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "scores.squeeze(-1)"
    assert run["invocations"][0]["executionSuccessful"] is True


def test_sarif_says_what_could_not_be_read(tmp_path):
    problem = Diagnostic("CUV004", "unreadable-file", "unreadable-file", "not utf-8", Span("a.py", 1, 0, 1, 0), severity="error")
    run = json.loads(render("sarif", Findings((FileResult("a.py", problem=problem),), tmp_path, lambda p: None)))["runs"][0]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "not utf-8"


# Lines above may come and go; the finding stays the same finding. Two on equal lines are two.
def test_fingerprints_survive_edits_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def prints(text, *lines):
        found = tuple(Diagnostic("CUV961", "constant-comparison", "x", "m", Span("a.py", n, 0, n, 4)) for n in lines)
        return list(Findings((FileResult("a.py", found),), tmp_path, {"a.py": Source("a.py", text)}.get).fingerprints.values())

    before, after = prints("a == a\nb == b\n", 1, 2), prints("import x\n\n  a  == a\nb == b\n", 3, 4)
    assert before == after and before[0] != before[1]
    twice = prints("a == a\na == a\n", 1, 2)
    assert twice[0] == before[0] and twice[0] != twice[1]


def test_every_format_is_a_module():
    assert set(FORMATS) == {"text", "concise", "json", "json-lines", "sarif", "github", "gitlab", "junit", "rdjson"}


def test_concise(findings):
    assert render("concise", findings).splitlines() == [
        "src/loss.py:3:9: warning CUV108 outer-broadcast: (N, 1) - (N,) is (N, N) which is then averaged",
        "src/loss.py:4:7: error CUV941 format-of-tensor: %d of a tensor, 100% wrong",
        "2 findings (1 proved, 1 likely) in 2 files."]


def test_gitlab(findings):
    first, second = json.loads(render("gitlab", findings))
    assert first["location"] == {"path": "src/loss.py", "positions": {"begin": {"line": 3, "column": 9}, "end": {"line": 3, "column": 24}}}
    assert (first["check_name"], first["severity"], second["severity"]) == ("CUV108", "major", "critical")
    assert first["fingerprint"] == findings.fingerprints[BROADCAST] != second["fingerprint"]
    assert "\n" not in first["description"]


# Columns count bytes: 值 takes three.
def test_rdjson(findings):
    document = json.loads(render("rdjson", findings))
    first, second = document["diagnostics"]
    assert document["source"]["name"] == "cuvil" and (first["severity"], second["severity"]) == ("WARNING", "ERROR")
    assert first["suggestions"] == [{"range": {"start": {"line": 3, "column": 9}, "end": {"line": 3, "column": 15}}, "text": "scores.squeeze(-1)"}]
    assert [r["message"] for r in first["relatedLocations"]] == ["f32[N]", "f32[N, 1]"]
    assert second["location"]["range"]["start"] == {"line": 4, "column": 9}


def test_problems_are_in_every_format(tmp_path):
    problem = Diagnostic("CUV004", "unreadable-file", "unreadable-file", "not utf-8", Span("a.py", 1, 0, 1, 0), severity="error")
    for name in FORMATS:
        assert "not utf-8" in render(name, Findings((FileResult("a.py", problem=problem),), tmp_path, lambda p: None)), name


# The pages behind findings come with the package; nothing that leaves this machine points to them.
def test_pages(findings):
    from pathlib import Path
    from urllib.parse import unquote, urlsplit
    page = json.loads(render("json", findings))["findings"][0]["url"]
    assert Path(unquote(urlsplit(page).path)).read_text(encoding="utf-8").startswith("# CUV108 outer-broadcast")
    assert all("file://" not in render(name, findings).replace(findings.root.as_uri(), "") for name in ("sarif", "gitlab", "rdjson", "github", "junit"))
