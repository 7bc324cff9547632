"""Compile functions to shared libraries with a C interface: lib<name>.so, <name>.h, <name>.json, and parameters.

examples:
  cuvil compile model.py                              every function decorated with @cu.compile, into .cuvil/
  cuvil compile model.py:attention --shape q=2,8,128,64 -o libattention.so
  cuvil compile model.py:attention --dim b=2          sizes by the names the code gives them
  cuvil compile model.py:attention --emit ir,asm      the library, and these stages as text beside it
  cuvil compile model.py:attention --emit ir -o -     print the stage, write nothing

Sizes that stay open take example sizes, which are printed and stand in the manifest. A library is for its sizes alone.
Exit code 1 when a function is refused; libraries of earlier runs are then left as they are."""
from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuvil.diagnostics import CuvilError

from .. import files
from ..target import Target, chosen, opened, parse
from ..terminal import Progress, plural, table
from .explain import named_sizes

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FunctionFacts
    from cuvil.pipeline import CompiledArtifact


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE[:function]")
    parser.add_argument("--target", default="cpu", help="cpu, cuda:sm_90 (PTX), opencl (SPIR-V) (default: cpu, this machine)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZES", help="shape of an input: x=1,3,224,224 or x=f16[1,3,224,224]")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="size of a symbol")
    parser.add_argument("--opt-level", type=int, choices=(0, 1, 2), help="0: no fusion, 1: no epilogues, 2: all (default: the decorator's, or 2)")
    parser.add_argument("--output", "-o", metavar="FILE", help="the library or the folder to write (default: .cuvil/ of the project); - prints --emit")
    parser.add_argument("--emit", metavar="STAGES", default="", help="stages to write as text: cst,ir,kernels,loops,llvm,asm")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from cuvil_ide.views.subject import failed
    target, emit = parse(args.source), _stages(args.emit)
    _known(args.target)
    given, dims = dict(map(_shape, args.shape)), named_sizes(args.dim)
    session = opened(target)
    functions = _entries(session.facts(target.path), target)
    output = _output(args.output, target, functions)
    done: list[CompiledArtifact] = []
    refused: dict[str, CuvilError] = {}
    with Progress("compiling", len(functions)) as progress:
        for function in functions:
            progress.step(function.name)
            try:
                shapes = {**_sized(function, given), **dims}
                if output is None:
                    _print(session.source(target.path), function.name, shapes, args, emit)
                    continue
                from cuvil.pipeline import compile_function
                done.append(compile_function(session.source(target.path), function.name, output, shapes, args.target, emit, args.opt_level,
                                             session.root, session.facts(target.path)))
            except Exception as error:       # a refusal, or a defect of ours: the others are compiled all the same
                refused[function.name] = failed(error, function)
    if args.format == "json":
        print(json.dumps({"version": 1, "path": target.path, "target": args.target, "functions": [
            *({"function": a.name, **a.to_json()} for a in done), *(_refusal(name, error) for name, error in refused.items())]}, indent=2))
    elif done or refused:
        print(_text(done, refused))
    return 0 if not refused else 1 if any(error.span for error in refused.values()) else 2


def _entries(facts, target: Target) -> list[FunctionFacts]:
    found = chosen(facts, target) if target.function else [f for f in facts.functions if f.entry is not None]
    if not found:
        known = next((f.name for f in facts.functions if f.function is not None), "")
        raise CuvilError(f"{target.path} has no entry point", expected="a function decorated with @cu.compile, or FILE:function",
                         hint=f"cuvil compile {target.path}:{known}" if known else "import cuvil as cu, and put @cu.compile above a function")
    return found


def _output(named: str | None, target: Target, functions: list[FunctionFacts]) -> Path | None:
    """The folder or library to write; None to print."""
    if named == "-":
        return None
    if named is None:
        from cuvil.artifact.files import output_folder
        return output_folder(files.repository(str(Path(target.path).parent)))
    path = Path(named)
    if path.suffix in (".so", ".dylib", ".dll", ".ptx", ".spv") and len(functions) != 1:
        raise CuvilError(f"--output {named} is one library, {target.path} has {len(functions)} functions: {', '.join(f.name for f in functions)}",
                         expected="a folder, or FILE:function", hint=f"cuvil compile {target.path}:{functions[0].name} -o {named}")
    return path


