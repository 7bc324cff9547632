"""A result of a CUDA graph kept over the next call.

What: in a loop, the result of a function compiled with `mode="reduce-overhead"` (or `"max-autotune"`) is collected as it is.
Why: CUDA graphs write into the same memory at each call. The next call overwrites what was kept; torch raises when it notices.
Example: `outputs.append(step(x))` with `step = torch.compile(f, mode="reduce-overhead")`
Instead: `outputs.append(step(x).clone())`, or `torch.compiler.cudagraph_mark_step_begin()` and a copy
Fix: safe: the result is copied before the next call overwrites it.

Silent when the result goes through another operation first, and for `"max-autotune-no-cudagraphs"`.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from ..syntax import nodes
from .carried import inside
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = 'import torch\n\n@torch.compile(mode="reduce-overhead")\ndef step(x: torch.Tensor):\n    return x.relu()\n\ndef run(batches):\n    kept = []\n    for x in batches:\n'
VALID = (
    _START + "        kept.append(step(x).clone())\n    return kept\n",
    _START + "        kept.append(step(x) * 2)\n    return kept\n",
    _START.replace('mode="reduce-overhead"', "") + "        kept.append(step(x))\n    return kept\n",
    _START + "        y = step(x)\n        kept.append(y.cpu())\n    return kept\n",
)
INVALID = (
    Invalid(_START + "        kept.append(»step(x)«)\n    return kept\n", "overwrites", _START + "        kept.append(step(x).clone())\n    return kept\n"),
    Invalid(_START + "        y = step(x)\n        kept.append(»y«)\n    return kept\n", "clone()", _START + "        y = step(x)\n        kept.append(y.clone())\n    return kept\n"),
    Invalid('import torch\n\ndef run(f, batches):\n    fast = torch.compile(f, mode="reduce-overhead")\n    return [»fast(x)« for x in batches]\n', "CUDA graph",
            'import torch\n\ndef run(f, batches):\n    fast = torch.compile(f, mode="reduce-overhead")\n    return [fast(x).clone() for x in batches]\n'),
)

_MODE = re.compile(r"""mode\s*=\s*["'](?:reduce-overhead|max-autotune)["']""")
_LOOP = re.compile(r"\bfor\b|\bwhile\b")


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if not facts.module.mentions(_MODE):
        return
    graphs = _graphs(facts)
    for function in nodes(facts, _LOOP, cst.FunctionDef) if graphs else ():
        bound = {t.target.value: a.value for a in inside(facts, function, cst.Assign) for t in a.targets if isinstance(t.target, cst.Name)}
        for kept in _kept(facts, function):
            made = bound.get(kept.value) if isinstance(kept, cst.Name) else kept
            if isinstance(made, cst.Call) and isinstance(made.func, (cst.Name, cst.Attribute)) and facts.module.code(made.func) in graphs:
                span = facts.module.span(kept)
                end = Span(span.path, span.end_line, span.end_column, span.end_line, span.end_column)
                yield RULE.finding("the next call overwrites this result: a CUDA graph writes into the same memory each time; keep a clone()", span,
                                   (Evidence(graphs[facts.module.code(made.func)], "is run as a CUDA graph"),), Fix("safe", "Keep a copy", (Edit(end, ".clone()"),)))


def _graphs(facts: FileFacts) -> dict[str, Span]:
    """Names that mean a function run as a CUDA graph, and where that is said."""
    found: dict[str, Span] = {}
    for node in nodes(facts, _MODE, cst.FunctionDef, cst.Assign):
        match node:
            case cst.FunctionDef(decorators=decorators):
                for each in decorators:
                    if _MODE.search(facts.module.code(each)):
                        found[node.name.value] = facts.module.span(each)
            case cst.Assign(value=cst.Call() as value) if _MODE.search(facts.module.code(value)):
                found.update((facts.module.code(t.target), facts.module.span(value)) for t in node.targets)
    return found


def _kept(facts: FileFacts, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    for loop in inside(facts, function, cst.For, cst.While):
        for call in inside(facts, loop, cst.Call):
            match call:
                case cst.Call(func=cst.Attribute(attr=cst.Name(value="append")), args=[cst.Arg(value=value)]):
                    yield value
    for comprehension in inside(facts, function, cst.ListComp):
        yield comprehension.elt


RULE = Rule("CUV411", "graph-output-kept", kind="aliasing-mutation", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
