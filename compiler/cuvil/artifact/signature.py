"""The call signature of a compiled function: names, types and order of its inputs, outputs and parameters, as C and JSON say them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..diagnostics import CuvilError
from ..ir.function import Function
from ..ir.types import DType, TensorType

# DLPack's type codes and bits, the C element type, and the name in .safetensors files.
_DLPACK = {DType.BOOL: 6, DType.U8: 1, DType.I8: 0, DType.I16: 0, DType.I32: 0, DType.I64: 0, DType.F16: 2, DType.BF16: 4, DType.F32: 2,
           DType.F64: 2}
_C = {DType.BOOL: "uint8_t", DType.U8: "uint8_t", DType.I8: "int8_t", DType.I16: "int16_t", DType.I32: "int32_t", DType.I64: "int64_t",
      DType.F16: "uint16_t", DType.BF16: "uint16_t", DType.F32: "float", DType.F64: "double"}
_C_WORDS = frozenset("""auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while infer""".split())
# The stack arrays of the C ABI hold this many.
LIMIT = 1024


@dataclass(frozen=True)
class Slot:
    """One tensor of the signature. name: the user's; c_name: an identifier in C, unique among inputs and outputs."""

    name: str
    c_name: str
    type: TensorType

    @property
    def code(self) -> int:
        return _DLPACK[self.type.dtype]

    @property
    def c_type(self) -> str:
        return _C[self.type.dtype]

    @property
    def stored(self) -> str:
        return str(self.type.dtype).upper()

    def to_json(self) -> dict:
        return {"name": self.name, "dtype": self.type.dtype.numpy, "shape": list(self.type.shape)}

    @staticmethod
    def of_json(data: dict) -> Slot:
        return Slot(data["name"], data["name"], TensorType(tuple(data["shape"]), DType.parse(data["dtype"])))


@dataclass(frozen=True)
class Signature:
    """returns: "tensor" for one bare value, "tuple" for a tuple."""

    name: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    parameters: tuple[Slot, ...]
    returns: str = "tensor"

    @classmethod
    def of(cls, function: Function) -> Signature:
        """Of a function with known sizes; CuvilError when it has more tensors than the C ABI takes."""
        taken: set[str] = set()
        inputs = tuple(_slot(op.attr("name"), op.type, taken) for op in function.inputs)
        outputs = tuple(_slot(function.by_id[id].label or f"out{i}", function.by_id[id].type, taken)
                        for i, id in enumerate(function.results))
        for what, slots in (("inputs", inputs), ("outputs", outputs)):
            if len(slots) > LIMIT:
                raise CuvilError(f"{function.name} has {len(slots)} {what}", function.origin and function.origin.span, f"at most {LIMIT}")
        parameters = tuple(_slot(op.attr("name"), op.type, set()) for op in function.parameters)
        return cls(function.name, inputs, outputs, parameters, function.returns)

    @cached_property
    def c_name(self) -> str:
        return identifier(self.name)

    def to_json(self) -> dict:
        return {"inputs": [s.to_json() for s in self.inputs], "outputs": [s.to_json() for s in self.outputs],
                "parameters": [s.to_json() for s in self.parameters], "returns": self.returns}

    @staticmethod
    def of_json(name: str, data: dict) -> Signature:
        groups = (tuple(Slot.of_json(s) for s in data[key]) for key in ("inputs", "outputs", "parameters"))
        return Signature(name, *groups, data["returns"])


def identifier(name: str) -> str:
    """The name as C can say it: "Block.forward" is "Block_forward"."""
    plain = re.sub(r"[^0-9A-Za-z_]", "_", name) or "_"
    return f"_{plain}" if plain[0].isdigit() or plain in _C_WORDS else plain


def _slot(name: str, type: TensorType, taken: set[str]) -> Slot:
    c_name = base = identifier(name)
    number = 2
    while c_name in taken:
        c_name, number = f"{base}_{number}", number + 1
    taken.add(c_name)
    return Slot(name, c_name, type)
