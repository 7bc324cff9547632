"""Height and width change places.

What: a picture [H, W, C] goes to [C, W, H] by `permute(2, 1, 0)`, `transpose(2, 1, 0)` or `.T`; or `cv2.resize` is given (height, width)
taken from a shape.
Why: the picture lies on its side, or is stretched. Nothing fails, and square pictures hide it.
Example: `cv2.resize(image, other.shape[:2])`
Instead: `cv2.resize(image, (other.shape[1], other.shape[0]))`, `permute(2, 0, 1)`
Fix: unsafe: the picture changes, which is the point.

Silent for square sizes, where the result is turned back, and for arrays that are not known to be pictures.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.cst.shown import walk
from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..syntax import nodes
from . import flow
from .axes import shown
from .bindings import assignment_of, dotted_text
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Op

_START = "import cv2\nimport numpy as np\n\ndef f(image: np.ndarray, other: np.ndarray):\n"
VALID = (
    _START + "    h, w = other.shape[:2]\n    return cv2.resize(image, (w, h))\n",
    _START + "    return cv2.resize(image, other.shape[1::-1])\n",
    _START + "    h, w = image.shape[:2]\n    nh, nw = int(h * 0.5), int(w * 0.5)\n    return cv2.resize(image, (nw, nh))\n",
    _START + "    h, w = image.shape[:2]\n    return cv2.resize(image, (int(h * w), w))\n",
    _START + "    h, w, c = image.shape\n    return image.transpose(2, 0, 1)\n",
    _START + "    w, h = other.shape[:2]\n    return image.transpose(1, 0, 2)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    T, B, C = x.shape\n    return x.permute(2, 1, 0)\n",
)
INVALID = (
    Invalid(_START + "    return cv2.resize(image, »other.shape[:2]«)\n", "(width, height)", _START + "    return cv2.resize(image, other.shape[1::-1])\n"),
    Invalid(_START + "    h, w = other.shape[:2]\n    return cv2.resize(image, (»h, w«))\n", "(width, height)",
            _START + "    h, w = other.shape[:2]\n    return cv2.resize(image, (w, h))\n"),
    Invalid(_START + "    h, w = image.shape[:2]\n    scale = 640 / w\n    return cv2.resize(image, (»int(h * scale), int(w * scale)«))\n", "(width, height)",
            _START + "    h, w = image.shape[:2]\n    scale = 640 / w\n    return cv2.resize(image, (int(w * scale), int(h * scale)))\n"),
    Invalid(_START + "    rows, cols = image.shape[:2]\n    new_h = rows // 2\n    new_w = cols // 2\n    return cv2.resize(image, dsize=(»new_h, new_w«))\n", "(width, height)",
            _START + "    rows, cols = image.shape[:2]\n    new_h = rows // 2\n    new_w = cols // 2\n    return cv2.resize(image, dsize=(new_w, new_h))\n"),
    Invalid(_START + "    h, w, c = image.shape\n    return »image.transpose(2, 1, 0)«\n", "[h, w, c]", _START + "    h, w, c = image.shape\n    return image.transpose(2, 0, 1)\n"),
    Invalid("import cv2\nimport torch\n\ndef f(path):\n    x = torch.from_numpy(cv2.imread(path))\n    return »x.permute(2, 1, 0)«\n", "width",
            "import cv2\nimport torch\n\ndef f(path):\n    x = torch.from_numpy(cv2.imread(path))\n    return x.permute(2, 0, 1)\n"),
)

_HEIGHT, _WIDTH = re.compile(r"^(?:h|height|rows?|hh|img_h|im_h)\d*$", re.IGNORECASE), re.compile(r"^(?:w|width|cols?|ww|img_w|im_w)\d*$", re.IGNORECASE)
_RESIZE = re.compile(r"cv2\.resize\(")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op in flow.ops(facts, "transpose"):
        source = flow.operand(function, op)
        batch = op.attr("axes") == (0, 3, 2, 1)
        if op.attr("axes") != (2, 1, 0) and not batch or not _picture(facts, source, batch):
            continue
        if any(user.name == "transpose" for user in function.users[op.id]):
            continue
        span = op.origins[0].span
        yield RULE.finding(f"{shown(source.type.shape)} becomes {flow.shape(op)}: height and width change places, the picture lies on its side. "
                           f"Channels first are {'(0, 3, 1, 2)' if batch else '(2, 0, 1)'}", span, flow.evidence((source, f"has shape {shown(source.type.shape)}")),
                           _moved(facts, span, batch))
    for call in nodes(facts, _RESIZE, cst.Call):
        size = next((a.value for a in call.args if a.keyword is not None and a.keyword.value == "dsize"), call.args[1].value if len(call.args) > 1 else None)
        if facts.module.code(call.func) != "cv2.resize" or size is None:
            continue
        turned = _turned(facts, size)
        if turned is not None:
            where = facts.module.span(size)
            yield RULE.finding("cv2.resize takes (width, height), and a shape is (height, width)", where, (Evidence(facts.module.span(call), "cv2.resize"),),
                               Fix("unsafe", "(width, height)", (Edit(where, turned),)))


def _picture(facts: FileFacts, source: Op, batch: bool) -> bool:
    """[H, W, C] by the sizes' names, or by what loads it."""
    shape = source.type.shape
    if shape is None or len(shape) != 3 + batch:
        return False
    height, width, channels = (str(size) for size in shape[batch:])
    named = _HEIGHT.match(height) and _WIDTH.match(width)
    return bool(named) and (channels in ("1", "3", "4") or channels.lower().startswith("c"))


