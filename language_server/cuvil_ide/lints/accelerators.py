"""What lives on an accelerator, by facts and by the text of a function."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from .carried import inside

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.source import Span

HOST = re.compile(r"\.cpu\(|\.numpy\(|\.tolist\(|\.item\(|\bnp\.|\.shape\b|\.size\(|\blen\(|\.numel\(|\.dim\(|\.ndim\b|[\"']cpu[\"']")
NAMED = re.compile(r"cuda|mps|xpu|npu|hpu")                 # no device is known in a file that names none
_MOVED = re.compile(r"""\.cuda\(|["']cuda|["']mps["']|["']xpu""")
_TO_DEVICE = re.compile(r"\.to\((?:device\s*=\s*)?(?:self\.)?_?(?:device|dev)\b")
_DEVICE = re.compile(r"""torch\.device\(["']cuda|^["']cuda""")
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


def accelerator(kind: str) -> bool:
    return kind not in ("", "cpu", "meta")


def moved(facts: FileFacts, function: cst.FunctionDef) -> dict[str, Span]:
    """Names that the text moves to an accelerator, and where: `x = x.cuda()`, `net.cuda()`, `x = torch.ones(4, device="cuda")`."""
    found: dict[str, Span] = {}
    devices = {t.target.value for a in inside(facts, function, cst.Assign) if _DEVICE.search(facts.module.code(a.value))
               for t in a.targets if isinstance(t.target, cst.Name)}
    to = re.compile(rf"(?:\.to\(|device\s*=\s*)(?:{'|'.join(map(re.escape, devices))})\b") if devices else None
    for each in inside(facts, function, cst.Assign, cst.Expr):
        text = facts.module.code(each.value)
        placed = _MOVED.search(text) and not text.startswith(("torch.device", '"', "'"))
        if placed or to is not None and to.search(text) or "cuda" in facts.source.text and _TO_DEVICE.search(text):
            if isinstance(each, cst.Assign):
                found.update((t.target.value, facts.module.span(each)) for t in each.targets if isinstance(t.target, cst.Name))
            elif isinstance(each.value, cst.Call) and isinstance(each.value.func, cst.Attribute) and isinstance(each.value.func.value, cst.Name):
                found[each.value.func.value.value] = facts.module.span(each)
    return {name: span for name, span in found.items() if name not in devices}


def follows(facts: FileFacts, function: cst.FunctionDef) -> dict[str, Span]:
    """Names that hold what was moved, or what was worked out from it and not brought back to the host."""
    found, host = moved(facts, function), set()
    for assign in inside(facts, function, cst.Assign):
        text = facts.module.code(assign.value)
        names = [t.target.value for t in assign.targets if isinstance(t.target, cst.Name)]
        source = next((found[word] for word in _WORD.findall(text) if word in found), None)
        if HOST.search(text):
            host.update(names)
        elif source is not None:
            found.update((name, source) for name in names if name not in found)
    return {name: span for name, span in found.items() if name not in host}
