"""What every CIR function must keep, checked between passes; the error names the op and shows its line.

    verify(function)                  structure and types
    verify(function, origins=True)    also that no op has lost its place in the source
"""
from __future__ import annotations

from ..diagnostics import CuvilError
from .function import Function, Op
from .text import print_op
from .types import TensorType


def verify(function: Function, origins: bool = False) -> Function:
    """The function itself; CuvilError at the first op that breaks a rule."""
    from ..ops.definition import DEFINITIONS, TypeRuleError
    known: dict[int, TensorType] = {}
    for op in function.ops:
        definition = DEFINITIONS.get(op.name)
        if definition is None:
            raise _broken(function, op, "its name is not in the vocabulary")
        if op.id in known:
            raise _broken(function, op, f"%{op.id} is defined twice")
        missing = [o for o in op.operands if o not in known]
        if missing:
            raise _broken(function, op, f"%{missing[0]} is used before it is defined")
        if definition.arity is not None and len(op.operands) != definition.arity:
            raise _broken(function, op, f"it takes {definition.arity} operand{'s' * (definition.arity != 1)}")
        if [name for name, _ in op.attrs] != sorted(name for name, _ in op.attrs):
            raise _broken(function, op, "its attributes are not in order")
        if definition.kind != "source":
            try:
                inferred = definition.infer([known[o] for o in op.operands], dict(op.attrs))
            except (TypeRuleError, KeyError, ValueError, IndexError, TypeError) as error:
                raise _broken(function, op, f"its typing rule fails: {error}") from None
            if inferred != op.type:
                raise _broken(function, op, f"its type is {op.type}, its operands give {inferred}")
        if origins and not op.origins:
            raise _broken(function, op, "it has lost its origin")
        known[op.id] = op.type
    for result in function.results:
        if result not in known:
            raise CuvilError(f"function {function.name}: its result %{result} is not defined")
    indices = [op.attr("index") for op in function.inputs]
    if indices != list(range(len(indices))):
        raise CuvilError(f"function {function.name}: its inputs are numbered {indices}", expected=f"0 to {len(indices) - 1}, each once")
    return function


def _broken(function: Function, op: Op, what: str) -> CuvilError:
    return CuvilError(f"function {function.name}, `{print_op(op)}`: {what}", op.origins[0].span if op.origins else None)
