"""Compile on save: real children, real libraries, and children that die."""
from __future__ import annotations

import os
import signal
import sys

import pytest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.native]

SCALE = """import cuvil as cu

@cu.compile(input_shapes={"x": (4, 8)})
def scale(x):
    return x * 2 + 1
"""


class Saver:
    def __init__(self, editor) -> None:
        self.editor, self.path = editor, str(editor.root / "a.py")

    async def status(self):
        """Of the file; None before its first compilation."""
        found = await self.editor.ask("cuvil/status", {})
        return next(iter(found.compile), None) if found.compile else None

    async def state(self) -> dict:
        found = await self.editor.ask("cuvil/status", {})
        states = list(found.compile)
        return dict(zip(("libraries", "stale", "seconds", "problem", "refusals", "running", "pid"), states[0])) if states else {}

    async def settled(self) -> dict:
        async def done():
            state = await self.state()
            return state if state and not state["running"] and (state["seconds"] or state["problem"]) else None
        return await self.editor.until(done, 60)


async def begin(editor, text: str = SCALE, **options) -> Saver:
    await editor.start(trusted=True, **options)
    editor.open("a.py", text)
    editor.save("a.py")
    return Saver(editor)


async def test_a_save_makes_a_library_and_an_edit_makes_it_stale(fresh):
    saver = await begin(fresh)
    state = await saver.settled()
    library = fresh.root / ".cuvil/libscale.so"
    assert state["libraries"] == [str(library)] and library.is_file() and not state["stale"]
    assert (fresh.root / ".cuvil/scale.h").is_file() and (fresh.root / ".cuvil/.gitignore").read_text() == "*\n"
    fresh.type("a.py", SCALE.replace("* 2", "* 3"))
    assert (await saver.state())["stale"] and library.is_file()
    before = library.read_bytes()
    fresh.save("a.py")
    await fresh.until(lambda: library.read_bytes() != before, 20)

    async def compiled():
        return not (await saver.state())["stale"]
    await fresh.until(compiled)
    fresh.type("a.py", SCALE)
    assert (await saver.state())["stale"]


async def test_nothing_is_compiled_without_trust(fresh):
    await fresh.start(trusted=False)
    fresh.open("a.py", SCALE)
    fresh.save("a.py")
    assert await fresh.findings("a.py") == []
    assert await Saver(fresh).state() == {} and not (fresh.root / ".cuvil").exists()


async def test_settings_that_come_with_the_workspace_give_no_trust(fresh):
    await fresh.start(trusted=False)
    fresh.client.workspace_did_change_configuration(_settings(trusted=True))
    assert not (await fresh.ask("cuvil/status", {})).trusted


async def test_a_refused_function_is_a_remark_in_its_place(fresh):
    saver = await begin(fresh, SCALE + "\n@cu.compile(input_shapes={'x': (4,)})\ndef odd(x):\n    return open(x)\n")
    state = await saver.settled()
    assert state["libraries"] == [str(fresh.root / ".cuvil/libscale.so")] and len(state["refusals"]) == 1
    (found,) = [d for d in await fresh.findings("a.py") if d.message.startswith("not compiled")]
    assert found.range.start.line >= 6


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_a_killed_child_is_one_message_and_is_tried_again(fresh):
    saver = await begin(fresh)

    async def pid():
        return (await saver.state()).get("pid")
    os.kill(await fresh.until(pid), signal.SIGKILL)
    state = await saver.settled()
    assert "SIGKILL" in state["problem"] and state["libraries"] == []
    assert [d.code for d in await fresh.findings("a.py")] == ["CUV004"]
    assert len([m for m in fresh.client.messages if "SIGKILL" in m.message]) == 1
    fresh.save("a.py")                                            # after its pause

    async def recovered():
        state = await saver.state()
        return state["libraries"] and not state["problem"]
    await fresh.until(recovered, 60)
    assert await fresh.findings("a.py") == []


async def test_limits_end_a_child_and_keep_the_last_good_library(fresh):
    saver = await begin(fresh)
    await saver.settled()
    library = fresh.root / ".cuvil/libscale.so"
    before = library.read_bytes()
    fresh.client.workspace_did_change_configuration(_settings(compileTimeout=0.001))
    fresh.type("a.py", SCALE.replace("* 2", "* 5"))
    fresh.save("a.py")

    async def failed():
        return (await saver.state())["problem"]
    assert "0.001 s" in await fresh.until(failed)
    state = await saver.state()
    assert state["libraries"] == [str(library)] and state["stale"] and library.read_bytes() == before
    fresh.client.workspace_did_change_configuration(_settings(compileTimeout=60, compileMemory=50))
    fresh.save("a.py")

    async def out_of_memory():
        problem = (await saver.state())["problem"]
        return problem if "0.001" not in problem else ""
    assert (await fresh.until(out_of_memory, 60)).startswith("compiling a.py: the compiler ended")


async def test_of_many_saves_the_last_counts(fresh):
    saver = await begin(fresh)
    for i in range(3, 9):
        fresh.type("a.py", SCALE.replace("* 2", f"* {i}"))
        fresh.save("a.py")

    async def done():
        state = await saver.state()
        return state["libraries"] and not state["stale"] and not state["running"]
    await fresh.until(done, 60)
    assert "8" in (fresh.root / ".cuvil/scale.json").read_text()


def _settings(**values):
    from lsprotocol import types as lsp
    return lsp.DidChangeConfigurationParams({"cuvil": values})


SLOW = "import cuvil as cu\nimport torch\n" + "".join(f"""
@cu.compile(input_shapes={{"x": (64, 64), "w": (64, 64)}})
def layer_{n}(x, w):
    return torch.softmax(torch.relu(x @ w + {n}) @ w, dim=-1)
""" for n in range(12))


async def test_what_takes_long_has_progress_and_can_be_cancelled(fresh):
    from lsprotocol import types as lsp
    saver = await begin(fresh, SLOW)
    reports = fresh.client.progress_reports
    token = await fresh.until(lambda: next(iter(t for t, values in reports.items() if values), None))
    assert reports[token][0].title == "Compiling a.py" and reports[token][0].cancellable
    fresh.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token))

    async def ended():
        return not (await saver.state())["running"] and len(reports[token]) == 2
    await fresh.until(ended)
    state = await saver.state()
    assert not state["problem"] and state["libraries"] == []
    assert await fresh.findings("a.py") == []
