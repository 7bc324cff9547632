"""CIR as people read it, and back: `parse_function(print_function(f)) == f` (with locations, or for f without origins).

    func @mlp(%0: f32[B, 768] "x", parameter %1: f32[768] "fc.weight") -> tensor {
      %2 = constant {dtype = f32, value = 2.0} : f32[]
      %3 "h" = mul %0, %2 : f32[B, 768] @ "a.py":3:4-3:9:BinaryOperation < "a.py":9:0-9:4
      return %3
    }

Attribute values are numbers (a float has a point, an exponent, or is inf or nan), true, false, none, "strings", element
types, dims (`2*B`, `(T // 2)`) and tuples `(1, 2)`, `(1,)`. A location is a span, the kind of its CST node, and `<` callers.
"""
from __future__ import annotations

import json
import math
import re
from typing import Any

from ..diagnostics import CuvilError
from ..lineage import Origin
from ..source import Span
from .dims import Poly, parse_dim
from .function import Function, Op
from .types import DType, TensorType


def print_function(function: Function, locations: bool = False) -> str:
    sources = [op for op in function.ops if op.name in ("input", "parameter")]
    arguments = ", ".join(("parameter " if op.name == "parameter" else "") + f"%{op.id}: {op.type} {json.dumps(op.attr('name'))}"
                          + _label(op.label if op.label != op.attr("name") else "") + _located(op.origins, locations) for op in sources)
    where = _located((function.origin,) if function.origin else (), locations)
    body = "".join(f"  {print_op(op, locations)}\n" for op in function.body)
    results = ", ".join(f"%{r}" for r in function.results)
    return f"func @{function.name}({arguments}) -> {function.returns}{where} {{\n{body}  return {results}\n}}\n"


def print_op(op: Op, locations: bool = False) -> str:
    attrs = ", ".join(f"{name} = {print_value(value)}" for name, value in op.attrs)
    operands = ", ".join(f"%{o}" for o in op.operands)
    parts = [f"%{op.id}{_label(op.label)} = {op.name}", operands, f"{{{attrs}}}" if attrs else "", f": {op.type}"]
    return " ".join(p for p in parts if p) + _located(op.origins, locations)


def print_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "none"
        case float():
            return repr(value)
        case int() | DType():
            return str(value)
        case str():
            return json.dumps(value)
        case Poly():
            text = str(value)
            return f"dim({text})" if text in _WORDS else text
        case tuple():
            return f"({', '.join(map(print_value, value))}{',' if len(value) == 1 else ''})"
    raise TypeError(f"not an attribute value: {value!r}")


def _label(label: str) -> str:
    return f" {json.dumps(label)}" if label else ""


def _located(origins, locations: bool) -> str:
    if not locations or not origins:
        return ""
    return " @ " + " | ".join(f"{_span(o.span)}{':' + o.node if o.node else ''}{''.join(' < ' + _span(c) for c in o.callers)}" for o in origins)


def _span(span: Span) -> str:
    return f"{json.dumps(span.path)}:{span.line}:{span.column}-{span.end_line}:{span.end_column}"


# --- reading --------------------------------------------------------------------------------------------------------

_CONSTANTS = {"true": True, "false": False, "none": None, "inf": math.inf, "nan": math.nan}
_WORDS = {*_CONSTANTS, *(str(d) for d in DType)}
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|//|[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|[^\W\d]\w*(?:\.[\w<>]+)*|\.\.\.|<\w+>|.)', re.DOTALL)


