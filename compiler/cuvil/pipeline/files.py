"""From a source file to libraries on disk: what `cuvil compile`, compile-on-save and `cuvil doctor` run.

Sizes that the code leaves open and nobody gives get example sizes; the manifest's `dims` and the artifact's `assumed` say
which, and the library checks what it is called with.
"""
from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnostics import CuvilError
from ..ir.types import DType, TensorType
from ..source import Source
from ..targets import CPUS
from .stages import Stages

if TYPE_CHECKING:
    from ..frontends.python import Workspace
    from ..frontends.python.facts import FileFacts, FunctionFacts
    from ..ir.function import Function

# --emit KIND -> (suffix, text of it)
EMITS = {
    "cst": (".cst.txt", lambda s: _layer(s, "cst")),
    "ir": (".ir.txt", lambda s: _ir(s)),
    "kernels": (".kernels.txt", lambda s: _kernels(s)),
    "loops": (".loops.txt", lambda s: "\n".join(nest.text for nest in s.nests) + "\n"),
    "llvm": (".ll", lambda s: s.llvm.text),
    "asm": (".s", lambda s: "\n".join(line.text for line in s.assembly) + "\n"),
}


@dataclass(frozen=True)
class CompiledArtifact:
    """One function as files. paths: the library first, then header, manifest, parameters and what was asked for with emit.

    assumed   sizes that were chosen because nobody gave them
    """

    name: str
    paths: tuple[Path, ...]
    seconds: float
    manifest: dict[str, Any]
    assumed: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.paths[0]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "paths": [str(p) for p in self.paths], "seconds": round(self.seconds, 4), "assumed": self.assumed,
                "manifest": self.manifest}


def compile_file(path: str, function: str | None = None, output_dir: str | Path | None = None, shapes: Mapping[str, Any] | None = None,
                 target: str = "cpu", emit: Iterable[str] = (), opt_level: int | None = None, output: str | Path | None = None,
                 root: str | Path | None = None) -> list[CompiledArtifact]:
    """Compile one function of a file, or all that are decorated with @cu.compile.

    function     qualified name; None: every entry point
    shapes       parameter -> sizes ((1, 3, 224, 224), ("b", 3)) or type ("f16[1, 3]"); symbol -> size
    output_dir   where the files go, the source's folder by default; output: the library's own path, for one function
    root         the workspace imports are looked up in, the source's folder by default
    CuvilError at the first function that is refused.
    """
    source = read(path)
    facts = facts_of(source, root)
    names = [function] if function is not None else entry_points(facts)
    if not names:
        raise CuvilError(f"{path} has no entry point", expected="a function decorated with @cu.compile",
                         hint=f"name one: cuvil compile {path}:function", code="CUV002")
    if output is not None and len(names) != 1:
        raise CuvilError(f"{path} has {len(names)} entry points ({', '.join(names)}) and one output file was named",
                         expected="a folder, or one function", hint=f"cuvil compile {path}:{names[0]}")
    folder = Path(output_dir) if output_dir is not None else Path(path).parent
    place = Path(output) if output is not None else folder
    return [compile_function(source, name, place, shapes, target, emit, opt_level, root, facts) for name in names]


def compile_function(source: Source, name: str, output: Path, shapes: Mapping[str, Any] | None = None, target: str = "cpu",
                     emit: Iterable[str] = (), opt_level: int | None = None, root: str | Path | None = None,
                     facts: FileFacts | None = None) -> CompiledArtifact:
    """output: a folder, or the path of the library or device code (it has the suffix of one). facts: of the source, where it was analysed before."""
    from ..artifact import build, files
    from ..artifact.device import build_device
    from ..artifact.signature import identifier
    started = time.perf_counter()
    unknown = [kind for kind in emit if kind not in EMITS]
    if unknown:
        raise CuvilError(f"there is no {unknown[0]} to emit", expected=f"one of {', '.join(EMITS)}")
    function, options = captured(source, name, shapes or {}, root, facts)
    dims, assumed = sizes_of(function, shapes or {})
    level = opt_level if opt_level is not None else options.get("opt_level", 2)
    here = build.relative_to(function, str(Path(source.path).absolute().parent))
    stages = Stages.of(here, target, level, dims, {Path(source.path).name: source.text})
    if target in ("cpu", *CPUS):
        _refuse_weights(function)
        built = build.build(stages, dims=dims)
        target_path = output if output.suffix in (".so", ".dylib", ".dll") else output / f"lib{identifier(name)}.so"
    else:
        built = build_device(stages, dims)
        target_path = output if output.suffix == built.suffix else output / f"{identifier(name)}{built.suffix}"
    paths = built.write(target_path.absolute())
    extra = {build.beside(paths[0], EMITS[kind][0]): EMITS[kind][1](stages).encode() for kind in emit}
    files.write(extra)
    return CompiledArtifact(name, (*paths, *extra), time.perf_counter() - started, built.manifest, assumed)


