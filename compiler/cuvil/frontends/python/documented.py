"""Shapes that are written down for people: docstrings, comments beside parameters, and what transformers documents for all its models.

Such words are not proof: they serve what is shown (hover, hints, the share that is understood), and no finding rests on them.

    x: torch.Tensor,  # [B, T, C]
    hidden_states (`torch.FloatTensor` of shape `(batch_size, seq_len, hidden_size)`): ...
    x: input features with shape of (num_windows*B, N, C)
"""
from __future__ import annotations

import re

import libcst as cst

from ...ir.types import DType

_WORD = r"[\w.*+/\-]+(?: [\w.*+/\-]+)*"
_SIZES = rf"\(?[\[(]\s*({_WORD}(?:\s*,\s*{_WORD})*,?)\s*[\])]"
_DOCUMENTED = re.compile(rf"^\s*:?(?:param\s+)?`?(\w+)`?\s*(?:\([^)\n]*?\bof shape `?|\(?[^\n:]*?\)?:[^\n]*?\b(?:shape|shaped|size)\b[^\n(\[]{{0,40}}?|:\s*){_SIZES}", re.MULTILINE)
_COMMENT = re.compile(rf"^\s*(?:def \w+\(\s*(?:self\s*,\s*)?)?(\w+)\s*(?::[^,#\n]+)?(?:=[^,#\n]+)?,?\s*\)?[^#\n]*#\s*(?:shape:?\s*)?{_SIZES}", re.MULTILINE)

# Of every model of transformers, by its `auto_docstring`: the number of axes, and the element type where it is one of integers.
MODELS = {"input_ids": (2, DType.I64), "attention_mask": (2, None), "position_ids": (2, DType.I64), "token_type_ids": (2, DType.I64), "inputs_embeds": (3, None),
          "pixel_values": (4, None), "encoder_hidden_states": (3, None), "encoder_attention_mask": (2, None), "decoder_input_ids": (2, DType.I64),
          "decoder_attention_mask": (2, None), "decoder_inputs_embeds": (3, None), "pixel_mask": (3, None), "bool_masked_pos": (2, DType.BOOL),
          "input_features": (3, None), "input_values": (2, None), "pixel_values_videos": (5, None), "labels": (None, DType.I64)}

# Words for activations, which have the type of the weights they meet. No type is known of other words.
ACTIVATIONS = frozenset(("x", "hidden_states", "inputs_embeds", "pixel_values", "query", "key", "value", "image", "images", "features", "sample", "latents",
                         "encoder_hidden_states", "decoder_inputs_embeds", "pixel_values_videos", "input_features", "input_values", "residual", "hidden_state",
                         "image_embeds", "temb", "emb", "feat", "tokens", "feature_map", "feature_maps", "query_states", "key_states", "value_states"))


def documented(node: cst.FunctionDef, text: str) -> dict[str, tuple[int | None, DType | None]]:
    """Parameter -> (number of axes, element type) as the function's text says it. Two that disagree say nothing."""
    found: dict[str, tuple[int | None, DType | None]] = {}
    names = {parameter.name.value for parameter in (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)}
    if any("auto_docstring" in _decorator(decorator) or "add_start_docstrings" in _decorator(decorator) for decorator in node.decorators):
        found = {name: MODELS[name] for name in names & MODELS.keys()}
    head = text[:6000]
    seen: dict[str, int | None] = {}
    for pattern in (_DOCUMENTED, _COMMENT):
        for match in pattern.finditer(head):
            name, sizes = match[1], [size for size in match[2].split(",") if size.strip()]
            if name in names and "..." not in match[2] and (len(sizes) > 1 or "," in match[2]):
                rank = len(sizes)
                seen[name] = rank if seen.get(name, rank) == rank else None
    for name, rank in seen.items():
        found[name] = rank, found.get(name, (None, None))[1]
    for name in names & ACTIVATIONS:
        rank, dtype = found.get(name, (None, None))
        found[name] = rank, dtype or DType.F32
    return found


def _decorator(decorator: cst.Decorator) -> str:
    node = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
    return node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
