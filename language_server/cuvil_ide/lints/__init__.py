"""All rules, and what runs them over a file: settings, suppressions, and isolation of a rule that fails.

A new rule is one file here and its line in RULES.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from cuvil.diagnostics import DEFECT, Diagnostic
from cuvil.interrupted import Interrupted
from cuvil.source import Source

from ..config import Config
from ..stale import present_findings
from ..suppressions import apply, suppressions
from . import unused_suppression
from .rule import Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts

RULES: tuple[Rule, ...] = tuple(import_module(f".{name}", __name__).RULE for name in (
    "syntax_error",
    "matmul_shape_mismatch",
    "concat_mismatch",
    "axis_out_of_range",
    "impossible_reshape",
    "outer_broadcast",
    "bare_squeeze",
    "reshape_as_transpose",
    "merge_of_distant_axes",
    "softmax_over_batch",
    "attention_softmax_axis",
    "causal_misaligned",
    "unmasked_pooling",
    "last_token_of_padded",
    "right_padded_generation",
    "mask_not_passed",
    "mask_polarity",
    "zero_one_float_mask",
    "mask_on_query_axis",
    "mask_rank",
    "causal_and_mask",
    "batch_first_default",
    "flattened_width_mismatch",
    "positions_ignore_padding",
    "pad_equals_eos",
    "einsum_mismatch",
    "gather_rank",
    "norm_axis",
    "index_out_of_range",
    "channel_flip_axis",
    "height_width_swap",
    "argmax_of_everything",
    "fixed_batch_assumption",
    "channel_layout",
    "shape_mismatch",
    "eps_vanishes",
    "functional_dropout_on",
    "dropout_made_in_forward",
    "discarded_result",
    "unsafe_load",
    "removed_api",
    "deprecated_api",
    "format_of_tensor",
    "format_arguments",
    "session_input_dtype",
    "constant_overflows_half",
    "unsigned_difference",
    "zero_point_wrap",
    "narrow_integer_product",
    "unit_range_to_integer",
    "cast_without_clamp",
    "sync_in_loop",
    "negative_stride",
    "write_to_expanded",
    "shared_numpy_write",
    "discarded_move",
    "graph_carrying_total",
    "device_tensor_to_numpy",
    "unsynchronised_timing",
    "python_effect_in_compiled",
    "dynamic_shape_op_in_compiled",
    "untraceable_call_in_compiled",
    "device_search_in_loop",
    "transfer_each_call",
    "create_then_move",
    "graph_output_kept",
    "missing_map_location",
    "async_without_pin",
    "tensor_attribute_not_buffer",
    "modules_in_plain_container",
    "constant_comparison",
    "growing_concat",
    "tensor_from_array_list",
    "cache_flush_in_loop",
    "repeat_instead_of_expand",
    "activation_before_argmax",
    "sort_for_topk",
    "hand_made_attention",
    "log_of_softmax",
    "naive_softmax",
    "naive_logsumexp",
    "exp_overflow",
    "cancellation",
    "nan_comparison",
    "negative_sqrt",
    "double_scaling",
    "std_correction",
    "unguarded_division",
    "float_equality",
    "mask_after_softmax",
    "double_softmax",
    "loss_input_kind",
    "attention_temperature",
    "zero_times_log",
    "empty_softmax_row",
    "float_index",
    "bgr_into_rgb",
    "remote_code",
    "set_order_labels",
    "unsorted_directory",
    "missing_no_grad",
    "numpy_on_grad",
    "sdpa_dropout_ungated",
    "argument_mutated",
    "tensor_branch_in_compiled",
    "trace_freezes_branch",
    "aliased_entries",
    "host_tensor_in_forward",
    "missing_eval",
    "early_read_of_async_copy",
    "view_of_noncontiguous",
    "inference_tensor_write",
    "double_into_float_module",
    "mixed_precision_matmul",
    "integer_statistic",
    "element_type",
    "numpy_scalar_upcast",
    "bitwise_not_on_01",
    "half_accumulation",
    "int8_accumulator",
    "quantise_without_clamp",
    "scale_axis",
    "element_loop",
    "redundant_copy",
    "prefix_recomputed",
    "sync_in_log",
    "fixed_export_batch",
    "recompile_hazard",
    "unseeded_sampling",
    "all_position_logits",
    "unused_suppression",
))


@dataclass(frozen=True)
class Findings:
    """found: of the rules, before comments silence any; unused: comments that silence none. Places are those of `source`."""

    source: Source
    found: tuple[Diagnostic, ...] = ()
    unused: tuple[Diagnostic, ...] = ()

    def shown(self, config: Config) -> list[Diagnostic]:
        """In the order of the text, after suppressions and settings."""
        kept = [*apply(self.found, suppressions(self.source)), *self.unused]
        return sorted(filter(None, map(config.apply, kept)), key=lambda d: (d.span, d.code))


def check(facts: FileFacts, config: Config = Config(), plugins: Sequence[Rule] = ()) -> list[Diagnostic]:
    """The findings of a file, in the order of its text, after settings and suppressions."""
    return findings(facts, config, plugins).shown(config)


def findings(facts: FileFacts, config: Config, plugins: Sequence[Rule] = (), stop: Callable[[], bool] = bool) -> Findings:
    """Of all rules that are on. Interrupted when `stop`, asked between rules, says so."""
    rules = enabled(facts.source.path, config, plugins)
    found, unused, marks = tuple(find(facts, rules, stop)), (), suppressions(facts.source)
    if marks and any(rule is unused_suppression.RULE for rule in rules):
        apply(found, marks)
        unused = tuple(unused_suppression.unused(facts, marks, rules, (*RULES, *plugins)))
    return Findings(facts.source, found, unused)


def enabled(path: str, config: Config, plugins: Sequence[Rule] = ()) -> list[Rule]:
    return [rule for rule in (*RULES, *plugins) if config.enabled(rule.code, rule.name, path)]


def find(facts: FileFacts, rules: Iterable[Rule], stop: Callable[[], bool] = bool) -> list[Diagnostic]:
    """What rules find, and what of our own failed, each once."""
    path = facts.source.path
    found = {function.refusal.to_diagnostic(path): None for function in facts.functions if function.refusal and function.refusal.code == DEFECT}
    for rule in rules:
        if stop():
            raise Interrupted
        try:
            found.update(dict.fromkeys(rule.check(facts)))
        except Exception as error:                     # one rule that fails must not take the others with it
            found[_failed(rule, facts, error)] = None
    return list(present_findings(facts, found))


def _failed(rule: Rule, facts: FileFacts, error: Exception) -> Diagnostic:
    from cuvil.source import Span
    message = f"rule {rule.name} could not check this file ({type(error).__name__}: {error}); its findings are missing"
    return Diagnostic("CUV003", "rule-failed", "internal", message, Span(facts.source.path, 1, 0, 1, 0), "proved", "info")
