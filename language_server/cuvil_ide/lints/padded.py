"""Padded batches and what becomes of them, read from the text: tokenizers and models are often parameters, of which no type is known.

    flow = Padded(facts)
    flow.batch(expression)        # the call that made the padded batch that the expression is, or is a part of
    flow.states(expression)       # the call of a model whose states (or logits) it is, unchanged and not masked

A batch is padded by `tokenizer(texts, padding=True, return_tensors="pt")` (any callee: nothing else takes these two) or by
`pad_sequence(..., batch_first=True)`.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from ..syntax import nodes
from .bindings import bound, bound_before, dotted_text, function_of
from .polarity import polarity

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

WHERE = re.compile(r"\bmask\b|padding\s*=|pad_sequence|attention_mask|key_padding_mask|\bpad_token")
_SAME = frozenset("to cuda cpu float half double bfloat16 long int contiguous clone detach eval numpy dequeue requires_grad_ pin_memory items".split())
_STATES = frozenset(("last_hidden_state", "hidden_states", "logits", "encoder_last_hidden_state"))
_MASKS = frozenset(("attention_mask", "src_key_padding_mask", "key_padding_mask"))
_MASK_NAME = re.compile(r"(?:attention|attn_pad|padding|pad)_mask$")
_LEFT_LISTS, _RIGHT_LISTS = (re.compile(text) for text in (r"\]\s*\*\s*\([^()]*-\s*len\(\w+\)\)\s*\+", r"\+\s*\[[^\]]*\]\s*\*\s*\([^()]*-\s*len\("))
_LEFT_WORDS = re.compile(r"\bleft[- _]?padd?(?:ed|ing)?\b|\bpadd?ed on the left\b|padding_side\s*=\s*[\"']left", re.IGNORECASE)


@dataclass(frozen=True)
class Batch:
    """A padded batch. side: "left", "right" or "" when it is not said. single: it is made of one text."""

    call: cst.Call
    side: str = ""
    single: bool = False
    longest: bool = True
    axis: int = 1                            # of time


@dataclass(frozen=True)
class Reading:
    """A call of a model with a padded batch. masked: the mask goes in too. ids: the argument that is the batch's ids or all of it."""

    call: cst.Call
    batch: Batch | None
    masked: bool
    ids: cst.Arg | None = None


