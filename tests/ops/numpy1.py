"""Prints what NumPy 1 promotes to, one pair of operands a line; `python tests/ops/numpy1.py > tests/ops/numpy1.txt` under NumPy 1.26.

`float32[2]` is an array with axes, `float32[]` a 0-d one that holds 1, anything else a Python number.
"""
import numpy as np

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
NUMBERS = (True, 0, 3, 200, 300, -1, -200, 40000, 3000000000, 2.5, 70000.0, 1e39, float("inf"))

if __name__ == "__main__":
    assert np.__version__.startswith("1."), "only NumPy 1 knows"
    tensors = [f"{dtype}[{shape}]" for dtype in DTYPES for shape in ("2", "")]
    for a in tensors:
        for b in (*tensors, *NUMBERS):
            x, y = (np.ones(2 if v.endswith("[2]") else (), v.partition("[")[0]) if isinstance(v, str) else v for v in (a, b))
            print(a, "+", b, "->", (x * y).dtype.name)
