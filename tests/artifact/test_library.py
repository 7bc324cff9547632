"""Libraries as files: saved, loaded, explained; whole or not at all; the same bytes wherever they are made."""
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest

import cuvil as cu
from cuvil.artifact import cache, files
from cuvil.pipeline import compile_file

SOURCE = """import numpy as np
import cuvil as cu


@cu.compile(input_shapes={"x": (4, 8), "w": (8,)}, input_dtypes={"x": "float64", "w": "float64"})
def scaled(x, w):
    y = np.maximum(x * w, 0.0)
    return y / (1.0 + y.sum(axis=1, keepdims=True))


@cu.compile(input_shapes={"x": ("rows", "columns")})
def centred(x):
    return x - x.mean(axis=1, keepdims=True)
"""


def expected(x, w):
    y = np.maximum(x * w, 0.0)
    return y / (1.0 + y.sum(axis=1, keepdims=True))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "pipeline.py"
    path.write_text(SOURCE)
    return path


def test_a_saved_library_is_loaded_and_called(source, tmp_path):
    built, = compile_file(str(source), "scaled", output_dir=tmp_path / "out")
    assert [p.name for p in built.paths] == ["libscaled.so", "scaled.h", "scaled.json"]
    m = cu.load(built.path)
    x, w = np.linspace(-1, 1, 32).reshape(4, 8), np.linspace(0, 2, 8)
    np.testing.assert_allclose(m(x, w), expected(x, w), rtol=1e-14)
    assert m.manifest == json.loads((tmp_path / "out/scaled.json").read_text()) == built.manifest
    assert "scaled(x: float64[4, 8], w: float64[8])" in m.explain()
    copied = m.save(tmp_path / "elsewhere/libagain.so")
    again = cu.load(copied[0])
    np.testing.assert_array_equal(again(x, w), m(x, w))


def test_the_manifest_says_what_was_compiled(source, tmp_path):
    manifest = compile_file(str(source), "scaled", output_dir=tmp_path)[0].manifest
    assert manifest["signature"]["inputs"] == [{"name": "x", "dtype": "float64", "shape": [4, 8]}, {"name": "w", "dtype": "float64", "shape": [8]}]
    assert manifest["source"] == {"path": "pipeline.py", "line": 6}
    assert manifest["kernels"][0]["lines"] == ["pipeline.py:7", "pipeline.py:8"]
    assert manifest["lineage"]["ops"] == manifest["lineage"]["ops_with_origin"]
    assert manifest["costs"]["flops"] > 0 and manifest["tools"]["cuvil"] == cu.__version__
    assert str(tmp_path) not in json.dumps(manifest)


def test_open_sizes_are_given_or_assumed_and_said(source, tmp_path):
    assumed, = compile_file(str(source), "centred", output_dir=tmp_path)
    assert set(assumed.assumed) == {"rows", "columns"} and assumed.manifest["dims"] == assumed.assumed
    given, = compile_file(str(source), "centred", output_dir=tmp_path, shapes={"rows": 3, "columns": 5})
    assert given.assumed == {} and given.manifest["signature"]["inputs"][0]["shape"] == [3, 5]
    shaped, = compile_file(str(source), "centred", output_dir=tmp_path, shapes={"x": "f64[2, 7]"})
    assert shaped.manifest["signature"]["inputs"][0] == {"name": "x", "dtype": "float64", "shape": [2, 7]}


def test_every_entry_point_of_a_file(source, tmp_path):
    assert [a.name for a in compile_file(str(source), output_dir=tmp_path / "all")] == ["scaled", "centred"]


def test_what_stages_look_like_can_be_written_too(source, tmp_path):
    built, = compile_file(str(source), "scaled", output_dir=tmp_path, emit=("cst", "ir", "kernels", "loops", "llvm", "asm"))
    texts = {p.suffixes[0]: p.read_text() for p in built.paths[3:]}
    assert "func @scaled" in texts[".ir"] and "define" in texts[".ll"] and "k0_" in texts[".kernels"] and "BinaryOperation" in texts[".cst"]


