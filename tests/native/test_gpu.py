"""Kernels for GPUs: PTX that ptxas accepts, SPIR-V that runs on an OpenCL device, and what is refused."""
from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import numpy as np
import pytest

import cuvil.ops  # noqa: F401
from cuvil import llvm, loops, passes
from cuvil.diagnostics import CuvilError
from cuvil.ir import interpret
from cuvil.ir.function import Function
from cuvil.ir.types import DType, TensorType
from cuvil.lineage import Origin
from cuvil.ops.builder import Builder
from cuvil.ops.definition import call
from cuvil.passes.fuse import fuse
from cuvil.source import Span

F32 = DType.F32
PTXAS = shutil.which("ptxas")


def module(function: Function, target: str) -> llvm.GpuModule:
    return llvm.emit(loops.program(fuse(passes.run(function).function), llvm.target(target)))


def built(make, *types: TensorType) -> Function:
    b = Builder()
    with b.at(Origin(Span("model.py", 3, 4, 3, 9))):
        results = make(b, *(b.input(f"x{i}", i, t) for i, t in enumerate(types)))
    return b.function("f", results if isinstance(results, list) else [results])


def gelu(b, x, y):
    return call(b, "torch.nn.functional.gelu", [b.emit("add", x, y)], {})


def softmax(b, x):
    return call(b, "torch.softmax", [x, -1], {})


def layer_norm(b, x, weight):
    return call(b, "torch.nn.functional.layer_norm", [x, (x.type.shape[-1],), weight], {})


CASES = {
    "elementwise": built(gelu, TensorType((3, 50), F32), TensorType((50,), F32)),
    "transposed": built(lambda b, x: b.emit("exp", b.emit("transpose", x, axes=(1, 0))), TensorType((7, 9), F32)),
    "softmax": built(softmax, TensorType((37, 100), F32)),
    "layer_norm": built(layer_norm, TensorType((5, 64), F32), TensorType((64,), F32)),
    "column sums": built(lambda b, x: b.emit("reduce_sum", x, axes=(0,), keepdims=False), TensorType((33, 20), F32)),
    "total": built(lambda b, x: b.emit("reduce_max", x, axes=(0, 1), keepdims=False), TensorType((5, 7), F32)),
    "halves": built(lambda b, x: b.emit("mul", x, x), TensorType((130,), DType.F16)),
    "integers": built(lambda b, x, y: b.emit("floordiv", x, y), TensorType((9,), DType.I32), TensorType((9,), DType.I32)),
    "two kernels": built(lambda b, x: softmax(b, b.emit("transpose", softmax(b, x), axes=(1, 0))), TensorType((8, 16), F32)),
}


@pytest.mark.parametrize("name", CASES)
def test_ptx_names_its_kernels_and_lines(name):
    made = module(CASES[name], "cuda:sm_90")
    ptx = made.code.decode()
    assert ".target sm_90" in ptx and "debug" not in ptx.split(".address_size")[0]
    assert re.findall(r"\.visible \.entry (\w+)\(", ptx) == [k.name for k in made.kernels]
    assert re.search(r"\.loc\s+\d+ 3 ", ptx), "no line of model.py"
    assert all(k.threads <= k.grid[0] * k.grid[1] < k.threads + k.grid[1] for k in made.kernels)


def test_ptx_lines_name_llvm_lines():
    made = module(CASES["softmax"], "cuda")
    lines, known = made.assembly(), {line.id for line in made.lines}
    assert {o for line in lines for o in line.origins} <= known
    assert sum(bool(line.origins) for line in lines) > 0.8 * len(lines)
    assert all(line.origins or line.note for line in (*lines, *made.lines))


@pytest.mark.skipif(not PTXAS, reason="needs ptxas")
@pytest.mark.parametrize("name", CASES)
def test_ptx_assembles(name):
    assert module(CASES[name], "cuda_sm90").cubin()[:4] == b"\x7fELF"


@pytest.mark.parametrize("target", ["cuda_sm90", "opencl"])
def test_what_does_not_run_there_is_refused_with_its_kernel_and_place(target):
    product = built(lambda b, x, y: b.emit("matmul", x, y), *[TensorType((8, 8), F32)] * 2)
    with pytest.raises(CuvilError, match=r"model.py:3:5: kernel k0_matmul is a contraction"):
        module(product, target)
    with pytest.raises(CuvilError, match=r"kernel k0_pow: powf is a function of the C library"):
        module(built(lambda b, x, y: b.emit("pow", x, y), *[TensorType((8,), F32)] * 2), target)
    lookup = built(lambda b, x, i: call(b, "torch.nn.functional.embedding", [i, x], {}), TensorType((5, 4), F32), TensorType((3,), DType.I64))
    with pytest.raises(CuvilError, match="positions that must be checked"):
        module(lookup, target)


