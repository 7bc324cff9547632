"""`cuvil compile`: libraries that are called, sizes said or guessed aloud, stages as text, and refusals with their places."""
import json

import numpy as np
import pytest

pytestmark = pytest.mark.native

GOOD = '''import torch
import cuvil as cu


@cu.compile(input_shapes={"x": ("rows", 16), "y": ("rows", 16)})
def double(x, y):
    return torch.relu(x) * 2 + y


@cu.compile(input_shapes={"x": (4,)})
def small(x):
    return x + 1


def plain(x):
    return x
'''


def functions(done):
    return {f["function"]: f for f in json.loads(done.out)["functions"]}


# The main use: one function, its sizes, a library that gives the right answer.
def test_a_library_that_is_called(cuvil, write, tmp_path):
    write("m.py", GOOD)
    done = cuvil("compile", "m.py:double", "--shape", "x=3,16", "--output", "libdouble.so")
    assert done.code == 0 and "libdouble.so" in done.out and "1 kernel" in done.out
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "cache") == ["double.h", "double.json", "libdouble.so", "m.py"]
    import cuvil as cu
    x, y = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16), np.ones((3, 16), np.float32)
    np.testing.assert_allclose(cu.load(str(tmp_path / "libdouble.so"))(x, y), np.maximum(x, 0) * 2 + 1, rtol=1e-6)


def test_all_entry_points_go_to_a_folder_of_their_own(cuvil, write, tmp_path):
    write("m.py", GOOD)
    done = cuvil("compile", "m.py", "--format", "json")
    assert done.code == 0
    found = functions(done)
    assert set(found) == {"double", "small"}
    assert found["double"]["assumed"] == {"rows": 128} and found["small"]["assumed"] == {}
    assert (tmp_path / ".cuvil" / ".gitignore").read_text().strip() == "*"
    assert {p.suffix for p in (tmp_path / ".cuvil").iterdir()} >= {".so", ".h", ".json"}
    text = cuvil("compile", "m.py").out
    assert "double: for example sizes rows = 128; choose others with --dim rows=SIZE" in text


def test_sizes_by_name(cuvil, write):
    write("m.py", GOOD)
    found = functions(cuvil("compile", "m.py:double", "--dim", "rows=5", "--format", "json"))
    assert found["double"]["assumed"] == {}
    assert [i["shape"] for i in found["double"]["manifest"]["signature"]["inputs"]] == [[5, 16], [5, 16]]


# Stages as text: printed with `-o -`, beside the library otherwise.
def test_emit(cuvil, write, tmp_path):
    write("m.py", GOOD)
    printed = cuvil("compile", "m.py:small", "--emit", "ir,loops,llvm,asm", "--output", "-")
    assert printed.code == 0 and "func @small" in printed.out and "define" in printed.out
    assert not (tmp_path / ".cuvil").exists()
    assert cuvil("compile", "m.py:small", "--emit", "ir", "--output", "out").code == 0
    assert "func @small" in (tmp_path / "out" / "small.ir.txt").read_text()


@pytest.mark.parametrize("body, place, words", [
    ("torch.reluu(x)", "m.py:7:", "reluu"), ("x[x > 0]", "m.py:7:", ""), ("x @ torch.zeros(5, 3)", "m.py:7:", "16"), ("mystery(x)", "m.py:7:", "mystery"),
])
def test_refusals_have_a_place(cuvil, write, body, place, words):
    write("m.py", GOOD.replace("torch.relu(x) * 2 + y", body))
    done = cuvil("compile", "m.py:double")
    assert done.code == 1 and "double: refused" in done.out and place in done.out and words in done.out
    found = functions(cuvil("compile", "m.py", "--format", "json"))
    assert found["double"]["refused"]["place"]["range"]["start"]["line"] == 7
    assert "paths" in found["small"]             # the other function is compiled all the same


