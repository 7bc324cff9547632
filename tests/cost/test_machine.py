"""Machines as Linux describes them: a server, a laptop, an ARM board, and one that says nothing."""
import pytest

from cuvil.cost.machine import DEFAULT_HERTZ, describe, detect

SERVER = """processor\t: 0
model name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz
cpu MHz\t\t: 3100.000
flags\t\t: fpu sse sse2 avx avx2 fma avx512f avx512dq
"""
LAPTOP = "processor: 0\nmodel name: AMD Ryzen 7 5800U\ncpu MHz: 1900.0\nflags: sse2 avx avx2 fma\n"
BOARD = "processor : 0\nBogoMIPS : 108.00\nFeatures : fp asimd evtstrm crc32\n"


def caches(folder, *levels):
    for i, (level, kind, size) in enumerate(levels):
        index = folder / f"index{i}"
        index.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (index / name).write_text(f"{text}\n")
    return folder


def test_server(tmp_path):
    m = describe(SERVER, caches(tmp_path, (1, "Data", "32K"), (1, "Instruction", "32K"), (2, "Unified", "1M"), (3, "Unified", "28160K")), 8, "x86_64")
    assert (m.name, m.cores, m.vector_bytes, m.hertz) == ("Intel Xeon Gold 6248", 8, 64, 2.5e9)
    assert (m.l1, m.l2, m.l3) == (32 << 10, 1 << 20, 28160 << 10)
    assert m.peak == 8 * 2.5e9 * 2 * 2 * 16
    assert m.bandwidth == 96e9
    assert m.ridge == pytest.approx(1280e9 / 96e9)


def test_laptop(tmp_path):
    m = describe(LAPTOP, tmp_path, 4, "x86_64")
    assert (m.vector_bytes, m.fma_pipes, m.hertz) == (32, 2, 1.9e9)
    assert (m.l1, m.l2, m.l3) == (0, 0, 0)


def test_board(tmp_path):
    m = describe(BOARD, tmp_path, 4, "aarch64")
    assert (m.name, m.vector_bytes, m.hertz) == ("aarch64", 16, DEFAULT_HERTZ)


def test_nothing_known(tmp_path):
    m = describe("", tmp_path / "missing", 0, "")
    assert m.cores == 1 and m.peak > 0 and m.bandwidth > 0


def test_bandwidth_has_a_limit(tmp_path):
    assert describe(SERVER, tmp_path, 64, "x86_64").bandwidth == 200e9


# The roofline: the slower of computing and moving.
def test_roofline(tmp_path):
    m = describe(LAPTOP, tmp_path, 1, "x86_64")
    assert m.seconds(0, 12_000_000_000) == pytest.approx(1.0)
    assert m.seconds(int(m.peak), 0) == pytest.approx(1.0)
    assert m.bound(m.ridge * 0.9) == "memory-bound" and m.bound(m.ridge * 1.1) == "compute-bound" and m.bound(None) == "unknown"


def test_this_machine():
    m = detect()
    assert m.cores >= 1 and m.ridge > 0
    assert "ridge" in str(m)
