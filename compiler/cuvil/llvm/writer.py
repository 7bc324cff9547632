"""Writes one LLVM function as text, an instruction at a time, each tagged with the loop statement it comes from.

LLVM's own parser and verifier check what is written (module.py). Text is used instead of an object builder because every
line needs its debug location and because it is several times faster to make. A value is an LLVM operand with its element
type and its number of lanes (0: a scalar). f16 and bf16 are held in registers as f32, rounded after each operation; bool is
i1 in registers and a byte in memory.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, field

from ..diagnostics import CuvilError
from ..ir.types import DType
from ..targets import Target

REGISTER = {DType.BOOL: "i1", DType.U8: "i8", DType.I8: "i8", DType.I16: "i16", DType.I32: "i32", DType.I64: "i64",
            DType.F16: "float", DType.BF16: "float", DType.F32: "float", DType.F64: "double"}
MEMORY = {**REGISTER, DType.BOOL: "i8", DType.F16: "i16", DType.BF16: "i16"}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64, "half": 16}
SUFFIX = {"float": "f32", "double": "f64", "half": "f16"}


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: its text, its LLVM element type, its lanes (0 for a scalar)."""

    text: str
    element: str
    lanes: int = 0

    @property
    def type(self) -> str:
        return f"<{self.lanes} x {self.element}>" if self.lanes else self.element

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def vector(element: str, lanes: int) -> str:
    return f"<{lanes} x {element}>" if lanes else element


def suffix(element: str, lanes: int) -> str:
    """The overload part of an intrinsic's name: f32, v16f32, i64."""
    name = SUFFIX.get(element, element)
    return f"v{lanes}{name}" if lanes else name


