"""The server as an editor sees it, over stdio."""
from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.uris import to_fs_path

pytestmark = pytest.mark.asyncio(loop_scope="module")

BAD = "flag = None == None\n"

BROADCAST = "import torch\n\n\ndef pairs():\n    return (torch.zeros(4, 1) - torch.zeros(4)).mean()\n"


def range_of(text: str, part: str, line: int = 0) -> lsp.Range:
    """Of a part of an ASCII line."""
    column = text.split("\n")[line].index(part)
    return lsp.Range(lsp.Position(line, column), lsp.Position(line, column + len(part)))


# Diagnostics

async def test_a_finding_is_pulled_with_its_page_and_data(editor):
    editor.open("a.py", BAD)
    (found,) = await editor.findings("a.py")
    assert found.range == range_of(BAD, "None == None")
    assert (found.code, found.source, found.severity) == ("CUV961", "cuvil", lsp.DiagnosticSeverity.Warning)
    page = to_fs_path(found.code_description.href)
    assert Path(page).read_text(encoding="utf-8").startswith("# CUV961 constant-comparison")
    assert found.message == "None == None is always True"


async def test_an_unchanged_answer_is_said_to_be_unchanged(editor):
    editor.open("a.py", BAD)
    first = await editor.pull("a.py")
    again = await editor.pull("a.py", first.result_id)
    assert again.kind == "unchanged" and again.result_id == first.result_id
    editor.type("a.py", "flag = None == x\n")
    assert not (await editor.pull("a.py", first.result_id)).items


async def test_a_client_that_cannot_pull_is_told(fresh):
    await fresh.start(pull=False)
    fresh.open("a.py", BAD)
    await fresh.pushed("a.py", lambda found: len(found) == 1)
    fresh.type("a.py", "flag = 1\n")
    await fresh.pushed("a.py", lambda found: found == [])


async def test_only_the_newest_text_counts(editor):
    editor.open("a.py", "x = 1\n")
    for i in range(40):
        editor.type("a.py", BAD * i + "y = 1\n")

    async def all_there() -> bool:                     # a slow machine tells the last ones after the pause
        return len(await editor.findings("a.py")) == 39
    await editor.until(all_there)


async def test_a_closed_file_is_the_one_on_disk(editor):
    editor.open("a.py", "x = 1\n", save=True)
    editor.type("a.py", BAD)
    assert len(await editor.findings("a.py")) == 1
    editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(editor.document("a.py")))
    assert await editor.findings("a.py") == []
    (editor.root / "a.py").unlink()
    assert await editor.findings("a.py") == []


# Fixes

