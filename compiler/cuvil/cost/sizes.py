"""Example sizes for symbols that the code leaves open, so that a panel can show numbers.

They are only examples, and whoever shows a number made from them says so. The names people use give the best guess:
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir.dims import Dim, Poly, substitute
from ..ir.dims import symbols as symbols_of
from ..ir.function import Function

DEFAULT = 128
BY_NAME = {                                  # lower case; what is not here is DEFAULT
    8: ("b", "n", "bs", "bsz", "batch", "batch_size"),        # not 1: a size of 1 broadcasts, and is no example of a batch
    4: ("h", "nh", "heads", "n_heads", "num_heads"),
    64: ("d", "hd", "dh", "head_dim", "d_head"),
    128: ("t", "s", "l", "q", "k", "seq", "seq_len", "seqlen", "length", "tokens"),
    256: ("hh", "ww", "height", "width", "img_h", "img_w"),
    768: ("c", "e", "dim", "embed", "hidden", "d_model", "hidden_size", "channels"),
    1024: ("v", "vocab", "vocab_size"),
}
_SIZE = {name: size for size, names in BY_NAME.items() for name in names}


def example_sizes(symbols: Iterable[str], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """A size for each symbol: the given one, else an example by name, else DEFAULT. h beside w is a height, not a number of heads."""
    names = tuple(symbols)
    image = {"h", "w"} <= {name.lower() for name in names}
    usual = {**_SIZE, "h": _SIZE["height"], "w": _SIZE["width"]} if image else _SIZE
    return {name: (given or {}).get(name) or usual.get(name.lower(), DEFAULT) for name in names}


def free_symbols(function: Function) -> tuple[str, ...]:
    """All symbols of a function: those of its inputs first, then those that stand in types and attributes alone (a layer's
    setting that nobody gave)."""
    found = dict.fromkeys(function.symbols)
    for op in function.ops:
        todo: list[object] = [*(op.type.shape or ()), *(value for _, value in op.attrs)]
        while todo:
            value = todo.pop()
            if isinstance(value, tuple):
                todo += value
            elif isinstance(value, Poly):
                found.update(dict.fromkeys(sorted(symbols_of(value))))
    return tuple(found)


def number(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The value of a dim; a symbol that `sizes` lacks takes its example size."""
    if isinstance(dim, int):
        return dim
    value = substitute(dim, {**example_sizes(symbols_of(dim)), **sizes})
    if not isinstance(value, int):
        raise ValueError(f"{dim} has no value for {dict(sizes)}")
    return value
