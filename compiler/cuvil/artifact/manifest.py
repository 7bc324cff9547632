"""What a library says about itself: its signature, kernels, costs, lineage, versions and hashes, as JSON.

The same input gives the same bytes: keys are sorted, and no time, host name or absolute path is in it.
"""
from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..cost.counts import Cost, cost_of_graph, cost_of_kernel
from ..ir.text import print_function
from .signature import Signature

if TYPE_CHECKING:
    from ..pipeline import Stages

VERSION = 1


def manifest(stages: Stages, signature: Signature, parameters: bytes | None, dims: Mapping[str, int]) -> str:
    """The text of `<name>.json`; the library returns the same from cuvil_manifest()."""
    function, graph, program = stages.optimized.function, stages.kernels, stages.program
    origin = stages.function.origin
    return json.dumps({
        "version": VERSION,
        "name": signature.name,
        "signature": signature.to_json(),
        "dims": dict(dims),
        "source": origin and {"path": origin.span.path, "line": origin.span.line},
        "target": {"name": program.target.name, "cpu": program.target.cpu, "vector_bytes": program.target.vector_bytes},
        "opt_level": stages.opt_level,
        "kernels": [_kernel(kernel, function) for kernel in graph.kernels],
        "edges": {"fused": sum(d.fused for d in graph.decisions), "through_memory": sum(not d.fused for d in graph.decisions)},
        "costs": _cost(cost_of_graph(graph)),
        "memory": {"scratch_bytes": program.scratch, "packed_bytes": program.prepared,
                   "parameter_bytes": sum(s.type.nbytes for s in signature.parameters)},
        "lineage": _lineage(function, graph),
        "tools": {"cuvil": __version__, "llvmlite": importlib.metadata.version("llvmlite"), "abi": VERSION},
        "hashes": {"ir": _sha(print_function(function).encode()), "kernels": _sha(stages.object),
                   **({"parameters": _sha(parameters)} if parameters is not None else {})},
    }, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _kernel(kernel: Any, function: Any) -> dict:
    ops, cost = [function.by_id[id] for id in kernel.ops], cost_of_kernel(function, kernel)
    lines = sorted({(o.span.path, n) for o in kernel.origins for n in range(o.span.line, o.span.end_line + 1)})
    return {"name": kernel.name, "kind": kernel.kind, "ops": [op.name for op in ops],
            "reads": [_value(function.by_id[id]) for id in kernel.inputs], "writes": [_value(function.by_id[id]) for id in kernel.outputs],
            "lines": [f"{path}:{number}" for path, number in lines], **_cost(cost)}


def _value(op: Any) -> str:
    return f"{op.label or f'%{op.id}'}: {op.type}"


def _cost(cost: Cost) -> dict:
    return {"flops": cost.flops, "bytes": cost.bytes, "flops_per_byte": cost.intensity and round(cost.intensity, 4)}


def _lineage(function: Any, graph: Any) -> dict:
    """How much of the code can say where it came from."""
    ops = list(function.body)
    return {"ops": len(ops), "ops_with_origin": sum(1 for op in ops if op.origins),
            "kernels": len(graph.kernels), "kernels_with_origin": sum(1 for kernel in graph.kernels if kernel.origins)}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
