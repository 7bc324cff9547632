"""Imports point upstream, and each big dependency has one home. Read from the code, so a wrong import names itself here."""
import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A room may import itself and whatever stands before it.
COMPILER = ("source", "diagnostics", "interrupted", "places", "lineage", "cst", "ir", "ops", "frontends", "passes", "targets", "loops", "cost", "llvm",
            "runtime", "artifact", "pipeline", "compiled", "__init__")
# Modules that stand behind what they read: those of ir/ that execute and check what ops mean, and the compile child, a program.
BEHIND = {"ir.interpret": "ops", "ir.verify": "ops", "ir.text": "ops", "artifact.child": "pipeline"}

# third-party package -> the only rooms that may name it
HOMES = {
    "llvmlite": ("cuvil.llvm",),
    "pygls": ("cuvil_lsp",),
    "lsprotocol": ("cuvil_lsp",),
    "libcst": ("cuvil.cst", "cuvil.frontends", "cuvil_ide"),
}
# package -> our packages that it may import
PACKAGES = {
    "cuvil": {"cuvil"},
    "cuvil_ide": {"cuvil", "cuvil_ide"},
    "cuvil_lsp": {"cuvil", "cuvil_ide", "cuvil_lsp"},
    "cuvil_cli": {"cuvil", "cuvil_ide", "cuvil_cli"},
}
FILES = sorted([*ROOT.glob("compiler/cuvil/**/*.py"), *ROOT.glob("language_server/cuvil_*/**/*.py")])


def module_name(file: Path) -> str:
    base = ROOT / ("compiler" if "compiler" in file.relative_to(ROOT).parts else "language_server")
    return ".".join(file.relative_to(base).with_suffix("").parts)


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """The full names that a file imports at run time, wherever in it; `if TYPE_CHECKING:` blocks are left out."""
    package = module_name(file).split(".")[:-1]
    todo: list[ast.AST] = [ast.parse(file.read_text("utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{full}.{alias.name}") for alias in node.names)
        todo.extend(ast.iter_child_nodes(node))


def room(module: str) -> str:
    """The room of a module of the compiler: "cuvil.ir.types" is in "ir"."""
    parts = module.split(".")
    if parts[1:] == ["__version__"]:                     # a constant, for everyone
        return COMPILER[0]
    for name, moved in BEHIND.items():
        if parts[1:3] == name.split("."):
            return moved
    return parts[1] if len(parts) > 1 and parts[1] in COMPILER else "__init__"


@pytest.mark.parametrize("file", FILES, ids=module_name)
def test_imports(file: Path):
    me = module_name(file)
    for line, name in imports(file):
        top = name.split(".")[0]
        where = f"{file.relative_to(ROOT)}:{line} imports {name}"
        if top in PACKAGES:
            assert top in PACKAGES[me.split(".")[0]], where
        if top == "cuvil" and me.startswith("cuvil.") and room(me) != "__init__":
            assert COMPILER.index(room(name)) <= COMPILER.index(room(me)), f"{where}, which is downstream of {room(me)}/"
        if top in HOMES:
            assert me.startswith(HOMES[top]), f"{where}; its only home is {' and '.join(HOMES[top])}"


def loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


# What people import in their own programs stays light; what they type in a shell does not wait for a compiler it may not need.
# A server answers `initialize` before it loads what reads code.
@pytest.mark.parametrize("statement, own", [("import cuvil", set()), ("import cuvil_cli.main", set()), ("import cuvil_lsp.handlers", {"pygls"})])
def test_importing_is_light(statement: str, own: set[str]):
    heavy = {"libcst", "llvmlite", "torch", "pygls", "networkx", "onnx"}
    assert loaded_by(statement) & heavy == own


def test_readers_of_the_table_see_real_rooms():
    present = {p.name.removesuffix(".py") for p in (ROOT / "compiler/cuvil").iterdir() if p.is_dir() or p.suffix == ".py"}
    assert present - {"__pycache__", "py"} <= set(COMPILER)
