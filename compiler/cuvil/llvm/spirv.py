"""SPIR-V from an optimised LLVM module, in a process of its own.

LLVM's SPIR-V back end (22.1) keeps the numbers of basic blocks in a static table by address, so a second module in one
process may get the numbers of blocks that are gone: result ids that are given twice. A process that emits one module is
right. `result_ids_are_unique` makes sure of it.
"""
from __future__ import annotations

import struct
import subprocess
import sys

from ..diagnostics import CuvilError

SECONDS = 60
# Opcodes whose first operand is their result, and those whose second is (after its type): SPIR-V 1.6, section 3.42.
_RESULT_FIRST = frozenset((11, *range(19, 39), 248))                 # ExtInstImport, types, Label
_RESULT_SECOND = frozenset((12, 41, 42, 43, 44, 46, 54, 55, 57, 59, 61, *range(65, 71), *range(77, 88), *range(109, 125),
                            *range(126, 135), *range(154, 191), *range(194, 206), 245))


def emit(text: str) -> bytes:
    """The binary of a module's LLVM text. CuvilError when the child process fails."""
    try:
        done = subprocess.run([sys.executable, "-P", "-m", __name__], input=text.encode(), capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CuvilError(f"SPIR-V could not be made: {error}", code="CUV005") from None
    if done.returncode or not result_ids_are_unique(done.stdout):
        raise CuvilError(f"LLVM could not make SPIR-V: {done.stderr.decode(errors='replace').strip()[-400:] or 'ids given twice'}", code="CUV005")
    return done.stdout


def result_ids_are_unique(code: bytes) -> bool:
    words = struct.unpack(f"<{len(code) // 4}I", code[:len(code) // 4 * 4])
    if len(words) < 5 or words[0] != 0x07230203:
        return False
    seen: set[int] = set()
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        operand = 1 if opcode in _RESULT_FIRST else 2 if opcode in _RESULT_SECOND else 0
        if operand:
            if words[at + operand] in seen:
                return False
            seen.add(words[at + operand])
        at += max(count, 1)
    return True


def main() -> int:
    from ..targets import named
    from . import host
    target = named("opencl")
    sys.stdout.buffer.write(host.machine(target).emit_object(host.parse(sys.stdin.buffer.read().decode(), target)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