def parse_function(text: str) -> Function:
    """Read the text form; CuvilError with the line and what was expected there."""
    return _Reader(text).function()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.token = ""
        self.advance()

    def advance(self) -> str:
        """The current token; the next becomes current. Empty at the end."""
        before = self.token
        found = _TOKEN.match(self.text, self.place)
        self.token = found.group(1) if found and found.group(1).strip() else ""
        self.place = found.end() if found else len(self.text)
        return before

    def fail(self, expected: str) -> CuvilError:
        line = self.text.count("\n", 0, self.place - len(self.token)) + 1
        return CuvilError(f"IR text, line {line}: {self.token or 'the end'!r}", expected=expected)

    def take(self, token: str) -> None:
        if self.token != token:
            raise self.fail(repr(token))
        self.advance()

    def took(self, token: str) -> bool:
        if self.token != token:
            return False
        self.advance()
        return True

    def string(self) -> str:
        if not self.token.startswith('"'):
            raise self.fail("a string")
        return json.loads(self.advance())

    def integer(self) -> int:
        if not self.token.isdigit():
            raise self.fail("an integer")
        return int(self.advance())

    def word(self) -> str:
        if not re.match(r"[^\W\d]|<", self.token):
            raise self.fail("a name")
        return self.advance()

    def value_id(self) -> int:
        if self.token != "%":
            raise self.fail("a value such as %3")
        self.advance()
        return self.integer()

    def until(self, stops: str) -> str:
        """The text up to one of the stop characters outside brackets."""
        depth, begin = 0, self.place - len(self.token)
        while self.token and (depth or self.token not in stops):
            depth += (self.token in "([") - (self.token in ")]")
            if depth < 0:
                break
            self.advance()
        return self.text[begin:self.place - len(self.token)].strip()

    def type(self) -> TensorType:
        begin = self.place - len(self.token)
        while self.token != "]":
            if not self.token:
                raise self.fail("a type such as f32[2, B]")
            self.advance()
        end = self.place
        self.advance()
        try:
            return TensorType.parse(self.text[begin:end])
        except ValueError as error:
            raise CuvilError(f"IR text: {error}", expected="a type such as f32[2, B]") from None

    def function(self) -> Function:
        self.take("func")
        self.take("@")
        name = self.until("(")
        self.take("(")
        ops: list[Op] = []
        while self.token != ")":
            ops.append(self.argument(sum(o.name == "input" for o in ops)))
            if not self.took(","):
                break
        self.take(")")
        self.take("->")
        returns = self.word()
        origins = self.origins()
        self.take("{")
        while self.token == "%":
            ops.append(self.op())
        self.take("return")
        results = []
        if self.token == "%":
            results.append(self.value_id())
            while self.took(","):
                results.append(self.value_id())
        self.take("}")
        return Function(name, tuple(ops), tuple(results), returns, origins[0] if origins else None)

    def argument(self, index: int) -> Op:
        kind = "parameter" if self.took("parameter") else "input"
        id = self.value_id()
        self.take(":")
        type, name = self.type(), self.string()
        label = self.string() if self.token.startswith('"') else name
        attrs = (("index", index), ("name", name)) if kind == "input" else (("name", name),)
        return Op(id, kind, (), attrs, type, self.origins(), label)

    def op(self) -> Op:
        id = self.value_id()
        label = self.string() if self.token.startswith('"') else ""
        self.take("=")
        name, operands, attrs = self.word(), [], []
        if self.token == "%":
            operands.append(self.value_id())
            while self.took(","):
                operands.append(self.value_id())
        if self.took("{"):
            while self.token != "}":
                key = self.word()
                self.take("=")
                attrs.append((key, self.value()))
                if not self.took(","):
                    break
            self.take("}")
        self.take(":")
        type = self.type()
        return Op(id, name, tuple(operands), tuple(attrs), type, self.origins(), label)

    def value(self) -> Any:
        if self.token.startswith('"'):
            return self.string()
        if self.token == "(" and not self.is_dim():
            return self.items()
        text = self.until(",}")
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text == "-inf":
            return -math.inf
        if text in _WORDS:
            return DType.parse(text)
        if re.fullmatch(r"-?[0-9]+", text):
            return int(text)
        if re.fullmatch(r"-?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?", text):
            return float(text)
        try:
            return parse_dim(text[4:-1] if text.startswith("dim(") else text)
        except ValueError:
            raise CuvilError(f"IR text: {text!r}", expected="an attribute value") from None

    def is_dim(self) -> bool:
        """Whether the parenthesis that opens here holds a dim such as (T // 2) and not a tuple: no comma of its own depth."""
        depth = 0
        for character in self.text[self.place - 1:]:
            depth += (character in "([") - (character in ")]")
            if character == "," and depth == 1:
                return False
            if depth == 0:
                return self.text[self.place - 1:self.place + 1] != "()"
        return False

    def items(self) -> tuple:
        """A tuple; nested ones are read with a stack."""
        stack: list[list] = []
        while True:
            if self.token == "(" and not self.is_dim():
                self.advance()
                stack.append([])
                if self.token != ")":
                    continue
            elif self.token != ")":
                stack[-1].append(self.value())
                if self.took(",") and self.token != ")":
                    continue
            while self.took(")"):
                done = tuple(stack.pop())
                if not stack:
                    return done
                stack[-1].append(done)
                self.took(",")
            if not self.token:
                raise self.fail("')'")

    def origins(self) -> tuple[Origin, ...]:
        if not self.took("@"):
            return ()
        found = []
        while True:
            span = self.span()
            node = self.word() if self.took(":") else ""
            callers = []
            while self.took("<"):
                callers.append(self.span())
            found.append(Origin(span, node, tuple(callers)))
            if not self.took("|"):
                return tuple(found)

    def span(self) -> Span:
        path = self.string()
        numbers = []
        for separator in (":", ":", "-", ":"):
            self.take(separator)
            numbers.append(self.integer())
        return Span(path, *numbers)
