"""An argument that is changed in place, and given back as if it were a result.

What: a public function writes into a tensor or array it was given (or a view of it) and returns the same memory, or a caller reads it later.
Why: the caller's tensor changes too. A second call on it, or any later use, works on values that were changed already.
Example: `x[..., 2] /= 33.0; return x`
Instead: `x = x.clone()` first, or an expression that makes a new tensor
Fix: unsafe: the argument is copied at the top of the function; its own tensor stays as it was.

Silent when the name of the function or of the argument says so (a trailing underscore, `out`, caches, buffers, `update`, `apply`), for
arguments that were copied or made anew, for functions that return nothing or something else, for private ones, and where every caller in the
file puts the result in the place of what it gave.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.source import Edit, Span

from .carried import inside
from .recorded import around, node_of, tensors
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts, WriteFact

_START = "import torch\n\n"
VALID = (
    _START + "def scaled(x: torch.Tensor):\n    x = x.clone()\n    x /= 33.0\n    return x\n",
    _START + "def scaled(x: torch.Tensor):\n    return x / 33.0\n",
    _START + "def scale_(x: torch.Tensor):\n    x /= 33.0\n    return x\n",
    _START + "def scaled(x: torch.Tensor, out: torch.Tensor):\n    out.copy_(x)\n    return out\n",
    _START + "def block(x: torch.Tensor, w: torch.Tensor):\n    h = x @ w\n    h.add_(1.0)\n    return h\n",
    _START + "def append(k: torch.Tensor, cache: torch.Tensor):\n    cache[:, -1] = k\n    return cache\n",
    # no caller looks at it again
    _START + "def energy(x: torch.Tensor):\n    x.mul_(x)\n    return x.sum()\n\ndef main():\n    x = torch.ones(3)\n    return energy(x)\n",
    _START + "def energy(x: torch.Tensor):\n    x.mul_(x)\n    return x.sum()\n\ndef main(n: int):\n    x = torch.ones(3)\n    y = energy(x)\n    x = y * 2\n    return x\n",
    _START + "def energy(x: torch.Tensor):\n    x.mul_(x)\n    return x.sum()\n\ndef main():\n    x = torch.ones(3)\n    x = energy(x)\n    return x\n",
    # every caller puts the result in the place of what it gave
    _START + "class Tiles:\n    def blend(self, a: torch.Tensor, b: torch.Tensor, n: int):\n        for y in range(n):\n            b[:, :, y, :] = a[:, :, y - n, :]\n"
    "        return b\n\n    def join(self, rows: list):\n        tile = rows[1]\n        tile = self.blend(rows[0], tile, 4)\n        return tile\n",
    # it returns nothing, so nobody takes it for a pure function
    _START + "def fill(x: torch.Tensor):\n    x[0] = 1.0\n",
    _START + "def _scaled(x: torch.Tensor):\n    x /= 33.0\n    return x\n",
)
INVALID = (
    Invalid(_START + "def scaled(x: torch.Tensor):\n    »x[..., 2] /= 33.0«\n    return x\n", "in place",
            _START + "def scaled(x: torch.Tensor):\n    x = x.clone()\n    x[..., 2] /= 33.0\n    return x\n"),
    Invalid(_START + "def scaled(x: torch.Tensor):\n    »x.mul_(2.0)«\n    return x\n", "caller",
            _START + "def scaled(x: torch.Tensor):\n    x = x.clone()\n    x.mul_(2.0)\n    return x\n"),
    Invalid(_START + "def energy(x: torch.Tensor):\n    »x.mul_(x)«\n    return x.sum()\n\ndef main():\n    x = torch.ones(3)\n    return energy(x), x\n", "read later",
            _START + "def energy(x: torch.Tensor):\n    x = x.clone()\n    x.mul_(x)\n    return x.sum()\n\ndef main():\n    x = torch.ones(3)\n    return energy(x), x\n"),
    Invalid(_START + "def scaled(x: torch.Tensor):\n    »x.mul_(2.0)«\n    return x\n\ndef main(x: torch.Tensor):\n    y = scaled(x)\n    return y\n", "caller",
            _START + "def scaled(x: torch.Tensor):\n    x = x.clone()\n    x.mul_(2.0)\n    return x\n\ndef main(x: torch.Tensor):\n    y = scaled(x)\n    return y\n"),
    Invalid("import numpy as np\n\ndef scaled(img):\n    »img[..., 0]« -= 104.0\n    return img\n", "array",
            "import numpy as np\n\ndef scaled(img):\n    img = img.copy()\n    img[..., 0] -= 104.0\n    return img\n"),
    Invalid("import numpy as np\n\ndef scaled(x: np.ndarray):\n    »x *= 2.0«\n    return x\n", "in place",
            "import numpy as np\n\ndef scaled(x: np.ndarray):\n    x = x.copy()\n    x *= 2.0\n    return x\n"),
)

SAYS_SO = re.compile(r"_$|in_?place|update|fill|assign|init|reset|set_|^set|apply|write|insert|append|push|store|put|scatter|zero|clip_grad|shuffle|swap|"
                      r"copy_to|copy_into|mutate|modif|step$|patch|freeze|load|register|hook", re.IGNORECASE)
MEANT = re.compile(r"^out|out$|output|cache|buffer|state|dest|dst|grad|memory|pool|storage|accum|total|running|_$|result|workspace|scratch|param|weight", re.IGNORECASE)
_OF_ARRAYS = r"(?:shape\b|mean\(|std\(|sum\(|size\(|dim\(|view\(|reshape\(|permute\(|transpose\(|unsqueeze\(|clamp\(|norm\(|astype\(|float\()"
_VIEWS = frozenset("view view_as transpose permute unsqueeze squeeze swapaxes unflatten expand movedim".split())


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for function in facts.functions:
        plain = function.name.rpartition(".")[2]
        if not function.writes or plain.startswith("_") or SAYS_SO.search(plain):
            continue
        given = {t.storage: name for name, value in function.parameters if not MEANT.search(name) for t in tensors(value)}
        back = _returned(facts, function)
        values = [function.result, *(value for name, value in function.parameters if name in back)]
        values += [a.value for a in function.assigns if a.name in back and not a.context.callers]
        returned = {t.storage for value in values for t in tensors(value)}
        seen: set[Span] = set()
        for write in function.writes:
            if write.context.callers or write.span.path != facts.source.path or write.span in seen:
                continue
            seen.add(write.span)
            name = next((given[t.storage] for t in tensors(write.target)
                         if t.storage in given and t.storage in returned and "shared" not in t.marks), None) or _array(facts, function, write, back)
            if name is not None and not _rebound(facts, function, name, write) and not _given_up(facts, function, name):
                yield _finding(facts, function, write, name)
            elif name is None and _gives_value(function):
                name = next((given[t.storage] for t in tensors(write.target) if t.storage in given and "shared" not in t.marks), None)
                read = _read_by_caller(facts, function, name) if name is not None and not _rebound(facts, function, name, write) else None
                if read is not None:
                    yield _finding(facts, function, write, name, read)


def _gives_value(function: FunctionFacts) -> bool:
    """It returns something, so a caller may take it for a pure function."""
    from cuvil.frontends.python.values import Scalar
    return function.result is not None and not (isinstance(function.result, Scalar) and function.result.value is None)


def _read_by_caller(facts: FileFacts, function: FunctionFacts, name: str) -> Evidence | None:
    """Where a caller in the file reads, after the call, the variable that it gave for the parameter."""
    place = [parameter for parameter, _ in function.parameters].index(name)
    for caller in facts.functions:
        definition = facts.module.by_name.get(caller.name) if caller is not function else None
        if definition is None or not isinstance(definition.node, cst.FunctionDef):
            continue
        for call in caller.calls:
            if call.name != function.name or call.context.callers or call.span.path != facts.source.path:
                continue
            node = node_of(facts, call.span, cst.Call)
            given = next((a.value for i, a in enumerate(node.args) if (a.keyword.value == name if a.keyword is not None else i == place)), None) if node else None
            if isinstance(given, cst.Name) and not any(a.star for a in node.args) and not _takes_result(facts, node, given.value):
                read = _next_use(facts, definition.node, given.value, call.span)
                if read is not None:
                    return Evidence(read, f"`{given.value}` is read here after the call")
    return None


def _takes_result(facts: FileFacts, call: cst.Call, name: str) -> bool:
    """`x = f(x)`: the name means the result from then on."""
    above = around(facts, call, cst.BaseSmallStatement)
    return isinstance(above, cst.Assign) and any(re.search(rf"\b{re.escape(name)}\b", facts.module.code(t.target)) for t in above.targets)


def _given_up(facts: FileFacts, function: FunctionFacts, name: str) -> bool:
    """Every call in the file puts the result in the place of what it gave: `tile = blend(row, tile)`."""
    plain, place = function.name.rpartition(".")[2], [parameter for parameter, _ in function.parameters].index(name)
    found = False
    for definition in facts.module.definitions:
        if definition.kind != "function" or definition.name == function.name or f"{plain}(" not in definition.text:
            continue
        for node in inside(facts, definition.node, cst.Call) if isinstance(definition.node, cst.FunctionDef) else ():
            if isinstance(node.func, (cst.Name, cst.Attribute)) and (node.func.value if isinstance(node.func, cst.Name) else node.func.attr.value) == plain:
                given = next((a.value for i, a in enumerate(node.args) if (a.keyword.value == name if a.keyword is not None else i == place)), None)
                if given is None or not _takes_result(facts, node, facts.module.code(given)):
                    return False
                found = True
    return found


def _next_use(facts: FileFacts, function: cst.FunctionDef, name: str, call: Span) -> Span | None:
    """The next use of a name after a call, None when it is bound anew first (`x = f(x)` is)."""
    for node in inside(facts, function, cst.Name):
        span = facts.module.span(node)
        if node.value == name and (span.line, span.column) > (call.end_line, call.end_column):
            above = facts.module.parent(node)
            return None if isinstance(above, (cst.AssignTarget, cst.For)) else span
    return None


def _array(facts: FileFacts, function: FunctionFacts, write: WriteFact, back: set[str]) -> str | None:
    """A parameter of no known type that only an array can be: it is indexed with `...` or by several axes, or asked for what arrays have."""
    from cuvil.frontends.python.values import Untyped
    name = write.name
    if not isinstance(dict(function.parameters).get(name), Untyped) or name not in back or MEANT.search(name):
        return None
    if re.match(rf"{re.escape(name)}\s*\[\s*(?:\.\.\.|:)\s*,", facts.source.slice(write.span)):
        return name
    plain = write.operation.endswith("=") and write.operation != "[]="
    return name if plain and re.search(rf"\b{re.escape(name)}\.{_OF_ARRAYS}", facts.source.slice(function.span)) else None


def _returned(facts: FileFacts, function: FunctionFacts) -> set[str]:
    """Names that a `return` gives back as they are, or a view of."""
    definition = facts.module.by_name.get(function.name)
    if definition is None or not isinstance(definition.node, cst.FunctionDef):
        return set()
    values = [r.value for r in inside(facts, definition.node, cst.Return)]
    values += [e.value for v in values if isinstance(v, cst.Tuple) for e in v.elements]
    return {name for name in map(_base, values) if name}


def _base(value: cst.BaseExpression | None) -> str:
    """`x` of `x`, `x.view_as(y)` and `x[None]`."""
    while True:
        match value:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method in _VIEWS:
                value = inner
            case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None")))]):
                value = inner
            case cst.Name(value=name):
                return name
            case _:
                return ""


def _rebound(facts: FileFacts, function: FunctionFacts, name: str, write: WriteFact) -> bool:
    """Whether the name was given something else before, if only on one way through the code. `x += y` gives it itself."""
    before = (write.span.line, write.span.column)
    return any(a.name == name and not a.context.callers and (a.span.line, a.span.column) < before and not _augmented(facts, a.span) for a in function.assigns)


def _augmented(facts: FileFacts, span: Span) -> bool:
    node = facts.module.node_at(span.line, span.column)
    while node is not None and not isinstance(node, cst.BaseSmallStatement):
        node = facts.module.parent(node)
    return isinstance(node, cst.AugAssign)


def _finding(facts: FileFacts, function: FunctionFacts, write: WriteFact, name: str, read: Evidence | None = None) -> Diagnostic:
    target = next(iter(tensors(write.target)), None)
    library = target.library if target is not None else "numpy" if "import torch" not in facts.source.text else ""
    where = f"a view of `{name}`" if target is not None and target.view and write.name != name else f"`{name}`"
    declared = next((o.span for o in target.op.origins if o.node == "Param"), function.header) if target is not None else function.header
    return RULE.finding(f"this changes {where} in place, so the caller's {'array' if library == 'numpy' else 'tensor'} changes "
                        f"{'with what is returned' if read is None else 'and is read later'}; clone it first", write.span,
                        (Evidence(declared, "is the caller's"), *((read,) if read is not None else ())), _fix(facts, function, name, library) if library else None)


def _fix(facts: FileFacts, function: FunctionFacts, name: str, library: str) -> Fix | None:
    """A copy as the first statement of the body, after its docstring."""
    definition = facts.module.by_name.get(function.name)
    node = definition.node if definition is not None else None
    if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
        return None
    first = next((s for s in node.body.body if not _is_docstring(s)), None)
    if first is None:
        return None
    at = facts.module.span(first)
    place = Span(at.path, at.line, 0, at.line, 0)
    return Fix("unsafe", f"Copy {name} first", (Edit(place, f"{' ' * at.column}{name} = {name}.{'copy' if library == 'numpy' else 'clone'}()\n"),))


def _is_docstring(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Expr) \
        and isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))


RULE = Rule("CUV709", "argument-mutated", kind="aliasing-mutation", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID, needs="file")