async def apply(editor, name: str, title: str) -> str:
    """The document after the action of this title, chosen on its first line."""
    found = await editor.findings(name)
    actions = await editor.client.text_document_code_action_async(lsp.CodeActionParams(
        editor.document(name), found[0].range, lsp.CodeActionContext(found)))
    (action,) = [a for a in actions if title in a.title]
    lines = editor.texts[name].split("\n")
    for edit in sorted(action.edit.changes[editor.uri(name)], key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        assert edit.range.start.line == edit.range.end.line
        line = lines[edit.range.start.line]
        lines[edit.range.start.line] = line[:edit.range.start.character] + edit.new_text + line[edit.range.end.character:]
    return "\n".join(lines)


async def test_the_fix_is_applied_and_leaves_nothing(editor):
    editor.open("a.py", BAD)
    after = await apply(editor, "a.py", "Replace by True")
    assert after == "flag = True\n"
    editor.type("a.py", after)
    assert await editor.findings("a.py") == []


async def test_a_finding_can_be_silenced(editor):
    editor.open("a.py", BAD)
    after = await apply(editor, "a.py", "Silence constant-comparison")
    assert after == "flag = None == None  # cuvil: ignore[constant-comparison]\n"
    editor.type("a.py", after)
    assert await editor.findings("a.py") == []


async def test_all_safe_fixes_at_once(editor):
    editor.open("a.py", BAD + "other = 1 < 2\n")
    assert await apply(editor, "a.py", "Fix all") == "flag = True\nother = True\n"
    actions = await editor.client.text_document_code_action_async(lsp.CodeActionParams(
        editor.document("a.py"), range_of(BAD, "flag"), lsp.CodeActionContext([], only=["source.fixAll"])))
    assert [a.kind for a in actions] == ["source.fixAll.cuvil"]


# An unsafe fix is shown and asked about where the client can do that; elsewhere its title says what it is.
@pytest.mark.parametrize("able", [True, False])
async def test_an_unsafe_fix_is_confirmed(fresh, able):
    support = lsp.ChangeAnnotationsSupportOptions() if able else None
    await fresh.start(workspace=lsp.WorkspaceClientCapabilities(workspace_edit=lsp.WorkspaceEditClientCapabilities(
        document_changes=True, change_annotation_support=support)))
    fresh.open("a.py", BROADCAST)
    (found,) = await fresh.findings("a.py")
    actions = await fresh.client.text_document_code_action_async(lsp.CodeActionParams(fresh.document("a.py"), found.range, lsp.CodeActionContext([found])))
    (fix,) = [a for a in actions if "Silence" not in a.title]
    assert not fix.is_preferred and fix.kind == "quickfix" and len(found.related_information) >= 2
    if able:
        (change,) = fix.edit.document_changes
        annotation = fix.edit.change_annotations[change.edits[0].annotation_id]
        assert annotation.needs_confirmation and annotation.label == fix.title and "may change results" in annotation.description
        assert (change.text_document.uri, change.text_document.version) == (fresh.uri("a.py"), 1) and fix.edit.changes is None
    else:
        assert fix.title.endswith("(may change results)") and fix.edit.document_changes is None and fix.edit.changes


# Positions

@pytest.mark.parametrize("offered, chosen, unit", [
    (None, "utf-16", 2), (["utf-16"], "utf-16", 2), (["utf-16", "utf-8"], "utf-8", 4), (["utf-32", "utf-8"], "utf-8", 4)])
async def test_positions_are_right_beside_emoji_and_cjk(fresh, offered, chosen, unit):
    result = await fresh.start(encodings=offered)
    assert result.capabilities.position_encoding == chosen
    assert result.capabilities.workspace.text_document_content.schemes == ("cuvil",)
    text = "x = '🙂漢'; flag = None == None\n"
    fresh.open("a.py", text)
    (found,) = await fresh.findings("a.py")
    width = unit + (3 if chosen == "utf-8" else 1)         # of 🙂漢
    start = len("x = '") + width + len("'; flag = ")
    assert found.range == lsp.Range(lsp.Position(0, start), lsp.Position(0, start + len("None == None")))
    # and an edit behind them falls on the right place
    fresh.edit("a.py", lsp.Range(lsp.Position(0, start), lsp.Position(0, start + 4)), "y")
    assert await fresh.findings("a.py") == []


async def test_every_line_end_counts(editor):
    editor.open("a.py", "a = 1\r\nb = 2\r\n" + BAD)
    (found,) = await editor.findings("a.py")
    assert found.range.start == lsp.Position(2, 7)


# Broken code

FUNCTION = """import torch

def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    b, t, d = q.shape
    with torch.inference_mode():
        s = torch.softmax(q @ k.transpose(-2, -1) / d ** 0.5, dim=-1)
        if None == None:
            s = s[:, -1]
    return f"{s}"
"""


async def test_every_prefix_of_a_file_is_answered(editor):
    editor.open("a.py", "")
    counts = set()
    for end in range(0, len(FUNCTION) + 1, 3):
        editor.type("a.py", FUNCTION[:end])
        found = await editor.findings("a.py")
        assert not [d for d in found if d.code == "CUV003"], (FUNCTION[:end], found)
        counts.add(len(found))
        await editor.client.text_document_hover_async(lsp.HoverParams(editor.document("a.py"), lsp.Position(3, 6)))
        await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(editor.document("a.py"), lsp.Range(lsp.Position(0, 0), lsp.Position(20, 0))))
    assert counts <= {0, 1, 2, 3}


async def test_a_broken_line_leaves_other_findings_where_they_are(editor):
    text = f"def f():\n    {BAD}\ndef g(x):\n    y = x\n    return y\n"
    editor.open("a.py", text)
    before = await editor.findings("a.py")
    editor.type("a.py", text.replace("y = x", "y = ("))
    after = await editor.findings("a.py")
    assert [d for d in after if d.code == "CUV961"] == before and len(after) == 2


# Outline, lenses, hints, hover

