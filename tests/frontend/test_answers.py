"""What a function gives for plain arguments is worked out once; it is worked out again when what it hangs on changed."""
from __future__ import annotations

import pytest

from cuvil.frontends.python import Workspace, analyze
from cuvil.source import Source

SIZES = """
WIDTH = 4

def padding(kernel, stride):
    half = 0
    for part in (1, 2, 3, 4, 5, 6):
        half = half + WIDTH * part - WIDTH * part
    return half + ((stride - 1) + (kernel - 1)) // 2

def named(options):
    width = options.pop("width", 0)
    for part in (1, 2, 3, 4, 5, 6):
        width = width + part - part
    return width
"""

MODEL = """
import torch
from torch import nn
from sizes import named, padding

class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = padding(3, 1) + padding(3, 1)
        options = {"width": 7}
        self.width, self.gone = named(options), named(options)
        self.again = named({"width": 7})

    def forward(self, x):
        return x + torch.zeros(self.pad, self.width, self.again, self.gone + 1)

class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = padding(3, 1)

    def forward(self, x):
        return x + torch.zeros(self.pad)
"""


@pytest.fixture
def shapes(tmp_path):
    workspace = Workspace(tmp_path)

    def shapes(sizes: str) -> list[tuple]:
        (tmp_path / "sizes.py").write_text(sizes)
        facts = analyze(Source(str(tmp_path / "model.py"), MODEL), workspace)
        return [op.type.shape for function in facts.functions if function.function
                for op in function.function.ops if op.type.shape is not None and all(type(n) is int for n in op.type.shape)]

    shapes.workspace = workspace
    return shapes


# From one class to the next, an answer serves; a dict that was changed by a call is another question.
def test_worked_out_once(shapes):
    assert {(2, 7, 7, 1), (1,)} <= set(shapes(SIZES))
    named = [asked for asked in shapes.workspace.answers if asked[0].name.value == "padding"]
    assert len(named) == 1


# The text that an answer hangs on changed, in the function or beside it.
def test_worked_out_again(shapes):
    shapes(SIZES)
    assert {(6, 7, 7, 1), (3,)} <= set(shapes(SIZES.replace("// 2", "// 1 + 1")))
    assert {(22, 7, 7, 1), (11,)} <= set(shapes(SIZES.replace("return half", "return WIDTH + 6 + half")))
    assert {(42, 7, 7, 1), (21,)} <= set(shapes(SIZES.replace("return half", "return WIDTH + 6 + half").replace("WIDTH = 4", "WIDTH = 14")))
