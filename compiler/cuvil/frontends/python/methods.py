"""Methods of lists, dicts and strings, and of the module objects of torch.nn. Lists and dicts are changed in place, as in Python."""
from __future__ import annotations

from dataclasses import replace

from ...ir.dims import Poly
from . import classes, derived, joins, operators, subscripts
from .pythons import FUNCTIONS, iterate, one_of, python, worked_out
from .values import NONE, OPEN, Device, Instance, Library, Many, Mapping, Scalar, Sequence, Tensor, Untyped, Value, Weight
from .walk import Walk


@python("builtins.list.append")
def append(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Sequence) and isinstance(args[0].items, list):
        args[0].items.append(args[1])
    elif len(args) == 2 and isinstance(args[0], Many):
        args[0].item = walk.join(args[0].item, args[1])
    return NONE


@python("builtins.list.extend")
def extend(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Sequence):
        items = iterate(walk, args[1])
        args[0].items.extend(items if items is not None else [walk.unknown("a sequence that is not known", node)])
    elif len(args) == 2 and isinstance(args[0], Many):
        args[0].item = walk.join(args[0].item, one_of(walk, args[1]) or walk.unknown("a sequence that is not known", node))
    return NONE


@python("builtins.list.insert")
def insert(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Sequence(items=list() as items), Scalar(value=int() as at), value]:
            items.insert(at, value)
            return NONE
    return walk.refuse("a list is changed in a way that is not known", node)


@python("builtins.list.pop")
def pop(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Sequence(items=list() as items)] if items:
            return walk.resolve(items.pop())
        case [Sequence(items=list() as items), Scalar(value=int() as at)] if -len(items) <= at < len(items):
            return walk.resolve(items.pop(at))
    return walk.refuse("a list is changed in a way that is not known", node)


@python("builtins.list.reverse")
def reverse(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Sequence(items=list() as items)]:
            items.reverse()
    return NONE                                               # a list of items that are all alike stays one


@python("builtins.list.copy")
def copy_list(walk: Walk, args, keywords, node) -> Value | None:
    return Sequence(list(args[0].items), "list") if isinstance(args[0], Sequence) else Many(args[0].item) if isinstance(args[0], Many) else None


@python("builtins.list.index", "builtins.tuple.index", "builtins.list.count", "builtins.tuple.count")
def index(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Sequence):
        for at, item in enumerate(args[0].items):
            known = operators.decide("Equal", item, args[1])
            if known is None:
                break
            if known:
                return Scalar(at)
    return walk.unknown("the place of an item", node)


@python("builtins.tuple.numel")
def numel(walk: Walk, args, keywords, node) -> Value | None:
    if isinstance(args[0], Sequence):
        total: Value = Scalar(1)
        for item in args[0].items:
            total = operators.binary(walk, "Multiply", total, item, node)
        return total
    return walk.unknown("the shape of a tensor is not known", node)


@python("collections.OrderedDict.__getitem__", "builtins.dict.__getitem__")
def item_of_object(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Instance() as instance, key] if isinstance(instance.attributes.get(classes.ITEMS), Mapping):
            return subscripts.get(walk, instance.attributes[classes.ITEMS], key, node)
    return walk.unknown("a key that is not known", node)


@python("builtins.dict.get")
def get(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Mapping(items=items), Scalar(value=key), *rest] if not isinstance(key, Poly):
            return walk.resolve(items[key]) if key in items else rest[0] if rest else NONE
    return walk.unknown("a key that is not known", node)


@python("builtins.dict.pop")
def pop_item(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Mapping(items=items), Scalar(value=key), *rest] if not isinstance(key, Poly) and (key in items or rest):
            return walk.resolve(items.pop(key, rest[0] if rest else NONE))
    return walk.unknown("a key that is not known", node)


def _view(name: str, take) -> None:
    FUNCTIONS[f"builtins.dict.{name}"] = lambda walk, args, keywords, node: Sequence(
        tuple(take(Scalar(key), walk.resolve(value)) for key, value in args[0].items.items()))


_view("keys", lambda key, value: key)
_view("values", lambda key, value: value)
_view("items", lambda key, value: Sequence((key, value)))


@python("builtins.dict.update")
def update(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[1], Mapping):
        args[0].items.update(args[1].items)
        args[0].kind = OPEN if args[1].kind == OPEN and args[0].kind == "builtins.dict" else args[0].kind
    elif len(args) == 2 and isinstance(args[0], Mapping):
        changed = walk.refuse("a dict is changed in a way that is not known", node)
        args[0].items.update({key: changed for key in args[0].items})
        args[0].items["a key that is not known", len(args[0].items)] = changed
        args[0].kind = OPEN if args[0].kind == "builtins.dict" else args[0].kind
    if isinstance(args[0], Mapping):
        args[0].items.update(keywords)
    return NONE


for _each in ("lower", "upper", "strip", "startswith", "endswith", "split", "replace", "rstrip", "lstrip", "partition", "isdigit", "removeprefix"):
    def _string(walk: Walk, args, keywords, node, name=_each) -> Value | None:
        if all(isinstance(a, Scalar) and isinstance(a.value, (str, int)) for a in args) and not keywords:
            return worked_out(walk, getattr(str, name), [a.value for a in args], node)
        return walk.unknown("a string that is not known", node)
    FUNCTIONS[f"builtins.str.{_each}"] = _string


@python("builtins.str.format", "builtins.str.join")
def formatted(walk: Walk, args, keywords, node) -> Value | None:
    return walk.unknown("a formatted string", node)


# --- modules of torch.nn --------------------------------------------------------------------------------------------

