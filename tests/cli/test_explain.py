"""Commands that show and compare: explain, diff, validate, view, report; text for people, JSON for machines, and they agree."""
import json
import subprocess

import pytest

MODEL = '''import torch
import cuvil as cu


@cu.compile(input_shapes={"x": ("b", 64), "w": (64, 32)})
def head(x, w):
    scores = x @ w
    return torch.relu(scores * 0.5)


@cu.compile(input_shapes={"x": (8,)})
def pick(x):
    return x[x > 0]
'''


# explain: kernels with their costs, decisions with their reasons.
def test_explain(cuvil, write):
    write("m.py", MODEL)
    done = cuvil("explain", "m.py:head")
    assert done.code == 0
    assert "head(x: f32[b, 64], w: f32[64, 32]) -> f32[b, 32]  (m.py:6:1)" in done.out
    assert "b = 8 (example)" in done.out and "fused" in done.out and "ridge" in done.out


def test_explain_as_json(cuvil, write):
    write("m.py", MODEL)
    done = cuvil("explain", "m.py", "--dim", "b=4", "--format", "json")
    head, pick = json.loads(done.out)["functions"]
    assert done.code == 1 and "m.py:13:" in pick["refused"]
    assert head["dims"] == {"b": 4} and head["examples"] == []
    (kernel,) = head["kernels"]
    # 2*4*32*64 for the product, a multiply and a maximum on its 128 elements; x, w and the result move once.
    assert kernel["flops"] == 2 * 4 * 32 * 64 + 2 * 128
    assert (kernel["read"], kernel["written"]) == (4 * (4 * 64 + 64 * 32), 4 * 128)
    assert kernel["formula"]["bytes"] == "384*b + 8192"
    assert head["total"]["flops"] == kernel["flops"] and head["unfused"]["bytes"] > head["total"]["bytes"]
    assert kernel["lines"] == [7, 8]
    assert all(d["reason"] for d in head["decisions"])


def test_mapping_is_printed_from_the_interpreters_tables(cuvil):
    done = cuvil("explain", "--mapping")
    assert done.code == 0 and done.out.splitlines()[0].startswith("syntax")
    rows = {r["node"]: r["form"] for r in json.loads(cuvil("explain", "--mapping", "--format", "json").out)["mapping"]}
    assert {"BinaryOperation", "Call", "Return", "Assign", "Add"} <= set(rows)


def test_fidelity_check(cuvil, write):
    write("m.py", MODEL)
    done = cuvil("explain", "--mapping", "--check", "m.py:head")
    assert done.code == 0 and "every op has its place" in done.out
    document = json.loads(cuvil("explain", "--mapping", "--check", "m.py:head", "--format", "json").out)
    (entry,) = document["functions"]
    assert document["ok"] and entry["stages"][0]["stage"] == "captured"
    assert all(s["ops"] == s["placed"] for s in entry["stages"])


def test_fidelity_names_what_was_lost():
    from dataclasses import replace

    from cuvil.ir.types import TensorType
    from cuvil.lineage import Origin
    from cuvil.ops import Builder
    from cuvil.source import Source, Span
    from cuvil_cli.commands.explain import audit
    b = Builder()
    x = b.input("x", 0, TensorType.parse("f32[4]"))
    with b.at(Origin(Span("m.py", 1, 0, 1, 6), "Call")):
        y = b.emit("exp", x, label="y")
    with b.at(Origin(Span("m.py", 99, 0, 99, 3), "Call")):        # a line that is not there
        z = b.emit("neg", y)
    with b.at(Origin(Span("m.py", 1, 0, 1, 60), "Call")):         # a column that is not there
        w = b.emit("sin", z)
    v = b.emit("abs", w)                                          # no place at all
    captured = b.function("f", [v])
    source = Source("m.py", "exp(x)\n")
    found = audit(captured, source, captured)
    assert (found["ops"], found["placed"], found["named"]) == (4, 1, 1)
    assert found["lost"] == [f"%{op.id} {op.name}: its place" for op in (z, w, v)]
    nameless = captured.with_ops(tuple(replace(op, label="") if op.id == y.id else op for op in captured.ops))
    assert f"%{y.id} exp: its name y" in audit(nameless, source, captured)["lost"]


@pytest.mark.parametrize("arguments", [[], ["nowhere.py"], ["m.py:nothing"], ["m.py", "--dim", "b"], ["m.py", "--dim", "b=0"]])
def test_explain_usage(cuvil, write, arguments):
    write("m.py", MODEL)
    done = cuvil("explain", *arguments)
    assert done.code in (1, 2) and done.err and done.out == ""


