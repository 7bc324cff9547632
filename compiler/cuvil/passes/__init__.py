"""CIR to CIR: each pass is a function in a file of its name, and PIPELINE is their order.

    canonicalise   one spelling for each value
    duplicate      ops that do again what was done
    decompose      composites into primitives
    cse, dce       each value once, and only those needed
    own_results    an input that is returned, or a value returned twice, is copied

A pass keeps every origin and label of the values it keeps, changes no result by a bit, and makes a function that verifies.
`fuse` comes after them and is no pass: it makes kernels of the function, without changing it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.function import Function
from .canonicalise import canonicalise
from .cse import cse
from .dce import dce
from .decompose import Composite, decompose
from .duplicate import duplicate
from .own_results import own_results
from .rewriter import unused_id

# (function, first_id) -> function; new ops get ids from first_id on, which only run() needs to give.
Pass = Callable[..., Function]

PIPELINE: list[tuple[str, Pass]] = [
    ("canonicalise", canonicalise),
    ("duplicate", duplicate),
    ("cse", cse),
    ("dce", dce),
    ("decompose", lambda function, first_id=0: decompose(function, first_id)[0]),
    ("canonicalise-primitives", canonicalise),
    ("duplicate-primitives", duplicate),
    ("cse-primitives", cse),
    ("dce-primitives", dce),
    ("own-results", own_results),
]


@dataclass(frozen=True)
class Optimized:
    """history: the function after each pass, by the pass's name, the function as captured first.

    composites   op id -> the composite it was part of, for views that open and close them
    """

    function: Function
    history: tuple[tuple[str, Function], ...]
    composites: dict[int, Composite]


def run(function: Function) -> Optimized:
    """All passes in order."""
    history = [("captured", function)]
    composites: dict[int, Composite] = {}
    first_id = unused_id(function)
    for name, apply in PIPELINE:
        if name == "decompose":              # it tells more than the function it makes
            function, composites = decompose(function, first_id)
        else:
            function = apply(function, first_id)
        first_id = max(first_id, unused_id(function))
        history.append((name, function))
    present = function.by_id
    return Optimized(function, tuple(history), {id: c for id, c in composites.items() if id in present})
