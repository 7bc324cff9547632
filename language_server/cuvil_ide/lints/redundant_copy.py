"""A copy or a conversion that changes nothing.

What: `.float()` of what is float32 already, `.clone()` of a clone or of a value that nobody else holds, `astype` to the type that the array has.
Why: NumPy's astype, `clone` and `copy` write the whole tensor once more; a conversion that is none hides which types really meet.
Example: `(x.float() * scale).float()`
Instead: `x.float() * scale`
Fix: safe: the call is left out; what it gave has the same bits, and no one else holds its memory.

Silent where the element type is not known, where a tensor was converted in another statement (PyTorch gives it back as it is), where a copy of memory that others hold is taken, with `copy=` or a device among the arguments.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Fix
from cuvil.source import Edit, Span

from ..lookup import value_of
from ..syntax import nodes
from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import numpy as np\nimport torch\n\ndef f(x: torch.Tensor, y: torch.Tensor, a: np.ndarray):\n"
VALID = (
    _START + "    return x.float(), x.clone(), x.detach().clone(), (x + y).float()\n",
    # the memory is someone else's
    _START + "    return x.view(-1).clone(), x.expand(3, 3).clone(), torch.from_numpy(a).clone()\n",
    _START + "    z = (x + y)\n    w = z.clone()\n    w[0] = 1.0\n    return z, w\n",
    _START + "    return a.astype(np.float32), a.astype(np.float32).astype(np.float64)\n",
    _START + "    return x.half().to('cuda', torch.float16), x.half().to(torch.float16, copy=True)\n",
    _START + "    a = a.astype(np.float32)\n    return a.astype(np.float32)\n",
    # NumPy's integers are of 32 bits on some machines
    "import numpy as np\n\ndef f(n: int):\n    return np.arange(0, n)[::-1].copy().astype(np.int64)\n",
    _START + "    x = x.float()\n    return x.float(), (x > 0).bool()\n",
)
INVALID = (
    Invalid(_START + "    return »(x.float() * 2).float()«\n", "float32", _START + "    return (x.float() * 2)\n"),
    Invalid(_START + "    return »(x + y).clone()«\n", "nobody else", _START + "    return (x + y)\n"),
    Invalid(_START + "    return »x.clone().clone()« * 2\n", "clone", _START + "    return x.clone() * 2\n"),
    Invalid(_START + "    return »(a.astype(np.float32) * 2).astype(np.float32)«\n", "float32", _START + "    return (a.astype(np.float32) * 2)\n"),
    Invalid(_START + "    return x[»y.long().to(torch.int64)«]\n", "int64", _START + "    return x[y.long()]\n"),
)

_WHERE = re.compile(r"\.(?:float|double|half|bfloat16|long|int|bool|to|type|astype|clone|copy)\(")
_NAMED = {"float": "F32", "double": "F64", "half": "F16", "bfloat16": "BF16", "long": "I64", "int": "I32", "bool": "BOOL"}
_COPIES = {"torch": "clone", "numpy": "copy"}
_COMPUTED = (cst.BinaryOperation, cst.UnaryOperation)


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for call in nodes(facts, _WHERE, cst.Call, analysed=True):
        if not isinstance(call.func, cst.Attribute):
            continue
        name, inner, span = call.func.attr.value, call.func.value, facts.module.span(call)
        if name not in _NAMED and name not in ("to", "type", "astype", "clone", "copy"):
            continue
        before, after = value_of(facts, facts.module.span(inner)), value_of(facts, span)
        if not isinstance(before, Tensor) or not isinstance(after, Tensor) or before.library != after.library or before.library == "python":
            continue
        dtype = before.type.dtype
        if name == _COPIES[before.library] and not call.args:
            if not _fresh(facts, inner, before):
                continue
            what = f"the value that is copied by {name} was just computed, and nobody else holds it"
        elif name in _NAMED and not call.args or name in ("to", "type", "astype") and len(call.args) == 1 and call.args[0].keyword is None:
            if dtype is None or after.type.dtype != dtype or name in _NAMED and dtype.name != _NAMED[name] or not _of_type(facts, call, name):
                continue
            if before.library == "numpy" and (not dtype.is_float or not _fresh(facts, inner, before)) or before.library == "torch" and not _converted(facts, inner, dtype):
                continue
            what = f"the value is {dtype.numpy} already, and {name}() " + ("copies it once more" if before.library == "numpy" else "does nothing")
        else:
            continue
        yield RULE.finding(what, span, flow.evidence((before.op, f"has type {before.type}")), _fix(facts, call, span))


def _of_type(facts: FileFacts, call: cst.Call, name: str) -> bool:
    """The one argument is an element type that is written there: not a device, nor another tensor's type, which may change."""
    if name in _NAMED:
        return True
    text = facts.module.code(call.args[0].value)
    return re.fullmatch(r"(?:torch|np|numpy)\.\w+|(?:float|int|bool)|[\"'](?:float|int|uint|bool)\d*[\"']", text) is not None


def _converted(facts: FileFacts, inner: cst.BaseExpression, dtype) -> bool:
    """The conversion stands in this very expression once before. Elsewhere it may guard against what other callers give, and costs nothing."""
    words = [name for name, of in _NAMED.items() if of == dtype.name]
    return re.search(rf"\.(?:{'|'.join(words)})\(\)|\b{dtype.numpy}\b", facts.module.code(inner)) is not None


def _fresh(facts: FileFacts, inner: cst.BaseExpression, value) -> bool:
    """It was computed in this very expression, into memory of its own."""
    if value.view or value.op.name in ("input", "parameter", "opaque", "reshape", "transpose", "broadcast", "slice", "cast"):
        return isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute) and inner.func.attr.value == _COPIES[value.library]
    return isinstance(inner, _COMPUTED)


def _fix(facts: FileFacts, call: cst.Call, span: Span) -> Fix | None:
    """The text from the dot on is taken away."""
    at = facts.module.span(call.func.attr)
    if facts.source.text[facts.source.index.offset(at.line, at.column) - 1] != ".":
        return None
    return Fix("safe", f"Leave {call.func.attr.value}() out", (Edit(Span(span.path, at.line, at.column - 1, span.end_line, span.end_column), ""),))


RULE = Rule("CUV805", "redundant-copy", kind="inefficient-construction", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
