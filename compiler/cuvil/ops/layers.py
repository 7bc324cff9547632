"""torch.nn layers: which parameters a constructor call makes, and what `forward` computes from them.

Layers are captured in inference mode: dropout passes its input on, batch norm uses its running statistics. Containers
(Sequential, ModuleList, ModuleDict) and Parameter are the front end's.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ir.dims import exact_quotient, proved_different
from ..ir.function import Op
from ..ir.types import DType, TensorType
from . import activations, attention, conv, indexing, joining, linear, losses, nn, normalization, pooling, recurrent, resample, rules, shape, softmax
from .builder import Builder
from .definition import TypeRuleError, unsupported


@dataclass(frozen=True)
class Layer:
    """A layer class of torch.nn.

    constructor  takes the arguments of the class, with its names and defaults; checks them
    parameters   (constructor's arguments by name) -> name of each parameter and buffer in the state dict -> its type
    forward      (builder, parameters by name, constructor's arguments by name, *arguments of the call) -> value
    typed        it is understood and not compiled: forward always raises `unsupported` with the types it would give
    """

    name: str
    constructor: Callable[..., None]
    parameters: Callable[..., dict[str, TensorType]]
    forward: Callable[..., Any]
    typed: bool = False

    def arguments(self, args, keywords) -> dict[str, Any]:
        """A constructor call's arguments by name, defaults filled in; TypeRuleError when they do not bind."""
        try:
            bound = inspect.signature(self.constructor).bind(*args, **keywords)
        except TypeError as error:
            raise unsupported(f"{self.name}: {error}", f"{self.name}{inspect.signature(self.constructor)}") from None
        bound.apply_defaults()
        return dict(bound.arguments)


@dataclass(frozen=True)
class MadeLayer:
    """A layer that is an argument of another: TransformerEncoder(layer, 6)."""

    layer: Layer
    constructor: dict[str, Any]

    @property
    def parameters(self) -> dict[str, TensorType]:
        return self.layer.parameters(**self.constructor)


LAYERS: dict[str, Layer] = {}


def layer(name: str, constructor: Callable[..., None], forward: Callable[..., Any], parameters: Callable[..., dict[str, TensorType]] | None = None,
          typed: bool = False) -> None:
    LAYERS[f"torch.nn.{name}"] = Layer(f"torch.nn.{name}", constructor, parameters or (lambda **ctor: {}), forward, typed)


def _types(ctor, **shapes) -> dict[str, TensorType]:
    """Parameters of the constructor's dtype; a shape of None is a parameter that is not there."""
    return {name: TensorType(tuple(s), ctor.get("dtype") or DType.F32) for name, s in shapes.items() if s is not None}


# --- weights --------------------------------------------------------------------------------------------------------

layer("Linear", lambda in_features, out_features, bias=True, device=None, dtype=None: None,
      lambda b, p, ctor, input: linear.linear(b, input, p["weight"], p.get("bias")),
      lambda **c: _types(c, weight=(c["out_features"], c["in_features"]), bias=(c["out_features"],) if c["bias"] else None))

layer("Embedding", lambda num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False,
      device=None, dtype=None: None,
      lambda b, p, ctor, input: indexing.embedding(b, input, p["weight"], max_norm=ctor["max_norm"]),
      lambda **c: _types(c, weight=(c["num_embeddings"], c["embedding_dim"])))


def _kernel(value, rank: int) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank


def _conv_parameters(rank: int):
    def parameters(**c):
        channels = exact_quotient(c["in_channels"], c["groups"])
        if channels is None:
            raise TypeRuleError(f"Conv with {c['in_channels']} input channels in {c['groups']} groups",
                                "a number of groups that divides the channels", "argument")
        return _types(c, weight=(c["out_channels"], channels, *_kernel(c["kernel_size"], rank)), bias=(c["out_channels"],) if c["bias"] else None)
    return parameters


def _conv_forward(function):
    def forward(b, p, ctor, input):
        if ctor["padding_mode"] != "zeros":
            raise unsupported(f"convolution with padding_mode {ctor['padding_mode']!r}", "'zeros'")
        return function(b, input, p["weight"], p.get("bias"), ctor["stride"], ctor["padding"], ctor["dilation"], ctor["groups"])
    return forward


for _rank, _function in ((1, conv.conv1d), (2, conv.conv2d)):
    layer(f"Conv{_rank}d", lambda in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
          device=None, dtype=None: None, _conv_forward(_function), _conv_parameters(_rank))


def _transposed_parameters(rank: int):
    def parameters(**c):
        channels = exact_quotient(c["out_channels"], c["groups"])
        if channels is None:
            raise TypeRuleError(f"ConvTranspose with {c['out_channels']} output channels in {c['groups']} groups",
                                "a number of groups that divides the channels", "argument")
        return _types(c, weight=(c["in_channels"], channels, *_kernel(c["kernel_size"], rank)), bias=(c["out_channels"],) if c["bias"] else None)
    return parameters


def _transposed_forward(function):
    return lambda b, p, ctor, input: function(b, input, p["weight"], p.get("bias"), ctor["stride"], ctor["padding"], ctor["output_padding"],
                                              ctor["groups"], ctor["dilation"])


for _rank, _function in ((1, conv.conv_transpose1d), (2, conv.conv_transpose2d)):
    layer(f"ConvTranspose{_rank}d", lambda in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
          padding_mode="zeros", device=None, dtype=None: None, _transposed_forward(_function), _transposed_parameters(_rank))

layer("PReLU", lambda num_parameters=1, init=0.25, device=None, dtype=None: None, lambda b, p, ctor, input: activations.prelu(b, input, p["weight"]),
      lambda **c: _types(c, weight=(c["num_parameters"],)))


def _cell_parameters(gates: int):
    return lambda **c: _types(c, weight_ih=(gates * c["hidden_size"], c["input_size"]), weight_hh=(gates * c["hidden_size"], c["hidden_size"]),
                              bias_ih=(gates * c["hidden_size"],) if c["bias"] else None, bias_hh=(gates * c["hidden_size"],) if c["bias"] else None)


def _cell(function):
    return lambda b, p, ctor, input, hx=None: function(b, input, hx, p["weight_ih"], p["weight_hh"], p.get("bias_ih"), p.get("bias_hh"))


for _name, _gates, _function in (("GRUCell", 3, recurrent.gru_cell), ("LSTMCell", 4, recurrent.lstm_cell)):
    layer(_name, lambda input_size, hidden_size, bias=True, device=None, dtype=None: None, _cell(_function), _cell_parameters(_gates))


# --- normalisations -------------------------------------------------------------------------------------------------

def _trailing(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


layer("LayerNorm", lambda normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None: None,
      lambda b, p, ctor, input: normalization.layer_norm(b, input, _trailing(ctor["normalized_shape"]), p.get("weight"), p.get("bias"), ctor["eps"]),
      lambda **c: _types(c, weight=_trailing(c["normalized_shape"]) if c["elementwise_affine"] else None,
                         bias=_trailing(c["normalized_shape"]) if c["elementwise_affine"] and c["bias"] else None))
layer("RMSNorm", lambda normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None: None,
      lambda b, p, ctor, input: normalization.rms_norm(b, input, _trailing(ctor["normalized_shape"]), p.get("weight"), ctor["eps"]),
      lambda **c: _types(c, weight=_trailing(c["normalized_shape"]) if c["elementwise_affine"] else None))
layer("GroupNorm", lambda num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None: None,
      lambda b, p, ctor, input: normalization.group_norm(b, input, ctor["num_groups"], p.get("weight"), p.get("bias"), ctor["eps"]),
      lambda **c: _types(c, weight=(c["num_channels"],) if c["affine"] else None, bias=(c["num_channels"],) if c["affine"] else None))


def _batch_norm_forward(ranks: tuple[int, ...], name: str):
    def forward(b, p, ctor, input):
        if input.type.rank is not None and input.type.rank not in ranks:
            raise TypeRuleError(f"{name} of {input.type}", f"an input of {' or '.join(map(str, ranks))} axes")
        return normalization.batch_norm(b, input, p.get("running_mean"), p.get("running_var"), p.get("weight"), p.get("bias"), eps=ctor["eps"])
    return forward


for _name, _ranks in (("BatchNorm1d", (2, 3)), ("BatchNorm2d", (4,)), ("BatchNorm3d", (5,)), ("SyncBatchNorm", (2, 3, 4, 5))):
    layer(_name, lambda num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None: None,
          _batch_norm_forward(_ranks, _name),
          lambda **c: _types(c, weight=(c["num_features"],) if c["affine"] else None, bias=(c["num_features"],) if c["affine"] else None,
                             running_mean=(c["num_features"],) if c["track_running_stats"] else None,
                             running_var=(c["num_features"],) if c["track_running_stats"] else None))


# --- without weights ------------------------------------------------------------------------------------------------

layer("Identity", lambda *args, **kwargs: None, lambda b, p, ctor, input: input)
for _name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"):
    layer(_name, lambda p=0.5, inplace=False: None, lambda b, p, ctor, input: input)
layer("ReLU", lambda inplace=False: None, lambda b, p, ctor, input: activations.relu(b, input))
layer("ReLU6", lambda inplace=False: None, lambda b, p, ctor, input: activations.relu6(b, input))
layer("SiLU", lambda inplace=False: None, lambda b, p, ctor, input: activations.silu(b, input))
layer("GELU", lambda approximate="none": None, lambda b, p, ctor, input: activations.gelu(b, input, ctor["approximate"]))
layer("ELU", lambda alpha=1.0, inplace=False: None, lambda b, p, ctor, input: activations.elu(b, input, ctor["alpha"]))
layer("LeakyReLU", lambda negative_slope=0.01, inplace=False: None, lambda b, p, ctor, input: activations.leaky_relu(b, input, ctor["negative_slope"]))
layer("Softplus", lambda beta=1.0, threshold=20.0: None, lambda b, p, ctor, input: activations.softplus(b, input, ctor["beta"], ctor["threshold"]))
layer("Mish", lambda inplace=False: None, lambda b, p, ctor, input: b.emit("mish", input))
layer("Hardswish", lambda inplace=False: None, lambda b, p, ctor, input: b.emit("hardswish", input))
layer("Hardsigmoid", lambda inplace=False: None, lambda b, p, ctor, input: b.emit("hardsigmoid", input))
layer("LogSigmoid", lambda: None, lambda b, p, ctor, input: b.emit("logsigmoid", input))
layer("Sigmoid", lambda: None, lambda b, p, ctor, input: activations.sigmoid(b, input))
layer("Tanh", lambda: None, lambda b, p, ctor, input: b.emit("tanh", input))
layer("Softmax", lambda dim=None: None, lambda b, p, ctor, input: softmax.functional_softmax(b, input, ctor["dim"]))
layer("LogSoftmax", lambda dim=None: None, lambda b, p, ctor, input: softmax.functional_log_softmax(b, input, ctor["dim"]))
layer("Hardtanh", lambda min_val=-1.0, max_val=1.0, inplace=False: None,
      lambda b, p, ctor, input: activations.hardtanh(b, input, ctor["min_val"], ctor["max_val"]))
layer("GLU", lambda dim=-1: None, lambda b, p, ctor, input: activations.glu(b, input, ctor["dim"]))
layer("Flatten", lambda start_dim=1, end_dim=-1: None, lambda b, p, ctor, input: shape.flatten(b, input, ctor["start_dim"], ctor["end_dim"]))
layer("Unflatten", lambda dim, unflattened_size: None, lambda b, p, ctor, input: shape.unflatten(b, input, ctor["dim"], ctor["unflattened_size"]))
for _name, _function in (("MaxPool1d", pooling.max_pool1d), ("MaxPool2d", pooling.max_pool2d)):
    layer(_name, lambda kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False: None,
          lambda b, p, ctor, input, *, _function=_function: _function(b, input, **ctor))
layer("AvgPool2d", lambda kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None: None,
      lambda b, p, ctor, input: pooling.avg_pool2d(b, input, **ctor))
layer("AvgPool1d", lambda kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True: None,
      lambda b, p, ctor, input: pooling.avg_pool1d(b, input, **ctor))
layer("AdaptiveAvgPool2d", lambda output_size: None, lambda b, p, ctor, input: pooling.adaptive_avg_pool2d(b, input, ctor["output_size"]))
layer("SELU", lambda inplace=False: None, lambda b, p, ctor, input: activations.selu(b, input))
layer("Softsign", lambda: None, lambda b, p, ctor, input: activations.softsign(b, input))
layer("Tanhshrink", lambda: None, lambda b, p, ctor, input: activations.tanhshrink(b, input))
layer("Threshold", lambda threshold, value, inplace=False: None, lambda b, p, ctor, input: activations.threshold(b, input, ctor["threshold"], ctor["value"]))
layer("Softmin", lambda dim=None: None, lambda b, p, ctor, input: softmax.softmin(b, input, ctor["dim"]))
layer("Softmax2d", lambda: None, lambda b, p, ctor, input: softmax.functional_softmax(b, input, -3))
layer("PixelShuffle", lambda upscale_factor: None, lambda b, p, ctor, input: nn.pixel_shuffle(b, input, ctor["upscale_factor"]))
layer("CosineSimilarity", lambda dim=1, eps=1e-08: None, lambda b, p, ctor, x1, x2: nn.cosine_similarity(b, x1, x2, ctor["dim"], ctor["eps"]))
layer("Upsample", lambda size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None: None,
      lambda b, p, ctor, input: resample.interpolate(b, input, **ctor))
for _name, _mode in (("UpsamplingNearest2d", {"mode": "nearest"}), ("UpsamplingBilinear2d", {"mode": "bilinear", "align_corners": True})):
    layer(_name, lambda size=None, scale_factor=None: None,
          lambda b, p, ctor, input, *, _mode=_mode: resample.interpolate(b, input, ctor["size"], ctor["scale_factor"], **_mode))


def _padding_layer(rank: int, mode: str):
    return lambda b, p, ctor, input: joining.pad(
        b, input, (ctor["padding"],) * 2 * rank if isinstance(ctor["padding"], int) else ctor["padding"], mode, ctor.get("value"))


for _rank in (1, 2, 3):
    layer(f"ZeroPad{_rank}d", lambda padding: None, _padding_layer(_rank, "constant"))
    layer(f"ConstantPad{_rank}d", lambda padding, value: None, _padding_layer(_rank, "constant"))
    for _name, _mode in (("Reflection", "reflect"), ("Replication", "replicate"), ("Circular", "circular")):
        layer(f"{_name}Pad{_rank}d", lambda padding: None, _padding_layer(_rank, _mode), typed=True)


# --- losses ---------------------------------------------------------------------------------------------------------

def _loss(function):
    return lambda b, p, ctor, input, target: function(b, input, target, **ctor)


layer("MSELoss", lambda size_average=None, reduce=None, reduction="mean": None, _loss(losses.mse_loss))
layer("L1Loss", lambda size_average=None, reduce=None, reduction="mean": None, _loss(losses.l1_loss))
layer("SmoothL1Loss", lambda size_average=None, reduce=None, reduction="mean", beta=1.0: None, _loss(losses.smooth_l1_loss))
layer("KLDivLoss", lambda size_average=None, reduce=None, reduction="mean", log_target=False: None, _loss(losses.kl_div))
layer("BCEWithLogitsLoss", lambda weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None: None,
      _loss(losses.binary_cross_entropy_with_logits))
layer("NLLLoss", lambda weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean": None, _loss(losses.nll_loss))
layer("CrossEntropyLoss", lambda weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0: None,
      _loss(losses.cross_entropy))


# --- attention ------------------------------------------------------------------------------------------------------

def _mha_parameters(**c):
    e, bias = c["embed_dim"], c["bias"]
    if isinstance(e, int) and isinstance(c["num_heads"], int) and e % c["num_heads"]:
        raise TypeRuleError(f"MultiheadAttention of {e} features in {c['num_heads']} heads", "a number of heads that divides the features", "argument")
    apart = (c["kdim"] or e) != e or (c["vdim"] or e) != e
    projections = dict(q_proj_weight=(e, e), k_proj_weight=(e, c["kdim"] or e), v_proj_weight=(e, c["vdim"] or e)) if apart else {"in_proj_weight": (3 * e, e)}
    added = dict(bias_k=(1, 1, e), bias_v=(1, 1, e)) if c["add_bias_kv"] else {}
    return {**_types(c, **projections, in_proj_bias=(3 * e,) if bias else None, **added),
            "out_proj.weight": TensorType((e, e), c["dtype"] or DType.F32),
            **({"out_proj.bias": TensorType((e,), c["dtype"] or DType.F32)} if bias else {})}


def _mha(b: Builder, p, ctor, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
    """Compiled only without weights: (output, None). A True in a bool mask hides a key (the opposite of scaled_dot_product_attention)."""
    types = _mha_types(ctor, query, key, value, key_padding_mask, attn_mask, need_weights, average_attn_weights)
    if need_weights:
        raise unsupported("MultiheadAttention with need_weights=True", "need_weights=False", types)
    if ctor["add_zero_attn"] or query.type.rank != 3 or "in_proj_weight" not in p or ctor["add_bias_kv"]:
        raise unsupported("MultiheadAttention with add_zero_attn, kdim, vdim or add_bias_kv, or of one sequence without a batch axis", "", types)
    if not ctor["batch_first"]:
        query, key, value = (shape.transpose(b, x, 0, 1) for x in (query, key, value))
    e, heads = ctor["embed_dim"], ctor["num_heads"]
    parts = []
    for n, x in enumerate((query, key, value)):
        weight = indexing.window(b, p["in_proj_weight"], {0: (n * e, e, 1)})
        bias = indexing.window(b, p["in_proj_bias"], {0: (n * e, e, 1)}) if "in_proj_bias" in p else None
        projected = linear.linear(b, x, weight, bias)
        batch, length, _ = projected.type.shape
        parts.append(shape.transpose(b, shape.reshaped(b, projected, (batch, length, heads, e // heads)), 1, 2))
    mask = _shown(b, attn_mask, 4)
    if key_padding_mask is not None:
        padding = shape.reshaped(b, key_padding_mask, (key_padding_mask.type.shape[0], 1, 1, key_padding_mask.type.shape[1]))
        padding = _shown(b, padding, 4)
        if mask is not None and mask.type.dtype != padding.type.dtype:
            raise unsupported("MultiheadAttention with masks of two element types")
        mask = padding if mask is None else b.emit("and" if mask.type.dtype == DType.BOOL else "add", mask, padding)
    elif is_causal and attn_mask is None:
        raise TypeRuleError("MultiheadAttention with is_causal and no attn_mask", "attn_mask as well", "argument")
    result = attention.scaled_dot_product_attention(b, *parts, attn_mask=mask)
    batch, _, length, _ = result.type.shape
    merged = shape.reshaped(b, shape.transpose(b, result, 1, 2), (batch, length, e))
    output = linear.linear(b, merged, p["out_proj.weight"], p.get("out_proj.bias"))
    return (output if ctor["batch_first"] else shape.transpose(b, output, 0, 1)), None


def _mha_types(ctor, query, key, value, key_padding_mask, attn_mask, need_weights, average) -> tuple[TensorType, TensorType | None]:
    """(output, weights) of sequences (length, batch, features), or with batch_first (batch, length, features)."""
    e, said = ctor["embed_dim"], f"MultiheadAttention of {query.type}, {key.type} and {value.type}"
    shapes = [rules.shape_of(x) for x in (query, key, value)]
    if any(len(s) != len(shapes[0]) or len(s) not in (2, 3) for s in shapes):
        raise TypeRuleError(said, "queries, keys and values of 3 axes, or of 2 without a batch")
    for s, wanted, what in zip(shapes, (e, ctor["kdim"] or e, ctor["vdim"] or e), ("embed_dim", "kdim", "vdim")):
        if proved_different(s[-1], wanted):
            raise TypeRuleError(f"{said}: the last axis has {s[-1]} features, {what} is {wanted}", f"a last axis of {wanted}")
    if None not in (query.type.dtype, key.type.dtype) and query.type.dtype != key.type.dtype:
        raise TypeRuleError(f"{said}: the element types differ", "operands of one element type", "dtype-mismatch")
    batch_at, length_at = (0, 1) if ctor["batch_first"] else (1, 0)
    if len(shapes[0]) == 2:
        length_at, batch = 0, ()
    else:
        batch = (shapes[0][batch_at],)
        for s in shapes[1:]:
            if proved_different(s[batch_at], batch[0]):
                raise TypeRuleError(f"{said}: the batches have sizes {batch[0]} and {s[batch_at]} on axis {batch_at}",
                                    "one batch size; batch_first=True when the batch comes first")
    target, source = shapes[0][length_at], shapes[1][length_at]
    if proved_different(source, shapes[2][length_at]):
        raise TypeRuleError(f"{said}: {source} keys and {shapes[2][length_at]} values", "as many values as keys")
    for mask, wanted, what in ((key_padding_mask, (*batch, source), "key_padding_mask"), (attn_mask, (target, source), "attn_mask")):
        if mask is not None and mask.type.shape is not None and len(mask.type.shape) == len(wanted) and any(map(proved_different, mask.type.shape, wanted)):
            raise TypeRuleError(f"{said} with {what} {mask.type}", f"a mask of {TensorType(wanted, mask.type.dtype)}")
    seen = source + (1 if ctor["add_bias_kv"] else 0) + (1 if ctor["add_zero_attn"] else 0)
    heads = () if average else (ctor["num_heads"],)
    return query.type, TensorType((*batch, *heads, target, seen), query.type.dtype) if need_weights else None


def _shown(b: Builder, mask: Op | None, rank: int) -> Op | None:
    """A mask of what is hidden as one of what is seen; additive masks stay."""
    if mask is None:
        return None
    if mask.type.rank == 3:
        raise unsupported("MultiheadAttention with a mask for each head", "a mask (length, length)")
    return b.emit("not", mask) if mask.type.dtype == DType.BOOL else mask


layer("MultiheadAttention", lambda embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
      batch_first=False, device=None, dtype=None: None, _mha, _mha_parameters)
