"""Layers of torch.nn that are understood and not compiled: their parameters, and the types that their forward gives."""
from __future__ import annotations

from typing import Any

from ...ir.dims import exact_quotient, proved_different
from ...ir.types import DType, TensorType
from ..builder import Builder
from ..definition import TypeRuleError, unsupported
from ..layers import layer
from ..rules import shape_of
from . import functions, images, linalg, losses
from .images import each


def typed_layer(name: str, constructor, forward, parameters=None) -> None:
    """forward(b, parameters, constructor's arguments, *inputs) gives the type; functions of models raise it already."""
    def refuse(b: Builder, p, ctor, *inputs, **more):
        result = forward(b, p, ctor, *inputs, **more)
        raise unsupported(name, "", (result,) if isinstance(result, TensorType) else result)
    layer(name, constructor, refuse, parameters, typed=True)


def _of(ctor: dict[str, Any], **shapes) -> dict[str, TensorType]:
    return {name: TensorType(tuple(s), ctor.get("dtype") or DType.F32) for name, s in shapes.items() if s is not None}


# --- weights --------------------------------------------------------------------------------------------------------

def _grouped(what: str, channels, groups):
    inner = exact_quotient(channels, groups)
    if inner is None:
        raise TypeRuleError(f"{what} with {channels} channels in {groups} groups", "a number of groups that divides the channels", "argument")
    return inner


typed_layer("Conv3d", lambda in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros",
            device=None, dtype=None: None,
            lambda b, p, c, input: images.conv3d(b, input, p["weight"], p.get("bias"), c["stride"], c["padding"], c["dilation"], c["groups"]),
            lambda **c: _of(c, weight=(c["out_channels"], _grouped("Conv3d", c["in_channels"], c["groups"]), *each(c["kernel_size"], 3)),
                            bias=(c["out_channels"],) if c["bias"] else None))
typed_layer("ConvTranspose3d", lambda in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
            padding_mode="zeros", device=None, dtype=None: None,
            lambda b, p, c, input: images.conv_transpose3d(b, input, p["weight"], p.get("bias"), c["stride"], c["padding"], c["output_padding"], c["groups"],
                                                           c["dilation"]),
            lambda **c: _of(c, weight=(c["in_channels"], _grouped("ConvTranspose3d", c["out_channels"], c["groups"]), *each(c["kernel_size"], 3)),
                            bias=(c["out_channels"],) if c["bias"] else None))
typed_layer("Bilinear", lambda in1_features, in2_features, out_features, bias=True, device=None, dtype=None: None,
            lambda b, p, c, input1, input2: images.bilinear(b, input1, input2, p["weight"], p.get("bias")),
            lambda **c: _of(c, weight=(c["out_features"], c["in1_features"], c["in2_features"]), bias=(c["out_features"],) if c["bias"] else None))
typed_layer("EmbeddingBag", lambda num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
            include_last_offset=False, padding_idx=None, device=None, dtype=None: None,
            lambda b, p, c, input, offsets=None, per_sample_weights=None: images.embedding_bag(b, input, p["weight"], offsets,
                                                                                               include_last_offset=c["include_last_offset"]),
            lambda **c: _of(c, weight=(c["num_embeddings"], c["embedding_dim"])))


def _instance_norm(rank: int):
    def forward(b: Builder, p, c, input):
        if input.type.rank not in (None, rank + 1, rank + 2):
            raise TypeRuleError(f"InstanceNorm{rank}d of {input.type}", f"an input of {rank + 1} or {rank + 2} axes")
        own = shape_of(input)
        if proved_different(own[-rank - 1], c["num_features"]) and (c["affine"] or c["track_running_stats"]):
            raise TypeRuleError(f"InstanceNorm{rank}d of {input.type}: {own[-rank - 1]} channels, num_features is {c['num_features']}",
                                f"{c['num_features']} channels")
        return input.type
    return forward


for _rank in (1, 2, 3):
    typed_layer(f"InstanceNorm{_rank}d", lambda num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None: None,
                _instance_norm(_rank),
                lambda **c: _of(c, **{n: (c["num_features"],) if c["affine"] else None for n in ("weight", "bias")},
                                **{n: (c["num_features"],) if c["track_running_stats"] else None for n in ("running_mean", "running_var")}))


# --- pools, images --------------------------------------------------------------------------------------------------

typed_layer("MaxPool3d", lambda kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False: None,
            lambda b, p, c, input: images.max_pool3d(b, input, **c))
typed_layer("AvgPool3d", lambda kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None: None,
            lambda b, p, c, input: images.avg_pool3d(b, input, **c))
for _rank in (1, 3):
    typed_layer(f"AdaptiveAvgPool{_rank}d", lambda output_size: None,
                lambda b, p, c, input, *, _rank=_rank: images.adaptive(input, c["output_size"], f"AdaptiveAvgPool{_rank}d", _rank))
