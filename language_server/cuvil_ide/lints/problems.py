"""Operations that the library would refuse, found by the front end while it walked; shared by the rules that report them.

Each problem belongs to one family, and each family is one rule, so that people can read and silence them one by one.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence

from . import element_types
from .guards import expected_to_fail
from .rule import Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, Problem

_CONTRACTIONS = {"@", "matmul", "mm", "bmm", "addmm", "baddbmm", "dot", "inner", "mv", "linear", "Linear", "tensordot",
                 "scaled_dot_product_attention", "conv1d", "conv2d", "Conv1d", "Conv2d", "__matmul__"}
_JOINS = {"cat", "concat", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"}
_GATHERS = {"gather", "scatter", "scatter_add", "take_along_dim", "take_along_axis"}
_NORMS = {"LayerNorm", "layer_norm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "batch_norm", "GroupNorm", "group_norm", "RMSNorm", "rms_norm",
          "InstanceNorm1d", "InstanceNorm2d", "instance_norm"}
_FLATTENS = re.compile(r"\.(?:flatten|view|reshape)\(|Flatten\(")
_WIDTHS = re.compile(r"has (\S+) features, the weight takes (\S+)$")
_RESHAPES = {"reshape", "view", "unflatten", "view_as", "reshape_as", "resize"}


def family(problem: Problem) -> str:
    """The name of the rule that reports the problem."""
    if problem.kind == "dtype-mismatch":
        return element_types.family(problem)
    if problem.kind != "shape-mismatch":
        return problem.kind
    if problem.what.startswith("axis "):
        return "axis-out-of-range"
    operation = problem.operation.rpartition(".")[2]
    if problem.what.startswith("attention mask "):
        return "mask-rank"
    if operation in _CONTRACTIONS:
        return "matmul-shape-mismatch"
    if operation in _JOINS:
        return "concat-mismatch"
    if operation in _RESHAPES:
        return "impossible-reshape"
    if operation == "einsum":
        return "einsum-mismatch"
    if operation in _GATHERS and problem.what.endswith(" axes"):
        return "gather-rank"
    if operation in _NORMS:
        return "norm-axis"
    return "shape-mismatch"


def flattened(facts: FileFacts, problem: Problem) -> tuple[str, str] | None:
    """(features that a flattened tensor has, features that the linear layer takes), if that is the problem."""
    found = _WIDTHS.search(problem.what)
    places = [evidence.span for evidence in problem.evidence if evidence.span is not None] + [problem.span]
    texts = [facts.source.slice(span) for span in places if span.path == facts.source.path]
    return (found[1], found[2]) if found is not None and any(map(_FLATTENS.search, texts)) else None


def of_family(facts: FileFacts, name: str) -> Iterator[Problem]:
    """The problems of a family in the file. The same place reached through several calls is one."""
    seen = set()
    for function in (None, *facts.functions):
        for problem in facts.problems if function is None else function.problems:
            if problem.span in seen or problem.span.path != facts.source.path or family(problem) != name:
                continue
            seen.add(problem.span)
            if not expected_to_fail(facts, problem.span) and not _squeezed(facts, problem) and not _replaced(facts, problem):
                yield problem


def _replaced(facts: FileFacts, problem: Problem) -> bool:
    """It hangs on an attribute that several methods set: what the constructor puts there is a placeholder."""
    definition = facts.module.definition_at(problem.span.line)
    if definition is None or not definition.owner:
        return False
    methods = [each.text for each in facts.module.members.get(definition.owner, ()) if each.kind == "function"]
    for name in set(re.findall(r"\bself\.(\w+)", facts.source.slice(problem.span))):
        sets = re.compile(rf"\bself\.{name}(?:\s*:[^=\n]+)?\s*=(?!=)")
        if sum(sets.search(text) is not None for text in methods) > 1:
            return True
    return False


def _squeezed(facts: FileFacts, problem: Problem) -> bool:
    """An axis is missing because a squeeze without an axis took it in this call: bare-squeeze tells that where it happens."""
    texts = (facts.source.slice(e.span) for e in problem.evidence if e.span is not None and e.span.path == facts.source.path)
    return bool(problem.callers) and any(_BARE_SQUEEZE.search(text) for text in texts)


def report(facts: FileFacts, rule: Rule) -> Iterator[Diagnostic]:
    """The problems of the rule's family."""
    for problem in of_family(facts, rule.name):
        if flattened(facts, problem) is None:                       # that is a rule of its own
            what = problem.what[:1].upper() + problem.what[1:]
            message = f"{what}; expected {problem.expected}" if problem.expected else what
            if problem.operation:
                message = f"{problem.operation}: {message}"
            yield rule.finding(message + channels_last(problem), problem.span, problem.evidence + called(problem))


_BARE_SQUEEZE = re.compile(r"\.squeeze\(\)$|^(?:torch|np|numpy)\.squeeze\([^(),]*\)$")
_CHANNELS = re.compile(r"(?:conv\dd|batch_norm|group_norm) of \w+\[([^\]]*)\] with (?:weight \w+\[\d+, |a parameter of \w+\[)(\d+)[^\]]*\]: the input has")


def channels_last(problem: Problem) -> str:
    """What to do where the channels that are asked for are on the last axis."""
    found = _CHANNELS.match(problem.what)
    shape = found[1].split(", ") if found is not None else []
    if len(shape) not in (3, 4) or shape[-1] != found[2]:
        return ""
    return "; the channels are last: " + ("transpose(1, 2) first" if len(shape) == 3 else "permute(0, 3, 1, 2) first")


def called(problem: Problem) -> tuple[Evidence, ...]:
    return tuple(Evidence(span, "called here") for span in problem.callers)