def test_the_same_source_gives_the_same_bytes_in_another_folder(source, tmp_path):
    digests = []
    for name in ("one", "a folder with another name"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pipeline.py").write_text(SOURCE)
        done = subprocess.run(
            [sys.executable, "-c", "import sys; from cuvil.pipeline import compile_file; compile_file('pipeline.py', 'scaled')"],
            cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")})
        assert done.returncode == 0, done.stderr
        digests.append({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.suffix in (".so", ".h", ".json")})
    assert digests[0] == digests[1] and len(digests[0]) == 3


# What cannot be written or read.

def test_a_place_that_cannot_be_written(source, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(cu.CuvilError, match="cannot write"):
        compile_file(str(source), "scaled", output_dir=tmp_path / "file" / "out")
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_full_disk_leaves_the_old_files_whole(source, tmp_path):
    """The disk that is full is a limit on the size of files; every write past it fails as on a full one."""
    out = tmp_path / "out"
    before = {p.name: p.read_bytes() for p in compile_file(str(source), "scaled", output_dir=out)[0].paths}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(cu.CuvilError, match="cannot write"):
            compile_file(str(source), "scaled", output_dir=out)
        with pytest.raises(cu.CuvilError, match="cannot write"):
            files.write({out / "scaled.json": b"x", out / "big": b"x" * 10_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


@pytest.mark.parametrize("make, says", [
    (lambda p: None, "there is no file"), (lambda p: p.write_bytes(b""), "not a library"), (lambda p: p.write_bytes(b"\x7fELF" + b"\0" * 60), "not a library"),
])
def test_what_is_no_library(tmp_path, make, says):
    path = tmp_path / "libx.so"
    make(path)
    with pytest.raises(cu.CuvilError, match=says):
        cu.load(path)


def test_a_library_of_someone_else():
    import _ctypes
    with pytest.raises(cu.CuvilError, match="not a library of Cuvil"):
        cu.load(_ctypes.__file__)


@pytest.mark.parametrize("text, says", [
    (b"\xff\xfe bad", "is not UTF-8"), (b"def f(:\n", "no entry point|syntax error"), (b"x = 1\n", "no entry point"),
])
def test_source_that_cannot_be_compiled(tmp_path, text, says):
    path = tmp_path / "a.py"
    path.write_bytes(text)
    with pytest.raises(cu.CuvilError, match=says):
        compile_file(str(path))


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(cu.CuvilError, match="cannot be read"):
        compile_file(str(tmp_path / "none.py"))


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    folder = files.output_folder(tmp_path)
    old, new = folder / ".libx.so.abcdefgh", folder / ".libx.so.ijklmnop"
    for path in (old, new, folder / "liby.so"):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    os.utime(folder / "liby.so", (0, 0))
    files.output_folder(tmp_path)
    assert not old.exists() and new.exists() and (folder / "liby.so").exists()


# The cache.

def test_the_second_time_comes_from_the_cache(source, tmp_path, cache_folder):
    first, = compile_file(str(source), "scaled", output_dir=tmp_path / "a")
    before = {path for path, _ in cache.entries()}
    second, = compile_file(str(source), "scaled", output_dir=tmp_path / "b")
    assert {path for path, _ in cache.entries()} == before
    assert first.path.read_bytes() == second.path.read_bytes()
    assert cache.folder() == cache_folder


def test_the_cache_stays_within_its_bound(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    paths = [cache.keep(cache.key(str(i)), ".o", bytes(1000)) for i in range(5)]
    for i, path in enumerate(paths):
        os.utime(path, (i, i))
    cache.trim(2500)
    assert [p.exists() for p in paths] == [False, False, False, True, True]
    assert cache.clear() == 2000 and list(cache.entries()) == []


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch, source):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.keep(cache.key("x"), ".o", b"1") is None
    assert compile_file(str(source), "scaled", output_dir=tmp_path / "out")[0].path.exists()


# The process that compiles on save.

def child(request: dict, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "cuvil.artifact.child"], input=json.dumps(request), capture_output=True, text=True, timeout=120, **options)


def test_the_child_compiles_into_a_marked_folder(source, tmp_path):
    done = child({"path": str(source), "root": str(tmp_path)})
    answer = json.loads(done.stdout)
    assert answer["refusals"] == [] and answer["libraries"] == [str(tmp_path / ".cuvil/libscaled.so"), str(tmp_path / ".cuvil/libcentred.so")]
    assert (tmp_path / ".cuvil/.gitignore").read_text() == "*\n"
    assert (tmp_path / ".cuvil/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_the_child_compiles_what_it_can_and_says_what_it_cannot(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(SOURCE + "\n\n@cu.compile(input_shapes={'x': (3, 3)})\ndef odd(x):\n    return np.linalg.svd(x)[0]\n")
    answer = json.loads(child({"path": str(path), "root": str(tmp_path)}).stdout)
    assert len(answer["libraries"]) == 2
    refusal, = answer["refusals"]
    assert refusal["function"] == "odd" and refusal["range"]["start"]["line"] == 18


def test_a_child_without_memory_ends_alone(source, tmp_path):
    done = child({"path": str(source), "root": str(tmp_path), "memory": 100_000_000}, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert not list(tmp_path.glob(".cuvil/*.so"))


# Debuggers see Python.

@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_a_debugger_shows_python_lines(source, tmp_path):
    built, = compile_file(str(source), "scaled", output_dir=tmp_path)
    kernel = built.manifest["kernels"][0]["name"]
    said = subprocess.run(["gdb", "-batch", "-ex", f"info line {kernel}", str(built.path)], capture_output=True, text=True, timeout=60).stdout
    assert 'of "pipeline.py" starts at address' in said and f"<{kernel}>" in said