# A file has the shapes of weights and not their values: refused at the method, with the way that has them.
def test_a_method_with_weights_is_refused_at_its_place(cuvil, write):
    write("m.py", """import torch
import cuvil as cu


class Block(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.up = torch.nn.Linear(width, 16)
        self.down = torch.nn.Linear(16, width)

    @cu.compile(input_shapes={"x": (2, 8)})
    def forward(self, x):
        return self.down(self.up(x).relu())
""")
    done = cuvil("compile", "m.py")
    assert done.code == 1
    for part in ("m.py:12:9: Block.forward needs the values of up.weight, up.bias, down.weight and 1 more",
                 'cu.compile(Block(...).eval()).save("libblock.so", shapes={"x": (...)})'):
        assert part in done.out
    assert cuvil("compile", "m.py", "--emit", "ir", "-o", "-").code == 0


def test_a_refused_function_leaves_the_library_as_it_was(cuvil, write, tmp_path):
    write("m.py", GOOD)
    cuvil("compile", "m.py:small", "--output", "lib.so")
    before = (tmp_path / "lib.so").read_bytes()
    write("m.py", GOOD.replace("x + 1", "mystery(x)"))
    assert cuvil("compile", "m.py:small", "--output", "lib.so").code == 1
    assert (tmp_path / "lib.so").read_bytes() == before


@pytest.mark.parametrize("arguments, words", [
    (["nowhere.py"], "nowhere.py"), (["m.py:triple"], "double, small"), (["m.py:double", "--shape", "x=3,sixteen"], "sixteen"),
    (["m.py:double", "--shape", "z=3,16"], "no input of that name"), (["m.py:double", "--shape", "x=3,17"], "f32[rows, 16]"),
    (["m.py:double", "--shape", "x=3,16", "--shape", "y=4,16"], "rows = 3"), (["m.py:double", "--dim", "columns=3"], "columns"),
    (["m.py:double", "--dim", "rows=0"], "at least 1"), (["m.py:double", "--target", "toaster"], "toaster"), (["m.py", "-o", "lib.so"], "2 functions"),
    (["m.py:double", "--emit", "tea"], "there is no such stage"),
])
def test_usage(cuvil, write, arguments, words):
    write("m.py", GOOD)
    done = cuvil("compile", *arguments)
    assert done.code in (1, 2) and words in done.out + done.err


def test_no_entry_point(cuvil, write):
    write("m.py", "def f(x):\n    return x\n")
    done = cuvil("compile", "m.py")
    assert done.code == 2 and "@cu.compile" in done.err


@pytest.mark.parametrize("body", ["return f(x + 1)", "return g(x)"])
def test_endless_recursion_is_refused(cuvil, write, body):
    write("m.py", f'import cuvil as cu\n\n\n@cu.compile(input_shapes={{"x": (4,)}})\ndef f(x):\n    {body}\n\n\ndef g(x):\n    return f(x)\n')
    done = cuvil("compile", "m.py:f")
    assert done.code == 1 and "m.py:" in done.out


def test_doctor_compiles_a_probe(cuvil):
    done = cuvil("doctor", "--format", "json")
    checks = {c["name"]: c for c in json.loads(done.out)["checks"]}
    assert checks["compile"]["state"] == "ok", checks["compile"]
    assert checks["machine"]["state"] == "ok" and checks["llvmlite"]["state"] == "ok"


# Devices: PTX and SPIR-V for elementwise and row-reduction kernels; everything else is refused with its place.
@pytest.mark.parametrize("target, suffix", [("cuda:sm_90", ".ptx"), ("opencl", ".spv")])
def test_device_code(cuvil, write, tmp_path, target, suffix):
    write("m.py", GOOD + '\n\n@cu.compile(input_shapes={"x": (8, 16), "w": (16, 4)})\ndef product(x, w):\n    return x @ w\n')
    done = cuvil("compile", "m.py:small", "--target", target, "--output", "out")
    assert done.code == 0 and (tmp_path / "out" / f"small{suffix}").stat().st_size > 100
    refused = cuvil("compile", "m.py:product", "--target", target, "--output", "out")
    assert refused.code == 1 and "m.py:21:" in refused.out and "contraction" in refused.out
