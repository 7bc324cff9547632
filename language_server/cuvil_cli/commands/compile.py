"""Compile functions to shared libraries with a C interface: lib<name>.so, <name>.h, <name>.json, and parameters.

examples:
  cuvil compile model.py                              every function decorated with @cu.compile, into .cuvil/
  cuvil compile model.py:attention --shape q=2,8,128,64 -o libattention.so
  cuvil compile model.py:attention --dim b=2          sizes by the names the code gives them
  cuvil compile model.py:attention --emit ir,loops,asm   print stages instead of writing a library

Sizes that stay open take example sizes, which are printed and stand in the manifest. A library is for its sizes alone.
Exit code 1 when a function is refused; libraries of earlier runs are then left as they are."""
from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuvil.diagnostics import CuvilError

from .. import files
from ..target import Target, chosen, parse
from ..terminal import Progress, table
from .explain import sizes

if TYPE_CHECKING:
    from cuvil.ir.function import Function
    from cuvil.ir.types import TensorType
    from cuvil.pipeline import Stages

LAYERS = ("cst", "captured", "ir", "kernels", "loops", "llvm", "asm", "ptx", "spirv")


@dataclass(frozen=True)
class Result:
    """One function. files: what was written, the library first. refused: why nothing was."""

    function: str
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    manifest: dict[str, Any] | None = None
    dims: dict[str, int] | None = None
    guessed: tuple[str, ...] = ()
    text: str = ""
    refused: CuvilError | None = None


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FILE[:function]")
    parser.add_argument("--target", default="cpu", help="cpu, cuda:sm_90 (PTX), opencl (SPIR-V) (default: cpu, this machine)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZES", help="shape of an input: x=1,3,224,224 or x=f16[1,3,224,224]")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="size of a symbol")
    parser.add_argument("--opt-level", type=int, choices=(0, 1, 2), default=2, help="0: no fusion, 1: no epilogues, 2: all (default)")
    parser.add_argument("--output", "-o", metavar="FILE", help="the library to write; only with one function")
    parser.add_argument("--emit", metavar="LAYERS", default="", help=f"print stages instead: {', '.join(LAYERS)}; comma-separated")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    target, layers = parse(args.source), _layers(args.emit)
    known = _target(args.target)
    shapes, dims = dict(map(_shape, args.shape)), sizes(args.dim)
    session = _session(target)
    functions = [f.name for f in _entries(session.facts(target.path), target)]
    if args.output and len(functions) != 1:
        raise CuvilError(f"--output names one library, {target.path} has {len(functions)} functions to compile: {', '.join(functions)}",
                         expected="FILE:function with --output", hint=f"cuvil compile {target.path}:{functions[0]} -o {args.output}")
    results = []
    with Progress("compiling", len(functions)) as progress:
        for name in functions:
            progress.step(name)
            results.append(_compile(session, target.path, name, known, args, shapes, dims, layers))
    if args.format == "json":
        print(json.dumps({"version": 1, "path": target.path, "target": known, "functions": [_entry(r) for r in results]}, indent=2))
    else:
        print(_text(results, known, layers))
    refused = [r for r in results if r.refused]
    return 0 if not refused else 1 if any(r.refused.span for r in refused) else 2


def _entries(facts, target: Target) -> list:
    found = chosen(facts, target) if target.function else [f for f in facts.functions if f.entry is not None]
    if not found:
        known = ", ".join(f.name for f in facts.functions if f.function is not None)
        raise CuvilError(f"{target.path} has no entry point", expected="a function decorated with @cu.compile, or FILE:function",
                         hint=f"cuvil compile {target.path}:{known.partition(',')[0]}" if known else "import cuvil as cu, and put @cu.compile above one")
    return found


def _compile(session, path: str, name: str, target: str, args: argparse.Namespace, shapes: dict[str, TensorType], dims: dict[str, int],
             layers: tuple[str, ...]) -> Result:
    start = time.perf_counter()
    try:
        stages, bound, guessed = _stages(session, path, name, target, args.opt_level, shapes, dims)
        if layers:
            return Result(name, time.perf_counter() - start, dims=bound, guessed=guessed, text="\n\n".join(_emitted(session, path, name, stages, layers)))
        from cuvil.artifact import build
        built = build.build(stages, dims=bound)
        written = built.write(_library(path, name, args.output))
        return Result(name, time.perf_counter() - start, tuple(map(str, written)), built.manifest, bound, guessed)
    except CuvilError as error:
        return Result(name, time.perf_counter() - start, refused=error)


