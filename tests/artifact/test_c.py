"""A C program with the generated header: the right answer, and an error code with a message for every wrong call."""
import importlib.util
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cuvil.artifact.link import compiler
from cuvil.pipeline import compile_file

SOURCE = """import numpy as np
import cuvil as cu


@cu.compile(input_shapes={"x": (2, 3), "bias": (3,)}, input_dtypes={"x": "float32", "bias": "float32"})
def shifted(x, bias):
    return np.maximum(x + bias, 0.0), x.sum(axis=1)


@cu.compile(input_shapes={"table": (4, 2), "ids": (3,)}, input_dtypes={"ids": "int64"})
def lookup(table, ids):
    return table[ids]
"""

HEAD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shifted.h"

static float x[6] = {-1, 2, -3, 4, -5, 6}, bias[3] = {0.5f, -10, 3};
static float y[6], total[2];
static int64_t shape2[2] = {2, 3}, shape1[1] = {3}, shape_out[1] = {2};

static DLTensor tensor(void* data, int ndim, int64_t* shape) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data, t.ndim = ndim, t.shape = shape;
  t.device.device_type = kDLCPU;
  t.dtype.code = kDLFloat, t.dtype.bits = 32, t.dtype.lanes = 1;
  return t;
}
"""

RIGHT = HEAD + r"""
int main(void) {
  cuvil_model* model = cuvil_load(NULL, 1);
  if (!model) return puts(cuvil_last_error()), 1;
  DLTensor in[2] = {tensor(x, 2, shape2), tensor(bias, 1, shape1)}, out[2] = {tensor(y, 2, shape2), tensor(total, 1, shape_out)};
  int code = cuvil_run(model, in, 2, out, 2);
  printf("%d '%s'\n", code, cuvil_last_error());
  for (int i = 0; i < 6; i++) printf("%g ", y[i]);
  for (int i = 0; i < 2; i++) printf("%g ", total[i]);
  memset(y, 0, sizeof y);
  infer(x, bias, y, total);
  for (int i = 0; i < 6; i++) printf("%g ", y[i]);
  printf("\n%d\n", strstr(cuvil_manifest(), "\"name\": \"shifted\"") != NULL);
  cuvil_free(model);
  cuvil_free(NULL);
  return 0;
}
"""

WRONG = HEAD + r"""
static cuvil_model* model;
static void try(const char* what, const DLTensor* in, int n_in, DLTensor* out, int n_out) {
  int code = cuvil_run(model, in, n_in, out, n_out);
  printf("%s|%d|%s\n", what, code, cuvil_last_error());
}
#define FRESH in[0] = tensor(x, 2, shape2), in[1] = tensor(bias, 1, shape1), out[0] = tensor(y, 2, shape2), out[1] = tensor(total, 1, shape_out)