class Padded:
    def __init__(self, facts: FileFacts) -> None:
        self.facts = facts

    def calls(self, *names: str) -> Iterator[cst.Call]:
        for call in nodes(self.facts, WHERE, cst.Call):
            if not names or last(call.func) in names:
                yield call

    # --- batches --------------------------------------------------------------------------------------------------

    def batch(self, node: cst.BaseExpression | None, depth: int = 12) -> Batch | None:
        """The padded batch that an expression is, moved or not, or one of its tensors."""
        match node:
            case None:
                return None
            case cst.Call() if (made := self._made(node)) is not None:
                return made
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in _SAME:
                return self.batch(inner, depth - 1) if depth else None
            case cst.Attribute(value=inner, attr=cst.Name(value="input_ids" | "attention_mask" | "data")):
                return self.batch(inner, depth - 1) if depth else None
            case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]):
                return self.batch(inner, depth - 1) if depth else None
            case cst.Call(func=cst.Name(value="dict"), args=[cst.Arg(value=inner, keyword=None)]):
                return self.batch(inner, depth - 1) if depth else None
            case cst.DictComp(for_in=cst.CompFor(iter=inner)):
                return self.batch(inner, depth - 1) if depth else None
        return self.batch(self.bound(node), depth - 1) if depth else None

    def is_mask(self, node: cst.BaseExpression, depth: int = 8) -> bool:
        match node:
            case cst.Attribute(attr=cst.Name(value="attention_mask")) | cst.Name(value="attention_mask"):
                return True
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(value=text)))]):
                return "attention_mask" in text
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in _SAME:
                return depth > 0 and self.is_mask(inner, depth - 1)
        value = self.bound(node)
        return value is not None and depth > 0 and self.is_mask(value, depth - 1)

    def _made(self, call: cst.Call) -> Batch | None:
        given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        if last(call.func) in ("pad_sequence",) and _is(given.get("batch_first"), "True"):
            return Batch(call, "left" if _text(given.get("padding_side")) == "left" else "right")
        padding = given.get("padding")
        if "return_tensors" not in given or not (_is(padding, "True") or _text(padding) in ("longest", "max_length")):
            return None
        texts = call.args[0].value if call.args and call.args[0].keyword is None else given.get("text")
        single = isinstance(texts, (cst.SimpleString, cst.FormattedString)) or isinstance(texts, cst.List) and len(texts.elements) == 1
        home = call.func.value if last(call.func) in ("batch_encode_plus", "pad", "apply_chat_template") and isinstance(call.func, cst.Attribute) else call.func
        return Batch(call, _text(given.get("padding_side")) or self.side(home), single, _text(padding) != "max_length")

    def side(self, tokenizer: cst.BaseExpression) -> str:
        """What the file says of a tokenizer's padding side: where it is loaded, or set on it."""
        name, found = last(tokenizer), ""
        for node in nodes(self.facts, re.compile("padding_side"), cst.Assign):
            for target, value in bound(self.facts, node):
                if target.endswith(".padding_side") and target.removesuffix(".padding_side").rpartition(".")[2] == name and self._visible(node, tokenizer):
                    found = _text(value) or found
        for call in nodes(self.facts, re.compile("padding_side"), cst.Call):
            if last(call.func) == "from_pretrained" and name in self._bound_names(call) and self._visible(call, tokenizer):
                found = found or next((_text(a.value) for a in call.args if a.keyword is not None and a.keyword.value == "padding_side"), "")
        return found

    def loaded(self, tokenizer: cst.BaseExpression) -> cst.Call | None:
        """The `from_pretrained` of a tokenizer or model, where the file shows it."""
        name = last(tokenizer)
        return next((call for call in nodes(self.facts, re.compile("from_pretrained"), cst.Call)
                     if last(call.func) == "from_pretrained" and name in self._bound_names(call) and self._visible(call, tokenizer)), None)

    def _visible(self, place: cst.CSTNode, use: cst.BaseExpression) -> bool:
        """What a name is at a place holds where it is used: in one function, or from the module on, if it is no parameter."""
        if not isinstance(use, cst.Name):
            return True
        there, here = function_of(self.facts, place), function_of(self.facts, use)
        if there is here:
            return True
        return there is None and use.value not in {p.name.value for p in (*here.params.params, *here.params.kwonly_params, *here.params.posonly_params)}

    def _bound_names(self, call: cst.Call) -> set[str]:
        """The last words of the names that a call's result is bound to, maybe through `.to(device)`."""
        node = self.facts.module.parent(call)
        while isinstance(node, (cst.Attribute, cst.Call)):
            node = self.facts.module.parent(node)
        return {target.rpartition(".")[2] for target, _ in bound(self.facts, node)} if isinstance(node, (cst.Assign, cst.AnnAssign)) else set()

    # --- models ---------------------------------------------------------------------------------------------------

    def reading(self, call: cst.Call) -> Reading | None:
        """The call of a model (not of a tokenizer, not of a method of tensors) that reads a padded batch."""
        masked = any(arg.keyword is not None and arg.keyword.value in _MASKS and not _is(arg.value, "None") or arg.keyword is None and (
            isinstance(arg.value, cst.Name) and self._named_mask(arg.value)) for arg in call.args)
        name = last(call.func)
        if self._made(call) is not None or name in _SAME or name in ("dict", "len", "print", "range", "zip", "items", "decode", "batch_decode", "pack_padded_sequence"):
            return None
        for arg in call.args:
            if arg.star == "**" and (batch := self.batch(arg.value)) is not None:
                return Reading(call, batch, True, arg)
        for arg in call.args:
            if arg.star == "" and (arg.keyword is None or arg.keyword.value in ("input_ids", "inputs", "x")) and (batch := self.batch(arg.value)) is not None:
                positional = any(self.is_mask(other.value) for other in call.args if other is not arg and other.star == "")
                return Reading(call, batch, masked or positional, arg) if not self.is_mask(arg.value) else None
        return Reading(call, None, True) if masked and self._of_itself(call) else None

    def _named_mask(self, node: cst.Name) -> bool:
        if not node.value.endswith("mask"):
            return False
        mask = polarity(self.facts, node)
        return _MASK_NAME.search(node.value) is not None or mask is not None and mask.origin in ("pad", "length", "tokenizer")

    def _of_itself(self, call: cst.Call) -> bool:
        """Not a cross-attention, whose result has the queries' time axis: the mask is that of the first argument."""
        given = [self.facts.module.code(arg.value) for arg in call.args if arg.keyword is None or arg.keyword.value in ("query", "key")]
        given = [text for text in given if not text.endswith("mask")]
        return len(given) < 2 or given[0] == given[1]

    def states(self, node: cst.BaseExpression | None, depth: int = 12) -> Reading | None:
        """The call of a model that an expression is the states of: one row for each token, padding included."""
        match node:
            case None:
                return None
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if name in _STATES:
                return self.states(inner, depth - 1) if depth else None
            case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer() | cst.UnaryOperation() | cst.SimpleString()))]):
                return self.states(inner, depth - 1) if depth else None
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in _SAME:
                return self.states(inner, depth - 1) if depth else None
            case cst.Call():
                return self.reading(node) if last(node.func) != "generate" else None
        return self.states(self.bound(node), depth - 1) if depth else None

    def bound(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        name = dotted_text(self.facts, node) if isinstance(node, (cst.Name, cst.Attribute)) else ""
        return bound_before(self.facts, node, name) if name else None

    def left_by_word(self, node: cst.CSTNode) -> bool:
        """The definition around a place says that its batches are padded on the left, or the file pads lists so: [pad] * (n - len(s)) + s."""
        return _LEFT_WORDS.search(self.facts.module.owner(node).text) is not None or self.by_lists() == "left"

    def by_lists(self) -> str:
        """The side on which the file fills up lists of ids, if it does on one."""
        left, right = (pattern.search(self.facts.source.text) is not None for pattern in (_LEFT_LISTS, _RIGHT_LISTS))
        return "left" if left and not right else "right" if right and not left else ""


def last(node: cst.CSTNode | None) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""


def _is(node: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _text(node: cst.BaseExpression | None) -> str:
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else ""
