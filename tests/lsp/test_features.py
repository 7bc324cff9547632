"""What the server shows of tensor code: hover, hints, lenses, virtual documents, panels."""
from __future__ import annotations

import asyncio
import subprocess

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

pytestmark = pytest.mark.asyncio(loop_scope="module")

BLOCK = """import cuvil as cu
import torch

@cu.compile(input_shapes={"x": ("b", 64), "w": (64, 32)})
def block(x, w):
    '''🙂 a block'''
    h = torch.relu(x @ w)
    return torch.softmax(h, dim=-1)

def plain(n):
    return n + 1
"""


def at(text: str, part: str, occurrence: int = 0) -> lsp.Position:
    start = -1
    for _ in range(occurrence + 1):
        start = text.index(part, start + 1)
    line = text.count("\n", 0, start)
    return lsp.Position(line, start - (text.rfind("\n", 0, start) + 1))


async def hover(editor, part: str, occurrence: int = 0) -> str | None:
    found = await editor.client.text_document_hover_async(lsp.HoverParams(editor.document("a.py"), at(editor.texts["a.py"], part, occurrence)))
    return found and found.contents.value


async def hints(editor) -> dict[str, str]:
    """Label by what stands before it."""
    found = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(
        editor.document("a.py"), lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))))
    lines = editor.texts["a.py"].split("\n")
    return {lines[h.position.line][:h.position.character].strip(): h.label for h in found}


async def test_hover_says_type_op_kernel_and_cost(editor):
    editor.open("a.py", BLOCK)
    text = await hover(editor, "x @ w")
    assert "x: f32[b, 64]" in text
    text = await hover(editor, "@ w")
    for part in ("f32[b, 32]", "op `matmul`", "FLOPs `4096*b`", "kernel `k0_matmul", "FLOP/B", "b = "):
        assert part in text, text
    assert await hover(editor, "import") is None and await hover(editor, "n + 1") is None


# People point at `relu`, not at the bracket behind it.
async def test_hover_on_a_function_that_is_called_shows_what_it_gives(editor):
    editor.open("a.py", BLOCK.replace("torch.softmax(h, dim=-1)", "h.mean(dim=-1).exp()"))
    assert "torch.relu(x @ w): f32[b, 32]" in await hover(editor, "relu")
    assert "h.mean(dim=-1): f32[b]" in await hover(editor, "mean") and "op `exp`" in await hover(editor, "exp()")
    assert await hover(editor, "torch.relu") is None


async def test_hints_show_shapes_where_names_are_bound(editor):
    editor.open("a.py", BLOCK)
    assert await hints(editor) == {"h": ": f32[b, 32]"}
    found = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(
        editor.document("a.py"), lsp.Range(lsp.Position(6, 0), lsp.Position(6, 9))))
    resolved = await editor.client.inlay_hint_resolve_async(found[0])
    assert resolved.tooltip == "f32[b, 32]"


async def test_long_hints_are_cut_and_whole_in_the_tooltip(editor):
    editor.open("a.py", BLOCK.replace('"b"', '"batch_size_per_device"'))
    (label,) = (await hints(editor)).values()
    assert len(label) == 28 and label.endswith("…")


async def test_hints_stay_while_another_line_is_typed(editor):
    editor.open("a.py", BLOCK)
    before = await hints(editor)
    editor.type("a.py", BLOCK.replace("return torch.softmax(h, dim=-1)", "return torch.softmax(h, dim="))
    assert await hints(editor) == before
    editor.type("a.py", BLOCK.replace("    h =", "    y = (\n    h ="))
    assert (await hints(editor)).keys() <= {"h"}


CALLED = """import torch
import torch.nn as nn
from jaxtyping import Float
from torch import Tensor

class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
    def forward(self, x):
        y = self.fc(x)
        return y

class Model(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.mlp = Mlp(dim)
    def forward(self, x: Float[Tensor, "b t 64"]):
        z = self.mlp(x)
        return z
"""


async def test_what_callers_bring_is_shown_with_the_call_when_the_typing_pauses(editor):
    editor.open("a.py", CALLED)
    for _ in range(100):                                   # until the pause is over
        if (found := await hints(editor)).get("y", "").endswith("called"):
            break
        await asyncio.sleep(0.1)
    assert found == {"y": ": f32[b, t, 64] as called", "z": ": f32[b, t, 64]"}
    text = await hover(editor, "y = ")
    assert "f32[b, t, 64]" in text and "as called from a.py:19" in text
    assert "as called" not in await hover(editor, "z = ")
    editor.type("a.py", CALLED.replace("dim=64", "dim=32").replace("b t 64", "b t 32"))
    for _ in range(100):
        if (found := await hints(editor)).get("y") == ": f32[b, t, 32] as called":
            break
        await asyncio.sleep(0.1)
    assert found["y"] == ": f32[b, t, 32] as called"


async def lenses(editor) -> list[lsp.CodeLens]:
    return list(await editor.client.text_document_code_lens_async(lsp.CodeLensParams(editor.document("a.py"))))


async def test_lenses_say_what_a_function_becomes(editor):
    editor.open("a.py", BLOCK)
    found = await lenses(editor)
    assert [lens.range.start.line for lens in found] == [4, 4] and all(lens.command is None for lens in found)
    resolved = await editor.client.code_lens_resolve_async(found[0])
    title = resolved.command.title
    ops, arrow, rest = title.partition(" → ")
    assert ops.endswith("ops") and arrow and "kernel" in rest and "FLOP/B" in rest and rest.endswith("B")
    assert resolved.command.arguments[0]["function"] == "block"


