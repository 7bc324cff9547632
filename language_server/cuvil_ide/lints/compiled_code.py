"""Calls in code that torch.compile or torch.export reads: shared by the rules that predict graph breaks."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from .guards import expected_to_fail
from .recorded import calls, node_of, once
from .tensor_branch_in_compiled import reader

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import CallFact, FileFacts, Region

_WHOLE = re.compile(r"fullgraph\s*=\s*True")
_COMPILING = re.compile(r"is_compiling|is_exporting|is_dynamo_compiling|is_tracing")


def compiled_calls(facts: FileFacts) -> Iterator[tuple[CallFact, Region]]:
    """Calls that a compiler meets, with what hands the code to it; not those under a test of whether it is compiling."""
    for call in once(c for c in calls(facts) if reader(c.context.regions) is not None):
        node = node_of(facts, call.span, cst.Call)
        if node is not None and not expected_to_fail(facts, call.span) and not _asked(facts, node):
            yield call, reader(call.context.regions)


def captures(facts: FileFacts, region: Region, option: str) -> bool:
    """Whether the compiler takes values and sizes that hang on data into the graph: torch.export, `fullgraph=True`, or the option set in the file."""
    if region.how != "compile" or option in facts.source.text:
        return True
    return region.span.path == facts.source.path and _WHOLE.search(facts.source.slice(region.span)) is not None


def _asked(facts: FileFacts, node: cst.CSTNode) -> bool:
    above = facts.module.parent(node)
    while above is not None and not isinstance(above, cst.FunctionDef):
        if isinstance(above, (cst.If, cst.IfExp)) and _COMPILING.search(facts.module.code(above.test)):
            return True
        above = facts.module.parent(above)
    return False
