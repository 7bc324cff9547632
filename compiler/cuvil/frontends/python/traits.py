"""What follows for a result from what it is computed from: its device, whether it hangs on a gradient, how it was made, its marks."""
from __future__ import annotations

from ...ir.function import Op
from .values import CPU, Device, Tensor
from .walk import Walk

MEMORY = frozenset(("expanded", "shared", "pending", "pinned", "negative-stride", "parameter"))      # of the memory: views have them too
CONTENT = frozenset(("bgr", "rgb", "hwc", "padded-left", "padded-right"))                            # of the elements: copies have them too
KEEPING = frozenset(("clone", "copy", "contiguous", "ascontiguousarray", "detach", "float", "half", "double", "bfloat16", "astype", "to", "type",
                     "long", "int", "bool", "from_numpy", "as_tensor", "asarray", "array", "tensor", "cpu", "cuda", "numpy", "unsqueeze", "expand_dims",
                     "expand", "stack", "getitem", "add", "sub", "subtract", "mul", "multiply", "div", "divide", "truediv", "true_divide", "clamp", "clip",
                     "interpolate", "repeat", "index_select", "gather"))
REORDERING = frozenset(("permute", "transpose", "moveaxis", "movedim", "swapaxes", "reshape", "view", "rearrange", "T", "mT", "flatten", "ravel"))


def made(walk: Walk, op: Op, library: str, name: str, tensors: list[Tensor]) -> Tensor:
    """A result with memory of its own. tensors: what it is computed from."""
    inference = walk.context.grad == "inference"
    if not tensors:
        return walk.tensor(op, library)
    return walk.own(Tensor(op, library, walk.new_storage(), False, device(library, tensors, walk.host), grad(walk, op, name, tensors), inference, None,
                           marks(name, tensors)))


def view(walk: Walk, op: Op, name: str, base: Tensor) -> Tensor:
    """A result that looks into the memory of a tensor."""
    walk.shared.add(base.storage)
    return Tensor(op, base.library, base.storage, True, base.device, grad(walk, op, name, [base]), base.inference, None, view_marks(name, base))


def device(library: str, tensors: list[Tensor], host: Device | None) -> Device | None:
    """Where the result of an operation lives: had its operands lived apart, it would have failed. Numbers (0-d) may live anywhere."""
    if library != "torch":
        return CPU if library == "numpy" else None
    given = [t for t in tensors if t.library == "torch" and t.type.shape != ()] or [t for t in tensors if t.library == "torch"]
    if not given:
        return host
    known = [t.device for t in given if t.device is not None]
    chosen = next((each for each in known if not each.default), None)
    return chosen if chosen is not None else known[0] if len(known) == len(given) else None


_NO_GRADIENT = frozenset(("detach", "detach_", "tensor", "from_numpy", "numpy", "empty", "argmax", "argmin"))


def grad(walk: Walk, op: Op, name: str, tensors: list[Tensor]) -> bool | None:
    """Whether a result hangs on something that requires a gradient; where the mode hangs on the caller, as if gradients were on."""
    last = name.rpartition(".")[2]
    if walk.context.grad in ("no_grad", "inference") or op.type.dtype is not None and not op.type.dtype.is_float:
        return False
    if last in _NO_GRADIENT or last.endswith("_like") or last.startswith("new_"):
        return False
    found = [t.grad for t in tensors]
    return True if True in found else None if None in found else False


def marks(name: str, tensors: list[Tensor]) -> frozenset[str]:
    """Marks of a result that is no view."""
    last = name.rpartition(".")[2]
    if last not in KEEPING:
        return frozenset()
    return next((t.marks & CONTENT for t in tensors if t.marks & CONTENT), frozenset())


def view_marks(name: str, base: Tensor) -> frozenset[str]:
    last = name.rpartition(".")[2]
    if not base.marks:
        return base.marks
    found = base.marks - {"parameter"}
    if last in REORDERING:
        found -= {"hwc", "padded-left", "padded-right", *({"expanded"} if last in ("reshape", "flatten", "ravel") else ())}
    elif last in ("contiguous", "ascontiguousarray"):
        found -= {"expanded", "negative-stride"}
    return found
