"""A reshape that is meant to move axes.

What: `reshape` or `view` whose sizes are the sizes of the tensor itself, by the same names, in another order.
Why: a reshape deals the elements out anew in their old order, it moves no axis. The shape is the wished one and the values are
scrambled: a picture [H, W, C] reshaped to [C, H, W] has bits of all channels in each plane.
Example: `h, w, c = photo.shape` and then `photo.reshape(c, h, w)`
Instead: `photo.transpose(2, 0, 1)` in NumPy, `photo.permute(2, 0, 1)` in torch
Fix: unsafe: the values change, which is the point.

Silent when the moved sizes are plain numbers that may agree by chance, when one of them is 1, and behind a padding or a joint, where
the shift of relative positions is done by just such a reshape.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit

from ..lookup import value_of
from ..syntax import nodes
from .axes import moved, shown
from .bindings import assignment_of
from .recorded import node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.ir.function import Function, Op

_HWC = "import numpy as np\n\ndef planes(photo: np.ndarray):\n    h, w, c = photo.shape\n"
_TBC = "import torch\n\ndef f(x: torch.Tensor):\n    T, B, C = x.shape\n"
VALID = (
    _HWC + "    return photo.transpose(2, 0, 1).reshape(c, h, w)\n",
    _HWC + "    return photo.reshape(1, h, w, c)\n",
    # Numbers that agree by chance.
    "import torch\n\ndef f():\n    return torch.zeros(4, 6).reshape(6, 4)\n",
    # The shift of relative positions.
    "import torch\nimport torch.nn.functional as F\n\ndef shift(x: torch.Tensor):\n    B, H, T, P = x.shape\n    x = F.pad(x, (1, 0))\n"
    "    return x.view(B, H, P + 1, T)[:, :, 1:].view(B, H, T, P)\n",
    _TBC + "    return x.transpose(0, 1).reshape(B, T, C)\n",
    _TBC + "    return x.reshape(T * B, C).reshape(T, B, C)\n",
    "import torch\n\ndef rel_shift(x: torch.Tensor):\n    B, H, T, P = x.shape\n    x = x.reshape(B, H, P, T)\n    return x[:, :, 1:].reshape(B, H, T, P - 1)\n",
)
INVALID = (
    Invalid(_HWC + "    return »photo.reshape(c, h, w)«\n", "[h, w, c]", _HWC + "    return photo.transpose(2, 0, 1)\n"),
    Invalid("import torch\n\ndef batch(photos):\n    x = torch.stack([torch.from_numpy(p) for p in photos])\n    n, h, w, c = x.shape\n"
            "    return »x.reshape(n, c, h, w)«\n", "[n, h, w, c]"),
    Invalid("def planes(image):\n    h, w = image.shape[:2]\n    return »image.reshape(3, h, w)« / 255\n", "channels first"),
    Invalid(_TBC + "    return »x.view(B, T, C)«\n", "permute(1, 0, 2)", _TBC + "    return x.permute(1, 0, 2)\n"),
    Invalid(_TBC + "    flat = x.reshape(-1, C).reshape(T, B, C)\n    return »torch.reshape(flat, (B, T, C))« + 1\n", "scrambles"),
)


_UNPACKED = re.compile(r"\.shape\b[\s\S]*\.(?:reshape|view)\(")
_HEIGHTS = re.compile(r"\.shape\[:2\]")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    yield from _by_names(facts)
    yield from _by_order(facts)
    for function, op, source in reshapes(facts):
        before, after = source.type.shape, op.type.shape
        if len(before) != len(after) or not any(moved(before, after)) or sorted(map(str, before)) != sorted(map(str, after)):
            continue
        order = tuple(list(before).index(size) for size in after)
        if len(set(order)) < len(order):
            continue
        span = op.origins[0].span
        move = "transpose" if _of_numpy(function, op) else "permute"
        call = node_of(facts, span, cst.Call)
        fix = None
        if call is not None and isinstance(call.func, cst.Attribute) and call.func.attr.value in ("reshape", "view") and _has(function, call.func.value, source, facts):
            text = f"{facts.source.slice(facts.module.span(call.func.value))}.{move}({', '.join(map(str, order))})"
            fix = Fix("unsafe", f"Move the axes: .{move}({', '.join(map(str, order))})", (Edit(span, text),))
        yield RULE.finding(f"a reshape from {shown(before)} to {shown(after)} scrambles the values: it moves no axis. Use {move}({', '.join(map(str, order))})",
                           span, came_from(source), fix)


def _by_names(facts: FileFacts) -> Iterator[Diagnostic]:
    """`h, w = image.shape[:2]` and then `image.reshape(3, h, w)`: by the text, where the number of axes is not known."""
    for call in nodes(facts, _HEIGHTS, cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("reshape", "view"):
            continue
        sizes = [arg.value for arg in call.args if arg.keyword is None]
        sizes = [e.value for e in sizes[0].elements] if len(sizes) == 1 and isinstance(sizes[0], cst.Tuple) else sizes
        match [size for size in sizes if not (isinstance(size, cst.Integer) and size.value == "1")]:
            case [cst.Integer(value="3" | "4"), cst.Name(value=first), cst.Name(value=second)]:
                source = assignment_of(facts, call, first)
                text = facts.module.code(source) if source is not None else ""
                if re.fullmatch(rf"\(?{first}, *{second}\)? *= *[\w.]+\.shape\[:2\]", text) and "transpose" not in facts.module.code(call.func) and (
                        "permute" not in facts.module.code(call.func)):
                    yield RULE.finding(f"a reshape of a picture [{first}, {second}, channels] to channels first scrambles the values: it moves no axis. Use transpose(2, 0, 1), "
                                       "permute(2, 0, 1) in torch", facts.module.span(call), (Evidence(facts.module.span(source), "its first two sizes"),))


def _by_order(facts: FileFacts) -> Iterator[Diagnostic]:
    """`n, h, w, c = x.shape` and then `x.reshape(n, c, h, w)`: by the text, where nothing is known of x."""
    from cuvil.frontends.python.values import Tensor
    for call in nodes(facts, _UNPACKED, cst.Call):
        match call:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name) as base, attr=cst.Name(value="reshape" | "view")), args=args) if len(args) >= 2 and all(
                    isinstance(arg.value, cst.Name) for arg in args):
                sizes = [arg.value.value for arg in args]
                unpacked = assignment_of(facts, call, sizes[0])
                value = value_of(facts, facts.module.span(base))
                if unpacked is None or isinstance(value, Tensor) and value.type.shape is not None:
                    continue
                found = re.fullmatch(rf"\(?([\w, ]+)\)? = {name}\.shape", facts.module.code(unpacked))
                names = [each.strip() for each in found[1].split(",")] if found is not None else []
                source = assignment_of(facts, call, name)
                if sorted(names) != sorted(sizes) or names == sizes or len(set(names)) < len(names) or source is not None and (
                        facts.module.span(source) > facts.module.span(unpacked)):
                    continue
                order = ", ".join(str(names.index(size)) for size in sizes)
                yield RULE.finding(f"a reshape from [{', '.join(names)}] to [{', '.join(sizes)}] scrambles the values: it moves no axis. Use permute({order}), "
                                   f"transpose({order}) in NumPy", facts.module.span(call), (Evidence(facts.module.span(unpacked), "the sizes come from here"),))


def reshapes(facts: FileFacts) -> Iterator[tuple[FunctionFacts, Op, Op]]:
    """(function, reshape, its source) in the file, each place once; not those of padded or joined tensors."""
    seen = set()
    for function in facts.functions:
        for op in function.function.body if function.function is not None else ():
            if op.name != "reshape" and not (op.name == "opaque" and str(op.attr("call")).rpartition(".")[2] in ("view", "reshape")):
                continue
            source = function.function.by_id[op.operands[0]]
            if source.type.shape is None or op.type.shape is None or not op.origins or _padded(function.function, source):
                continue
            span = op.origins[0].span
            home = facts.module.definition_at(span.line) if span.path == facts.source.path else None
            if home is not None and "shift" not in home.name.lower() and span not in seen:
                seen.add(span)
                yield function, op, source


def _padded(function: Function, source: Op) -> bool:
    while source.name in ("slice", "reshape"):
        source = function.by_id[source.operands[0]]
    return (str(source.attr("call")).rpartition(".")[2] if source.name == "opaque" else source.name) in ("pad", "concat", "cat", "concatenate")


def came_from(source: Op) -> tuple[Evidence, ...]:
    return tuple(Evidence(origin.span, f"has shape {shown(source.type.shape)}") for origin in source.origins[:1])


def _has(function: FunctionFacts, node: cst.BaseExpression, source: Op, facts: FileFacts) -> bool:
    """The expression is the source itself, as the function by itself sees it."""
    from cuvil.frontends.python.values import Tensor
    found = function.by_span.get(facts.module.span(node))
    return found is not None and isinstance(found.value, Tensor) and found.value.op.id == source.id


def _of_numpy(function: FunctionFacts, op: Op) -> bool:
    from cuvil.frontends.python.values import Tensor
    found = function.by_span.get(op.origins[0].span)
    return found is not None and isinstance(found.value, Tensor) and found.value.library == "numpy"


RULE = Rule("CUV106", "reshape-as-transpose", kind="layout-scramble", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
