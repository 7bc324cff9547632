"""A manifest as people read it."""
from __future__ import annotations

from typing import Any


def explain(manifest: dict[str, Any]) -> str:
    """Signature, kernels with their cost, and what passes through memory, a line each."""
    signature = manifest["signature"]
    lines = [f"{manifest['name']}({', '.join(_slot(s) for s in signature['inputs'])}) -> {', '.join(_slot(s) for s in signature['outputs'])}"]
    if manifest["source"]:
        lines.append(f"  from {manifest['source']['path']}:{manifest['source']['line']}, for {manifest['target']['name']}")
    if manifest["dims"]:
        lines.append(f"  sizes: {', '.join(f'{k} = {v}' for k, v in manifest['dims'].items())}")
    lines.append(f"  {len(manifest['kernels'])} kernels, {_cost(manifest['costs'])}")
    for kernel in manifest["kernels"]:
        lines.append(f"  {kernel['name']}: {_cost(kernel)}")
        lines.append(f"      reads {', '.join(kernel['reads']) or 'nothing'}; writes {', '.join(kernel['writes'])}")
        lines.append(f"      lines {', '.join(kernel['lines']) or 'none'}")
    return "\n".join(lines) + "\n"


def _slot(slot: dict[str, Any]) -> str:
    return f"{slot['name']}: {slot['dtype']}[{', '.join(map(str, slot['shape']))}]"


def _cost(cost: dict[str, Any]) -> str:
    intensity = "no traffic" if cost["flops_per_byte"] is None else f"{cost['flops_per_byte']:.3g} FLOP/B"
    return f"{cost['flops']:,} FLOP, {cost['bytes']:,} B, {intensity}"
