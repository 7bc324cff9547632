"""Matrix products on one thread against PyTorch and NumPy: GFLOP/s, fp32, and our time as a share of torch's.

Threads of the BLAS libraries are set to one before they load. "of torch" is torch's time over ours: 1 is as fast, the first
row is the one with a floor (0.6). Rows with packed weights have the right operand as a parameter in the layout of nn.Linear,
packed when the library is loaded.
"""
import os
import tempfile

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)

import torch  # noqa: E402
from report import Row, in_turn, main  # noqa: E402

import cuvil as cu  # noqa: E402

# rows, columns, depth, whether the right operand is a packed parameter
SIZES = [(1024, 1024, 1024, False), (1024, 1024, 1024, True), (256, 256, 256, False), (128, 64, 64, False), (64, 3072, 768, True),
         (4, 4096, 4096, True), (1, 4096, 4096, True), (1000, 1000, 1000, False), (77, 129, 513, False)]


class Linear(torch.nn.Module):
    def __init__(self, depth: int, columns: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns, depth))

    def forward(self, x):
        return x @ self.weight.T


def product(x, y):
    return x @ y


def measure() -> list[Row]:
    torch.set_num_threads(1)
    with torch.inference_mode():
        return [_row(*size) for size in SIZES]


def _row(m: int, n: int, k: int, packed: bool) -> Row:
    x = torch.randn(m, k)
    if packed:
        eager = Linear(k, n).eval()
        source, shapes, arguments, right = cu.compile(eager), {"x": (m, k)}, (x,), eager.weight.numpy().T
    else:
        y = torch.randn(k, n)
        eager, source, shapes, arguments, right = torch.matmul, cu.compile(product), {"x": (m, k), "y": (k, n)}, (x, y), y.numpy()
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libgemm.so")
        source.save(library, shapes)
        compiled = cu.load(library, threads=1)
    torch.testing.assert_close(compiled(*arguments), eager(*arguments), rtol=1e-3, atol=1e-3)
    times = in_turn({"cuvil": lambda: compiled(*arguments), "torch": lambda: eager(*arguments), "numpy": lambda: x.numpy() @ right})
    speed = {who: 2 * m * n * k / seconds / 1e9 for who, seconds in times.items()}
    return {"matmul": f"{m}x{n}x{k}" + (" packed" if packed else ""), "cuvil GFLOP/s": speed["cuvil"], "torch GFLOP/s": speed["torch"],
            "numpy GFLOP/s": speed["numpy"], "of torch": times["torch"] / times["cuvil"]}


if __name__ == "__main__":
    main(__doc__, measure)
