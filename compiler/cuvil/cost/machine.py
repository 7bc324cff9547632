"""The machine that numbers are compared with: cores, vectors, caches, peak FLOP/s, bandwidth and the ridge point between them.

`detect()` reads what Linux says of the CPU. What no file says is taken from these documented assumptions:

* two FMA pipes per core for AVX2 and AVX-512, one vector multiply-add pair for NEON and SSE: the usual big cores of the last decade;
* clock: the base clock in the model's name, else the one the kernel shows now, else 2.5 GHz; vector code seldom runs faster for long;
* memory bandwidth: 12 GB/s for each core, at most 200 GB/s: between a laptop's and a server socket's share per core.

They are estimates for colouring a picture, good to a factor of two. Measured numbers replace them where there are any.
"""
from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

DEFAULT_HERTZ = 2.5e9
BANDWIDTH_PER_CORE, BANDWIDTH_LIMIT = 12e9, 200e9


@dataclass(frozen=True)
class Machine:
    """name for people; vector_bytes of one register; cache sizes in bytes (l3 shared by all cores), 0 when unknown;
    fma_pipes per core; hertz; bandwidth in bytes/s of all cores."""

    name: str
    cores: int
    vector_bytes: int
    fma_pipes: int
    hertz: float
    l1: int
    l2: int
    l3: int
    bandwidth: float

    @property
    def peak(self) -> float:
        """fp32 FLOP/s of all cores: an FMA is 2 FLOPs."""
        return self.cores * self.hertz * self.fma_pipes * 2 * (self.vector_bytes // 4)

    @property
    def ridge(self) -> float:
        """FLOP/B at which computing takes as long as moving; below it code is memory-bound."""
        return self.peak / self.bandwidth

    def seconds(self, flops: int, nbytes: int) -> float:
        """The least time the machine needs: the roofline."""
        return max(flops / self.peak, nbytes / self.bandwidth)

    def bound(self, intensity: float | None) -> str:
        if intensity is None:
            return "unknown"
        return "memory-bound" if intensity < self.ridge else "compute-bound"

    def __str__(self) -> str:
        return (f"{self.name}: {self.cores} cores, {self.vector_bytes * 8}-bit vectors, {self.peak / 1e9:.0f} GFLOP/s fp32 (estimated), "
                f"{self.bandwidth / 1e9:.0f} GB/s (assumed), ridge {self.ridge:.1f} FLOP/B")


@lru_cache(maxsize=1)
def detect() -> Machine:
    """The machine we are on. Never fails: what cannot be read takes its documented default."""
    return describe(_read(Path("/proc/cpuinfo")), Path("/sys/devices/system/cpu/cpu0/cache"), usable_cores(), platform.machine())


def describe(cpuinfo: str, caches: Path, cores: int, architecture: str) -> Machine:
    """A machine from the text of /proc/cpuinfo and a sysfs cache folder."""
    facts: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            facts.setdefault(key.strip().lower(), value.strip())
    flags = set((facts.get("flags") or facts.get("features") or "").split())
    vector, pipes = next(((bytes_, pipes) for flag, bytes_, pipes in _VECTORS if flag in flags),
                         (16, 1))
    name = facts.get("model name") or facts.get("hardware") or architecture or "CPU"
    sizes = _cache_sizes(caches)
    return Machine(re.sub(r"\((R|TM)\)|CPU|\s+@.*", "", name).strip() or "CPU", max(cores, 1), vector, pipes, _hertz(name, facts),
                   sizes.get(1, 0), sizes.get(2, 0), sizes.get(3, 0), min(BANDWIDTH_PER_CORE * max(cores, 1), BANDWIDTH_LIMIT))


_VECTORS = (("avx512f", 64, 2), ("avx2", 32, 2), ("avx", 32, 1), ("asimd", 16, 2), ("sse2", 16, 1))


def usable_cores() -> int:
    """Cores this process may run on, which in a container is fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _hertz(name: str, facts: dict[str, str]) -> float:
    if found := re.search(r"@\s*([\d.]+)\s*GHz", name):
        return float(found[1]) * 1e9
    try:
        return float(facts["cpu mhz"]) * 1e6 or DEFAULT_HERTZ
    except (KeyError, ValueError):
        return DEFAULT_HERTZ


def _cache_sizes(folder: Path) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for index in sorted(folder.glob("index*")) if folder.is_dir() else ():
        size = re.fullmatch(r"(\d+)([KMG]?)", _read(index / "size").strip())
        level = _read(index / "level").strip()
        if size and level.isdigit() and _read(index / "type").strip() != "Instruction":
            sizes[int(level)] = int(size[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[size[2]]
    return sizes


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
