"""How the time of a lint grows with what a file has more of: the exponent of a power, fitted to sizes that double.

Processor time of a fresh session, the least of RUNS, at 1x, 2x, 4x and 8x; the exponent is the slope of the line through their logarithms.
The limit is n log n, which over these sizes reads as 1.2, and what noise adds; above it this benchmark fails, and names the term.
"""
import math
import sys
import time
from collections.abc import Callable

from report import Row, main

from cuvil_ide.session import Session

RUNS, LIMIT = 3, 1.4
HEAD = "import torch\nfrom torch import nn\n\n\n"
ENTRY = "def f(x: torch.Tensor, n):\n"


def file_length(n: int) -> str:
    return HEAD + "".join(f"def f{i}(x: torch.Tensor):\n    h = torch.relu(x) * {i}\n    return h.sum(dim=-1)\n\n\n" for i in range(n))


def function_length(n: int) -> str:
    return HEAD + ENTRY + "".join(f"    y{i} = torch.relu(x) + {i}\n" for i in range(n)) + "    return y0\n"


def chain_of_ops(n: int) -> str:
    return HEAD + ENTRY + "    x = torch.relu(x) * 2\n" * n + "    return x\n"


def branches(n: int) -> str:
    return HEAD + ENTRY + "".join(f"    if n > {i}:\n        x = x + {i}\n" for i in range(n)) + "    return x\n"


def call_sites(n: int) -> str:
    return HEAD + "def g(x: torch.Tensor):\n    return torch.relu(x) + 1\n\n\n" + ENTRY + "".join(f"    y{i} = g(x)\n" for i in range(n)) + "    return y0\n"


def classes(n: int) -> str:
    one = "class M{i}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(4, 4)\n\n    def forward(self, x):\n        return self.a(x)\n\n\n"
    return HEAD + "".join(one.format(i=i) for i in range(n))


def nesting(n: int) -> str:
    return HEAD + ENTRY + "".join(f"{'    ' + ' ' * i}if n > {i}:\n" for i in range(n)) + "     " + " " * n + "x = x + 1\n    return x\n"


TERMS: dict[Callable[[int], str], int] = {file_length: 50, function_length: 40, chain_of_ops: 40, branches: 20, call_sites: 30, classes: 20, nesting: 10}


def seconds(text: str) -> float:
    session = Session(".")
    session.update("grown.py", text)
    started = time.process_time()
    session.diagnostics("grown.py")
    return time.process_time() - started


def measure() -> list[Row]:
    seconds(file_length(5))                                     # what is loaded once is not counted
    rows = []
    for term, smallest in TERMS.items():
        sizes = [smallest * factor for factor in (1, 2, 4, 8)]
        times = [min(seconds(term(size)) for _ in range(RUNS)) for size in sizes]
        rows.append({"grows": term.__name__.replace("_", " "), "from": sizes[0], "to": sizes[-1], "least ms": times[0] * 1e3, "most ms": times[-1] * 1e3,
                     "exponent": slope([math.log(size) for size in sizes], [math.log(max(each, 1e-6)) for each in times])})
    steep = [row["grows"] for row in rows if row["exponent"] > LIMIT]
    if steep:
        print("grows faster than n log n:", ", ".join(steep), file=sys.stderr)
    failed.extend(steep)
    return rows


def slope(xs: list[float], ys: list[float]) -> float:
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


failed: list[str] = []

if __name__ == "__main__":
    main(__doc__, measure)
    sys.exit(1 if failed else 0)
