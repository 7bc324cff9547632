"""Operations that the library refuses for their element types: which rule tells which of them, shared by those rules."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.ir.types import DType

from . import flow

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, Problem

_INDEXED = re.compile(r"^an index of|\bwith indices of\b")
_TYPES = re.compile(r"\b(bool|u8|i8|i16|i32|i64|f16|bf16|f32|f64)\[")
_NAMED = {d.numpy: d for d in DType}
_OTHERWISE = re.compile(r"\bset_default_(?:dtype|tensor_type)\(|\bassign\s*=\s*True")
PRODUCTS = frozenset(("@", "matmul", "mm", "bmm", "mv", "addmm", "baddbmm", "addmv", "dot", "inner", "linear", "bilinear", "einsum", "tensordot", "chain_matmul",
                      "multi_dot", "scaled_dot_product_attention", "__matmul__"))
_MIXED = "the element types differ"
_OF_WEIGHTS = re.compile(r"\bwith (?:weights? of (\w+)|a parameter of|weights?\b)")


def family(problem: Problem) -> str:
    """The name of the rule that reports a problem of element types."""
    if _INDEXED.search(problem.what):
        return "float-index"
    if "floating-point elements" in problem.expected and not problem.operation.startswith("operator."):
        return "integer-statistic"
    types = mixed(problem)
    if len(set(types)) > 1:
        if of_a_layer(problem) and types[0] == DType.F64:
            return "double-into-float-module"
        if of_a_layer(problem) or last_name(problem) in PRODUCTS or last_name(problem).startswith("conv"):
            return "mixed-precision-matmul"
    return "element-type"


def last_name(problem: Problem) -> str:
    return problem.operation.rpartition(".")[2]


def of_a_layer(problem: Problem) -> bool:
    """A layer of torch.nn, which brings its weights along."""
    return problem.operation.startswith("torch.nn.") and last_name(problem)[:1].isupper()


def mixed(problem: Problem) -> list[DType]:
    """The element types that clash, in the order in which they are given; [] when the problem is another."""
    said = _OF_WEIGHTS.search(problem.what)
    if _MIXED not in problem.what and not (said is not None and said[1] in _NAMED):
        return []
    types = [DType.parse(name) for name in _TYPES.findall(problem.what)]
    return types + ([_NAMED[said[1]]] if said is not None and said[1] in _NAMED else [])


def certain(facts: FileFacts, problem: Problem) -> bool:
    """Nothing around says that the types are others: autocast on the way there, another default type, weights that take the checkpoint's."""
    return not facts.module.mentions(_OTHERWISE) and not any(
        span.path != facts.source.path or flow.autocast(facts, span) for span in (problem.span, *problem.callers))


def reported(facts: FileFacts, name: str) -> Iterator[Problem]:
    """The problems that a rule of this name tells."""
    from .problems import of_family
    return (problem for problem in of_family(facts, name) if certain(facts, problem))