async def test_the_number_of_lenses_does_not_depend_on_the_answer(editor):
    editor.open("a.py", BLOCK)
    before = len(await lenses(editor))
    for lens in await lenses(editor):
        await editor.client.code_lens_resolve_async(lens)
    editor.type("a.py", BLOCK.replace("dim=-1)", "dim="))
    assert len(await lenses(editor)) == before


@pytest.mark.parametrize("header, words", [
    ("block(x, w: torch.Tensor):", "give input_shapes (type of x and w unknown)"),
    ("block(x: Float[torch.Tensor, 'b 64'], w: Float[torch.Tensor, '64 32']):", " → "),
    ("block(x, w: torch.Tensor):\n    b, c = w.shape", "give input_shapes (type of x, element type of w unknown)"),
])
async def test_a_lens_asks_for_the_types_that_are_missing(editor, header, words):
    editor.open("a.py", BLOCK.replace('(input_shapes={"x": ("b", 64), "w": (64, 32)})', "").replace("block(x, w):", header).replace(
        "import torch", "import torch\nfrom jaxtyping import Float"))
    found = await lenses(editor)
    assert len(found) == 2
    assert words in (await editor.client.code_lens_resolve_async(found[0])).command.title


async def test_the_lens_against_head(editor):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(editor.root)]
    (editor.root / "a.py").write_text(BLOCK, encoding="utf-8")
    for command in (["init", "-q"], ["add", "a.py"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    editor.open("a.py", BLOCK)

    async def verdict() -> str:
        return (await editor.client.code_lens_resolve_async((await lenses(editor))[1])).command.title
    assert await verdict() == "vs HEAD: identical"
    editor.type("a.py", BLOCK.replace("h =", "hidden =").replace("(h,", "(hidden,"))
    assert await verdict() == "vs HEAD: cosmetic"
    editor.type("a.py", BLOCK.replace("dim=-1", "dim=0"))
    assert (await verdict()).startswith("vs HEAD: drift")


async def test_findings_about_shapes_come_with_their_facts(editor):
    editor.open("a.py", BLOCK.replace("(64, 32)", "(63, 32)"))
    (found,) = [d for d in await editor.findings("a.py") if d.code == "CUV101"]
    assert found.severity == lsp.DiagnosticSeverity.Error and "64" in found.message and "63" in found.message
    assert found.related_information and all(r.location.uri == editor.uri("a.py") for r in found.related_information)
    assert found.data["certainty"] == "proved" and found.data["kind"] == "shape-mismatch"


@pytest.mark.parametrize("stage, words", [("ir", "func @block"), ("optimized", "func @block"), ("kernels", "k0_matmul"),
                                          ("loops", "for"), ("llvm", "define"), ("asm", "ret")])
async def test_virtual_documents_show_a_function_at_a_stage(editor, stage, words):
    editor.open("a.py", BLOCK)
    uri = f"cuvil:{editor.root}/a.py/block.{stage}"
    content = await editor.client.workspace_text_document_content_async(lsp.TextDocumentContentParams(uri))
    assert words in content.text, content.text[:500]
    assert (await editor.ask("cuvil/virtualDocument", {"uri": uri})).text == content.text


async def test_panels_are_listed_and_drawn(editor):
    editor.open("a.py", BLOCK)
    panels = await editor.ask("cuvil/panels", {})
    assert {"drilldown", "heatmap"} <= {p["id"] for p in panels}
    for panel in panels:
        payload = await editor.ask("cuvil/view", {"panel": panel["id"], "textDocument": {"uri": editor.uri("a.py")}, "position": {"line": 7, "column": 5}})
        assert payload.panel == panel["id"] and payload.function == "block"


async def test_the_client_hears_when_a_view_is_out_of_date(editor):
    changed = []
    editor.client.protocol.fm.feature("cuvil/viewChanged")(lambda params: changed.append(params.version))
    editor.open("a.py", BLOCK)
    await editor.ask("cuvil/view", {"panel": "drilldown", "path": str(editor.root / "a.py")})
    editor.type("a.py", BLOCK + "\n")
    await editor.until(lambda: changed == [2])


async def test_reveal_shows_a_place(editor):
    editor.open("a.py", BLOCK)
    place = {"path": str(editor.root / "a.py"), "range": {"start": {"line": 6, "column": 10}, "end": {"line": 6, "column": 11}}}
    assert (await editor.ask("cuvil/reveal", place)).shown
    (shown,) = editor.client.shown_documents
    assert shown.selection.start == lsp.Position(5, 10)            # 🙂 stands before it: 9 code points are 10 UTF-16 units


async def test_a_refused_function_says_why(editor):
    editor.open("a.py", BLOCK.replace("torch.relu(x @ w)", "torch.relu(x @ w).tolist()"))
    resolved = await editor.client.code_lens_resolve_async((await lenses(editor))[0])
    assert resolved.command.title.startswith("not compiled: ")
    content = await editor.client.workspace_text_document_content_async(lsp.TextDocumentContentParams(f"cuvil:{editor.root}/a.py/block.ir"))
    assert content.text.startswith("; ")


async def test_a_cancelled_request_is_answered(editor):
    editor.open("a.py", BLOCK)
    answers = [editor.client.protocol.send_request_async("textDocument/hover", lsp.HoverParams(editor.document("a.py"), at(BLOCK, "x @ w")), msg_id=f"h{i}")
               for i in range(5)]
    tasks = [asyncio.ensure_future(a) for a in answers]
    await asyncio.sleep(0)
    for i in range(5):
        editor.client.cancel_request(lsp.CancelParams(f"h{i}"))
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert all(isinstance(r, (lsp.Hover, JsonRpcException, asyncio.CancelledError)) for r in results), results
