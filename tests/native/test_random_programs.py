"""Programs nobody would write: random graphs of ops, compiled for a random kind of CPU, against the interpreter.

Cut sizes are made so small that every loop is cut among threads and every long way is taken.
"""
from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from native import Native

import cuvil.ops  # noqa: F401
from cuvil import llvm, passes
from cuvil.ir import interpret
from cuvil.ir.function import Function
from cuvil.ir.types import DType, TensorType
from cuvil.loops import reduction, schedule
from cuvil.ops.builder import Builder
from cuvil.ops.definition import TypeRuleError, call

MOST_ELEMENTS = 60_000


def step(b: Builder, choose: random.Random, values: list):
    """One more op on the values so far; TypeRuleError when it does not fit, None when it needs more axes."""
    x = choose.choice(values[-4:])
    shape, rank = x.type.shape, len(x.type.shape)
    match choose.randint(0, 12):
        case 0:
            return b.emit(choose.choice(["tanh", "neg", "abs", "exp"]), b.emit("mul", x, b.constant(0.5, DType.F32)))
        case 1:
            return b.emit(choose.choice(["add", "mul", "maximum"]), x, choose.choice(values))
        case 2:
            return b.emit("transpose", x, axes=tuple(choose.sample(range(rank), rank)))
        case 3:
            size = math.prod(shape)
            rows = choose.choice([d for d in range(1, size + 1) if size % d == 0])
            return b.emit("reshape", x, shape=(rows, size // rows))
        case 4 if rank:
            axes = tuple(sorted(choose.sample(range(rank), choose.randint(1, rank))))
            return b.emit(choose.choice(["reduce_sum", "reduce_max"]), x, axes=axes, keepdims=choose.random() < 0.6)
        case 5 if rank > 1:
            return b.emit("matmul", x, b.emit("transpose", x, axes=(*range(rank - 2), rank - 1, rank - 2)))
        case 6 if rank > 1:
            return b.emit("matmul", x, choose.choice(values))
        case 7 if rank:
            return call(b, "torch.cat", [[x, b.emit("neg", x)], choose.randrange(rank)], {})
        case 8 if rank:
            return call(b, "torch.softmax", [x, choose.randrange(rank)], {})
        case 9 if rank:
            return call(b, "torch.nn.functional.pad", [x, (choose.randint(0, 2), choose.randint(0, 2))], {})
        case 10 if rank > 1:
            return call(b, "torch.tril", [x], {})
        case 11 if rank and shape[-1] > 1:
            return call(b, "operator.getitem", [x, (Ellipsis, slice(choose.randint(0, 1), shape[-1], choose.choice([1, 2])))], {})
        case 12 if rank:
            return call(b, "torch.flip", [x, [choose.randrange(rank)]], {})
    return None


def program(choose: random.Random) -> Function:
    b = Builder()
    values = [b.input(f"x{i}", i, TensorType(tuple(choose.choice([1, 2, 3, 5, 7, 16, 17, 33]) for _ in range(choose.randint(1, 4))), DType.F32))
              for i in range(choose.randint(1, 3))]
    for _ in range(choose.randint(3, 14)):
        try:
            made = step(b, choose, values)
        except TypeRuleError:
            continue
        if made is not None and made.type.numel <= MOST_ELEMENTS:
            values.append(made)
    return b.function("random", [values[-1], *choose.sample(values, choose.randint(0, 1))], "tuple")


@pytest.fixture(autouse=True)
def small_cuts(monkeypatch):
    chosen = llvm.target
    monkeypatch.setattr(llvm, "target", lambda name: replace(chosen(name), parallel_from=1, l2=8192))
    monkeypatch.setattr(schedule, "CHUNK", 128)
    monkeypatch.setattr(reduction, "PIECE", 5)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_gives_what_the_interpreter_gives(seed):
    choose = random.Random(seed)
    function = program(choose)
    numbers = np.random.default_rng(seed)
    inputs = [numbers.standard_normal(op.type.shape).astype(np.float32) for op in function.inputs]
    native = Native(passes.run(function).function, choose.choice(["cpu", "x86_64_avx2", "generic"]), choose.choice([2, 2, 1, 0]))
    with np.errstate(all="ignore"):
        expected = interpret.run(function, inputs)
    for one, three, e in zip(native(inputs), native(inputs, threads=3), expected, strict=True):
        largest = np.max(np.abs(e[np.isfinite(e)]), initial=1)
        np.testing.assert_allclose(one, e, rtol=1e-4, atol=1e-5 * largest)
        assert one.tobytes() == three.tobytes()
