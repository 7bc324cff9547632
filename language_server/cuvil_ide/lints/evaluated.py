"""What a value is with the data that an example or a test hands to the function it stands in, as a literal: `f(torch.tensor([2, 0]))`."""
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError
from cuvil.ir.dims import Poly

from .flow import depth

if TYPE_CHECKING:
    import numpy as np

    from cuvil.ir.function import Function, Op

_ELEMENTS = 1 << 16                            # a mask of 256 by 256: what examples have
_OPS = 100


def evaluated(function: Function, op: Op) -> np.ndarray | None:
    """The array that an op gives; None when it hangs on anything but such data. `torch.zeros(2, 3)` stands for data of its shape, and says nothing."""
    made, todo = {}, [op]
    while todo:
        each = todo.pop()
        if each.id not in made:
            if each.name in ("input", "parameter", "opaque") or not _small(each) or len(made) == _OPS:
                return None
            made[each.id] = each
            todo += [function.by_id[id] for id in each.operands]
    if not any(each.name == "constant" and isinstance(each.attr("value"), tuple) and depth(each) < depth(op) for each in made.values()):
        return None
    from cuvil.ir.interpret import run
    try:
        return run(function.with_ops(tuple(each for each in function.ops if each.id in made), (op.id,)), [])[0]
    except CuvilError:                         # the interpreter does not know all that the facts do
        return None


def _small(op: Op) -> bool:
    """Of a known type, without symbolic sizes, and not large."""
    shape = op.type.shape
    if shape is None or op.type.dtype is None or not all(isinstance(size, int) for size in shape) or prod(shape) > _ELEMENTS:
        return False
    return not any(isinstance(part, Poly) for _, value in op.attrs for part in (value if isinstance(value, tuple) else (value,)))