def _refuse_weights(function: Function) -> None:
    """A library holds the values of its weights; a file has their shapes and no values. Device code takes them as arguments."""
    if function.parameters:
        weights = [op.attr("name") for op in function.parameters]
        owner = function.name.rpartition(".")[0].rpartition(".")[2]
        shown = ", ".join(weights[:3]) + (f" and {len(weights) - 3} more" if len(weights) > 3 else "")
        inputs = ", ".join(f'"{op.attr("name")}": (...)' for op in function.inputs)
        raise CuvilError(f"{function.name} needs the values of {shown}, and the code has only their shapes", function.origin and function.origin.span,
                         "a function without weights, or a model that has them",
                         f'in Python, without a decorator: cu.compile({owner or "model"}(...).eval()).save("lib{owner.lower() or "model"}.so", '
                         f'shapes={{{inputs}}})')


def read(path: str) -> Source:
    """The text of a file; CuvilError when it is not there, not readable or not UTF-8."""
    try:
        return Source(path, Path(path).read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CuvilError(f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}", expected="UTF-8 text",
                         hint="save it as UTF-8", code="CUV002") from None
    except OSError as error:
        raise CuvilError(f"{path} cannot be read: {error.strerror}", expected="a Python file", code="CUV002") from None


def facts_of(source: Source, root: str | Path | None) -> FileFacts:
    from ..frontends.python import analyze
    return analyze(source, workspace_of(source, root))


def workspace_of(source: Source, root: str | Path | None) -> Workspace:
    """The workspace a file stands in. A process that compiles again and again keeps what it read: only what changed is walked again."""
    return _workspace(str(root if root is not None else Path(source.path).absolute().parent))


@lru_cache(maxsize=4)
def _workspace(root: str) -> Workspace:
    from ..frontends.python import Workspace
    return Workspace(root)


def entry_points(file: FileFacts) -> list[str]:
    return [f.name for f in file.functions if f.entry is not None]


def captured(source: Source, name: str, shapes: Mapping[str, Any], root: str | Path | None,
             file: FileFacts | None = None) -> tuple[Function, dict[str, Any]]:
    """The function as CIR, and the options of its decorator. shapes: of parameters; those of symbols are left to sizes_of."""
    from ..frontends.python import capture
    facts = (file or facts_of(source, root)).function(name)
    options = dict(facts.entry.options) if facts is not None and facts.entry is not None else {}
    given = {key: shape for key, shape in shapes.items() if not isinstance(shape, int)}
    if facts is not None and facts.function is not None and facts.refusal is None and not given:
        return facts.function, options
    inputs = {key: type_of(key, shape, facts) for key, shape in given.items()} or None
    return capture(source, name, inputs, workspace_of(source, root)), options


def type_of(name: str, shape: Any, facts: FunctionFacts | None) -> TensorType:
    """A shape given from outside as a type; the element type is the one the code declares, else float32."""
    from ..frontends.python.signatures import shape_of
    if isinstance(shape, TensorType):
        return shape
    if isinstance(shape, str):
        try:
            return TensorType.parse(shape)
        except ValueError as error:
            raise CuvilError(f"the shape of {name}: {error}", expected='sizes such as 1,3,224,224 or a type such as "f32[2, 3]"') from None
    declared = facts.function.inputs if facts is not None and facts.function is not None else ()
    dtype = next((op.type.dtype for op in declared if op.attr("name") == name), None)
    return TensorType(shape_of(name, shape), dtype or DType.F32)


def sizes_of(function: Function, shapes: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """A number for each size of the inputs, and those of them that nobody gave. A size that stands in no input (the setting of a
    layer) has no example: it is given, or the function is refused."""
    from ..cost.sizes import example_sizes, free_symbols
    given = {key: size for key, size in shapes.items() if isinstance(size, int)}
    parameters = {op.attr("name") for op in function.inputs}
    known = free_symbols(function)
    stray = [key for key in given if key not in known]
    if stray or any(isinstance(shape, Sequence) and key not in parameters for key, shape in shapes.items()):
        key = stray[0] if stray else next(k for k in shapes if k not in parameters)
        raise CuvilError(f"{function.name} has no parameter or size {key}", function.origin and function.origin.span,
                         f"one of {', '.join([*sorted(parameters), *known])}")
    dims = {**example_sizes(function.symbols, given), **given}
    return dims, {key: size for key, size in dims.items() if key not in given}


def _layer(stages: Stages, layer: str) -> str:
    depth: dict[str | None, int] = {None: -1}
    lines = []
    for element in stages.lineage.layer(layer):
        depth[element.id] = depth.get(element.parent, -1) + 1
        lines.append("  " * depth[element.id] + element.text)
    return "\n".join(lines) + "\n"


def _ir(stages: Stages) -> str:
    from ..ir.text import print_function
    return print_function(stages.function, locations=True) + "\n; after the passes\n" + print_function(stages.optimized.function)


def _kernels(stages: Stages) -> str:
    function, lines = stages.kernels.function, []
    for kernel in stages.kernels.kernels:
        lines.append(f"{kernel.name}  {kernel.kind}  {', '.join(f'%{i} {function.by_id[i].name}' for i in kernel.ops)}")
        lines += [f"    %{d.producer} -> %{d.consumer}  {'fused' if d.fused else 'through memory'}: {d.reason} ({d.bytes} B)"
                  for d in stages.kernels.decisions if d.consumer in kernel.ops]
    return "\n".join(lines) + "\n"
