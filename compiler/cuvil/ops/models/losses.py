"""Losses that are not compiled: of each the type by its reduction. Sizes that must match are checked."""
from __future__ import annotations

from ...ir.dims import proved_different
from ...ir.function import Op
from ...ir.types import TensorType
from ..builder import Builder
from ..definition import TypeRuleError, typed
from ..rules import broadcast, shape_of
from .forms import need_floats


def reduced(type: TensorType, reduction: str) -> TensorType:
    if reduction not in ("mean", "sum", "none", "batchmean"):
        raise TypeRuleError(f"a loss with reduction {reduction!r}", "'mean', 'sum' or 'none'", "argument")
    return type if reduction == "none" else TensorType((), type.dtype)


def _pair(b: Builder, *operands: Op, what: str) -> TensorType:
    return TensorType(broadcast([x.type for x in operands], what), b.common_dtype([x.type for x in operands]))


def _equal(what: str, x: Op, y: Op) -> None:
    if x.type.shape is not None and y.type.shape is not None and (
            len(x.type.shape) != len(y.type.shape) or any(proved_different(a, c) for a, c in zip(x.type.shape, y.type.shape))):
        raise TypeRuleError(f"{what} of {x.type} with {y.type}", "tensors of one shape")


@typed("torch.nn.functional.binary_cross_entropy")
def binary_cross_entropy(b: Builder, input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    need_floats("binary_cross_entropy", input, target)
    _equal("binary_cross_entropy", input, target)
    return reduced(input.type, reduction)


@typed("torch.nn.functional.huber_loss")
def huber_loss(b: Builder, input, target, reduction="mean", delta=1.0, weight=None):
    return reduced(_pair(b, input, target, what="huber_loss"), reduction)


@typed("torch.nn.functional.poisson_nll_loss")
def poisson_nll_loss(b: Builder, input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction="mean"):
    return reduced(_pair(b, input, target, what="poisson_nll_loss"), reduction)


@typed("torch.nn.functional.soft_margin_loss")
def soft_margin_loss(b: Builder, input, target, size_average=None, reduce=None, reduction="mean"):
    return reduced(_pair(b, input, target, what="soft_margin_loss"), reduction)


@typed("torch.nn.functional.hinge_embedding_loss")
def hinge_embedding_loss(b: Builder, input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    return reduced(_pair(b, input, target, what="hinge_embedding_loss"), reduction)


@typed("torch.nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(b: Builder, input, target, var, full=False, eps=1e-06, reduction="mean"):
    return reduced(_pair(b, input, target, what="gaussian_nll_loss"), reduction)


@typed("torch.nn.functional.margin_ranking_loss")
def margin_ranking_loss(b: Builder, input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    return reduced(_pair(b, input1, input2, target, what="margin_ranking_loss"), reduction)


@typed("torch.nn.functional.cosine_embedding_loss")
def cosine_embedding_loss(b: Builder, input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    return reduced(TensorType(target.type.shape, need_floats("cosine_embedding_loss", input1, input2)), reduction)


@typed("torch.nn.functional.triplet_margin_loss")
def triplet_margin_loss(b: Builder, anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, reduction="mean"):
    full = _pair(b, anchor, positive, negative, what="triplet_margin_loss")
    return reduced(TensorType(None if full.shape is None else full.shape[:-1], full.dtype), reduction)


@typed("torch.nn.functional.multi_margin_loss")
def multi_margin_loss(b: Builder, input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    return reduced(TensorType(shape_of(input)[:-1], need_floats("multi_margin_loss", input)), reduction)


@typed("torch.nn.functional.multilabel_margin_loss")
def multilabel_margin_loss(b: Builder, input, target, size_average=None, reduce=None, reduction="mean"):
    return reduced(TensorType(shape_of(input)[:-1], need_floats("multilabel_margin_loss", input)), reduction)


@typed("torch.nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(b: Builder, input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    return reduced(TensorType(shape_of(input)[:-1], need_floats("multilabel_soft_margin_loss", input)), reduction)


@typed("torch.nn.functional.ctc_loss")
def ctc_loss(b: Builder, log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Of (T, N, C) one loss for each of N."""
    own = shape_of(log_probs)
    return reduced(TensorType(own[1:2] if len(own) == 3 else (), need_floats("ctc_loss", log_probs)), reduction)
