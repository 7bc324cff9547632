"""Where instructions come from: LLVM lines and assembly lines name their origin, and gdb finds the Python line of each."""
from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from native import Native, runtime_folder

import cuvil.ops  # noqa: F401
from cuvil.ir.types import DType, TensorType
from cuvil.lineage import Origin
from cuvil.ops.builder import Builder
from cuvil.source import Span


@pytest.fixture(scope="module")
def native():
    """Two lines of a Python file: y = exp(x) @ w, then y + y."""
    b = Builder()
    types = [TensorType((40, 40), DType.F32)] * 2
    x, w = (b.input(n, i, t) for i, (n, t) in enumerate(zip("xw", types)))
    places = [Origin(Span("/tmp/model.py", line, 4, line, 20), "Assign") for line in (7, 8, 9)]
    with b.at(places[0]):
        e = b.emit("exp", x)
    with b.at(places[1]):
        y = b.emit("matmul", e, w)
    with b.at(places[2]):
        z = b.emit("add", y, y)
    return Native(b.function("model", [z], origin=Origin(Span("/tmp/model.py", 6, 0, 9, 20), "FunctionDef")))


def test_llvm_lines_name_loop_statements_or_say_why_not(native):
    lines = native.module.lines
    statements = {s.id for nest in native.program.nests for _, s in nest.statements}
    assert [line.id for line in lines] == [f"llvm:{i}" for i in range(len(lines))]
    assert all(set(line.origins) <= statements for line in lines)
    assert all(line.origins or line.note for line in lines)
    assert all("!dbg" not in line.text for line in lines)
    work = [line for line in lines if re.search(r"fmul|fadd|llvm\.fma|load <|store <", line.text)]
    assert work and all(line.origins for line in work)


def test_assembly_lines_name_llvm_lines_or_say_why_not(native):
    lines, llvm = native.module.assembly(), {line.id for line in native.module.lines}
    assert all(set(line.origins) <= llvm for line in lines)
    assert all(line.origins or line.note for line in lines)
    mapped = [line for line in lines if line.origins]
    assert len(mapped) > 0.7 * len(lines)
    assert any(line.note == "function prologue" for line in lines)


@pytest.mark.skipif(not shutil.which("gdb") or not shutil.which("cc"), reason="needs gdb and cc")
def test_gdb_finds_python_lines(native, tmp_path):
    (tmp_path / "kernels.o").write_bytes(native.module.object())
    library = tmp_path / "libmodel.so"
    subprocess.run(["cc", "-shared", "-o", library, tmp_path / "kernels.o", runtime_folder() / "threads.o", "-lm", "-lpthread"], check=True)
    said = subprocess.run(["gdb", "-nx", "-batch", "-ex", "info line model.py:7", "-ex", "info line model.py:8", "-ex", "info line model.py:9",
                           "-ex", "break model.py:8", "-ex", "info scope nothing", library], capture_output=True, text=True, timeout=60).stdout
    for line in (7, 8, 9):
        assert re.search(rf'Line {line} of "(/tmp/)?model\.py" starts at address 0x[0-9a-f]+ <k\d', said), said
    assert re.search(r"Breakpoint 1 at 0x[0-9a-f]+: .*model\.py", said), said
