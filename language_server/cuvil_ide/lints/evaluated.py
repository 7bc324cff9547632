"""What a value is, where all that it is made of stands in the code: data that an example or a test hands over as a literal."""
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from cuvil.diagnostics import CuvilError

if TYPE_CHECKING:
    import numpy as np

    from cuvil.ir.function import Function, Op

_ELEMENTS = 1 << 16                            # a mask of 256 by 256: what examples have
_OPS = 100


def evaluated(function: Function, op: Op) -> np.ndarray | None:
    """The array that an op gives; None when it hangs on an input, or is more than an example would hold."""
    made, todo = {}, [op]
    while todo:
        each = todo.pop()
        if each.id not in made:
            shape = each.type.shape
            small = shape is not None and all(isinstance(size, int) for size in shape) and prod(shape) <= _ELEMENTS
            if each.name in ("input", "parameter", "opaque") or not small or each.type.dtype is None or len(made) == _OPS:
                return None
            made[each.id] = each
            todo += [function.by_id[id] for id in each.operands]
    from cuvil.ir.interpret import run
    try:
        return run(function.with_ops(tuple(each for each in function.ops if each.id in made), (op.id,)), [])[0]
    except CuvilError:                         # the interpreter does not know all that the facts do
        return None
