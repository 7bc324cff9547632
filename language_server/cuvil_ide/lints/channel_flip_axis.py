"""A reversal of channels that turns rows or columns round.

What: in a function that swaps RGB and BGR, the branch for channels first reverses another axis than that of channels.
Why: the picture is mirrored and its colours stay swapped. Nothing fails.
Example: `if channels_first: return np.flip(image, axis=1)` in a function `bgr_to_rgb`
Instead: `return np.flip(image, axis=0)`
Fix: unsafe: the picture changes, which is the point.

Silent when nothing says which axis has the channels, and in functions that mirror pictures by their name.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .flow import once
from .literal import NotLiteral, literal
from .recorded import around
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import numpy as np\n\ndef bgr_to_rgb(image, channels_first):\n    if channels_first:\n"
VALID = (
    _START + "        return np.flip(image, axis=0)\n    return np.flip(image, axis=2)\n",
    _START + "        return image[::-1]\n    return image[..., ::-1]\n",
    "import numpy as np\n\ndef mirror(image, channels_first):\n    if channels_first:\n        return np.flip(image, axis=1)\n    return np.flip(image, axis=0)\n",
    "import numpy as np\n\ndef bgr_to_rgb(images, channels_first):\n    \"\"\"[N, C, H, W] or [N, H, W, C]\"\"\"\n    if channels_first:\n        return np.flip(images, axis=1)\n    return np.flip(images, axis=3)\n",
)
INVALID = (
    Invalid(_START + "        return »np.flip(image, axis=1)«\n    return np.flip(image, axis=2)\n", "rows",
            _START + "        return np.flip(image, axis=0)\n    return np.flip(image, axis=2)\n"),
    Invalid("import numpy as np\n\ndef flip_channel_order(image, data_format):\n    if data_format == \"channels_last\":\n        image = image[..., ::-1]\n"
            "    elif data_format == \"channels_first\":\n        image = »image[:, ::-1, ...]«\n    return image\n", "axis 1"),
)

_FUNCTION = re.compile(r"bgr|rgb|channel", re.IGNORECASE)
_FIRST = re.compile(r"channels?_first|\.FIRST\b|[\"']first[\"']|\bchw\b|[\"']NCHW[\"']|[\"']CHW[\"']", re.IGNORECASE)
_LAST = re.compile(r"channels?_last|\.LAST\b|[\"']last[\"']|\bhwc\b|[\"']HWC[\"']", re.IGNORECASE)
_WHERE = re.compile(r"flip\(|::\s*-1")


@once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for node in nodes(facts, _WHERE, cst.Call, cst.Subscript):
        axis = _reversed_axis(facts, node)
        function = around(facts, node, cst.FunctionDef) if axis is not None else None
        if function is None or not _FUNCTION.search(function.name.value) or _layout(facts, node, function) != "first":
            continue
        rank = _rank(facts, function)
        if rank is None or axis % rank == rank - 3:
            continue
        what = "rows" if axis % rank == rank - 2 else "columns" if axis % rank == rank - 1 else "samples"
        span = facts.module.span(node)
        yield RULE.finding(f"with channels first, axis {axis} has {what}: this mirrors the picture and swaps no channels. Their axis is {rank - 3}",
                           span, (Evidence(facts.module.span(function.name), "is meant to swap channels"),), _fix(facts, node, rank - 3))


def _reversed_axis(facts: FileFacts, node: cst.Call | cst.Subscript) -> int | None:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="flip"))):
            arg = next((a.value for a in node.args if a.keyword is not None and a.keyword.value in ("axis", "dims", "dim")), None)
            arg = arg if arg is not None else node.args[-1].value if len(node.args) > 1 or node.args and not _of_library(node) else None
            try:
                at = literal(arg) if arg is not None else None
            except NotLiteral:
                return None
            at = at[0] if isinstance(at, (tuple, list)) and len(at) == 1 else at
            return at if isinstance(at, int) else None
        case cst.Subscript(slice=elements):
            parts = [element.slice for element in elements]
            at = [i for i, part in enumerate(parts) if isinstance(part, cst.Slice) and part.step is not None and facts.module.code(part.step).replace(" ", "") == "-1"]
            if len(at) != 1 or any(not isinstance(p, cst.Slice) and not _dots(p) for p in parts):
                return None
            dots = next((i for i, part in enumerate(parts) if _dots(part)), len(parts))
            return at[0] if at[0] < dots else at[0] - len(parts)
    return None


def _of_library(node: cst.Call) -> bool:
    return isinstance(node.func.value, cst.Name) and node.func.value.value in ("np", "numpy", "torch")


def _dots(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)


def _layout(facts: FileFacts, node: cst.CSTNode, function: cst.FunctionDef) -> str:
    """Which layout the tests around a place say: "first", "last" or ""."""
    below, above = node, facts.module.parent(node)
    while above is not None and above is not function:
        if isinstance(above, cst.If) and below is not above.test:
            test, holds = facts.module.code(above.test), below is above.body
            if re.search(r"\bnot\b|!=", test):
                holds = not holds
            for pattern, yes in ((_FIRST, "first"), (_LAST, "last")):
                if pattern.search(test):
                    return yes if holds else ""
        below, above = above, facts.module.parent(above)
    return ""


def _rank(facts: FileFacts, function: cst.FunctionDef) -> int | None:
    """How many axes the pictures have, by the other branch: channels last are reversed on axis rank - 1. `...` says nothing: 3."""
    found = set()
    for node in nodes(facts, _WHERE, cst.Call, cst.Subscript):
        if around(facts, node, cst.FunctionDef) is function and _layout(facts, node, function) != "first" and (axis := _reversed_axis(facts, node)) is not None:
            found.add(3 if axis == -1 else axis + 1)
    return found.pop() if len(found) == 1 and found <= {3, 4} else None


def _fix(facts: FileFacts, node: cst.CSTNode, axis: int) -> Fix | None:
    arg = next((a.value for a in node.args if a.keyword is not None and a.keyword.value == "axis"), None) if isinstance(node, cst.Call) else None
    if not isinstance(arg, cst.Integer):
        return None
    span: Span = facts.module.span(arg)
    return Fix("unsafe", f"axis={axis}", (Edit(span, str(axis)),))


RULE = Rule("CUV121", "channel-flip-axis", kind="wrong-axis", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
