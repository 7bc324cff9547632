"""Functions of transformers whose bodies choose among kernels, caches and masks: what all choices give is said here instead.

They are known by their names wherever their text is read from: as a library, or as files of the workspace.
"""
from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ...ir.types import DType, TensorType
from . import classes, joins, modules, subscripts
from .partial import SOME_NUMBER, opaque
from .pythons import FUNCTIONS, python
from .values import NONE, Either, Instance, Library, Mapping, Scalar, Sequence, Tensor, Unknown, Untyped, UserClass, UserFunction, Value
from .walk import Walk

Rule = Callable[[Walk, list[Value], dict[str, Value], cst.CSTNode], "Value | None"]
MORE = "**"                                            # calls.py: keywords that are not known
ACTIVATION, LOSS = "transformers.activations.activation", "transformers.loss.loss_function"
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
    rule = KNOWN.get((function.module.path.rpartition("/")[2], function.name)) or ROPE.get(function.name.rpartition(".")[2])
    return rule(walk, args, keywords, node) if rule is not None and walk.facts_only else None


@hub("modeling_utils", "AttentionInterface.get_interface")
def attention_interface(walk: Walk, args, keywords, node) -> Value | None:
    """All attention functions take and give the same; the eager one, which is given as the default, can be read."""
    return keywords.get("default", args[2] if len(args) > 2 else None)


@hub("activations", "ClassInstantier.__getitem__", "get_activation")
def activation(walk: Walk, args, keywords, node) -> Value | None:
    """The activation of a name that is not known: each of them keeps shapes and types of floats."""
    return None if args and isinstance(args[-1], Scalar) else Library(ACTIVATION)


@python(ACTIVATION, "transformers.activations.ACT2FN")
def activated(walk: Walk, args, keywords, node) -> Value | None:
    x = joins.given(walk.resolve(args[0])) if args else None
    if not isinstance(x, Tensor):
        return None
    walk.refuse("an activation that is not known", node, "an activation that is known while compiling")
    dtype = x.type.dtype
    return opaque(walk, "activation", [x], TensorType(x.type.shape, dtype if dtype is not None and dtype.is_float else None), node)


@hub("import_utils", "is_torch_npu_available", "is_torch_mlu_available", "is_torch_musa_available", "is_torch_xla_available", "is_torch_hpu_available",
     "is_torch_tpu_available", "is_torch_neuronx_available")
def elsewhere(walk: Walk, args, keywords, node) -> Value | None:
    """Kernels of other machines give what torch's own give."""
    return Scalar(False)


@hub("modeling_utils", "ModuleUtilsMixin.dtype", "PreTrainedModel.dtype", "ModelMixin.dtype")
def dtype_of_weights(walk: Walk, args, keywords, node) -> Value | None:
    """The element type of a model's weights, when all have one."""
    dtype = modules.dtype_of_weights(args[0]) if args and isinstance(args[0], Instance) else None
    return Scalar(dtype) if dtype is not None else None


@hub("modeling_utils", "PreTrainedModel._from_config")
def from_config(walk: Walk, args, keywords, node) -> Value | None:
    """The model of a configuration, as its class makes it."""
    config = args[1] if len(args) > 1 else keywords.get("config")
    return classes.instantiate(walk, args[0], [config], {}, node) if args and isinstance(args[0], UserClass) and config is not None else None


@hub("attention_dispatch", "dispatch_attention_fn")
def dispatched_attention(walk: Walk, args, keywords, node) -> Value | None:
    """Each backend takes and gives [batch, positions, heads, channels]: the queries' places with the values' channels."""
    q, v = (joins.given(walk.resolve(each)) if each is not None else None
            for each in (keywords.get("query", args[0] if args else None), keywords.get("value", args[2] if len(args) > 2 else None)))
    if not isinstance(q, Tensor) or q.type.dtype is None and q.type.shape is None:
        return None
    channels = v.type.shape[-1] if isinstance(v, Tensor) and v.type.shape else None
    shape = None if not q.type.shape else (*q.type.shape[:-1], channels if channels is not None else joins.open_size(walk))
    return opaque(walk, "dispatch_attention_fn", [each for each in (q, v) if isinstance(each, Tensor)], TensorType(shape, q.type.dtype), node)


@hub("modeling_utils", "PreTrainedModel.loss_function")
def loss_function(walk: Walk, args, keywords, node) -> Value | None:
    return Library(LOSS)


@python(LOSS)
def loss(walk: Walk, args, keywords, node) -> Value | None:
    """Of classes or tokens: one number. Losses of boxes take more and give more."""
    if len(args) > 3 or not keywords.keys() <= {"logits", "labels", "vocab_size", "pooled_logits", "config", "num_items_in_batch", MORE}:
        return None
    walk.refuse("a loss that is not known", node)
    given = [each for each in map(walk.resolve, (*args, *keywords.values())) if isinstance(each, Tensor)]
    return opaque(walk, "loss_function", given, TensorType((), DType.F32), node)


def frequencies(walk: Walk, args, keywords, node) -> Value | None:
    """The inverse frequencies of rotary positions, one for each pair of channels, and the number that scales their sines."""
    config = next((each for each in (keywords.get("config"), *args) if isinstance(each, (Instance, Untyped))), None)
    known = config.attributes.get("rope_parameters") if isinstance(config, Instance) else None
    if isinstance(known, Mapping) and isinstance(known.items.get("rope_theta"), Scalar):
        return None
    return Sequence((opaque(walk, "rope_parameters", [], TensorType((joins.open_size(walk),), DType.F32), node), Unknown(SOME_NUMBER)))


ROPE: dict[str, Rule] = {name: frequencies for name in (
    "compute_default_rope_parameters", "_compute_default_rope_parameters", "_compute_linear_scaling_rope_parameters", "_compute_dynamic_ntk_parameters",
    "_compute_yarn_parameters", "_compute_longrope_parameters", "_compute_llama3_parameters", "_compute_proportional_rope_parameters")}


@hub("generic", "ModelOutput.to_tuple")
@hub("outputs", "BaseOutput.to_tuple")
def fields(walk: Walk, args, keywords, node) -> Value | None:
    """The fields that are not None, in their order. One that may be None leaves the places of those after it open."""
    found: list[Value] = []
    for value in args[0].attributes.values() if args and isinstance(args[0], Instance) else ():
        value = walk.resolve(value)
        if isinstance(value, (Unknown, Untyped)) or isinstance(value, Either) and joins.given(value) is not value:
            return None
        if value != NONE:
            found.append(value)
    return Sequence(tuple(found)) if found else None


@hub("generic", "ModelOutput.__getitem__")
@hub("outputs", "BaseOutput.__getitem__")
def field(walk: Walk, args, keywords, node) -> Value | None:
    """A field by its name, or by its place among those that are not None. The first is always there."""
    if len(args) != 2 or not isinstance(args[0], Instance) or not isinstance(args[1], Scalar):
        return None
    given, at = args[0].attributes, args[1].value
    if isinstance(at, str):
        return joins.given(walk.resolve(given[at])) if at in given else None
    listed = fields(walk, args[:1], {}, node)
    if listed is None:
        first = next(iter(given.values()), None)
        return joins.given(walk.resolve(first)) if at == 0 and not isinstance(at, bool) and first is not None and first != NONE else None
    return subscripts.get(walk, listed, args[1], node) if isinstance(at, (int, slice)) else None


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