def _print(source, name: str, shapes: dict[str, Any], args: argparse.Namespace, emit: tuple[str, ...]) -> None:
    from cuvil.pipeline import Stages
    from cuvil.pipeline.files import EMITS, captured, sizes_of
    function, options = captured(source, name, shapes, None)
    dims, _ = sizes_of(function, shapes)
    level = args.opt_level if args.opt_level is not None else options.get("opt_level", 2)
    stages = Stages.of(function, args.target, level, dims, {source.path: source.text})
    for stage in emit or ("ir",):
        print(EMITS[stage][1](stages), end="")


def _sized(function: FunctionFacts, given: dict[str, str]) -> dict[str, Any]:
    """Given shapes as sizes of the symbols that the code names; as types of inputs where it names none."""
    if not given:
        return {}
    from cuvil.ir.types import TensorType
    declared = {op.attr("name"): op.type for op in function.function.inputs} if function.function is not None else {}
    if declared and (stray := [name for name in given if name not in declared]):
        raise CuvilError(f"--shape {stray[0]}: {function.name} has no input of that name", expected=f"one of: {', '.join(declared)}")
    if not declared or function.refusal is not None or not all(t.complete for t in declared.values()):
        return dict(given)
    sized: dict[str, int] = {}
    for name, text in given.items():
        asked, code = TensorType.parse(text if "[" in text else f"{declared[name].dtype}[{text}]"), declared[name]
        fits = len(asked.shape) == code.rank and asked.dtype == code.dtype
        for dim, size in zip(code.shape, asked.shape) if fits else ():
            if str(dim).isidentifier():
                fits &= sized.setdefault(str(dim), size) == size
        if not fits or code.substitute(sized).shape != asked.shape:
            known = ", ".join(f"{symbol} = {size}" for symbol, size in sized.items())
            raise CuvilError(f"--shape {name}={text} does not fit", expected=f"{code}" + (f" with {known}" if known else ""))
    return sized


def _shape(text: str) -> tuple[str, str]:
    """("x", "1,3,224,224") or ("x", "f16[1, 3]"), checked."""
    from cuvil.ir.types import DType
    name, equals, shape = text.partition("=")
    match = re.fullmatch(r"(\w+)\[([\d, ]*)\]|([\d, ]*\d[\d, ]*)", shape)
    try:
        if not equals or not name.isidentifier() or match is None:
            raise ValueError
        numbers = ", ".join(part for part in re.split(r"[,\s]+", match[2] if match[1] else match[3]) if part)
        return name, f"{DType.parse(match[1])}[{numbers}]" if match[1] else numbers
    except ValueError:
        raise CuvilError(f"--shape {text}", expected="NAME=SIZES, as in --shape x=1,3,224,224 or x=f16[1,3]") from None


def _known(target: str) -> None:
    from cuvil import llvm
    try:
        llvm.target(target)
    except ValueError as error:
        raise CuvilError(f"--target {target}: {error}") from None


def _stages(text: str) -> tuple[str, ...]:
    from cuvil.pipeline.files import EMITS
    stages = tuple(part for part in text.replace(" ", "").split(",") if part)
    if unknown := [stage for stage in stages if stage not in EMITS]:
        raise CuvilError(f"--emit {unknown[0]}: there is no such stage", expected=f"some of: {', '.join(EMITS)}")
    return stages


def _refusal(name: str, error: CuvilError) -> dict[str, Any]:
    place = {"path": error.span.path, "range": error.span.to_json()} if error.span else None
    return {"function": name, "refused": {"code": error.code, "message": str(error), "place": place}}


def _text(done: list[CompiledArtifact], refused: dict[str, CuvilError]) -> str:
    from cuvil_ide.views.scale import label
    rows, notes = [], []
    for a in done:
        costs = a.manifest.get("costs", {})
        work = f"{label(costs['flops'], 'FLOP')}, {label(costs['bytes'], 'B')}" if {"flops", "bytes"} <= costs.keys() else ""
        rows.append((a.name, plural(len(a.manifest.get("kernels", ())), "kernel"), work, f"{a.seconds:.2f} s", _shown(a.path)))
        if a.assumed:
            sizes = ", ".join(f"{k} = {v}" for k, v in a.assumed.items())
            notes.append(f"{a.name}: for example sizes {sizes}; choose others with --dim {next(iter(a.assumed))}=SIZE")
        notes += [f"{a.name}: {_shown(path)}" for path in a.paths[1:] if path.suffix not in (".h", ".json", ".safetensors")]
    notes += [f"{name}: refused\n  {str(error).replace(chr(10), chr(10) + '  ')}" for name, error in refused.items()]
    return "\n".join([*([table(rows)] if rows else []), *notes])


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