for _rank in (1, 2, 3):
    typed_layer(f"AdaptiveMaxPool{_rank}d", lambda output_size, return_indices=False: None,
                lambda b, p, c, input, *, _rank=_rank: _with_indices(images.adaptive(input, c["output_size"], f"AdaptiveMaxPool{_rank}d", _rank),
                                                                     c["return_indices"]))
    typed_layer(f"MaxUnpool{_rank}d", lambda kernel_size, stride=None, padding=0: None,
                lambda b, p, c, input, indices, output_size=None, *, _rank=_rank: images.unpooled(input, c["kernel_size"], c["stride"], c["padding"],
                                                                                                  output_size, _rank))
for _rank in (1, 2):
    typed_layer(f"LPPool{_rank}d", lambda norm_type, kernel_size, stride=None, ceil_mode=False: None,
                lambda b, p, c, input, *, _rank=_rank: TensorType(images.pooled(input, "LPPool", _rank, c["kernel_size"], c["stride"], 0, 1, c["ceil_mode"]),
                                                                  input.type.dtype))


def _with_indices(type: TensorType, asked: bool):
    return (type, TensorType(type.shape, DType.I64)) if asked else type


typed_layer("PixelUnshuffle", lambda downscale_factor: None, lambda b, p, c, input: images.pixel_unshuffle(b, input, **c))
typed_layer("ChannelShuffle", lambda groups: None, lambda b, p, c, input: images.channel_shuffle(b, input, **c))
typed_layer("Unfold", lambda kernel_size, dilation=1, padding=0, stride=1: None, lambda b, p, c, input: images.unfold(b, input, **c))
typed_layer("Fold", lambda output_size, kernel_size, dilation=1, padding=0, stride=1: None, lambda b, p, c, input: images.fold(b, input, **c))
typed_layer("LocalResponseNorm", lambda size, alpha=0.0001, beta=0.75, k=1.0: None, lambda b, p, c, input: images.local_response_norm(b, input, **c))
typed_layer("PairwiseDistance", lambda p=2.0, eps=1e-06, keepdim=False: None,
            lambda b, weights, c, x1, x2: linalg.pairwise_distance(b, x1, x2, **c))
typed_layer("CELU", lambda alpha=1.0, inplace=False: None, lambda b, p, c, input: functions.celu(b, input))
typed_layer("RReLU", lambda lower=0.125, upper=0.3333333333333333, inplace=False: None, lambda b, p, c, input: functions.rrelu(b, input))
typed_layer("Hardshrink", lambda lambd=0.5: None, lambda b, p, c, input: functions.hardshrink(b, input))
typed_layer("Softshrink", lambda lambd=0.5: None, lambda b, p, c, input: functions.hardshrink(b, input))


# --- losses ---------------------------------------------------------------------------------------------------------

def _loss(name: str, function, constructor) -> None:
    typed_layer(name, constructor, lambda b, p, c, *inputs: function(b, *inputs, **c))


_loss("BCELoss", losses.binary_cross_entropy, lambda weight=None, size_average=None, reduce=None, reduction="mean": None)
_loss("HuberLoss", losses.huber_loss, lambda reduction="mean", delta=1.0: None)
_loss("PoissonNLLLoss", losses.poisson_nll_loss,
      lambda log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction="mean": None)
_loss("GaussianNLLLoss", losses.gaussian_nll_loss, lambda *, full=False, eps=1e-06, reduction="mean": None)
_loss("SoftMarginLoss", losses.soft_margin_loss, lambda size_average=None, reduce=None, reduction="mean": None)
_loss("HingeEmbeddingLoss", losses.hinge_embedding_loss, lambda margin=1.0, size_average=None, reduce=None, reduction="mean": None)
_loss("MarginRankingLoss", losses.margin_ranking_loss, lambda margin=0.0, size_average=None, reduce=None, reduction="mean": None)
_loss("CosineEmbeddingLoss", losses.cosine_embedding_loss, lambda margin=0.0, size_average=None, reduce=None, reduction="mean": None)
_loss("TripletMarginLoss", losses.triplet_margin_loss,
      lambda margin=1.0, p=2.0, eps=1e-06, swap=False, size_average=None, reduce=None, reduction="mean": None)
_loss("MultiMarginLoss", losses.multi_margin_loss, lambda p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean": None)
_loss("MultiLabelMarginLoss", losses.multilabel_margin_loss, lambda size_average=None, reduce=None, reduction="mean": None)
_loss("MultiLabelSoftMarginLoss", losses.multilabel_soft_margin_loss, lambda weight=None, size_average=None, reduce=None, reduction="mean": None)
_loss("CTCLoss", losses.ctc_loss, lambda blank=0, reduction="mean", zero_infinity=False: None)