# LLVM's SPIR-V back end keeps state between modules; what is made must not depend on what was made before.
def test_spirv_is_the_same_however_often_it_is_made():
    from cuvil.llvm.spirv import result_ids_are_unique
    first = [module(CASES[name], "opencl").code for name in ("integers", "softmax")]
    module(CASES["integers"], "cuda").code
    assert [module(CASES[name], "opencl").code for name in ("integers", "softmax")] == first
    assert all(map(result_ids_are_unique, first))
    label = first[0].index((2 << 16 | 248).to_bytes(4, "little"))          # OpLabel; its id made that of the first type
    broken = first[0][:label + 4] + first[0][first[0].index((2 << 16 | 19).to_bytes(4, "little")) + 4:][:4] + first[0][label + 8:]
    assert not result_ids_are_unique(broken)


# --- on a device: Intel's OpenCL runtime for CPUs, from PyPI, in a process of its own ---------------------------------

RUNNER = textwrap.dedent("""
    import json, sys
    import numpy as np
    import pyopencl as cl
    folder = sys.argv[1]
    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    for case in json.load(open(folder + "/cases.json")):
        program = cl.Program(context, open(f"{folder}/{case['id']}.spv", "rb").read()).build()
        buffers = {}
        for kind, sizes in case["buffers"].items():
            for position, size in sizes:
                data = np.load(f"{folder}/{case['id']}.{position}.npy") if kind == "input" else np.zeros(max(size, 1), np.uint8)
                buffers[kind, position] = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=data)
        for kernel in case["kernels"]:
            blocks, size = kernel["grid"]
            getattr(program, kernel["name"])(queue, (blocks * size,), (size,), *(buffers[tuple(a)] for a in kernel["arguments"]))
        for position, size in case["buffers"]["output"]:
            out = np.empty(size, np.uint8)
            cl.enqueue_copy(queue, out, buffers["output", position]).wait()
            out.tofile(f"{folder}/{case['id']}.{position}.out")
""")


def opencl_environment(folder: Path) -> dict[str, str]:
    pytest.importorskip("pyopencl")
    found = glob.glob(os.path.join(sys.prefix, "lib", "**", "libintelocl.so*"), recursive=True) + \
        glob.glob(os.path.join(sysconfig.get_path("data"), "lib", "libintelocl.so*"))
    if not found:
        pytest.skip("needs intel-opencl-rt")
    (folder / "vendors").mkdir()
    (folder / "vendors" / "intel.icd").write_text(found[0] + "\n")
    return {**os.environ, "OCL_ICD_VENDORS": str(folder / "vendors"),
            "LD_LIBRARY_PATH": os.path.dirname(found[0]) + os.pathsep + os.environ.get("LD_LIBRARY_PATH", "")}


@pytest.mark.device
def test_spirv_runs_and_gives_what_the_interpreter_gives(tmp_path):
    import json
    environment = opencl_environment(tmp_path)
    random, cases, inputs = np.random.default_rng(0), [], {}
    for number, function in enumerate(CASES.values()):
        made = module(function, "opencl")
        inputs[number] = [random.integers(1, 9, op.type.shape).astype(op.type.dtype.numpy) if op.type.dtype.is_int else
                          random.standard_normal(op.type.shape).astype(op.type.dtype.numpy) for op in function.inputs]
        for i, x in enumerate(inputs[number]):
            np.save(tmp_path / f"{number}.{i}.npy", x)
        (tmp_path / f"{number}.spv").write_bytes(made.code)
        scratch = {a.position for k in made.kernels for a in k.arguments if a.kind == "scratch"}
        assert scratch <= {0}
        cases.append({
            "id": number, "kernels": [{"name": k.name, "grid": k.grid, "arguments": [(a.kind, a.position) for a in k.arguments]} for k in made.kernels],
            "buffers": {"input": [(i, x.nbytes) for i, x in enumerate(inputs[number])], "scratch": [(0, made.scratch)],
                        "output": [(i, function.by_id[r].type.nbytes) for i, r in enumerate(function.results)]}})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    done = subprocess.run([sys.executable, "-c", RUNNER, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    for number, (name, function) in enumerate(CASES.items()):
        for i, expected in enumerate(interpret.run(function, inputs[number])):
            found = np.fromfile(tmp_path / f"{number}.{i}.out", expected.dtype).reshape(expected.shape)
            np.testing.assert_allclose(found, expected, 1e-5 if expected.dtype != np.float16 else 2e-3, 1e-6, err_msg=name)