# diff: what two texts compute.
def test_diff(cuvil, write):
    write("a.py", MODEL)
    write("b.py", MODEL.replace("scores = x @ w\n    return torch.relu(scores * 0.5)", "logits = x @ w\n    return torch.relu(logits * 0.5)"))
    write("c.py", MODEL.replace("0.5", "0.25"))
    same = cuvil("diff", "a.py", "b.py", "--format", "json")
    assert same.code == 0 and [f["verdict"] for f in json.loads(same.out)["functions"]][0] == "cosmetic"
    drift = cuvil("diff", "a.py", "c.py")
    assert drift.code == 1 and drift.out.startswith("drift") and "c.py:8:" in drift.out and "0.25" in drift.out
    assert cuvil("diff", "a.py", "a.py").code == 0
    changed = MODEL.replace("x[x > 0]", "x[x > 1]")
    write("d.py", changed)
    assert cuvil("diff", "a.py", "d.py").code == 0 and cuvil("diff", "a.py", "d.py", "--strict").code == 1


def test_diff_with_git_revisions(cuvil, write, tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True, capture_output=True)
    git("init", "-q")
    write("src/m.py", MODEL)
    git("add", "src")
    git("commit", "-q", "-m", "one")
    write("src/m.py", MODEL.replace("0.5", "0.25"))
    assert cuvil("diff", "HEAD:src/m.py", "src/m.py").code == 1
    assert cuvil("diff", "HEAD:src/m.py", "HEAD:src/m.py").code == 0
    assert cuvil("diff", "HEAD:m.py", "m.py", cwd=tmp_path / "src").code == 1
    for name in ("HEAD:nothing.py", "nosuchrevision:src/m.py", "nothing.py"):
        done = cuvil("diff", name, "src/m.py")
        assert done.code in (1, 2) and name.rpartition(":")[2] in done.err


# validate: one verdict.
def test_validate(cuvil, write):
    write("good.py", MODEL.partition("@cu.compile(input_shapes={\"x\": (8,)})")[0])
    done = cuvil("validate", "good.py", "--strict")
    assert done.code == 0 and done.out.splitlines()[-1].startswith("valid")
    write("bad.py", MODEL)
    document = json.loads(cuvil("validate", "bad.py", "--format", "json").out)
    assert document["valid"] is False
    assert [c["name"] for c in document["checks"] if c["state"] == "failed"] == ["compile pick"]
    assert cuvil("validate", "nowhere.py").code == 1


# view: the payload that a panel draws.
def test_view_prints_the_payload(cuvil, write, tmp_path):
    from cuvil_ide import views
    from cuvil_ide.protocol import ViewRequest, to_json
    from cuvil_ide.session import Session
    write("m.py", MODEL)
    for panel in ("drilldown", "heatmap"):
        done = cuvil("view", panel, "m.py:head")
        assert done.code == 0
        assert json.loads(done.out) == to_json(views.view(Session(), ViewRequest(panel, "m.py", None, "head")))
    assert json.loads(cuvil("view", "drilldown", "m.py", "--line", "13").out)["function"] == "pick"
    assert [p["id"] for p in json.loads(cuvil("view", "list").out)] == ["drilldown", "heatmap"]
    assert cuvil("view", "nothing", "m.py").code == 2


# report: one page, with the payloads of both panels and nothing that loads.
def test_report(cuvil, write, tmp_path, monkeypatch):
    from cuvil_cli import page
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "panels.js").write_text("1")
    (tmp_path / "bundle" / "panels.css").write_text("")
    monkeypatch.setattr(page, "INSTALLED", tmp_path / "bundle")
    write("m.py", MODEL.replace("    scores", "    # </script><script>alert(1)</script>\n    scores"))
    done = cuvil("report", "m.py", "-o", "out.html")
    assert done.code == 0 and done.out.startswith("out.html: 2 functions")
    html = (tmp_path / "out.html").read_text()
    assert "alert(1)</script>" not in html and html.count("</script>") == 2
    data = json.loads(html.partition('id="cuvil-payloads">')[2].partition("</script>")[0])
    assert set(data["payloads"]) == {f"{panel}:{name}" for panel in ("drilldown", "heatmap") for name in ("head", "pick")}
    assert any("</script><script>alert(1)" in e["text"] for e in data["payloads"]["drilldown:head"]["columns"][0]["elements"])
    assert data["request"]["function"] == "head" and data["payloads"]["heatmap:pick"]["functions"] == ["head", "pick"]


def test_report_keeps_under_its_limit(cuvil, write, tmp_path, monkeypatch):
    from cuvil_cli import page
    from cuvil_cli.commands import report
    (tmp_path / "panels.js").write_text("1")
    (tmp_path / "panels.css").write_text("")
    monkeypatch.setattr(page, "INSTALLED", tmp_path)
    monkeypatch.setattr(report, "LIMIT", 1000)
    write("m.py", MODEL)
    done = cuvil("report", "m.py", "-o", "out.html", "--format", "json")
    assert done.code == 0 and json.loads(done.out)["omitted"] == ["pick"] and "left out" in done.err
