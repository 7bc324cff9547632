"""A softmax along the axis of the samples.

What: `softmax`, `log_softmax`, `F.normalize` or `argmax` of a table [batch, classes] along its first axis.
Why: the numbers of one sample then hang on who else is in the batch, and those of a batch of one are all 1. Shapes are right, and for
each class the samples compete with each other.
Example: `F.softmax(self.head(x), dim=0)` for x [batch, features]
Instead: `F.softmax(self.head(x), dim=-1)`
Fix: unsafe: the result changes, which is the point.

Silent for vectors, for similarities between two sets and match matrices (a product of two computed values, a table normalised along
both axes), and where the normalised axis is summed away afterwards, as weights of a pooling are.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.ops.definition import DEFINITIONS, ELEMENTWISE
from cuvil.source import Edit

from . import flow
from .axes import axes_of, batches, carried, is_weight, rows
from .recorded import calls, node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts
    from cuvil.ir.function import Function, Op
    from cuvil.source import Span

_HEAD = ("import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
         "        self.conv = nn.Conv2d(3, 8, 3)\n        self.head = nn.Linear(8, 10)\n\n    def forward(self, images):\n"
         "        h = self.conv(images).mean((2, 3))\n")
_POOL = ("import torch\nfrom torch import nn\n\nclass Pool(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
         "        self.score = nn.Linear(8, 4)\n\n    def forward(self, tokens: torch.Tensor):\n        T, C = tokens.shape\n")
VALID = (
    _HEAD + "        return F.softmax(self.head(h), dim=-1)\n",
    _HEAD + "        return F.softmax(self.head(h).t(), dim=0)\n",
    # Weights of a pooling over tokens.
    _POOL + "        weights = torch.softmax(self.score(tokens), dim=0)\n        return weights.t() @ tokens\n",
    # Similarity between two sets.
    "import torch\n\ndef match(a: torch.Tensor, b: torch.Tensor):\n    batch, C = a.shape\n    M, D = b.shape\n    return (a @ b.t()).softmax(dim=0)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    batch, = x.shape\n    return x.softmax(dim=0)\n",
)
INVALID = (
    Invalid(_HEAD + "        return »F.softmax(self.head(h), dim=0)«\n", "batch", _HEAD + "        return F.softmax(self.head(h), dim=-1)\n"),
    Invalid("import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.head = nn.Linear(8, 10)\n\n    def forward(self, x: torch.Tensor):\n        N, C = x.shape\n"
            "        return »torch.log_softmax(self.head(x), 0)«\n", "axis 0",
            "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.head = nn.Linear(8, 10)\n\n    def forward(self, x: torch.Tensor):\n        N, C = x.shape\n"
            "        return torch.log_softmax(self.head(x), -1)\n"),
    Invalid("import torch\nfrom torch import nn\n\ndef rank(ids: torch.Tensor):\n    B, T = ids.shape\n    emb, head = nn.Embedding(50, 16), nn.Linear(16, 4)\n"
            "    logits = head(emb(ids).mean(dim=1))\n    return »logits.softmax(dim=0)«.argmax(dim=1)\n", "samples",
            "import torch\nfrom torch import nn\n\ndef rank(ids: torch.Tensor):\n    B, T = ids.shape\n    emb, head = nn.Embedding(50, 16), nn.Linear(16, 4)\n"
            "    logits = head(emb(ids).mean(dim=1))\n    return logits.softmax(dim=-1).argmax(dim=1)\n"),
)


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    yield from _best_of_batch(facts)
    yield from _per_feature(facts)
    for function, op in flow.ops(facts, "softmax", "log_softmax", "norm"):
        shape, span = op.type.shape, op.origins[0].span
        value = flow.operand(function, op)
        if op.name == "norm":
            axis = op.attr("axes")[0] if op.attr("keepdims") and len(op.attr("axes") or ()) == 1 and "normalize(" in facts.source.slice(span) else None
        else:
            axis = op.attr("axis")
        if axis != 0 or shape is None or value.type.rank != 2 or value.type.shape[1] == 1 or value.type.shape[0] == 1:
            continue
        pieces = axes_of(function)[value.id][0]
        sure = set(pieces) & batches(function)
        if not sure and not set(pieces) & rows(function):
            continue
        if _similarity(function, value) or _other_way(function, op, value) or _summed_away(function, op):
            continue
        name = "normalize" if op.name == "norm" else op.name
        size = f" ({value.type.shape[0]})" if not isinstance(value.type.shape[0], int) else ""
        yield RULE.finding(f"{name} along axis 0 of {flow.shape(value)} runs over the samples of the batch{size}: each class is shared out among them. Use dim=-1",
                           span, flow.evidence((value, f"has shape {flow.shape(value)}")), _fix(facts, span))


def _best_of_batch(facts: FileFacts) -> Iterator[Diagnostic]:
    """argmax along the samples of what a linear layer gives for each of them."""
    for function, op in flow.ops(facts, "argmax", "argmin"):
        value = flow.operand(function, op)
        if op.attr("axis") != 0 or value.type.rank != 2 or op.type.shape is None or value.type.shape[0] == 1 or value.type.shape[1] == 1:
            continue
        classes, sample = axes_of(function)[value.id][1], axes_of(function)[value.id][0]
        if set(sample) & batches(function) and len(classes) == 1 and function.by_id[classes[0].op].name == "linear":
            span = op.origins[0].span
            yield RULE.finding(f"{op.name} along axis 0 of {flow.shape(value)} picks a sample of the batch for each class, not a class for each sample. Use dim=-1",
                               span, flow.evidence((value, f"has shape {flow.shape(value)}")), _fix(facts, span))


def _per_feature(facts: FileFacts) -> Iterator[Diagnostic]:
    """cosine_similarity of two tables along the axis of their rows: a number for each feature."""
    from cuvil.frontends.python.values import Scalar, Tensor
    for call in calls(facts):
        if call.name.rpartition(".")[2] == "cosine_similarity" and call.argument(2, "dim") == Scalar(0):
            a = call.argument(0, "x1")
            if isinstance(a, Tensor) and a.type.rank == 2 and 1 not in a.type.shape:
                yield RULE.finding(f"cosine_similarity along axis 0 of {flow.shape(a.op)} compares features over the samples of the batch, not samples. Use dim=-1",
                                   call.span, flow.evidence((a.op, f"has shape {flow.shape(a.op)}")), _fix(facts, call.span))


def _similarity(function: Function, value: Op) -> bool:
    """A product of two computed values, maybe scaled."""
    while True:
        definition = DEFINITIONS.get(value.name)
        if value.name in ("matmul", "einsum"):
            return not any(is_weight(flow.source(function, function.by_id[id])) for id in value.operands)
        if not value.operands or definition is None or definition.kind != ELEMENTWISE and value.name not in flow.LAYOUT:
            return value.name == "opaque"
        same = [o for id in value.operands if (o := function.by_id[id]).type.rank == value.type.rank]
        if not same:
            return False
        value = same[0]


def _other_way(function: Function, op: Op, value: Op) -> bool:
    """The same table is normalised along its other axis too."""
    return any(user.name == op.name and user.attr("axis") != op.attr("axis") for user in function.users[value.id] if user is not op)


def _summed_away(function: Function, op: Op) -> bool:
    for user, place, axis in carried(function, op, 0):
        if user.name in ("reduce_sum", "mean") and axis in (user.attr("axes") or ()):
            return True
        if user.name in ("matmul", "linear") and axis == len(function.by_id[user.operands[place]].type.shape) - (1 if place == 0 else 2):
            return True
        if user.name == "einsum":
            return True
    return False


def _fix(facts: FileFacts, span: Span) -> Fix | None:
    """0 becomes -1, where the call shows it."""
    call = node_of(facts, span, cst.Call)
    for arg in call.args if call is not None else ():
        if isinstance(arg.value, cst.Integer) and arg.value.value == "0" and (arg.keyword is None or arg.keyword.value in ("dim", "axis")):
            return Fix("unsafe", "Along the last axis: -1", (Edit(facts.module.span(arg.value), "-1"),))
    return None


RULE = Rule("CUV109", "softmax-over-batch", kind="wrong-axis", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
