"""A causal mask that starts at the first key while queries are the last of them.

What: `is_causal=True`, or a `tril()` without an offset, where there are more keys than queries: a cache of past keys is joined to the
new ones.
Why: the triangle is laid at the top left: query i sees keys 0..i. With a cache the queries are the last positions, so they see the oldest
keys and not themselves; with one query, only the first key of all.
Example: `k = torch.cat([past_k, k], dim=2)` and then `F.scaled_dot_product_attention(q, k, v, is_causal=True)`
Instead: no mask for a single query; else `torch.ones(Tq, Tk, dtype=torch.bool).tril(Tk - Tq)`, or `causal_lower_right(Tq, Tk)` as the mask
Fix: unsafe: for one query `is_causal=False`, for a triangle the offset. The result changes, which is the point.

Silent when both lengths are equal or may be, when the triangle has an offset, and when queries were joined as keys were.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix
from cuvil.ir.dims import at_least
from cuvil.source import Edit

from ..syntax import nodes
from . import flow
from .bindings import bound_before, dotted_text
from .recorded import calls, node_of
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts
    from cuvil.ir.dims import Dim
    from cuvil.ir.function import Function, Op
    from cuvil.source import Span

_START = "import torch\nimport torch.nn.functional as F\n\n"
_CACHE = _START + "def step(q, k, v, past_k, past_v):\n    k = torch.cat([past_k, k], dim=2)\n    v = torch.cat([past_v, v], dim=2)\n"
_ONE = _START + "def step(cache: torch.Tensor):\n    B, H, S, D = cache.shape\n    q = torch.ones(2, 4, 1, 8)\n    k = torch.ones(2, 4, 7, 8)\n"
VALID = (
    _START + "def prefill(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v, is_causal=True)\n",
    _CACHE + "    return F.scaled_dot_product_attention(q, k, v)\n",
    _CACHE + "    return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] == k.shape[2])\n",
    # Queries joined as keys are: both have the same length.
    _START + "def joint(q, k, v, pq, pk):\n    q = torch.cat([pq, q], dim=2)\n    k = torch.cat([pk, k], dim=2)\n    return F.scaled_dot_product_attention(q, k, k, is_causal=True)\n",
    # Two halves of a batch.
    _START + "def both(q, k, a, b):\n    k = torch.cat([a, b], dim=0)\n    return F.scaled_dot_product_attention(q, k, k, is_causal=True)\n",
    _START + "def mask(T: int, P: int):\n    return torch.ones(T, T + P).tril(P)\n",
    _START + "def mask(scores: torch.Tensor):\n    B, T, S = scores.shape\n    keep = torch.ones(T, T, dtype=torch.bool).tril()\n    return scores.masked_fill(~keep, -1e9)\n",
)
INVALID = (
    Invalid(_CACHE + "    return F.scaled_dot_product_attention(q, k, v, »is_causal=True«)\n", "cache"),
    Invalid(_START + "class Cache:\n    def attend(self, q, k, v):\n        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)\n"
            "        return F.scaled_dot_product_attention(q, self.k, v, »is_causal=True«)\n", "more keys than queries"),
    Invalid(_START + "def bias(q_len, k_len):\n    \"\"\"keys include the cache\"\"\"\n    return »torch.full((q_len, k_len), float(\"-inf\")).triu(1)«\n", "k_len - q_len"),
    Invalid(_ONE + "    return F.scaled_dot_product_attention(q, k, k, »is_causal=True«)\n", "1 query",
            _ONE + "    return F.scaled_dot_product_attention(q, k, k, is_causal=False)\n"),
    Invalid(_START + "def attend(q: torch.Tensor, k: torch.Tensor, past: torch.Tensor):\n    B, T, D = q.shape\n    _, P, _ = past.shape\n"
            "    k = torch.cat([past, q], dim=1)\n    scores = q @ k.transpose(1, 2)\n    keep = »torch.ones(T, P + T, dtype=torch.bool).tril()«\n"
            "    return scores.masked_fill(~keep, -1e9).softmax(-1)\n", "T queries",
            _START + "def attend(q: torch.Tensor, k: torch.Tensor, past: torch.Tensor):\n    B, T, D = q.shape\n    _, P, _ = past.shape\n"
            "    k = torch.cat([past, q], dim=1)\n    scores = q @ k.transpose(1, 2)\n    keep = torch.ones(T, P + T, dtype=torch.bool).tril(P)\n"
            "    return scores.masked_fill(~keep, -1e9).softmax(-1)\n"),
)

_TRIANGLES, _CACHED = re.compile(r"\btri[lu]\("), re.compile(r"cache|past", re.IGNORECASE)
_QUERIES = re.compile(r"(?:^|[_.])(?:q|tq|query|queries|new|cur|tgt)(?:_?(?:len|length|size|tokens))?$|q_len|query_len", re.IGNORECASE)
_KEYS = re.compile(r"(?:^|[_.])(?:k|kv|tk|s|total|key|keys|src|all)(?:_?(?:len|length|size|tokens|seq_len))?$|k_len|kv_len|key_len|past|cache", re.IGNORECASE)
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_JOINS = re.compile(r"\btorch\.(?:cat|concat|concatenate)\($")
_GROWS = re.compile(r"\b\w*(?:cache|past)\w*(?:\[[^\]]*\])?\.(?:update|append|extend)\($")


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    for call in calls(facts):
        if call.name == _ATTENTION and _is_true(call):
            yield from _flagged(facts, call.span, *(_length(call.argument(place, name)) for place, name in ((0, "query"), (1, "key"))))
    for function, op in flow.ops(facts, "attention"):                  # later rounds of a loop are only in the graph
        q, k = (flow.operand(function, op, place).type.shape for place in (0, 1))
        if op.attr("causal") and q is not None and k is not None:
            yield from _flagged(facts, op.origins[0].span, q[-2], k[-2], op.origins[0].callers)
    yield from _rectangles(facts)
    for function, op in flow.ops(facts, "tril", "triu"):
        shape = op.type.shape
        if shape is None or len(shape) < 2 or op.attr("diagonal") != (0 if op.name == "tril" else 1) or not _more(shape[-2], shape[-1]):
            continue
        if isinstance(shape[-2], int) and isinstance(shape[-1], int) and not _masks(function, op):
            continue
        where = op.origins[0].span
        yield RULE.finding(f"a causal triangle of {shape[-2]} queries and {shape[-1]} keys without an offset: the last queries do not see themselves; "
                           f"the offset is {shape[-1] - shape[-2]}", where, (), _offset(facts, where, op.name, shape[-1] - shape[-2]))


def _rectangles(facts: FileFacts) -> Iterator[Diagnostic]:
    """`torch.ones(q_len, k_len).tril()` in code that speaks of a cache: by the text, where no size is known."""
    for call in nodes(facts, _TRIANGLES, cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("tril", "triu") or not _CACHED.search(facts.module.owner(call).text):
            continue
        of_torch = isinstance(call.func.value, cst.Name) and call.func.value.value in ("torch", "np")
        made, rest = (call.args[0].value, call.args[1:]) if of_torch and call.args else (call.func.value, call.args)
        diagonal = facts.module.code(rest[0].value) if rest else "0"
        if not isinstance(made, cst.Call) or len(rest) > 1 or diagonal != ("0" if call.func.attr.value == "tril" else "1"):
            continue
        sizes = [arg.value for arg in made.args if arg.keyword is None]
        sizes = [e.value for e in sizes[0].elements] if sizes and isinstance(sizes[0], (cst.Tuple, cst.List)) else sizes
        names = [facts.module.code(size) for size in sizes[:2]]
        if len(names) == 2 and _QUERIES.search(names[0]) and _KEYS.search(names[1]) and names[0] != names[1]:
            yield RULE.finding(f"a causal triangle of {names[0]} queries and {names[1]} keys without an offset: with a cache the last queries do not see themselves; "
                               f"the offset is {names[1]} - {names[0]}", facts.module.span(call))


def _is_true(call: CallFact) -> bool:
    from cuvil.frontends.python.values import Scalar
    return call.argument(5, "is_causal") == Scalar(True)


def _masks(function: Function, op: Op) -> bool:
    return any(user.name in ("select", "attention") for user, _ in flow.uses(function, op, flow.LAYOUT | {"eq", "ne", "not", "and", "slice"}))


def _flagged(facts: FileFacts, place: Span, queries: Dim | None, keys: Dim | None, callers: tuple[Span, ...] = ()) -> Iterator[Diagnostic]:
    node = node_of(facts, place, cst.Call)
    if node is None:
        return
    flag = next((a for a in node.args if a.keyword is not None and a.keyword.value == "is_causal"), node.args[5] if len(node.args) > 5 else None)
    if flag is None or not isinstance(flag.value, cst.Name):
        return
    where = facts.module.span(flag)
    if queries is not None and keys is not None and (_more(queries, keys) or isinstance(queries, int) and isinstance(keys, int) and queries != keys):
        one = "1 query" if queries == 1 else f"{queries} queries"
        fix = Fix("unsafe", "No mask: one query may see every key", (Edit(facts.module.span(flag.value), "False"),)) if queries == 1 else None
        chain = tuple(Evidence(span, "called here") for span in callers)
        yield RULE.finding(f"is_causal with {one} and {keys} keys: the mask starts at the first key, so the newest keys, which a cache joined, are not seen",
                           where, chain, fix)
    elif queries is None or keys is None or not isinstance(queries, int) or not isinstance(keys, int):
        grown = _grown(facts, _argument(node, 1, "key"), node)
        if grown is not None and (queries is None or queries != keys) and _grown(facts, _argument(node, 0, "query"), node) is None:
            yield RULE.finding("is_causal with more keys than queries: a cache of past keys is joined to the new ones, and the mask starts at the oldest of "
                               "them. Align it at the last key (tril with the length of the cache), or leave it out for one query",
                               where, (Evidence(grown, "keys are joined here"),))


def _more(queries: Dim, keys: Dim) -> bool:
    """There are more keys than queries for all sizes."""
    return queries != keys and at_least(keys - queries, 1)


def _length(value: object) -> Dim | None:
    from cuvil.frontends.python.values import Tensor
    shape = value.type.shape if isinstance(value, Tensor) else None
    return shape[-2] if shape is not None and len(shape) >= 2 else None


def _argument(node: cst.Call, place: int, name: str) -> cst.BaseExpression | None:
    named = next((a.value for a in node.args if a.keyword is not None and a.keyword.value == name), None)
    return named if named is not None else node.args[place].value if len(node.args) > place and node.args[place].keyword is None else None


def _grown(facts: FileFacts, node: cst.BaseExpression | None, use: cst.Call) -> Span | None:
    """Where the keys are joined to older ones, along an axis that may be time."""
    for _ in range(8):
        if node is None:
            return None
        for call in _calls(node):
            if _JOINS.search(dotted_text(facts, call.func) + "(") and _along_time(call) or _GROWS.search(facts.module.code(call.func) + "("):
                return facts.module.span(call)
        name = dotted_text(facts, node)
        if not name and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value                                     # k.transpose(1, 2)
            continue
        node = bound_before(facts, use, name) if name else None
    return None


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    """A call, those on either way of a condition, and the first of a chain of methods."""
    todo = [node]
    while todo:
        match todo.pop():
            case cst.Call(func=func) as call:
                yield call
                if isinstance(func, cst.Attribute):
                    todo.append(func.value)
            case cst.IfExp(body=body, orelse=orelse):
                todo += orelse, body


def _along_time(call: cst.Call) -> bool:
    parts = call.args[0].value if call.args else None
    dim = next((a.value for a in call.args[1:] if a.keyword is None or a.keyword.value in ("dim", "axis")), None)
    number = {"1": 1, "2": 2}.get(dim.value) if isinstance(dim, cst.Integer) else dim.expression.value if isinstance(dim, cst.UnaryOperation) and isinstance(
        dim.expression, cst.Integer) else None
    return isinstance(parts, (cst.List, cst.Tuple)) and len(parts.elements) >= 2 and number in (1, 2, "2", "3")


def _offset(facts: FileFacts, span: Span, name: str, offset: Dim) -> Fix | None:
    """The offset as the argument of a `tril()`, where its size is a number or one name."""
    call = node_of(facts, span, cst.Call)
    if name != "tril" or call is None or call.args or not str(offset).isidentifier() and not isinstance(offset, int):
        return None
    text = facts.source.slice(span)
    return Fix("unsafe", f"Move the triangle by the length of the cache: {offset}", (Edit(span, f"{text[:-1]}{offset})"),))


RULE = Rule("CUV605", "causal-misaligned", kind="causal-misaligned", severity="error", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