int main(void) {
  DLTensor in[2], out[2];
  int64_t other[2] = {3, 2}, strides[2] = {1, 2}, same[2] = {3, 1};
  FRESH; try("no model", in, 2, out, 2);
  model = cuvil_load(NULL, 0);
  FRESH; in[0].dtype.code = kDLInt; try("dtype", in, 2, out, 2);
  FRESH; in[0].dtype.bits = 64; try("bits", in, 2, out, 2);
  FRESH; in[0].dtype.lanes = 4; try("lanes", in, 2, out, 2);
  FRESH; in[0].ndim = 1; try("rank", in, 2, out, 2);
  FRESH; in[0].shape = other; try("shape", in, 2, out, 2);
  FRESH; in[0].shape = NULL; try("null shape", in, 2, out, 2);
  FRESH; in[1].data = NULL; try("null data", in, 2, out, 2);
  FRESH; out[1].data = NULL; try("null output", in, 2, out, 2);
  FRESH; in[0].byte_offset = 1; try("misaligned", in, 2, out, 2);
  FRESH; in[0].strides = strides; try("strides", in, 2, out, 2);
  FRESH; in[0].device.device_type = 2; try("device", in, 2, out, 2);
  FRESH; try("few inputs", in, 1, out, 2);
  FRESH; try("many inputs", in, 3, out, 2);
  FRESH; try("few outputs", in, 2, out, 0);
  FRESH; try("null inputs", NULL, 2, out, 2);
  FRESH; try("null outputs", in, 2, NULL, 2);
  FRESH; out[0].data = x; try("overlap", in, 2, out, 2);
  FRESH; in[0].strides = same; try("right strides", in, 2, out, 2);
  infer(NULL, bias, y, total); printf("infer null|1|%s\n", cuvil_last_error());
  cuvil_free(model);
  return 0;
}
"""

EXPECTED = {
    "no model": (1, "shifted: model is NULL; make one with cuvil_load"),
    "dtype": (4, "input x: dtype is int32 (code 0, lanes 1), expected f32"),
    "bits": (4, "input x: dtype is float64 (code 2, lanes 1), expected f32"),
    "lanes": (4, "input x: dtype is float32 (code 2, lanes 4), expected f32"),
    "rank": (3, "input x: rank is 1, expected 2"),
    "shape": (5, "input x: shape is [3, 2], expected [2, 3]"),
    "null shape": (1, "input x: shape is NULL"),
    "null data": (1, "input bias: data is NULL"),
    "null output": (1, "output out1: data is NULL"),
    "misaligned": (7, re.compile(r"input x: data at 0x\w+ is not aligned to its 4-byte elements")),
    "strides": (6, "input x: strides are [1, 2], expected a contiguous row-major tensor"),
    "device": (8, "input x: device type is 2, expected 1 (CPU)"),
    "few inputs": (2, "shifted: 1 inputs and 2 outputs given, expected 2 and 2"),
    "many inputs": (2, "shifted: 3 inputs and 2 outputs given, expected 2 and 2"),
    "few outputs": (2, "shifted: 2 inputs and 0 outputs given, expected 2 and 2"),
    "null inputs": (1, "shifted: the array of inputs is NULL"),
    "null outputs": (1, "shifted: the array of outputs is NULL"),
    "overlap": (7, "output out0 overlaps input x; outputs need memory of their own"),
    "right strides": (0, ""),
    "infer null": (1, "input x: data is NULL"),
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    (folder / "pipeline.py").write_text(SOURCE)
    compile_file(str(folder / "pipeline.py"), output_dir=folder)
    return folder


def program(folder, text: str, name: str, library: str) -> str:
    """Compile a C program against the library, run it, and give its output."""
    (folder / f"{name}.c").write_text(text)
    command = [*compiler(), "-std=c99", "-Wall", "-Werror", f"{name}.c", f"./lib{library}.so", "-Wl,-rpath,$ORIGIN", "-o", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([f"./{name}"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def test_a_c_program_gets_the_right_answer(libraries):
    lines = program(libraries, RIGHT, "right", "shifted").splitlines()
    x, bias = np.array([[-1, 2, -3], [4, -5, 6]], np.float32), np.array([0.5, -10, 3], np.float32)
    y = np.maximum(x + bias, 0)
    assert lines[0] == "0 ''"
    assert [float(v) for v in lines[1].split()] == [*y.ravel(), *x.sum(1), *y.ravel()]
    assert lines[2] == "1"


def test_every_wrong_call_has_a_code_and_a_message(libraries):
    found = {}
    for line in program(libraries, WRONG, "wrong", "shifted").splitlines():
        what, code, message = line.split("|")
        found[what] = int(code), message
    assert set(found) == set(EXPECTED)
    for what, (code, message) in EXPECTED.items():
        assert found[what][0] == code, (what, found[what])
        assert message.fullmatch(found[what][1]) if isinstance(message, re.Pattern) else found[what][1] == message, (what, found[what])


def test_a_value_out_of_range_is_an_error_at_run_time(libraries):
    text = r"""
#include <stdio.h>
#include "lookup.h"
int main(void) {
  float table[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[6];
  int64_t right[3] = {3, 0, 1}, wrong[3] = {0, 4, 1};
  infer(table, right, out);
  printf("%g %g '%s'\n", out[0], out[5], cuvil_last_error());
  infer(table, wrong, out);
  printf("%s\n", cuvil_last_error());
  return 0;
}
"""
    first, second = program(libraries, text, "lookup", "lookup").splitlines()
    assert first == "6 3 ''"
    assert second.startswith("lookup: ") and "out" in second


def test_the_header_is_c_plus_plus_too(libraries):
    (libraries / "plus.cpp").write_text('#include "shifted.h"\nint main() { return cuvil_last_error()[0]; }\n')
    command = [sys.executable, "-m", "ziglang", "c++"] if importlib.util.find_spec("ziglang") else [shutil.which("c++") or pytest.skip("no C++ compiler")]
    done = subprocess.run([*command, "-std=c++11", "-Wall", "-Werror", "-c", "plus.cpp", "-o", "plus.o"], cwd=libraries, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_the_interface_is_visible(libraries):
    import ctypes
    library = ctypes.CDLL(str(libraries / "libshifted.so"))
    for name in ("cuvil_manifest", "cuvil_load", "cuvil_run", "cuvil_last_error", "cuvil_free", "infer"):
        assert getattr(library, name)
    for name in ("cuvil_kernel_main", "cuvil_parallel_for", "cuvil_fail", "cuvil_this_program"):
        with pytest.raises(AttributeError):
            getattr(library, name)
