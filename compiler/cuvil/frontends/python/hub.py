"""Functions of transformers whose bodies choose among kernels, caches and masks: what all choices give is said here instead.

They are known by their names wherever their text is read from: as a library, or as files of the workspace.
"""
from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ...ir.types import DType, TensorType
from . import joins
from .partial import opaque
from .pythons import FUNCTIONS
from .values import Scalar, Sequence, Tensor, UserFunction, Value
from .walk import Walk

Rule = Callable[[Walk, list[Value], dict[str, Value], cst.CSTNode], "Value | None"]
KNOWN: dict[tuple[str, str], Rule] = {}                # (file, qualified name) -> rule; the receiver is the first argument


def hub(file: str, *names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            KNOWN[f"{file}.py", name] = rule
            FUNCTIONS[f"transformers.{file}.{name}"] = rule
        return rule
    return register


def known(walk: Walk, function: UserFunction, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """What a function of the workspace gives, when it is one of these."""
    rule = KNOWN.get((function.module.path.rpartition("/")[2], function.name))
    return rule(walk, args, keywords, node) if rule is not None and walk.facts_only else None


@hub("modeling_utils", "AttentionInterface.get_interface")
def attention_interface(walk: Walk, args, keywords, node) -> Value | None:
    """All attention functions take and give the same; the eager one, which is given as the default, can be read."""
    return keywords.get("default", args[2] if len(args) > 2 else None)


@hub("masking_utils", "create_causal_mask", "create_sliding_window_causal_mask", "create_bidirectional_mask", "create_chunked_causal_mask",
     "create_bidirectional_sliding_window_mask")
def attention_mask(walk: Walk, args, keywords, node) -> Value | None:
    """None where nothing is left out, else [batch, 1 or heads, queries, keys]: additive, as the eager attention that is followed wants it."""
    embeds = keywords.get("inputs_embeds", keywords.get("input_embeds", args[1] if len(args) > 1 else None))
    like = joins.given(walk.resolve(embeds)) if embeds is not None else None
    shape = like.type.shape if isinstance(like, Tensor) else None
    sizes = (shape[0], 1, shape[1], joins.open_size(walk)) if shape is not None and len(shape) == 3 else tuple(joins.open_size(walk) for _ in range(4))
    made_of, dtype = ([like], like.type.dtype) if isinstance(like, Tensor) else ([], None)
    return joins.optional(opaque(walk, "attention_mask", made_of, TensorType(sizes, dtype), node))


@hub("modeling_attn_mask_utils", "_prepare_4d_causal_attention_mask", "_prepare_4d_attention_mask", "_prepare_4d_causal_attention_mask_for_sdpa",
     "_prepare_4d_attention_mask_for_sdpa")
def four_axes(walk: Walk, args, keywords, node) -> Value | None:
    sizes = tuple(joins.open_size(walk) for _ in range(4))
    return joins.optional(opaque(walk, "attention_mask", [], TensorType(sizes, None), node))


@hub("modeling_utils", "ModuleUtilsMixin.get_extended_attention_mask", "PreTrainedModel.get_extended_attention_mask", "ModuleUtilsMixin.invert_attention_mask",
     "PreTrainedModel.invert_attention_mask")
def extended_mask(walk: Walk, args, keywords, node) -> Value | None:
    return opaque(walk, "attention_mask", [], TensorType(tuple(joins.open_size(walk) for _ in range(4)), DType.F32), node)


@hub("cache_utils", "Cache.update", "DynamicCache.update", "StaticCache.update", "EncoderDecoderCache.update", "DynamicLayer.update")
def cache_update(walk: Walk, args, keywords, node) -> Value | None:
    """Keys and values with those kept before them: more positions, all else the same."""
    found = []
    for each in args[1:3]:
        each = joins.given(walk.resolve(each))
        if not isinstance(each, Tensor) or each.type.shape is None or len(each.type.shape) != 4:
            return None
        b, h, _, d = each.type.shape
        found.append(opaque(walk, "Cache.update", [each], TensorType((b, h, joins.open_size(walk), d), each.type.dtype), node))
    return Sequence(tuple(found)) if len(found) == 2 else None


@hub("cache_utils", "Cache.get_seq_length", "DynamicCache.get_seq_length", "StaticCache.get_seq_length", "EncoderDecoderCache.get_seq_length")
def positions(walk: Walk, args, keywords, node) -> Value | None:
    return Scalar(walk.fresh_symbol("past") - 1)           # symbols are at least 1, a length is at least 0