async def test_the_outline_is_nested(editor):
    editor.open("a.py", "class A:\n    def f(self):\n        pass\n\ndef g():\n    pass\n")
    symbols = await editor.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(editor.document("a.py")))
    assert [(s.name, s.kind, [c.name for c in s.children or ()]) for s in symbols] == [
        ("A", lsp.SymbolKind.Class, ["f"]), ("g", lsp.SymbolKind.Function, [])]


# Bad requests

async def test_every_request_is_answered(editor):
    editor.open("a.py", BAD)
    for method, params, code in [
            ("textDocument/hover", lsp.HoverParams(lsp.TextDocumentIdentifier("untitled:x"), lsp.Position(0, 0)), -32803),
            ("textDocument/codeLens", lsp.CodeLensParams(lsp.TextDocumentIdentifier("file:///not/there.py")), -32803),
            ("cuvil/view", {"panel": "no-such-panel", "path": str(editor.root / "a.py")}, -32803),
            ("cuvil/view", {}, -32803),
            ("cuvil/virtualDocument", {"uri": "cuvil:/x"}, -32803),
            ("cuvil/noSuchThing", {}, -32601)]:
        with pytest.raises(JsonRpcException) as error:
            await editor.ask(method, params)
        assert error.value.code == code, (method, error.value)
        assert "Traceback" not in str(error.value) and not error.value.data
    assert len(await editor.findings("a.py")) == 1


async def test_malformed_parameters_are_answered(editor):
    answer = editor.client.protocol._request_futures["m1"] = Future()
    editor.client.protocol._send_data({"jsonrpc": "2.0", "id": "m1", "method": "textDocument/hover", "params": {"wrong": 1}})
    with pytest.raises(JsonRpcException) as error:
        await asyncio.wrap_future(answer)
    assert error.value.code == -32602


async def test_places_beyond_the_text_are_clamped(editor):
    editor.open("a.py", BAD)
    for position in (lsp.Position(0, 999), lsp.Position(999, 0)):
        assert await editor.client.text_document_hover_async(lsp.HoverParams(editor.document("a.py"), position)) is None


async def test_status_and_bad_settings(fresh):
    await fresh.start(compileOnSave="yes", trusted=False)
    status = await fresh.ask("cuvil/status", {})
    assert (status.health, status.trusted) == ("ok", False)
    await fresh.until(lambda: fresh.client.messages)
    assert "cuvil.compileOnSave must be true or false" in fresh.client.messages[0].message


CALLED = '''\
import torch


def scale(x: torch.Tensor):
    return torch.zeros(3)


def score(x: torch.Tensor):
    return scale(x) + torch.ones(4)
'''


@pytest.mark.parametrize("pull", [False, True])
async def test_what_an_edit_does_to_its_callers_is_told_when_the_typing_pauses(fresh, pull):
    """Of the function that was typed at once; of those that call it after a pause: pushed, or by asking the client to pull again."""
    asked = asyncio.Event()
    fresh.client.protocol.fm.features["workspace/diagnostic/refresh"] = lambda *_: asked.set()
    await fresh.start(pull=pull)
    fresh.open("a.py", CALLED)
    if pull:
        assert [d.code for d in await fresh.findings("a.py")] == ["CUV100"]
    else:
        await fresh.pushed("a.py", lambda found: [d.code for d in found] == ["CUV100"])
    await asyncio.sleep(0.6)
    asked.clear()
    fresh.type("a.py", CALLED.replace("zeros(3)", "zeros(4) + torch.ones(5)"))
    if pull:
        assert [d.range.start.line for d in await fresh.findings("a.py")] == [4, 8]
        await asyncio.wait_for(asked.wait(), 10)
        assert [d.range.start.line for d in await fresh.findings("a.py")] == [4]
    else:
        await fresh.pushed("a.py", lambda found: [d.range.start.line for d in found] == [4, 8])
        await fresh.pushed("a.py", lambda found: [d.range.start.line for d in found] == [4])


async def test_a_client_that_cannot_be_told_to_pull_again_gets_pushes(fresh):
    workspace = lsp.WorkspaceClientCapabilities(diagnostics=lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=False))
    result = await fresh.start(pull=True, workspace=workspace)
    assert result.capabilities.diagnostic_provider is None
    fresh.open("a.py", CALLED)
    await fresh.pushed("a.py", lambda found: [d.code for d in found] == ["CUV100"])
