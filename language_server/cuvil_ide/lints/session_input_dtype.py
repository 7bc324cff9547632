"""An ONNX session fed with another element type than its graph declares.

What: `session.run` is given an array of another element type than the graph's input has. What the input has is known where the code says so
(`tensor(float)` in a comment or docstring), where the same file exports the model, and where another run of the session feeds it otherwise.
Why: ONNX Runtime casts nothing: it raises InvalidArgument, "Unexpected input data type". NumPy computes in float64 by default, and
`np.asarray(rows, dtype=float)`, a list of floats, `np.random.rand` or pixels divided by 255.0 are float64.
Example: `session.run(None, {name: np.asarray(rows, dtype=float)})` for an input of tensor(float)
Instead: `session.run(None, {name: np.asarray(rows, dtype=np.float32)})`
Fix: unsafe: `.astype(...)` on the array that is fed; the words about the model are taken as true.

Silent where nothing tells what the model takes, and where the element type of the array is not known.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ir.types import DType
from cuvil.source import Edit, Span

from . import flow
from .bindings import bound_before
from .recorded import calls, node_of, tensors
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.frontends.python.values import Tensor

_START = "import numpy as np\nimport onnxruntime as ort\nimport torch\n\n"
_STATED = _START + 'def f(session: ort.InferenceSession, rows: list):\n    """the graph input is declared as tensor(float)"""\n'
_EXPORTED = (_START + 'def f(net: torch.nn.Module, rows: list):\n    net.eval()\n    torch.onnx.export(net, (torch.zeros(1, 4),), "net.onnx", input_names=["x"], dynamic_axes={"x": {0: "n"}})\n'
             '    session = ort.InferenceSession("net.onnx")\n')
VALID = (
    _STATED + "    return session.run(None, {'x': np.asarray(rows, dtype=np.float32)})\n",
    _STATED + "    x = np.asarray(rows, dtype=float)\n    return session.run(None, {'x': x.astype(np.float32)})\n",
    # nothing says what the model takes
    _START + "def f(session: ort.InferenceSession, rows: list):\n    return session.run(None, {'x': np.asarray(rows, dtype=float)})\n",
    # ids are another input than the floats that are declared
    _STATED + "    return session.run(None, {'ids': np.asarray(rows, dtype=np.int64)})\n",
    # the code asks the session
    _STATED + "    wanted = np.float32 if session.get_inputs()[0].type == 'tensor(float)' else np.float64\n    return session.run(None, {'x': np.asarray(rows, dtype=wanted)})\n",
    _EXPORTED + "    return session.run(None, {'x': np.asarray(rows, dtype=np.float32)})\n",
    # another file's model
    _EXPORTED.replace('Session("net.onnx")', 'Session("other.onnx")') + "    return session.run(None, {'x': np.asarray(rows, dtype=float)})\n",
    # the words are of the argument, which is converted
    _START + 'def f(session: ort.InferenceSession, rows: np.ndarray):\n    """input: float64 rows of the table"""\n    return session.run(None, {"x": rows.astype(np.float32)})\n',
)
INVALID = (
    Invalid(_STATED + "    x = np.asarray(rows, dtype=float)\n    feed = {session.get_inputs()[0].name: x}\n    return »session.run(None, feed)«[0]\n", "float64",
            _STATED + "    x = np.asarray(rows, dtype=float)\n    feed = {session.get_inputs()[0].name: x.astype(np.float32)}\n    return session.run(None, feed)[0]\n"),
    Invalid(_EXPORTED + "    return »session.run(None, {'x': np.asarray(rows, dtype=float)})«\n", "float32",
            _EXPORTED + "    return session.run(None, {'x': np.asarray(rows, dtype=float).astype(np.float32)})\n"),
    # What a warm-up feeds tells what the model takes.
    Invalid(_START + "class Scorer:\n    def __init__(self, path: str):\n        self.session = ort.InferenceSession(path)\n"
            "        self.session.run(None, {'x': np.zeros((1, 4), np.float32)})\n\n"
            "    def __call__(self):\n        return »self.session.run(None, {'x': np.random.rand(1, 4)})«\n", "float64",
            _START + "class Scorer:\n    def __init__(self, path: str):\n        self.session = ort.InferenceSession(path)\n"
            "        self.session.run(None, {'x': np.zeros((1, 4), np.float32)})\n\n"
            "    def __call__(self):\n        return self.session.run(None, {'x': np.random.rand(1, 4).astype(np.float32)})\n"),
    Invalid(_START + '# the model takes input_ids as int64\nSESSION = ort.InferenceSession("lm.onnx")\n\ndef f(rows: list):\n'
            "    ids = np.asarray(rows, dtype=np.int32)\n    return »SESSION.run(None, {'input_ids': ids})«\n", "int32",
            _START + '# the model takes input_ids as int64\nSESSION = ort.InferenceSession("lm.onnx")\n\ndef f(rows: list):\n'
            "    ids = np.asarray(rows, dtype=np.int32)\n    return SESSION.run(None, {'input_ids': ids.astype(np.int64)})\n"),
)

_ONNX = {"float": DType.F32, "double": DType.F64, "float16": DType.F16, "int64": DType.I64, "int32": DType.I32, "int16": DType.I16, "int8": DType.I8,
         "uint8": DType.U8, "bool": DType.BOOL}
_WORDS = {**{d.numpy: d for d in DType}, "fp32": DType.F32, "f32": DType.F32, "fp16": DType.F16, "half": DType.F16, "fp64": DType.F64, "double": DType.F64,
          "single": DType.F32, "single precision": DType.F32, "double precision": DType.F64, "half precision": DType.F16}
_TYPE = "|".join(sorted(_WORDS, key=len, reverse=True))
_SPELLED = re.compile(r"tensor\((\w+)\)")
_SUBJECT = r"(?:model|graph|session|network|net|onnx|export|engine|runtime|input)"
_SAID = re.compile(rf"\b{_SUBJECT}\w*\b[^.\n]{{0,40}}?\b(?:expects?|takes?|wants?|needs?|requires?|accepts?|declared?s?|is|are|was|were|in|as)\b[^.\n]{{0,30}}?\b({_TYPE})\b"
                   rf"|\b({_TYPE})\b[\s-]+(?:onnx\s+|graph\s+|model\s+)?(?:inputs?|graph|model|onnx|session)\b|\bexported\b[^.\n]{{0,30}}?\b({_TYPE})\b", re.IGNORECASE)
_PROSE = re.compile(r'#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.)*?\'\'\'')
_ASSERTED = re.compile(r"^\s*assert\b[^\n]*\.type\s*==[^\n]*", re.MULTILINE)
_WORKER = re.compile(r"\.run(?:_async)?\(")


@dataclass(frozen=True)
class _Declared:
    """What an input takes, and why that is known."""

    dtype: DType
    why: str
    where: Span


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if "InferenceSession" not in facts.source.text or not facts.module.mentions(_WORKER):
        return
    runs = [call for call in calls(facts) if call.name in ("onnxruntime.InferenceSession.run", "onnxruntime.InferenceSession.run_async")]
    exports = [call for call in calls(facts) if call.name == "torch.onnx.export"] if runs else []
    for call in runs:
        for key, array in _feed(call):
            declared = _exported(call, key, exports) or _stated(facts, call, array.type.dtype) or _fed_otherwise(facts, call, key, array, runs)
            if declared is None or declared.dtype == array.type.dtype:
                continue
            evidence = (Evidence(declared.where, declared.why), *flow.evidence((array.op, f"has type {array.type}")))
            yield RULE.finding(f"the session is fed {array.type.dtype.numpy} where its input takes {declared.dtype.numpy}: {declared.why}; "
                               f"ONNX Runtime casts nothing and raises; .astype(np.{declared.dtype.numpy}) before", call.span, evidence, _fix(facts, call, key, declared.dtype))


def _feed(call: CallFact) -> Iterator[tuple[object, Tensor]]:
    """(name or place of the input, array) of what a run is given."""
    from cuvil.frontends.python.values import Mapping
    feed = call.argument(2, "input_feed")
    for key, value in feed.items.items() if isinstance(feed, Mapping) else ():
        for array in tensors(value):
            if array.type.dtype is not None and array.library == "numpy":
                yield key, array


def _exported(call: CallFact, key: object, exports: list[CallFact]) -> _Declared | None:
    """The element type of the example with which this file exported the model that the session reads."""
    from cuvil.frontends.python.values import Instance, Scalar, Sequence, Unknown
    path = call.receiver.attributes.get("path") if isinstance(call.receiver, Instance) else None
    for export in exports if isinstance(path, Scalar) and path.value is not None or path is not None and not isinstance(path, Unknown) else ():
        if export.argument(2, "f") != path:
            continue
        given, names = export.argument(1, "args"), export.argument(99, "input_names")
        examples = list(given.items) if isinstance(given, Sequence) else [given]
        named = [each.value for each in names.items if isinstance(each, Scalar)] if isinstance(names, Sequence) else []
        at = named.index(key) if key in named else 0 if len(examples) == 1 else None
        found = next(tensors(examples[at]), None) if at is not None and at < len(examples) else None
        if found is not None and found.type.dtype is not None:
            return _Declared(found.type.dtype, f"it was exported with an example of {found.type.dtype.numpy}", export.span)
    return None


def _stated(facts: FileFacts, call: CallFact, fed: DType) -> _Declared | None:
    """What comments and docstrings around the run say of the model, if they name one type of the kind that is fed."""
    text, elsewhere, here = facts.source.text, _elsewhere(facts, call.span), facts.module.definition_at(call.span.line)
    near: dict[DType, _Declared] = {}
    found: dict[DType, _Declared] = {}
    for said in (*_PROSE.finditer(text), *_ASSERTED.finditer(text)):
        line = facts.source.index.position(said.start())[0]
        if line in elsewhere:
            continue
        spelled = [(_ONNX.get(m[1]), m) for m in _SPELLED.finditer(text, said.start(), said.end())]
        for dtype, match in spelled or [(_WORDS[next(filter(None, m.groups())).lower()], m) for m in _SAID.finditer(text, said.start(), said.end())]:
            if dtype is not None and dtype.value[2] == fed.value[2]:
                of = near if here is not None and here.kind == "function" and here.first <= line <= here.last else found
                of.setdefault(dtype, _Declared(dtype, f'"{" ".join(match[0].split())}"', facts.source.span(*match.span())))
    found = near or found
    only = next(iter(found.values())) if len(found) == 1 else None
    # "input: float64" may be said of what the function is given, which is then converted.
    return only if only is None or only.dtype != DType.F64 or "tensor(" in only.why else None


def _elsewhere(facts: FileFacts, span: Span) -> set[int]:
    """The lines of functions that are neither the one of a place nor of its class."""
    here = facts.module.definition_at(span.line)
    return {line for each in facts.module.definitions if each.kind == "function" and each is not here and not (here is not None and each.owner and each.owner == here.owner)
            for line in range(each.first, each.last + 1)}


def _fed_otherwise(facts: FileFacts, call: CallFact, key: object, array: Tensor, runs: list[CallFact]) -> _Declared | None:
    """float32 that another run of the same session feeds to the same input."""
    mine = facts.source.slice(call.span).partition(".run")[0]
    for other in runs if array.type.dtype == DType.F64 else ():
        if other.span != call.span and facts.source.slice(other.span).partition(".run")[0] == mine:
            for name, fed in _feed(other):
                if name == key and fed.type.dtype == DType.F32:
                    return _Declared(DType.F32, "another run feeds it float32", other.span)
    return None


def _fix(facts: FileFacts, call: CallFact, key: object, dtype: DType) -> Fix | None:
    """.astype(...) on the value in the dict that is fed, where the dict stands in the function."""
    node = node_of(facts, call.span, cst.Call)
    given = next((a.value for i, a in enumerate(node.args) if a.keyword is not None and a.keyword.value == "input_feed" or a.keyword is None and i == 1), None) if node else None
    shown = bound_before(facts, node, given.value) if isinstance(given, cst.Name) else given
    if not isinstance(shown, cst.Dict):
        return None
    for element in shown.elements:
        named = isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString) and element.key.evaluated_value == key
        if named or isinstance(element, cst.DictElement) and len(shown.elements) == 1:
            where = facts.module.span(element.value)
            text = facts.source.slice(where)
            simple = isinstance(element.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
            numpy = "np" if re.search(r"^import numpy as np\b", facts.source.text, re.MULTILINE) else "numpy"
            return Fix("unsafe", f"Cast to {dtype.numpy}", (Edit(where, f"{text if simple else f'({text})'}.astype({numpy}.{dtype.numpy})"),))
    return None


RULE = Rule("CUV203", "session-input-dtype", kind="dtype-mismatch", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
