"""Reading and typing programs needs no arrays: the vocabulary loads without NumPy, which costs a lint run a third of its start."""
import subprocess
import sys


def test_the_vocabulary_loads_without_numpy_and_torch():
    code = "import sys, cuvil.ops; assert not {'numpy', 'torch', 'libcst', 'llvmlite'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
