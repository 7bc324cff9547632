"""The meaning of CIR, executed with NumPy: the reference that native code is compared with.

Inputs and results are ordinary arrays; bf16 has no NumPy type and is held in f32 arrays whose values are bf16 numbers.
Composites run as what they decompose into. Exact about types, slow about everything else.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..diagnostics import CuvilError
from .dims import Poly, exact_quotient, substitute, symbol, symbols
from .function import Function, Op
from .types import DType


def run(function: Function, inputs: Sequence[np.ndarray], parameters: Mapping[str, np.ndarray] = {}) -> list[np.ndarray]:
    """The results for given arguments, in order. CuvilError when the arguments are not of the function's input types."""
    arguments = _arguments(function, inputs, parameters)
    dims = bind([(op, arguments[op.id].shape) for op in (*function.inputs, *function.parameters)])
    if dims:
        function = function.substitute(dims)
    for op in (*function.inputs, *function.parameters):
        _check(op, arguments[op.id])
    with np.errstate(all="ignore"):
        return _execute(function, arguments)


def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy type that holds elements of dtype here."""
    return np.dtype("float32" if dtype == DType.BF16 else dtype.numpy)


def bind(arguments: Sequence[tuple[Op, tuple[int, ...]]]) -> dict[str, int]:
    """The value of every symbol, from the shapes of arguments. CuvilError when they contradict each other."""
    dims: dict[str, int] = {}
    waiting = [(op, axis, dim, shape[axis]) for op, shape in arguments if op.type.rank == len(shape)
               for axis, dim in enumerate(op.type.shape) if isinstance(dim, Poly)]
    while waiting:
        left = []
        for op, axis, dim, size in waiting:
            known = substitute(dim, dims)
            if isinstance(known, int):
                if known != size:
                    raise CuvilError(f"argument {_name(op)} of type {op.type} has size {size} on axis {axis}, but {dim} is {known}"
                                     f" (with {', '.join(f'{k} = {v}' for k, v in dims.items() if k in symbols(dim))})", expected=f"size {known}")
                continue
            solved = _solve(known, size)
            if solved is None:
                left.append((op, axis, dim, size))
            else:
                dims.update([solved])
        if len(left) == len(waiting):
            op, axis, dim, size = left[0]
            raise CuvilError(f"the size {dim} of axis {axis} of argument {_name(op)} does not determine its symbols",
                             hint="name each symbol alone as the size of some axis of an argument")
        waiting = left
    return dims


def _solve(dim: Poly, size: int) -> tuple[str, int] | None:
    """dim = size for a dim that is linear in one symbol: a*s + b."""
    names = symbols(dim)
    if len(names) != 1:
        return None
    name = next(iter(names))
    offset = substitute(dim, {name: 0})
    slope = exact_quotient(dim - offset, symbol(name)) if isinstance(offset, int) else None
    value = exact_quotient(size - offset, slope) if isinstance(slope, int) else None
    return None if value is None else (name, value)


def _arguments(function: Function, inputs, parameters) -> dict[int, np.ndarray]:
    if len(inputs) != len(function.inputs):
        raise CuvilError(f"{function.name} takes {len(function.inputs)} arguments, {len(inputs)} were given",
                         expected=", ".join(f"{_name(op)}: {op.type}" for op in function.inputs))
    missing = [op.attr("name") for op in function.parameters if op.attr("name") not in parameters]
    if missing:
        raise CuvilError(f"{function.name} has no value for parameter {missing[0]}", expected=f"values for {', '.join(missing)}")
    return {**{op.id: np.asarray(x) for op, x in zip(function.inputs, inputs)},
            **{op.id: np.asarray(parameters[op.attr("name")]) for op in function.parameters}}


def _check(op: Op, array: np.ndarray) -> None:
    if array.shape != op.type.shape or array.dtype != numpy_dtype(op.type.dtype):
        raise CuvilError(f"argument {_name(op)} is {array.dtype}{list(array.shape)}", expected=str(op.type))


def _name(op: Op) -> str:
    return repr(op.attr("name") or f"%{op.id}")


def _execute(function: Function, values: dict[int, np.ndarray]) -> list[np.ndarray]:
    """Ops in order; a composite is opened in place, so that nesting costs a stack of iterators and no recursion."""
    from ..ops import DEFINITIONS
    from ..ops.composite import opened
    from ..ops.meaning import round_bf16
    stack = [(function, values, iter(function.body), None)]
    while True:
        current, values, ops, waiting = stack[-1]
        op = next(ops, None)
        if op is None:
            results = [values[r] for r in current.results]
            stack.pop()
            if not stack:
                return results
            target, values = waiting, stack[-1][1]
            values[target.id] = _typed(results[0], target)
            continue
        definition, operands = DEFINITIONS[op.name], [values[o] for o in op.operands]
        if definition.decompose is not None:
            inner = opened(op.name, tuple(current.by_id[o].type for o in op.operands), op.attrs)
            stack.append((inner, {i.id: x for i, x in zip(inner.inputs, operands)}, inner.body, op))
            continue
        result = definition.evaluate(operands, op.attributes)
        if op.type.dtype == DType.BF16 and definition.kind not in ("movement",):
            result = round_bf16(np.asarray(result, np.float32))
        values[op.id] = _typed(np.asarray(result), op)


def _typed(array: np.ndarray, op: Op) -> np.ndarray:
    if array.shape != op.type.shape or array.dtype != numpy_dtype(op.type.dtype):
        raise CuvilError(f"%{op.id} = {op.name} came out as {array.dtype}{list(array.shape)}, its type is {op.type}",
                         hint="this is a defect of Cuvil; please report it")
    return array
