"""The C file that ties one function's kernels to the common runtime: its signature as a table, and `infer` with its own arguments."""
from __future__ import annotations

from ..targets import Target
from .header import infer_prototype
from .signature import Signature, Slot

# Only these names can be seen from outside; everything else in a library is local to it.
EXPORTS = ("cuvil_manifest", "cuvil_load", "cuvil_run", "cuvil_last_error", "cuvil_free", "cuvil_call", "cuvil_direct", "infer")
# More arguments than this go through arrays (cuvil_call) from Python.
DIRECT_LIMIT = 32


# Features of x86-64 by LLVM's names, as bits of CPUID's leaf 1 ECX and leaf 7 EBX (runtime/processor.h).
_LEAF_1_ECX = {"fma": 12, "avx": 28}
_LEAF_7_EBX = {"bmi": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "avx512cd": 28, "avx512bw": 30, "avx512vl": 31}
# Registers that the operating system must save: those of AVX, and with masks and upper halves those of AVX-512.
_XCR0_AVX, _XCR0_AVX512 = 0x6, 0xE6


def program(signature: Signature, manifest: str, scratch: int, packed: int, checks: tuple[str, ...], target: Target) -> str:
    """The text of program.c. scratch, packed: bytes; checks: what the kernels' failure codes 1, 2, ... mean."""
    asked = _asked(target.needs)
    parts = ['#include "abi.h"', *(['#include "processor.h"'] if asked else []), "",
             f"static int32_t runs_here(void) {{ return {asked or 1}; }}"]
    for role, slots in (("input", signature.inputs), ("output", signature.outputs), ("parameter", signature.parameters)):
        parts += [_shape(role, i, slot) for i, slot in enumerate(slots) if slot.type.shape]
        if slots:
            rows = ",\n".join(_row(role, i, slot) for i, slot in enumerate(slots))
            parts.append(f"static const cuvil_tensor {role}s[] = {{\n{rows}}};")
    if checks:
        parts.append(f"static const char* const checks[] = {{{', '.join(map(_string, checks))}}};")
    parts.append(f"static const char manifest[] =\n{_long_string(manifest)};")

    def table(name: str, some: object) -> str:
        return name if some else "NULL"

    parts.append(
        f"const cuvil_program cuvil_this_program CUVIL_HIDDEN = {{\n"
        f"  {_string(signature.name)}, manifest, {len(signature.inputs)}, {len(signature.outputs)}, {len(signature.parameters)},\n"
        f"  {table('inputs', signature.inputs)}, {table('outputs', signature.outputs)}, {table('parameters', signature.parameters)},\n"
        f"  {scratch}u, {packed}u, {table('checks', checks)}, {len(checks)}, {_string(target.name)}, runs_here}};")
    parts += ["", _infer(signature)]
    if len(signature.inputs) + len(signature.outputs) <= DIRECT_LIMIT:
        parts += ["", _direct(signature)]
    return "\n".join(parts) + "\n"



def _asked(needs: tuple[str, ...]) -> str:
    """The C expression that asks the processor for these features; "" when there is nothing to ask for."""
    ecx = sum(1 << _LEAF_1_ECX[name] for name in needs if name in _LEAF_1_ECX)
    ebx = sum(1 << _LEAF_7_EBX[name] for name in needs if name in _LEAF_7_EBX)
    xcr0 = _XCR0_AVX512 if any(name.startswith("avx512") for name in needs) else _XCR0_AVX
    return f"cuvil_processor_has({ecx:#x}u, {ebx:#x}u, {xcr0:#x}u)" if ecx or ebx else ""


def _shape(role: str, index: int, slot: Slot) -> str:
    return f"static const int64_t {role}{index}[] = {{{', '.join(map(str, slot.type.shape))}}};"


def _row(role: str, index: int, slot: Slot) -> str:
    type = slot.type
    return (f"  {{{_string(slot.name)}, {_string(str(type.dtype))}, {_string(slot.stored)}, {slot.code}, {type.dtype.size * 8}, "
            f"{len(type.shape)}, {f'{role}{index}' if type.shape else 'NULL'}, {type.nbytes}u}}")


def _arrays(signature: Signature) -> str:
    inputs = ", ".join(f"(void*){slot.c_name}" for slot in signature.inputs) or "NULL"
    outputs = ", ".join(slot.c_name for slot in signature.outputs) or "NULL"
    return f"  void* ins[] = {{{inputs}}};\n  void* outs[] = {{{outputs}}};\n"


def _infer(signature: Signature) -> str:
    return ("CUVIL_HIDDEN void cuvil_infer(void** inputs, void** outputs);\n"
            f"CUVIL_EXPORT {infer_prototype(signature)} {{\n{_arrays(signature)}  cuvil_infer(ins, outs);\n}}")


def _direct(signature: Signature) -> str:
    """What cu.load's fast path calls: no arrays to build in Python, and a status."""
    arguments = ", ".join(["cuvil_model* cuvil_model_", *(f"void* {slot.c_name}" for slot in (*signature.inputs, *signature.outputs))])
    return ("int32_t cuvil_call(cuvil_model* model, void** inputs, void** outputs);\n"
            f"CUVIL_EXPORT int32_t cuvil_direct({arguments}) {{\n{_arrays(signature)}  return cuvil_call(cuvil_model_, ins, outs);\n}}")


def _string(text: str) -> str:
    """A C string literal of the text's UTF-8, with octal escapes so that no following digit joins one."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        if byte in b'"\\?' or not 32 <= byte < 127:
            out.append(f"\\{byte:03o}")
        else:
            out.append(chr(byte))
    return '"' + "".join(out) + '"'


def _long_string(text: str) -> str:
    """One literal per line of text: compilers limit the length of one."""
    return "\n".join("  " + _string(line) for line in text.splitlines(keepends=True)) or '""'
