"""Every example of every op, compiled: the same values as the interpreter, for each kind of CPU and any number of threads.

Examples are joined into functions of many results, so that the code generator is started a few dozen times, not a thousand.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from native import Native

import cuvil.ops  # noqa: F401
from cuvil import passes
from cuvil.ir import interpret
from cuvil.ir.function import Function, sorted_attrs
from cuvil.ops.definition import TypeRuleError
from cuvil.ops.examples import all_examples, arrays, capture

BATCH = 24
# Native code and NumPy both round functions and sums their own way; halves are rounded once more at the end.
TOLERANCE = {2: (2e-3, 1e-3), 4: (3e-6, 1e-6), 8: (1e-13, 1e-13)}


def captured() -> list[tuple[str, Function, list[np.ndarray]]]:
    found = []
    for _, example in all_examples():
        library = "numpy" if "np." in example.code or ".astype" in example.code else "torch"
        try:
            function = capture(example, library)
        except TypeRuleError:                        # an example of what a library refuses
            continue
        values = arrays(example)
        found.append((example.code, function, [values[op.attr("name")] for op in function.inputs]))
    return found


def joined(functions: list[Function]) -> Function:
    """One function that returns the results of all."""
    ops, results, inputs, first = [], [], 0, 0
    for function in functions:
        renamed = {op.id: first + i for i, op in enumerate(function.ops)}
        for op in function.ops:
            attrs = dict(op.attrs)
            if op.name == "input":
                attrs["index"] += inputs
            ops.append(replace(op, id=renamed[op.id], operands=tuple(renamed[o] for o in op.operands), attrs=sorted_attrs(attrs)))
        results += [renamed[r] for r in function.results]
        inputs += len(function.inputs)
        first += len(function.ops)
    return Function("examples", tuple(ops), tuple(results), "tuple")


ALL = captured()
BATCHES = [ALL[i:i + BATCH] for i in range(0, len(ALL), BATCH)]


@pytest.mark.parametrize("batch, target", [(i, t) for i in range(len(BATCHES)) for t in ("cpu", ("x86_64_avx2", "generic")[i % 2])])
def test_native_code_gives_what_the_interpreter_gives(batch, target):
    examples = BATCHES[batch]
    native = Native(passes.run(joined([f for _, f, _ in examples])).function, target)
    inputs = [x for _, _, values in examples for x in values]
    found, shared = native(inputs), native(inputs, threads=2)
    at = 0
    for code, function, values in examples:
        with np.errstate(all="ignore"):
            expected = interpret.run(function, values)
        for e in map(np.asarray, expected):
            same(found[at], e, code)
            assert found[at].tobytes() == shared[at].tobytes(), f"{code}: two threads give other bits than one"
            at += 1


def same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert found.shape == expected.shape, what
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, what)
        return
    relative, absolute = TOLERANCE[expected.dtype.itemsize]
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), relative, absolute, err_msg=what)
