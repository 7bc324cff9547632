"""What is around a place when its code runs: loops, the grad mode, tests that hold, what a `try` catches. Kept on the walk as a stack.

    with within(walk, loops=(loop, *walk.context.loops)):
        ...
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from .facts import Context, Loop
from .values import Opaque, Scalar, Value
from .walk import Walk
from .workspace import dotted

GRAD_MODES = {"torch.no_grad": "no_grad", "torch.autograd.no_grad": "no_grad", "torch.autograd.grad_mode.no_grad": "no_grad",
              "torch.enable_grad": "grad", "torch.autograd.enable_grad": "grad",
              "torch.inference_mode": "inference", "torch.autograd.inference_mode": "inference"}
AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "torch.amp.autocast_mode.autocast")


@contextmanager
def within(walk: Walk, **changes):
    """Inside, the walk's context has these changes; after it, what it learnt of tests and modes is gone too."""
    outer, host = walk.context, walk.host
    walk.context = replace(outer, **changes) if changes else outer
    try:
        yield
    finally:
        walk.context, walk.host = outer, host


def loop(walk: Walk, node: cst.CSTNode, rounds: int | None, comprehension: bool = False):
    """Inside a loop."""
    return within(walk, loops=(Loop(walk.span(node), rounds, comprehension), *walk.context.loops))


def tested(walk: Walk, test: cst.CSTNode, outcome: bool):
    """Inside a branch of a test that is not decided while walking."""
    return within(walk, tests=((walk.span(test), outcome), *walk.context.tests))


def passed(walk: Walk, test: cst.CSTNode, outcome: bool) -> None:
    """From here to the end of the block around it the test had this outcome: the other branch left."""
    walk.context = replace(walk.context, tests=((walk.span(test), outcome), *walk.context.tests))


def caught(node: cst.Try | cst.TryStar) -> tuple[str, ...]:
    """The names of the exceptions that a `try` catches; "BaseException" for `except:`."""
    names: list[str] = []
    for handler in node.handlers:
        kinds = [element.value for element in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
        names += [dotted(kind) if kind is not None else "BaseException" for kind in kinds]
    return tuple(name for name in names if name)


def entered(walk: Walk, value: Value) -> dict[str, object]:
    """What `with value:` changes of the context."""
    kind = value.value.kind if isinstance(value, Scalar) and isinstance(value.value, Opaque) else ""
    match kind:
        case "grad" | "no_grad" | "inference":
            return {"grad": kind}
        case "either":
            return {"grad": None}
        case "autocast":
            return {"autocast": True}
        case "device":                                   # with torch.device("cuda"): factory calls make their tensors there
            walk.host = value.value.device
    return {}


def decorated(names: list[str]) -> str | None:
    """The grad mode that decorators put a function in, "" when they say nothing. The one written first is entered last."""
    return next((GRAD_MODES[name] for name in reversed(names) if name in GRAD_MODES), "")


MODULE_LEVEL = Context(grad="grad")            # nothing is around it, and gradients are on
