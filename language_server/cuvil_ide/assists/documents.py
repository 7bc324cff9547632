"""Read-only documents that show a function at a stage: `cuvil:/path/to/model.py/Block.forward.ir`.

The last part of the path is the function and, after its last dot, the stage. They are text, so any editor shows them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from cuvil.diagnostics import CuvilError

if TYPE_CHECKING:
    from cuvil.pipeline import Stages

    from ..session import Session

SCHEME = "cuvil"


def _captured(stages: Stages) -> str:
    from cuvil.ir.text import print_function
    return print_function(stages.function)


def _optimized(stages: Stages) -> str:
    from cuvil.ir.text import print_function
    return print_function(stages.optimized.function)


def _kernels(stages: Stages) -> str:
    graph = stages.kernels
    lines = []
    for kernel in graph.kernels:
        lines.append(f"{kernel.name}  {kernel.kind}  {', '.join(f'%{i} {graph.function.by_id[i].name}' for i in kernel.ops)}")
        lines += [f"    %{d.producer} -> %{d.consumer}  {'fused' if d.fused else 'through memory'}: {d.reason} ({d.bytes} B)"
                  for d in graph.decisions if d.producer in kernel.ops]
    return "\n".join(lines) + "\n"


def _loops(stages: Stages) -> str:
    given, stages = _sized(stages)
    return given + "\n".join(map(str, stages.nests)) + "\n"


def _llvm(stages: Stages) -> str:
    given, stages = _sized(stages)
    return given + stages.llvm.text


def _assembly(stages: Stages) -> str:
    given, stages = _sized(stages)
    return given + "\n".join(line.text for line in stages.assembly) + "\n"


def _sized(stages: Stages) -> tuple[str, Stages]:
    """Loops and code exist for numbers only: example sizes stand for what the code leaves open, and the document says so."""
    from cuvil.cost import example_sizes
    sizes = example_sizes(stages.function.symbols)
    if not sizes:
        return "", stages
    return f"; for {', '.join(f'{name} = {size}' for name, size in sizes.items())}\n", stages.at(**sizes)


STAGES = {"ir": _captured, "optimized": _optimized, "kernels": _kernels, "loops": _loops, "llvm": _llvm, "asm": _assembly}


def uri(path: str, function: str, stage: str) -> str:
    return f"{SCHEME}:{quote(path)}/{quote(function)}.{stage}"


def document(session: Session, uri: str) -> str:
    """The text; what cannot be shown is said in the document, where the reader is looking, as comment lines."""
    parts = urlsplit(uri)
    path, _, name = unquote(parts.path).rpartition("/")
    function, _, stage = name.rpartition(".")
    if parts.scheme != SCHEME or not function or stage not in STAGES:
        raise CuvilError(f"{uri} is not a document of Cuvil", expected=f"cuvil:/file.py/function.stage, stage one of: {', '.join(STAGES)}")
    try:
        return STAGES[stage](session.stages(path, function))
    except CuvilError as error:
        return "\n".join(f"; {line}" for line in str(error).splitlines()) + "\n"
