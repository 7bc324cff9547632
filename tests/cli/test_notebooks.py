"""Notebooks: cells are one module, magics are passed over, findings and fixes are of cells."""
import json

import pytest

from cuvil.source import Source
from cuvil_cli.notebook import read, split


def notebook(*cells: str, language: str = "python", indent: int = 1) -> str:
    return json.dumps({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# not code\n", "%d" "x"]}] + [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell.splitlines(keepends=True)} for cell in cells],
        "metadata": {"language_info": {"name": language}}, "nbformat": 4, "nbformat_minor": 5}, indent=indent, ensure_ascii=False) + "\n"


CELLS = ("%matplotlib inline\n!pip install torch\nimport torch\na = torch.zeros(2, 3)", "%%time\nb = torch.zeros(4, 5)\nif None == None:\n    c = a @ b")


def test_findings_are_of_cells(cuvil, write):
    write("train.ipynb", notebook(*CELLS))
    done = cuvil("lint", ".", "--format", "concise")
    assert done.code == 1
    assert [line.split(" ")[:3] for line in done.out.splitlines()[:2]] == [["./train.ipynb:cell", "2:3:4:", "warning"], ["./train.ipynb:cell", "2:4:9:", "error"]]
    text = cuvil("lint", "train.ipynb").out
    assert "--> train.ipynb:cell 2:4:9" in text and "4 |     c = a @ b" in text and "::: train.ipynb:cell 1:4:5" in text
    mismatch = json.loads(cuvil("lint", "train.ipynb", "--format", "json").out)["findings"][1]
    assert (mismatch["path"], mismatch["range"]["start"]) == ("train.ipynb:cell 2", {"line": 4, "column": 9})


@pytest.mark.parametrize("format, words", [
    ("sarif", '"uri": "train.ipynb"'), ("github", "file=train.ipynb,line=4"), ("gitlab", '"path": "train.ipynb"'), ("rdjson", '"path": "train.ipynb"'),
    ("junit", 'name="train.ipynb"'), ("json-lines", '"path": "train.ipynb:cell 2"')])
def test_every_format_names_the_file(cuvil, write, format, words):
    write("train.ipynb", notebook(*CELLS))
    assert words in cuvil("lint", "train.ipynb", "--format", format).out


def test_sarif_of_a_notebook_is_valid(cuvil, write):
    model = pytest.importorskip("pydantic_sarif.model")
    write("train.ipynb", notebook(*CELLS))
    text = cuvil("lint", "train.ipynb", "--format", "sarif").out
    model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate_json(text)
    results = json.loads(text)["runs"][0]["results"]
    assert all(r["locations"][0]["logicalLocations"] == [{"name": "cell 2", "kind": "cell"}] and r["message"]["text"].startswith("cell 2: ") for r in results)
    assert [r["logicalLocations"][0]["name"] for r in results[1]["relatedLocations"]] == ["cell 1", "cell 2"]


def test_fixes_are_written_into_their_cell(cuvil, write):
    before = notebook("x = 1", "# é\nflag = None == None\n", "other = None == None")
    path = write("train.ipynb", before)
    done = cuvil("lint", "train.ipynb", "--diff")
    assert done.code == 1 and path.read_text(encoding="utf-8") == before and '+    "flag = True\\n"' in done.out
    assert cuvil("lint", "train.ipynb", "--fix").code == 0
    assert path.read_text(encoding="utf-8") == before.replace("None == None", "True")
    assert cuvil("lint", "-", "--stdin-filename", "x.ipynb", "--fix", stdin=before).out == before.replace("None == None", "True")


# Only where a statement may begin is a line IPython's; a modulo sign in brackets and text in strings are Python.
@pytest.mark.parametrize("cell, module", [
    ("!ls\nx = 1", "get_ipython()\nx = 1"), ("if x:\n    %time f()", "if x:\n    get_ipython()"), ("files = !ls", "files = get_ipython()"),
    ("x = (a\n% b)", "x = (a\n% b)"), ("s = '''\n!no\n%no # '''\n%yes", "s = '''\n!no\n%no # '''\nget_ipython()"), ("f?", "get_ipython()"),
    ("?f", "get_ipython()"), ("y = a \\\n% b", "y = a \\\n% b"), ("%%bash\nif [ 1 ]; then", "\n"), ("%%timeit -n 3\nf()", "get_ipython()\nf()"),
    ("s = '(' # (\n!ls", "s = '(' # (\nget_ipython()"),
])
def test_magics(cell, module):
    found = read(Source("a.ipynb", notebook(cell)))
    assert found.module.text == module + "\n"


def test_a_fix_never_touches_a_magic(cuvil, write):
    write("a.ipynb", notebook("%time f(None == None)\nx = None == None"))
    assert cuvil("lint", "a.ipynb", "--fix", "--format", "concise").code == 0


def test_other_languages_and_other_files(cuvil, write):
    write("r.ipynb", notebook("x <- 1", language="R"))
    assert cuvil("lint", "r.ipynb").code == 0
    for text in ("", "{}", "[]", "x = 1", '{"cells": 3}'):
        write("bad.ipynb", text)
        done = cuvil("lint", "bad.ipynb")
        assert done.code == 2 and "not a notebook" in done.out
    write("odd.ipynb", '{"cells": [3, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 3}, {"cell_type": "code", "source": "x = 1"}]}')
    assert cuvil("lint", "odd.ipynb").code == 0


def test_paths():
    assert split("a/b.ipynb:cell 12") == ("a/b.ipynb", 12) and split("a.py:cell 2") == ("a.py:cell 2", 0) and split("a.ipynb") == ("a.ipynb", 0)