def _stages(session, path: str, name: str, target: str, level: int, shapes: dict[str, TensorType],
            dims: dict[str, int]) -> tuple[Stages, dict[str, int], tuple[str, ...]]:
    """The stages at numbers: sizes given by shape or by name, and examples for what is still open."""
    from cuvil.cost import example_sizes
    from cuvil.pipeline import Stages
    function = _captured(session, path, name, shapes)
    bound = {**_bind(function, shapes), **dims}
    if unknown := [d for d in dims if d not in function.symbols]:
        raise CuvilError(f"--dim {unknown[0]}: {name} has no size of that name", expected=f"one of: {', '.join(function.symbols) or 'none'}")
    guessed = tuple(s for s in function.symbols if s not in bound)
    sized = {symbol: size for symbol, size in example_sizes(function.symbols, bound).items()}
    return Stages.of(function, target, level, sized or None), sized, guessed


def _captured(session, path: str, name: str, shapes: dict[str, TensorType]) -> Function:
    """As its own annotations say; captured anew when shapes were given for inputs whose type the code leaves open."""
    facts = session.function(path, name)
    known = {op.attr("name"): op.type for op in facts.function.inputs} if facts.function is not None else {}
    if unknown := [n for n in shapes if known and n not in known]:
        raise CuvilError(f"--shape {unknown[0]}: {name} has no input of that name", expected=f"one of: {', '.join(known)}")
    if shapes and (facts.refusal is not None or any(not t.complete for t in known.values())):
        from cuvil.frontends.python import capture
        return capture(session.source(path), name, shapes)
    return session.stages(path, name).function


def _bind(function: Function, shapes: dict[str, TensorType]) -> dict[str, int]:
    """Sizes of symbols, read off the given shapes. A number that clashes with the code's own is an error."""
    bound: dict[str, int] = {}
    for op in function.inputs:
        given = shapes.get(op.attr("name"))
        if given is None:
            continue
        what = f"--shape {op.attr('name')}={','.join(map(str, given.shape))}"
        if len(given.shape) != op.type.rank:
            raise CuvilError(f"{what} has {len(given.shape)} axes", expected=f"{op.type}, {op.type.rank} axes")
        for dim, size in zip(op.type.shape, given.shape):
            symbol = str(dim)
            if isinstance(dim, int) or not symbol.isidentifier():
                continue
            if bound.setdefault(symbol, size) != size:
                raise CuvilError(f"{what} gives {symbol} = {size}, another shape gives {bound[symbol]}", expected=f"one size for {symbol}")
        if any(isinstance(dim, int) and dim != size for dim, size in zip(op.type.substitute(bound).shape, given.shape)):
            raise CuvilError(f"{what} does not fit", expected=str(op.type))
    return bound


def _shape(text: str) -> tuple[str, TensorType]:
    from cuvil.ir.types import DType, TensorType
    name, equals, shape = text.partition("=")
    match = re.fullmatch(r"(?:(\w+)\[)?((?:\d+(?:[,x]\d+)*)?)\]?", shape.replace(" ", ""))
    try:
        if not equals or not name.isidentifier() or match is None:
            raise ValueError
        return name, TensorType(tuple(int(d) for d in re.split("[,x]", match[2]) if d), DType.parse(match[1] or "float32"))
    except ValueError:
        raise CuvilError(f"--shape {text}", expected="NAME=SIZES, as in --shape x=1,3,224,224 or x=f16[1,3]") from None


def _target(name: str) -> str:
    from cuvil import llvm
    try:
        llvm.target(name)
    except ValueError as error:
        raise CuvilError(f"--target {name}: {error}") from None
    return name


def _layers(text: str) -> tuple[str, ...]:
    layers = tuple(part for part in text.replace(" ", "").split(",") if part)
    if unknown := [layer for layer in layers if layer not in LAYERS]:
        raise CuvilError(f"--emit {unknown[0]}: there is no such stage", expected=f"some of: {', '.join(LAYERS)}")
    return layers


