"""Example sizes for symbols that the code leaves open, so that a panel can show numbers.

They are only examples, and whoever shows a number made from them says so. The names people use give the best guess:
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir.dims import Dim, substitute

DEFAULT = 128
BY_NAME = {                                  # lower case; what is not here is DEFAULT
    8: ("b", "n", "bs", "bsz", "batch", "batch_size"),        # not 1: a size of 1 broadcasts, and is no example of a batch
    12: ("h", "nh", "heads", "n_heads", "num_heads"),
    64: ("d", "hd", "dh", "head_dim", "d_head"),
    128: ("t", "s", "l", "q", "k", "seq", "seq_len", "seqlen", "length", "tokens"),
    256: ("hh", "ww", "height", "width", "img_h", "img_w"),
    768: ("c", "e", "dim", "embed", "hidden", "d_model", "hidden_size", "channels"),
    1024: ("v", "vocab", "vocab_size"),
}
_SIZE = {name: size for size, names in BY_NAME.items() for name in names}


def example_sizes(symbols: Iterable[str], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """A size for each symbol: the given one, else an example by name, else DEFAULT."""
    return {name: (given or {}).get(name) or _SIZE.get(name.lower(), DEFAULT) for name in symbols}


def number(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The value of a dim; a symbol that `sizes` lacks takes its example size."""
    if isinstance(dim, int):
        return dim
    from ..ir.dims import symbols
    value = substitute(dim, {**example_sizes(symbols(dim)), **sizes})
    if not isinstance(value, int):
        raise ValueError(f"{dim} has no value for {dict(sizes)}")
    return value
