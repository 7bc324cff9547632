"""Compiled files get a cache of their own, and source text becomes a module that inspect can read."""
import importlib.util
import itertools
import sys
import textwrap

import pytest

pytestmark = pytest.mark.native
_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "cuvil"


@pytest.fixture
def module(tmp_path):
    """A function of source text: the module it makes, from a file under tmp_path."""
    def make(text: str, folder=tmp_path):
        folder.mkdir(exist_ok=True)
        name = f"compiled_{next(_numbers)}"
        path = folder / f"{name}.py"
        path.write_text("import numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport cuvil as cu\n\n"
                        + textwrap.dedent(text), "utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        made = importlib.util.module_from_spec(spec)
        sys.modules[name] = made
        spec.loader.exec_module(made)
        return made
    return make
