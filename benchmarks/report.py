"""How every benchmark here speaks: a small table for people, the same numbers as JSON with --json.

A benchmark is a file with `measure() -> list[dict]`, rows of equal keys, and `main(__doc__, measure)` at its end. What is
compared in a row was measured in the same run, in turn, so that a busy machine slows both; read the ratios, not the times.
"""
import json
import statistics
import sys
import time
from collections.abc import Callable

Row = dict[str, object]


def main(about: str, measure: Callable[[], list[Row]]) -> None:
    rows = measure()
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows, indent=1))
        return
    print(about.strip().splitlines()[0])
    cells = [list(rows[0]), *([_cell(v) for v in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    for line in cells:
        print("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip())


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def in_turn(contenders: dict[str, Callable[[], object]], seconds: float = 1.5, warmup: int = 3) -> dict[str, float]:
    """The median seconds of a call of each contender; they take turns until the time is up, five rounds at least."""
    for call in contenders.values():
        for _ in range(warmup):
            call()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    until = time.perf_counter() + seconds * len(contenders)
    while time.perf_counter() < until or len(next(iter(times.values()))) < 5:
        for name, call in contenders.items():
            started = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in times.items()}
