"""A number format applied to a tensor that is not one number.

What: a format spec (`{scores:.3f}`, `format(scores, ".3f")`) on a tensor or array with at least one axis, or a %-conversion
to a number (`%.3f`) on one with more than one element.
Why: the line raises TypeError or ValueError when it runs, and such lines are mostly in logging and reporting code that
runs last.
Example: `print(f"scores: {scores:.3f}")` where scores has shape [N]
Instead: `f"{scores.mean():.3f}"`, `f"{scores.item():.3f}"` for one element, or no spec.
Fix: display: which number was meant only the author knows.

Silent for 0-d tensors, without a spec, with `!r` or `!s`, and when the rank is unknown.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ir.dims import proved_different
from cuvil.ir.types import TensorType

from ..lookup import value_of
from . import flow
from .formats import Field, uses
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\ndef f():\n    x = torch.zeros(4, 3)\n"
VALID = (
    _START + "    return f'{x.sum():.3f}'\n",
    _START + "    return f'{x}'\n",
    _START + "    return f'{x!r:>80}'\n",
    _START + "    return '%s' % (x,)\n",
    "import torch\n\ndef f(x: torch.Tensor):\n    return f'{x:.3f}'\n",
)
INVALID = (
    Invalid(_START + "    return f'»{x:.3f}«'\n", "[4, 3]"),
    Invalid(_START + "    return »'{:.3f}'.format(x)«\n", "[4, 3]"),
    Invalid(_START + "    return »'%.3f' % (x,)«\n", "12 elements"),
    Invalid(_START + "    return »'%.3f' % x«\n", "12 elements"),
    # The shape comes in with a call.
    Invalid("import torch\n\ndef show(top):\n    print(f'scores: »{top:.3f}«')\n\ndef run():\n    show(torch.zeros(5, 4).max(dim=1).values)\n", "[5]"),
)

HOW = Fix("display", "format one element (.item(), .mean()), or leave the format spec out")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    yield from _written(facts)
    yield from _brought(facts)


def _brought(facts: FileFacts) -> Iterator[Diagnostic]:
    """F-strings of functions that a call in this file reaches: the caller brings the shapes."""
    from cuvil.frontends.python.values import Tensor
    for function in facts.functions:
        for call in function.calls:
            if call.name == "builtins.format" and call.context.callers and call.span.path == facts.source.path and isinstance(call.args[0], Tensor):
                type = call.args[0].type
                if type.rank:
                    spec = call.args[1].value
                    yield RULE.finding(f"the format {spec!r} needs one number, and this is a tensor of shape {flow.shape(type)}: a tensor with axes takes no format spec",
                                       call.span, (Evidence(call.context.callers[0], f"called from here, it has type {type}"),), HOW)


def _written(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for use in uses(facts):
        for field in use.fields:
            if field.argument is None or field.spec in ("", "*"):
                continue
            where = facts.module.span(field.argument)
            value = value_of(facts, where)
            if not isinstance(value, Tensor) or not (reason := _fails(field, value.type)):
                continue
            shown = f"%{field.spec}" if field.style == "%" else f"{field.spec!r}"
            yield RULE.finding(
                f"the format {shown} needs one number, and {facts.source.slice(where)} is a tensor of shape {flow.shape(value)}: {reason}",
                facts.module.span(use.node), (Evidence(where, f"has type {value.type}"),),
                HOW)


def _fails(field: Field, type: TensorType) -> str:
    """Why formatting raises for every input; "" if it may work."""
    if type.shape is None:
        return ""
    if field.style == "{":
        return "a tensor with axes takes no format spec" if not field.conversion and type.rank else ""
    if field.spec in "srac" or not proved_different(type.numel, 1):
        return ""
    return f"{type.numel} elements cannot become one number"


RULE = Rule("CUV941", "format-of-tensor", kind="format-error", severity="error", certainty="proved", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