def _library(path: str, name: str, output: str | None) -> Path:
    if output:
        return Path(output)
    from cuvil.artifact.files import output_folder
    return output_folder(files.repository(str(Path(path).parent))) / f"lib{name.replace('.', '_')}.so"


def _emitted(session, path: str, name: str, stages: Stages, layers: tuple[str, ...]) -> Iterator[str]:
    """The text of each stage that was asked for."""
    from cuvil.ir.text import print_function
    for layer in layers:
        match layer:
            case "cst":
                yield _syntax(session, path, name)
            case "captured":
                yield print_function(stages.function, locations=True)
            case "ir":
                yield print_function(stages.optimized.function, locations=True)
            case "kernels":
                shown = (f"{k.name}: {k.kind}, ops {', '.join(f'%{i}' for i in k.ops)}, reads {', '.join(f'%{i}' for i in k.inputs)}, "
                         f"writes {', '.join(f'%{i}' for i in k.outputs)}" for k in stages.kernels.kernels)
                yield "\n".join(shown)
            case "loops":
                yield "\n\n".join(nest.text for nest in stages.nests)
            case "llvm":
                yield stages.llvm.text
            case "asm":
                yield "\n".join(line.text for line in stages.assembly)
            case "ptx" | "spirv":
                yield _device_code(stages, layer)


def _device_code(stages: Stages, layer: str) -> str:
    target = stages.target
    if (layer == "ptx") != target.startswith("cuda") or (layer == "spirv" and target != "opencl"):
        raise CuvilError(f"--emit {layer} with --target {target}", expected="--target cuda:sm_90 for ptx, --target opencl for spirv")
    if layer == "ptx":
        return "\n".join(line.text for line in stages.assembly)
    raise CuvilError("SPIR-V is binary", expected="--output FILE.spv", hint="cuvil compile FILE:function --target opencl -o name.spv")


def _syntax(session, path: str, name: str) -> str:
    definition = session.facts(path).module.by_name[name]
    depth: dict[int, int] = {}
    lines = []
    for node in definition.tree.walk():
        parent = definition.tree.parent(node)
        depth[id(node)] = depth.get(id(parent), -1) + 1
        span = definition.span(node, path)
        code = definition.tree.code(node).partition("\n")[0].rstrip()
        lines.append(f"{'  ' * depth[id(node)]}{type(node).__name__} {span.line}:{span.column + 1} {code}".rstrip())
    return "\n".join(lines)


def _session(target: Target):
    from cuvil_ide.session import Session
    session = Session()
    session.update(target.path, files.read(target.path).source.text)
    return session


def _entry(result: Result) -> dict[str, Any]:
    """A function in JSON: what was written and what it costs, or why it was refused."""
    if result.refused:
        error = result.refused
        return {"function": result.function, "refused": {"code": error.code, "message": str(error), "path": error.span.path if error.span else "",
                                                         "range": error.span.to_json() if error.span else None}}
    return {"function": result.function, "seconds": round(result.seconds, 4), "files": list(result.files), "dims": result.dims or {},
            "examples": list(result.guessed), "manifest": result.manifest, "emitted": result.text}


def _text(results: list[Result], target: str, layers: tuple[str, ...]) -> str:
    if layers:
        return "\n\n".join(str(r.refused) if r.refused else r.text for r in results)
    rows, notes = [], []
    for r in results:
        if r.refused:
            notes.append(f"{r.function}: refused\n  {str(r.refused).replace(chr(10), chr(10) + '  ')}")
            continue
        costs, kernels = r.manifest.get("costs", {}), r.manifest.get("kernels", [])
        work = f"{costs['flops'] / 1e6:.2f} MFLOP, {costs['bytes'] / 1e6:.2f} MB" if "flops" in costs and "bytes" in costs else ""
        rows.append((r.function, f"{len(kernels)} kernels", work, f"{r.seconds:.2f} s", r.files[0]))
        if r.dims:
            shown = ", ".join(f"{k} = {v}{' (example)' if k in r.guessed else ''}" for k, v in r.dims.items())
            notes.append(f"{r.function}: for {shown}" + (f"; choose with --shape or --dim {r.guessed[0]}=SIZE" if r.guessed else ""))
    return "\n".join([*([table(rows)] if rows else []), *notes])
