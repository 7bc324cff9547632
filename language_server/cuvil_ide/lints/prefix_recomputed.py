"""Generation that runs the model over the whole sequence for each new token.

What: a loop gives a sequence to a model, appends the token that comes out to that sequence, and gives the whole of it to the model again.
Why: the keys and values of all earlier tokens are computed anew in each round: n tokens cost n*n/2 instead of n.
Example: `for _ in range(n): logits = model(ids); ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)`
Instead: `out = model(last, past_key_values=past, use_cache=True)`, where last is the newest token; or `model.generate(...)`
Fix: display: keep the keys and values, and feed the last token.

Silent where a cache goes along, where other positions than the last are read, where only the last tokens are fed, and where what is appended does not come from the model.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from ..syntax import last_name, nodes
from .carried import inside
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

_START = "import torch\n\n@torch.inference_mode()\ndef f(model, ids: torch.Tensor, n: int):\n"
_APPEND = "        ids = torch.cat([ids, token], dim=1)\n    return ids\n"
VALID = (
    _START + "    past, token = None, ids\n    for _ in range(n):\n        out = model(token, past_key_values=past, use_cache=True)\n        past = out.past_key_values\n"
    "        token = out.logits[:, -1:].argmax(-1)\n    return token\n",
    _START + "    for _ in range(2):\n        logits = model(ids)\n        token = logits[:, -1:].argmax(-1)\n    return token\n",
    _START + "    for _ in range(n):\n        ids = ids + model(ids)\n    return ids\n",
    _START + "    for _ in range(n):\n        token = model(ids).argmax(-1)\n" + _APPEND,
    _START + "    found = []\n    for part in ids:\n        found.append(model(part))\n    return found\n",
)
INVALID = (
    Invalid(_START + "    for _ in range(n):\n        logits = »model(ids)«\n        token = logits[:, -1:].argmax(-1)\n" + _APPEND, "past_key_values"),
    Invalid(_START + "    while ids.shape[1] < n:\n        token = »model(input_ids=ids)«.logits[:, -1].argmax(-1, keepdim=True)\n" + _APPEND, "anew"),
    Invalid("import torch\n\ndef f(model, ids: list, n: int):\n    for _ in range(n):\n        out = »model(torch.tensor([ids]))«\n        ids.append(int(out[0, -1].argmax()))\n    return ids\n", "ids"),
    Invalid("import torch\n\nclass Chat:\n    def run(self, source, n: int):\n        target = torch.zeros(1, 1).long()\n        for step in range(n):\n"
            "            p = »self.net(source, target)«[:, -1].softmax(-1)\n            best = torch.multinomial(p, 1)\n            target = torch.cat((target, best), dim=-1)\n"
            "            if best.item() == 2:\n                break\n        return target\n", "target"),
)

_WHERE = re.compile(r"\b(?:cat|concat|concatenate|hstack|append)\(")
_APPENDS = frozenset(("cat", "concat", "concatenate", "hstack"))
_CACHED = re.compile(r"past|cache|\bkv|state|mems\b|incremental", re.IGNORECASE)
_MODEL = re.compile(r"(?:\w*_)?(?:model|net|network|decoder|lm|gpt\d*|llm|transformer|seq2seq|bert|llama|mamba|rnn|self)", re.IGNORECASE)
_LAST = re.compile(r"\[(?:[^\[\]]*,)?\s*-1\s*:?\s*[,\]]")          # what the model gives for the last position is all that is read
_STEPS = frozenset(("forward", "decode", "decoder"))


def check(facts: FileFacts) -> Iterator[Diagnostic]:
    if "torch" not in facts.source.text:
        return
    for loop in nodes(facts, _WHERE, cst.For, cst.While, analysed=True):
        code = facts.module.code(loop)
        if _CACHED.search(code) or not _LAST.search(code):
            continue
        for assign in inside(facts, loop, cst.Assign, cst.Call):
            grown = _grown(assign) if isinstance(assign, cst.Assign) else _appended(assign)
            if grown is None:
                continue
            name, added = grown
            call = next((c for c in inside(facts, loop, cst.Call) if _fed(facts, c, name)), None)
            if call is not None and _comes_from(facts, loop, call, added):
                yield RULE.finding(f"each round gives the whole of {name} to the model again, so that all earlier tokens are computed anew; keep their keys and "
                                   f"values (past_key_values) and feed the last token", facts.module.span(call),
                                   (Evidence(facts.module.span(assign), "grows by one token in each round"),),
                                   Fix("display", "feed the last token and past_key_values"))


def _grown(assign: cst.Assign) -> tuple[str, cst.BaseExpression] | None:
    """(name, what is appended) of `ids = torch.cat([ids, token], ...)`."""
    match assign:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))],
                        value=cst.Call(func=function, args=[cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_])):
            if last_name(function) in _APPENDS and len(parts) == 2 and isinstance(parts[0].value, cst.Name) and parts[0].value.value == name:
                return name, parts[1].value
    return None


def _appended(call: cst.Call) -> tuple[str, cst.BaseExpression] | None:
    """The same of `ids.append(token)`."""
    match call:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="append")), args=[cst.Arg(value=added)]):
            return name, added
    return None


def _fed(facts: FileFacts, call: cst.Call, name: str) -> bool:
    """A call of a model that takes the whole sequence."""
    called = last_name(call.func)
    if called in _STEPS and isinstance(call.func, cst.Attribute):
        called = last_name(call.func.value)
    if not _MODEL.fullmatch(called):
        return False
    listed = re.compile(rf"\.(?:tensor|as_tensor|LongTensor|array|asarray)\(\s*\[?\s*{name}\s*[\],)]")
    whole = any(isinstance(arg.value, cst.Name) and arg.value.value == name or listed.search(facts.module.code(arg)) for arg in call.args)
    return whole


def _comes_from(facts: FileFacts, loop: cst.For | cst.While, call: cst.Call, added: cst.BaseExpression) -> bool:
    """What is appended is computed from the call, through names that the loop binds."""
    source, carriers = facts.module.span(call), set()
    mentions = lambda node: facts.module.span(node).encloses(source) or any(each.value in carriers for each in inside(facts, node, cst.Name))
    for assign in inside(facts, loop, cst.Assign):
        if mentions(assign.value):
            for target in assign.targets:
                carriers |= {each.value for each in inside(facts, target.target, cst.Name)}
    return mentions(added)


RULE = Rule("CUV808", "prefix-recomputed", kind="quadratic-growth", severity="performance", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
