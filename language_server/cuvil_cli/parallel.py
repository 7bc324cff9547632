"""Work on many files in several processes; results come back in the order of the files, the same for any number of processes."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .garbage import collect_at_bounds

Result = TypeVar("Result")

CHUNK = 8                                    # files per task: enough to hide the cost of sending it, and no process waits long for the last
ALONE = 24                                   # up to so many files one process is quicker than starting others


def spread(paths: Sequence[str], work: Callable[[Sequence[str]], list[Result]], killed: Callable[[str], Result], jobs: int = 0) -> Iterator[Result]:
    """The result of each path. work: of a chunk of them, a function that another process can import. killed: the result of a path whose
    process was ended from outside (memory); the others are kept. jobs: processes, 0 for as many as there are cores."""
    chunks = [paths[i:i + CHUNK] for i in range(0, len(paths), CHUNK)]
    jobs = min(jobs or cores(), len(chunks))
    if jobs <= 1 or len(paths) <= ALONE:
        for chunk in chunks:
            yield from work(chunk)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), collect_at_bounds) as pool:
        tasks = [pool.submit(work, chunk) for chunk in chunks]
        for chunk, task in zip(chunks, tasks):
            try:
                results = task.result()
            except BrokenProcessPool:
                results = [killed(path) for path in chunk]
            yield from results


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def resident() -> int:
    """Bytes of memory that this process holds now; where the system does not say, more than any limit."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 1 << 62
