"""The optimised LLVM text and the assembly, line by line, each with what it came from.

An LLVM instruction names its loop statement by the discriminator of its debug scope (debug.py). For assembly the optimised
module is emitted once more with each instruction's debug line replaced by its number, and the `.loc` directives are read
back; debug locations do not change what code is generated.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import host

if TYPE_CHECKING:
    from .gpu import GpuModule
    from .module import Line, LlvmModule

_DEBUG = re.compile(r",? !dbg !(\d+)")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DILocation|DILexicalBlockFile)\((.*)\)$")
_FIELD = re.compile(r"(\w+): !?(\w+)")
_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
# Line numbers from here on are numbers of LLVM lines; smaller ones are the functions' own Python lines.
FIRST = 10_000_000


def llvm_lines(module: LlvmModule | GpuModule) -> tuple[Line, ...]:
    from .module import Line
    nodes = _nodes(module.text)
    found = []
    for number, (text, debug) in enumerate(_function_lines(module.text)):
        statement = _statement(nodes, debug, module.statements)
        note = "" if statement else _why_unmapped(text, debug is not None)
        found.append(Line(f"llvm:{number}", text, (statement,) if statement else (), note))
    return tuple(found)


def assembly_lines(module: LlvmModule) -> tuple[Line, ...]:
    from .module import Line
    made = host.parse(_numbered(module.text), module.target)
    count = len(module.lines)
    functions = {name.strip('"') for name in re.findall(r'^define [^@]*@("[^"]+"|[\w.$-]+)\(', module.text, re.MULTILINE)}
    found: list[Line] = []
    source, begun, inside = None, False, False
    for text in host.machine(module.target).emit_assembly(made).splitlines():
        place = _LOC.match(text)
        if place:
            number = int(place.group(1)) - FIRST
            source = f"llvm:{number}" if 0 <= number < count else None
            begun = begun or source is not None
            continue
        line, _, comment = text.partition("#")
        line = line.rstrip()
        label = line.endswith(":") and not line.startswith((" ", "\t"))
        if label and line[:-1].strip('"') in functions:
            begun, inside, source = False, True, None
        if line.lstrip().startswith(".cfi_endproc"):
            inside = False
        if not inside or not line.strip() or line.lstrip().startswith(".") and not label or line.startswith(".Ltmp") or line.startswith(".Lfunc"):
            continue
        origins, note = (source,) if source and not label else (), ""
        if label:
            note = "label"
        elif "Spill" in comment or "Reload" in comment:
            note = "register spill" if "Spill" in comment else "register reload"
        elif not origins:
            note = "function prologue" if not begun else "made by LLVM"
        found.append(Line(f"asm:{len(found)}", line.expandtabs(8).strip() if not label else line, origins, note))
    return tuple(found)


def ptx_lines(module: GpuModule) -> tuple[Line, ...]:
    from .module import Line
    made = host.parse(_numbered(module.text), module.target)
    count, source, found = len(module.lines), None, []
    for text in host.machine(module.target).emit_assembly(made).splitlines():
        place = _LOC.match(text)
        line = text.split("//")[0].strip()
        if place:
            number = int(place.group(1)) - FIRST
            source = f"llvm:{number}" if 0 <= number < count else None
        elif line.startswith(".visible .entry"):
            source = None
            found.append(Line(f"asm:{len(found)}", line, (), "function"))
        elif line.startswith("$"):
            found.append(Line(f"asm:{len(found)}", line, (), "label"))
        elif line.endswith(";") and not line.startswith("."):
            found.append(Line(f"asm:{len(found)}", line.expandtabs(8), (source,) if source else (), "" if source else "made by LLVM"))
    return tuple(found)


def _nodes(text: str) -> dict[str, dict[str, str]]:
    """The debug locations and scopes of a module, by number."""
    found = {}
    for line in text.splitlines():
        match = _NODE.match(line)
        if match:
            found[match.group(1)] = {"kind": match.group(2), **dict(_FIELD.findall(match.group(3)))}
    return found


def _statement(nodes: dict[str, dict[str, str]], debug: str | None, statements: tuple[str, ...]) -> str | None:
    location = nodes.get(debug or "")
    scope = nodes.get(location["scope"]) if location else None
    if scope is None or scope["kind"] != "DILexicalBlockFile":
        return None
    return statements[int(scope["discriminator"]) - 1]


def _function_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """The lines of function bodies without debug references, each with its reference."""
    inside = False
    for line in text.splitlines():
        if line.startswith("define "):
            inside = True
        if inside and line:
            debug = _DEBUG.search(line)
            yield _DEBUG.sub("", line).rstrip(), debug.group(1) if debug else None
        if line == "}":
            inside = False


def _why_unmapped(text: str, located: bool) -> str:
    if text.startswith("define "):
        return "function"
    if text == "}":
        return "end of the function"
    if re.match(r"^[\w.\"-]+:", text):
        return "block"
    if "getelementptr" in text and "%context" in text or re.search(r"load ptr, ptr %", text):
        return "addresses of the kernel's values"
    if " alloca " in text:
        return "stack memory"
    if " phi " in text:
        return "joins values of several blocks"
    return "calls the kernels" if located else "made by LLVM's optimiser"


def _numbered(text: str) -> str:
    """The module with each instruction's debug line replaced by its number among the lines of functions."""
    out: list[str] = []
    added: list[str] = []
    first = 1 + max((int(n) for n in re.findall(r"^!(\d+) = ", text, re.MULTILINE)), default=-1)
    number, scope, inside = 0, None, False
    for line in text.splitlines():
        if line.startswith("define "):
            inside = True
            debug = _DEBUG.search(line)
            scope = debug.group(1) if debug else None
        if inside and line:
            instruction = line.startswith("  ") and not line.lstrip().startswith((";", "]")) and scope is not None
            if instruction and not _continues(line):
                added.append(f"!{first + len(added)} = !DILocation(line: {FIRST + number}, column: 1, scope: !{scope})")
                line = _with_debug(_DEBUG.sub("", line), first + len(added) - 1)
            number += 1
        if line == "}":
            inside = False
        out.append(line)
    return "\n".join([*out, *added])


def _continues(line: str) -> bool:
    """Lines inside a switch's table, and the head of a switch, take no metadata of their own here."""
    return line.startswith("    ") or line.rstrip().endswith("[")


def _with_debug(line: str, node: int) -> str:
    body, comment = (line.split(" ; ", 1) + [""])[:2] if " ; " in line else (line, "")
    return f"{body}, !dbg !{node}" + (f" ; {comment}" if comment else "")