@python("torch.nn.Module.__init__", "builtins.object.__init__")
def module_setup(walk: Walk, args, keywords, node) -> Value | None:
    if len(args) == 2 and isinstance(args[0], Instance) and walk.building and isinstance(args[1], (Instance, Untyped)):      # PreTrainedModel keeps it
        args[0].attributes.setdefault("config", args[1])
    return args[0] if args else NONE


@python("torch.nn.Module.apply", "torch.nn.Module.load_state_dict", "torch.nn.Module.post_init")
def weights_change(walk: Walk, args, keywords, node) -> Value | None:
    return args[0] if args else NONE


@python("torch.nn.Module.half", "torch.nn.Module.float", "torch.nn.Module.double", "torch.nn.Module.bfloat16")
def module_cast(walk: Walk, args, keywords, node) -> Value | None:
    return walk.unknown("a module whose weights are cast", node)


@python("torch.nn.Module.register_buffer", "torch.nn.Module.register_parameter")
def register_buffer(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Instance() as instance, Scalar(value=str() as name), value, *rest]:
            persistent = keywords.get("persistent", rest[0] if rest else Scalar(True))
            kept = isinstance(persistent, Scalar) and persistent.value
            classes.register(instance, name, _buffer(value) if kept else _moves_along(value))
        case [Instance() as instance, Scalar(value=str() as name)] if "tensor" in keywords:
            persistent = keywords.get("persistent", Scalar(True))
            value = keywords["tensor"]
            classes.register(instance, name, _buffer(value) if isinstance(persistent, Scalar) and persistent.value else _moves_along(value))
    return NONE


def _buffer(value: Value) -> Value:
    return Weight(value.type, trainable=False, mask=value.mask) if isinstance(value, Tensor) else value


def _moves_along(value: Value) -> Value:
    """A buffer that is not in the state dict is what it was computed as, and goes where the module goes."""
    return replace(value, device=Device(like="self")) if isinstance(value, Tensor) else value


@python("torch.nn.Module.add_module", "torch.nn.Module.register_module")
def add_module(walk: Walk, args, keywords, node) -> Value | None:
    match args:
        case [Instance() as instance, Scalar(value=str() as name), value]:
            inner = instance.attributes.get(derived.INNER)
            if isinstance(inner, Instance):
                classes.register(inner, name, value)
            classes.register(instance, name, value)
        case [Instance() as instance, _, value]:
            instance.complete = False                     # under a name that is not known
            inner = instance.attributes.get(derived.INNER, instance)
            if isinstance(inner.of, Library):
                any_of(walk, inner, value)
    return NONE


def any_of(walk: Walk, container: Instance, value: Value) -> None:
    """A container takes one more module, how often or where is not known: from here on each is one of what it holds."""
    known = list(container.attributes.values())
    container.attributes.clear()
    classes.register(container, "*", joins.all_of(walk, [*known, value]))


@python("torch.nn.ModuleList.append", "torch.nn.Sequential.append")
def append_module(walk: Walk, args, keywords, node) -> Value | None:
    if "*" in args[0].attributes or walk.leaving is not None:      # in a loop of unknown length
        any_of(walk, args[0], args[1])
    else:
        classes.register(args[0], str(len(args[0].attributes)), args[1])
    return args[0]


@python("torch.nn.ModuleList.extend")
def extend_modules(walk: Walk, args, keywords, node) -> Value | None:
    items = iterate(walk, args[1])
    if items is None or "*" in args[0].attributes or walk.leaving is not None:
        any_of(walk, args[0], one_of(walk, args[1]) or walk.unknown("a container of modules that are not known", node))
        return args[0]
    for value in items:
        classes.register(args[0], str(len(args[0].attributes)), value)
    return args[0]


@python("torch.nn.ModuleList.insert", "torch.nn.Sequential.insert", "torch.nn.Sequential.extend", "torch.nn.ModuleList.pop", "torch.nn.Sequential.pop",
        "torch.nn.ModuleDict.update", "torch.nn.ModuleDict.pop", "torch.nn.ModuleDict.clear", "torch.nn.ModuleList.__setitem__")
def container_changed(walk: Walk, args, keywords, node) -> Value | None:
    if args and isinstance(args[0], Instance):
        any_of(walk, args[0], walk.unknown("a container of modules that are not known", node))
    return walk.unknown("a container of modules that are not known", node)


def _of_modules(name: str, take) -> None:
    def view(walk: Walk, args, keywords, node) -> Value | None:
        held = args[0].attributes.get(derived.INNER, args[0]) if args and isinstance(args[0], Instance) else None
        if not isinstance(held, Instance) or not isinstance(held.of, Library):
            return walk.unknown("a container of modules that are not known", node)
        if "*" in held.attributes:
            return Many(take(walk.unknown("a key that is not known", node), walk.resolve(held.attributes["*"])), "tuple")
        return Sequence(tuple(take(Scalar(key), walk.resolve(value)) for key, value in held.attributes.items()))
    FUNCTIONS[f"torch.nn.ModuleDict.{name}"] = view
    FUNCTIONS[f"torch.nn.Module.{name}"] = view


_of_modules("items", lambda key, value: Sequence((key, value)))
_of_modules("values", lambda key, value: value)
_of_modules("keys", lambda key, value: key)


@python(*(f"torch.nn.utils.{name}" for name in (
    "weight_norm", "spectral_norm", "remove_weight_norm", "remove_spectral_norm", "parametrizations.weight_norm", "parametrizations.spectral_norm",
    "parametrizations.orthogonal", "parametrize.remove_parametrizations")))
def reparametrised(walk: Walk, args, keywords, node) -> Value | None:
    """The module itself, whose weight is computed from others from now on: of the same type, but not one that is compiled."""
    module = args[0] if args else keywords.get("module")
    if not isinstance(module, Instance):
        return None
    module.assumed = "weight, which is computed from others,"
    return module