def literal(value: int | float | bool, element: str) -> str:
    if element in ("float", "double"):
        if element == "float":
            try:
                value = struct.unpack("f", struct.pack("f", float(value)))[0]
            except OverflowError:
                value = float("inf") if value > 0 else float("-inf")
        return f"0x{struct.unpack('Q', struct.pack('d', float(value)))[0]:016X}"
    if element == "i1":
        return "true" if value else "false"
    bits = BITS[element]
    wrapped = int(value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


def constant(value: int | float | bool, element: str, lanes: int = 0) -> Value:
    text = literal(value, element)
    return Value(f"splat ({element} {text})" if lanes else text, element, lanes)


@dataclass
class Writer:
    """The body of a function being written.

    target     what the machine has in one instruction: fused multiply-add, conversion of halves
    declares   intrinsics and library functions used, by name: shared by the module
    memory     the type of pointers to values in memory: GPUs have an address space for them
    allocas    stack memory; entry: what is looked up once before everything else
    location   the debug location put on every instruction; block: the block being written
    """

    target: Target
    declares: dict[str, str]
    lines: list[str] = field(default_factory=list)
    memory: str = "ptr"
    allocas: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    location: str = ""
    block: str = "start"
    _count: int = 0
    _labels: int = 0

    # --- instructions -----------------------------------------------------------------------------------------------

    def name(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def put(self, text: str) -> None:
        self.lines.append(f"  {text}{self.location}")

    def make(self, text: str, element: str, lanes: int = 0) -> Value:
        name = self.name()
        self.put(f"{name} = {text}")
        return Value(name, element, lanes)

    def rename(self, value: Value, name: str) -> None:
        """The value just made gets a name that was given out before it."""
        self.lines[-1] = self.lines[-1].replace(f"  {value.text} = ", f"  {name} = ", 1)

    def op(self, opcode: str, a: Value, b: Value | int | float) -> Value:
        """A two-operand instruction; numbers become constants and a scalar meets a vector as a splat."""
        a, b = self.level(a, b)
        return self.make(f"{opcode} {a.type} {a.text}, {b.text}", a.element, a.lanes)

    def compare(self, condition: str, a: Value, b: Value | int | float) -> Value:
        a, b = self.level(a, b)
        opcode = "fcmp" if a.element in ("float", "double") else "icmp"
        return self.make(f"{opcode} {condition} {a.type} {a.text}, {b.text}", "i1", a.lanes)

    def select(self, condition: Value, yes: Value | int | float, no: Value | int | float) -> Value:
        if not isinstance(yes, Value):
            yes = constant(yes, no.element, no.lanes)
        yes, no = self.level(yes, no)
        lanes = max(condition.lanes, yes.lanes)
        yes, no = self.splat(yes, lanes), self.splat(no, lanes)
        return self.make(f"select {condition}, {yes}, {no}", yes.element, lanes)

    def convert(self, opcode: str, a: Value, element: str) -> Value:
        if opcode in ("trunc", "zext", "sext", "bitcast") and a.element == element:
            return a
        return self.make(f"{opcode} {a} to {vector(element, a.lanes)}", element, a.lanes)

    def neg(self, a: Value) -> Value:
        return self.make(f"fneg {a}", a.element, a.lanes)

    def call(self, intrinsic: str, *arguments: Value, extra: str = "") -> Value:
        """An overloaded intrinsic of one type: llvm.fabs, llvm.fma, llvm.floor ..."""
        lanes = max(a.lanes for a in arguments)
        arguments = tuple(self.splat(a, lanes) for a in arguments)
        first = arguments[0]
        name = f"@llvm.{intrinsic}.{suffix(first.element, lanes)}"
        kinds = ", ".join(a.type for a in arguments) + (", i1" if extra else "")
        self.declares[name] = f"declare {first.type} {name}({kinds})"
        return self.make(f"call {first.type} {name}({', '.join(map(str, arguments))}{extra})", first.element, lanes)

    def library(self, name: str, *arguments: Value) -> Value:
        """A libm function, called for every lane."""
        if self.target.kind != "cpu":
            raise CuvilError(f"{name} is a function of the C library, which {self.target.name} does not have",
                             hint="compile for the target cpu", code="CUV005")
        lanes = max(a.lanes for a in arguments)
        element = arguments[0].element
        self.declares[f"@{name}"] = f"declare {element} @{name}({', '.join([element] * len(arguments))}) #1"
        if not lanes:
            return self.make(f"call {element} @{name}({', '.join(map(str, arguments))})", element)
        arguments = tuple(self.splat(a, lanes) for a in arguments)
        result = Value("poison", element, lanes)
        for lane in range(lanes):
            parts = [self.lane(a, lane) for a in arguments]
            one = self.make(f"call {element} @{name}({', '.join(map(str, parts))})", element)
            result = self.insert(result, one, lane)
        return result

    def muladd(self, a: Value, b: Value, c: Value | float) -> Value:
        """a*b + c, fused where the target does that in one instruction."""
        c = c if isinstance(c, Value) else constant(c, a.element, a.lanes)
        return self.call("fma", a, b, c) if self.target.fma else self.op("fadd", self.op("fmul", a, b), c)

    # --- lanes ------------------------------------------------------------------------------------------------------

    def level(self, a: Value, b: Value | int | float) -> tuple[Value, Value]:
        if not isinstance(b, Value):
            return a, constant(b, a.element, a.lanes)
        lanes = max(a.lanes, b.lanes)
        return self.splat(a, lanes), self.splat(b, lanes)

    def splat(self, a: Value, lanes: int) -> Value:
        if a.lanes == lanes:
            return a
        if not a.text.startswith("%"):
            return Value(f"splat ({a.element} {a.text})", a.element, lanes)
        first = self.make(f"insertelement <{lanes} x {a.element}> poison, {a}, i64 0", a.element, lanes)
        return self.make(f"shufflevector {first}, <{lanes} x {a.element}> poison, <{lanes} x i32> zeroinitializer", a.element, lanes)

    def lane(self, a: Value, index: int) -> Value:
        return self.make(f"extractelement {a}, i64 {index}", a.element)

    def insert(self, a: Value, value: Value, index: int) -> Value:
        return self.make(f"insertelement {a}, {value}, i64 {index}", a.element, a.lanes)

    def iota(self, element: str, lanes: int) -> Value:
        return Value("<" + ", ".join(f"{element} {i}" for i in range(lanes)) + ">", element, lanes)

    def half(self, a: Value, upper: bool) -> Value:
        """The lower or upper half of a vector."""
        size = a.lanes // 2
        mask = ", ".join(f"i32 {i + (size if upper else 0)}" for i in range(size))
        return self.make(f"shufflevector {a}, {a.type} poison, <{size} x i32> <{mask}>", a.element, size)

    def any(self, mask: Value) -> Value:
        if not mask.lanes:
            return mask
        name = f"@llvm.vector.reduce.or.v{mask.lanes}i1"
        self.declares[name] = f"declare i1 {name}({mask.type})"
        return self.make(f"call i1 {name}({mask})", "i1")

    # --- memory and control -----------------------------------------------------------------------------------------

    def alloca(self, type: str, count: int = 1, align: int = 64) -> str:
        name = self.name()
        size = f", i64 {count}" if count != 1 else ""
        self.allocas.append(f"  {name} = alloca {type}{size}, align {align}")
        return name

    def address(self, pointer: str, element: str, offset: Value, memory: str = "ptr") -> str:
        if offset.text == "0":
            return pointer
        name = self.name()
        self.put(f"{name} = getelementptr inbounds {element}, {memory} {pointer}, {offset}")
        return name

    def label(self, hint: str) -> str:
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.put(f"br label %{label}")

    def phi(self, first: Value, before: str, later: str, after: str) -> Value:
        """first on entry from the block `before`, the value named `later` when coming back from `after`; stands first in its block."""
        return self.make(f"phi {first.type} [ {first.text}, %{before} ], [ {later}, %{after} ]", first.element, first.lanes)

    def branch(self, condition: Value, yes: str, no: str) -> None:
        self.put(f"br {condition}, label %{yes}, label %{no}")

    def function(self, name: str, arguments: str, attributes: str, debug: str = "") -> str:
        head = f"define {attributes} @{name}({arguments}) #0{debug} {{"
        return "\n".join([head, "entry:", *self.allocas, *self.entry, "  br label %start", "start:", *self.lines, "}"])
