"""Fingerprints of values by what they compute: equal exactly for the same operation on the same values, in any two functions.

Names do not matter: inputs are known by position, symbols of sizes by their order of appearance in the inputs; parameters by
their name in the model, which is what weights are loaded by. The operands of a commutative op have no order.
"""
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cuvil.ir.dims import symbol

if TYPE_CHECKING:
    from cuvil.ir.function import Function, Op

# a + b equals b + a bit for bit, except for which of two NaN payloads survives, which IEEE 754 leaves open.
COMMUTATIVE = {"add", "mul", "maximum", "minimum", "and", "or", "xor", "eq", "ne"}


def anonymous(function: Function) -> Function:
    """The function with its symbols called s0, s1, ... in order of appearance."""
    return function.substitute({name: symbol(f"s{i}") for i, name in enumerate(function.symbols)})


def fingerprints(function: Function) -> dict[int, str]:
    """By the id of each op. The function must be `anonymous`."""
    prints: dict[int, str] = {}
    for op in function.ops:
        operands = [prints[operand] for operand in op.operands]
        if op.name in COMMUTATIVE:
            operands.sort()
        prints[op.id] = hashlib.blake2b(f"{shallow(op)}{operands}".encode(), digest_size=16).hexdigest()
    return prints


def shallow(op: Op) -> str:
    """What an op is by itself, whatever it works on. repr tells 0.0 from -0.0 and 1 from 1.0 and True."""
    attrs = [(key, value) for key, value in op.attrs if not (op.name == "input" and key == "name")]
    return f"{op.name} {attrs!r} {op.type}"


def signature(function: Function) -> tuple:
    """Equal exactly for functions that compute the same in the same way, from inputs of the same types."""
    function = anonymous(function)
    prints = fingerprints(function)
    return function.returns, tuple(str(op.type) for op in function.inputs), tuple(prints[result] for result in function.results)
