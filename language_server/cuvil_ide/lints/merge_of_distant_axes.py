"""A reshape that merges axes which do not stand side by side, or splits one into places apart.

What: heads [B, H, T, D] reshaped straight to [B, T, H*D], or [B, T, C] straight to [B, H, T, C/H]: the axis T stays in the shape,
and its elements are dealt out anew.
Why: a reshape joins neighbours only. The shape is the wished one, and each row of the result holds pieces of several tokens.
Example: `attended.reshape(B, T, C)` where attended is [B, heads, T, C // heads]
Instead: `attended.transpose(1, 2).reshape(B, T, C)`
Fix: unsafe: the values change, which is the point.

Silent when neighbours are merged or split, when a transpose came first, and where sizes are plain numbers, unless the merged axes were
split from one axis before.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.ir.dims import product
from cuvil.source import Edit

from .axes import axes_of, moved, shown
from .recorded import node_of
from .reshape_as_transpose import came_from, reshapes
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.dims import Dim

    from .axes import Axes

_START = "import torch\nimport torch.nn.functional as F\n\ndef attend(x: torch.Tensor, heads: int = 4):\n    B, T, C = x.shape\n"
_SPLIT = _START + "    q = x.view(B, T, heads, C // heads).transpose(1, 2)\n    y = F.scaled_dot_product_attention(q, q, q)\n"
VALID = (
    _SPLIT + "    return y.transpose(1, 2).reshape(B, T, C)\n",
    _SPLIT + "    return y.permute(0, 2, 1, 3).flatten(2)\n",
    _SPLIT + "    return y.reshape(B * heads, T, C // heads)\n",
    _START + "    return x.transpose(0, 1).reshape(T, B * heads, C // heads).transpose(0, 1)\n",
    # Windows of a picture.
    "import torch\n\ndef windows(x: torch.Tensor, w: int = 7):\n    B, H, W, C = x.shape\n    x = x.view(B, H // w, w, W // w, w, C)\n"
    "    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, w, w, C)\n",
    "import torch\n\ndef shuffle(x: torch.Tensor, groups: int = 4):\n    B, C, H, W = x.shape\n"
    "    return x.view(B, groups, C // groups, H, W).transpose(1, 2).reshape(B, C, H, W)\n",
    # Numbers that agree by chance.
    "import torch\n\ndef f():\n    return torch.zeros(2, 3, 4, 5).reshape(2, 4, 15)\n",
)
INVALID = (
    Invalid(_SPLIT + "    return »y.reshape(B, T, C)«\n", "transpose", _SPLIT + "    return y.transpose(1, 2).reshape(B, T, C)\n"),
    Invalid(_START + "    return »x.view(B, heads, T, C // heads)«\n", "T keeps its size", _START + "    return x.view(B, T, heads, C // heads).transpose(1, 2)\n"),
    # By numbers, with what was split before as the witness.
    Invalid("import torch\n\ndef f():\n    x = torch.randn(2, 5, 8)\n    q = x.view(2, 5, 2, 4).transpose(1, 2)\n    return »q.reshape(2, 5, 8)«\n", "[2, 2, 5, 4]",
            "import torch\n\ndef f():\n    x = torch.randn(2, 5, 8)\n    q = x.view(2, 5, 2, 4).transpose(1, 2)\n    return q.transpose(1, 2).reshape(2, 5, 8)\n"),
)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function, op, source in reshapes(facts):
        before, after = source.type.shape, op.type.shape
        by_symbol = next(moved(before, after), None) if _merges(before, after) or _merges(after, before) else None
        at = by_symbol or _parted(before, after, axes_of(function.function).get(source.id))
        if at is None:
            continue
        axis = f"axis {before[at[0]]}" if by_symbol is None else str(before[at[0]])
        advice = "split it in its place and transpose then" if len(before) < len(after) else "transpose so that what is merged stands side by side"
        yield RULE.finding(f"a reshape from {shown(before)} to {shown(after)} moves no axis: {axis} keeps its size and not its elements; {advice}",
                           op.origins[0].span, came_from(source), _fix(facts, op.origins[0].span, before, after))


def _left(these: Sequence[Dim], others: Sequence[Dim]) -> list[Dim]:
    """Sizes that the other shape does not have, those of 1 left out."""
    counted = Counter(size for size in others if size != 1)
    left = []
    for size in these:
        if counted[size] > 0:
            counted[size] -= 1
        elif size != 1:
            left.append(size)
    return left


def _merges(many: Sequence[Dim], few: Sequence[Dim]) -> bool:
    return len(_left(many, few)) >= 2 and len(_left(few, many)) == 1


def _parted(before: Sequence[Dim], after: Sequence[Dim], pieces: Axes | None) -> tuple[int, int] | None:
    """Two parts of what was one axis are merged around another axis: (an axis between them, 0)."""
    if pieces is None:
        return None
    for i in range(len(before)):
        for k in range(i + 1, len(before)):
            between = [axis for axis in range(i + 1, k) if before[axis] != 1]
            if between and len(pieces[i]) == len(pieces[k]) == 1 and _neighbours(pieces[i][0], pieces[k][0]):
                rest, merged = [s for axis, s in enumerate(before) if axis not in (i, k) and s != 1], before[i] * before[k]
                sizes = [s for s in after if s != 1]
                split = sum(1 for axis in range(k) if axis not in (i, k) and before[axis] != 1)
                if sizes == [*rest[:split], merged, *rest[split:]] and product(before[:between[0]]) != product(rest[:split - len(between)]):
                    return between[0], 0
    return None


def _neighbours(a, b) -> bool:
    return (a.op, a.axis) == (b.op, b.axis) and a.part[:-1] == b.part[:-1] and bool(a.part) and bool(b.part) and b.part[-1] == a.part[-1] + 1


def _fix(facts: FileFacts, span, before: Sequence[Dim], after: Sequence[Dim]) -> Fix | None:
    """One swap of neighbours before a merge or behind a split, where the code shows the sizes one by one."""
    call = node_of(facts, span, cst.Call)
    if call is None or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("reshape", "view"):
        return None
    many, few = (before, after) if len(before) > len(after) else (after, before)
    if len(many) != len(few) + 1:
        return None
    swap = next((axis for axis in range(len(many) - 1) if _merged(_swapped(many, axis), few)), None)
    if swap is None:
        return None
    base = facts.source.slice(facts.module.span(call.func.value))
    if many is before:
        inner = facts.source.slice(span)[len(base):].lstrip(".").partition("(")[2]
        text = f"{base}.transpose({swap}, {swap + 1}).reshape({inner}"
    else:
        if len(call.args) != len(many) or any(arg.star or arg.keyword for arg in call.args):
            return None
        sizes = _swapped([facts.module.code(arg.value) for arg in call.args], swap)
        text = f"{base}.{call.func.attr.value}({', '.join(sizes)}).transpose({swap}, {swap + 1})"
    title = f"Transpose axes {swap} and {swap + 1} {'before' if many is before else 'behind'} the reshape"
    return Fix("unsafe", title, (Edit(span, text),))


def _swapped(items: Sequence, axis: int) -> list:
    return [*items[:axis], items[axis + 1], items[axis], *items[axis + 2:]]


def _merged(many: Sequence[Dim], few: Sequence[Dim]) -> bool:
    """The shape with two neighbours merged, where all others are the same."""
    return any([*many[:at], *many[at + 2:]] == [*few[:at], *few[at + 1:]] and (many[at], many[at + 1]) != (few[at], 1) for at in range(len(few)))


RULE = Rule("CUV107", "merge-of-distant-axes", kind="layout-scramble", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
