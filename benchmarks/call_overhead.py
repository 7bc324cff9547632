"""What a call costs: a compiled function of 4 numbers from Python, against the same line in NumPy and PyTorch.

Microseconds per call, p50. The goal is under 10. Single-threaded callers; torch without gradients.
"""
import numpy as np
from report import Row, in_turn, main

import cuvil as cu

CALLS = 1000


def add_one(x: np.ndarray) -> np.ndarray:
    return x + np.float32(1)


def measure() -> list[Row]:
    compiled = cu.compile(add_one, input_shapes={"x": (4,)})
    x = np.ones(4, np.float32)
    rows = [_row("NumPy arrays", compiled, add_one, x)]
    try:
        import torch
    except ImportError:
        return rows
    with torch.inference_mode():
        return [*rows, _row("torch tensors", cu.compile(add_one_torch, input_shapes={"x": (4,)}), add_one_torch, torch.ones(4))]


def add_one_torch(x):
    return x + 1


def _row(what: str, compiled, plain, x) -> Row:
    def repeated(call):
        def run():
            for _ in range(CALLS):
                call(x)
        return run
    times = in_turn({"compiled": repeated(compiled), "plain": repeated(plain)}, seconds=1.0)
    us = {name: seconds / CALLS * 1e6 for name, seconds in times.items()}
    return {"call with": what, "compiled us": us["compiled"], "plain us": us["plain"], "ratio": us["compiled"] / us["plain"]}


if __name__ == "__main__":
    main(__doc__, measure)