def _moved(facts: FileFacts, span, batch: bool) -> Fix | None:
    call = node_of(facts, span, cst.Call)
    wrong, right = (("0", "3", "2", "1"), "0, 3, 1, 2") if batch else (("2", "1", "0"), "2, 0, 1")
    if call is None or not isinstance(call.func, cst.Attribute) or tuple(facts.module.code(arg.value) for arg in call.args) != wrong:
        return None
    return Fix("unsafe", f"({right})", (Edit(span, f"{facts.module.code(call.func)}({right})"),))


def _turned(facts: FileFacts, size: cst.BaseExpression) -> str | None:
    """The size the other way round, if it is (height, width) of a shape."""
    match size:
        case cst.Subscript(value=cst.Attribute(value=of, attr=cst.Name(value="shape")), slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=cst.Integer(value="2"), step=None))]):
            return f"{facts.module.code(of)}.shape[1::-1]"
        case cst.Tuple(elements=[cst.Element(value=first), cst.Element(value=second)]):
            before, after = _made_of(facts, first), _made_of(facts, second)
            if before is not None and after is not None and before[0] is after[0] and (before[1], after[1]) == (0, 1) and before[2] == after[2]:
                return f"{facts.module.code(second)}, {facts.module.code(first)}"           # inside the brackets of the tuple
    return None


def _made_of(facts: FileFacts, size: cst.BaseExpression) -> tuple[cst.CSTNode, int, str] | None:
    """Which axis of which shape a size is worked out from, and how: `int(h * scale)`, also under a name of its own."""
    for _ in range(4):
        direct = _place(facts, size) if isinstance(size, cst.Name) else None
        if direct is not None:
            return *direct, "."
        bound = _bound(facts, size) if isinstance(size, cst.Name) else None
        if bound is None:
            break
        size = bound
    axes = [(name.value, place) for name in walk([size]) if isinstance(name, cst.Name) and (place := _place(facts, name)) is not None]
    if len(axes) != 1:
        return None
    (name, place), code = axes[0], facts.module.code(size)
    return *place, re.sub(rf"\b{re.escape(name)}\b", ".", code)


def _bound(facts: FileFacts, name: cst.Name) -> cst.BaseExpression | None:
    """What the last assignment before gave a name, alone or as one of several."""
    node = assignment_of(facts, name, name.value)
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value):
            return value
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=names))], value=cst.Tuple(elements=values)) if len(names) == len(values):
            return next((value.value for each, value in zip(names, values) if isinstance(each.value, cst.Name) and each.value.value == name.value), None)
    return None


def _place(facts: FileFacts, name: cst.Name) -> tuple[cst.CSTNode, int] | None:
    """The assignment that unpacks a shape into the name, and at which place."""
    node = assignment_of(facts, name, name.value)
    if node is None or not isinstance(node, cst.Assign) or not re.search(r"\.shape(?:\[:\s*[23]\s*\])?$", facts.module.code(node.value)):
        return None
    target = node.targets[0].target
    names = [dotted_text(facts, e.value) for e in target.elements] if isinstance(target, cst.Tuple) else []
    return (node, names.index(name.value)) if name.value in names else None


RULE = Rule("CUV114", "height-width-swap", kind="wrong-axis", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
