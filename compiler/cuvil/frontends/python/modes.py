"""Modes that calls switch: gradients, inference mode, autocast; and training, of modules."""
from __future__ import annotations

from dataclasses import replace

from .context import AUTOCAST, GRAD_MODES
from .modules import switch
from .pythons import python
from .values import NONE, Instance, Opaque, Scalar, Value
from .walk import Walk

for _name, _mode in GRAD_MODES.items():
    def _entering(walk: Walk, args, keywords, node, mode=_mode) -> Value | None:
        given = args[0] if args else keywords.get("mode")
        return Scalar(Opaque(mode if given is None or isinstance(given, Scalar) and given.value is True else "either"))
    python(_name)(_entering)


@python("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")
def set_grad_enabled(walk: Walk, args, keywords, node) -> Value | None:
    given = args[0] if args else keywords.get("mode", NONE)
    on = given.value if isinstance(given, Scalar) and isinstance(given.value, bool) else None
    kind = "either" if on is None else "grad" if on else "no_grad"
    walk.context = replace(walk.context, grad=None if kind == "either" else kind)      # it holds at once, also without `with`
    return Scalar(Opaque(kind))


@python(*AUTOCAST)
def autocast(walk: Walk, args, keywords, node) -> Value | None:
    enabled = keywords.get("enabled")
    return Scalar(Opaque("context" if isinstance(enabled, Scalar) and enabled.value is False else "autocast"))


# --- training -------------------------------------------------------------------------------------------------------

@python("torch.nn.Module.train")
def train(walk: Walk, args, keywords, node) -> Value | None:
    given = args[1] if len(args) > 1 else keywords.get("mode", Scalar(True))
    if args and isinstance(args[0], Instance):
        switch(walk, args[0], given.value if isinstance(given, Scalar) and isinstance(given.value, bool) else None)
    return args[0] if args else None


@python("torch.nn.Module.eval")
def evaluation(walk: Walk, args, keywords, node) -> Value | None:
    if args and isinstance(args[0], Instance):
        switch(walk, args[0], False)
    return args[0] if args else None
