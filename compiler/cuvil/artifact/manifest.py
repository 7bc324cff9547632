"""What a library says about itself: its signature, kernels, costs, lineage, versions and hashes, as JSON.

The same input gives the same bytes: keys are sorted, and no time, host name or absolute path is in it.
"""
from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..ir.text import print_function
from .signature import Signature

if TYPE_CHECKING:
    from ..pipeline import Stages

VERSION = 1


def manifest(stages: Stages, signature: Signature, parameters: bytes | None = None) -> str:
    """The text of `<name>.json`; the library returns the same from cuvil_manifest()."""
    function, graph, module = stages.optimized.function, stages.kernels, stages.llvm
    origin = stages.function.origin
    return json.dumps({
        "version": VERSION,
        "name": signature.name,
        "signature": signature.to_json(),
        "source": origin and {"path": origin.span.path, "line": origin.span.line},
        "target": target_json(module),
        "opt_level": stages.opt_level,
        "kernels": [_kernel(kernel, function) for kernel in graph.kernels],
        "edges": {"fused": sum(d.fused for d in graph.decisions), "through_memory": sum(not d.fused for d in graph.decisions)},
        "costs": _costs(graph),
        "memory": {"scratch_bytes": module.scratch, "parameter_bytes": sum(s.type.nbytes for s in signature.parameters)},
        "lineage": _lineage(function, graph),
        "tools": {"cuvil": __version__, "llvm": module.version},
        "hashes": {"ir": _sha(print_function(function).encode()), "kernels": _sha(stages.object),
                   **({"parameters": _sha(parameters)} if parameters is not None else {})},
    }, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def target_json(module: Any) -> dict:
    return {"name": module.target.name, "cpu": module.target.cpu, "triple": module.triple}


def _kernel(kernel: Any, function: Any) -> dict:
    ops = [function.by_id[id] for id in kernel.ops]
    lines = sorted({(o.span.path, n) for o in kernel.origins for n in range(o.span.line, o.span.end_line + 1)})
    return {"name": kernel.name, "kind": kernel.kind, "ops": [op.name for op in ops],
            "reads": [_value(function.by_id[id]) for id in kernel.inputs], "writes": [_value(function.by_id[id]) for id in kernel.outputs],
            "lines": [f"{path}:{number}" for path, number in lines]}


def _value(op: Any) -> str:
    return f"{op.label or f'%{op.id}'}: {op.type}"


def _costs(graph: Any) -> dict:
    """FLOPs of the ops and bytes that pass through memory, as numbers for these sizes."""
    from ..ops.definition import DEFINITIONS
    function = graph.function
    flops = moved = 0
    for kernel in graph.kernels:
        for id in kernel.ops:
            op = function.by_id[id]
            flops += DEFINITIONS[op.name].flops(op.type, [function.by_id[o].type for o in op.operands], dict(op.attrs))
        moved += sum(function.by_id[id].type.nbytes for id in (*kernel.inputs, *kernel.outputs))
    return {"flops": flops, "bytes": moved, "flops_per_byte": round(flops / moved, 4) if moved else None}


def _lineage(function: Any, graph: Any) -> dict:
    """How much of the code can say where it came from."""
    ops = list(function.body)
    return {"ops": len(ops), "ops_with_origin": sum(1 for op in ops if op.origins),
            "kernels": len(graph.kernels), "kernels_with_origin": sum(1 for kernel in graph.kernels if kernel.origins)}


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
