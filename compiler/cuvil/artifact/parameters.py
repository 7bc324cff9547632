"""Parameters in a .safetensors file that cuvil_load maps: no copy, no pickle.

The largest elements come first, so that each tensor starts at a multiple of its element size, and the header is padded so
that the data start at a multiple of 64 bytes.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..diagnostics import CuvilError
from .signature import Signature, Slot

ALIGNMENT = 64


def safetensors(signature: Signature, values: Mapping[str, Any]) -> bytes:
    """The file's bytes. values: torch tensors or NumPy arrays by parameter name; CuvilError when one is missing or of another type."""
    slots = sorted(signature.parameters, key=lambda s: (-s.type.dtype.size, s.name))
    head: dict[str, Any] = {"__metadata__": {"format": "cuvil"}}
    data, position = [], 0
    for slot in slots:
        piece = _bytes(slot, values)
        head[slot.name] = {"dtype": slot.stored, "shape": list(slot.type.shape), "data_offsets": [position, position + len(piece)]}
        data.append(piece)
        position += len(piece)
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def _bytes(slot: Slot, values: Mapping[str, Any]) -> bytes:
    value = values.get(slot.name)
    if value is None:
        raise CuvilError(f"there is no value for parameter {slot.name}", expected=f"a tensor {slot.type}",
                         hint="compile an nn.Module instance, whose state_dict has it")
    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    if dtype != slot.type.dtype.numpy or shape != slot.type.shape:
        raise CuvilError(f"parameter {slot.name} is {dtype}{list(shape)}", expected=str(slot.type))
    if hasattr(value, "detach"):
        import torch
        value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return value.tobytes()
