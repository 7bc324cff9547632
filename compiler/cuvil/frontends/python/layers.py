"""Layers and containers of torch.nn: their objects, their weights, and calls of objects."""
from __future__ import annotations

import libcst as cst

from ...ir.dims import Poly
from ...ir.types import DType, TensorType
from ...ops import TypeRuleError
from ...ops.layers import LAYERS, MadeLayer
from . import calls, derived, joins, last_axis, learn
from .classes import find_member, member_value, register
from .context import within
from .library import Silent, failed, lift, plain, signature
from .mutation import in_place
from .partial import opaque, open_shape
from .values import NONE, Either, Instance, Library, Many, Mapping, Scalar, Sequence, Tensor, Unknown, Untyped, UserClass, Value, Weight, contains_tensor
from .walk import Walk

CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict")
SIZES = frozenset(("in_features", "out_features", "num_embeddings", "embedding_dim", "normalized_shape", "in_channels", "out_channels",
                   "num_features", "num_channels"))
WINDOWS = frozenset(("kernel_size", "stride", "padding", "dilation"))
BUFFERS = frozenset(("running_mean", "running_var", "num_batches_tracked"))
SHAPELESS = frozenset(("bias", "eps", "inplace", "p", "elementwise_affine", "padding_idx", "affine", "momentum"))


def library_class(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """An object of a library class, or None when the name is none that is known."""
    if name in ("torch.nn.Parameter", "torch.nn.Buffer"):
        value = walk.resolve(args[0] if args else keywords.get("data", NONE))
        trains = keywords.get("requires_grad", args[1] if len(args) > 1 else Scalar(name.endswith("Parameter")))
        trainable = not (isinstance(trains, Scalar) and trains.value is False)
        return Weight(value.type, trainable=trainable, mask=value.mask) if isinstance(value, Tensor) else walk.unknown("a weight of unknown shape", node)
    if name == "torch.nn.Module":                          # a module that others are hung on
        return Instance(Library(name), training=True)
    if name in CONTAINERS:
        return _container(walk, name, args, keywords, node)
    layer = LAYERS.get(name)
    if layer is None:
        return None
    instance = Instance(Library(name), training=True)
    try:
        bound = signature(layer.constructor).bind(*args, **keywords)
    except TypeError as error:
        walk.refuse(f"{name}: {error}", node, hint="the constructor arguments that Cuvil captures")
        return walk.unknown("a layer with unusual arguments", node)
    bound.apply_defaults()
    given = {key: _size(walk, instance, key, name, value) if key in SIZES else value for key, value in bound.arguments.items()}
    for key, value in given.items():
        if key in SHAPELESS and isinstance(value, (Unknown, Untyped)):
            instance.assumed = f"{key} of {name}"
            given[key] = signature(layer.constructor).parameters[key].default
    for extra in [k for k, p in signature(layer.constructor).parameters.items() if p.kind is p.VAR_KEYWORD]:
        given.update(given.pop(extra, {}))
    for key, value in given.items():
        instance.attributes[key] = value = value if not _python(value) else Scalar(value)
        if key in WINDOWS and "Conv" in name and isinstance(value, Scalar) and isinstance(value.value, (int, Poly)):
            instance.attributes[key] = Sequence((value,) * int(name[-2]))      # kept for each axis
    try:
        ctor = {key: value if _python(value) else _made(value) or plain(walk, value, "torch", []) for key, value in given.items()}
        weights = layer.parameters(**ctor)
        if not all(isinstance(size, (int, Poly)) for type in weights.values() for size in type.shape or ()):
            raise Silent(walk.unknown("a layer of unknown size", node))     # None, of a configuration that says it later
    except Silent as silent:
        instance.complete = False
        instance.attributes["weight"] = walk.unknown(getattr(silent.value, "reason", "a layer of unknown size"), node)
        return instance
    except TypeRuleError as error:
        return failed(walk, error, node, name, args, keywords)
    except (TypeError, ValueError, AttributeError) as error:
        walk.refuse(f"{name} with these arguments is not compiled ({error})", node)
        instance.complete = False
        instance.attributes["weight"] = walk.unknown("a layer with unusual arguments", node)
        return instance
    instance.constructor = ctor
    for key, type in weights.items():
        instance.attributes[key] = Weight(type, instance, key, trainable=key not in BUFFERS)
    instance.weights = tuple(weights)
    for key, kinds in (("weight", ("elementwise_affine", "affine")), ("bias", ("bias", "elementwise_affine", "affine"))):
        if key not in weights and any(kind in given for kind in kinds):        # made without: torch registers None
            instance.attributes[key] = NONE
    return instance


def _size(walk: Walk, instance: Instance, key: str, layer: str, value: Value) -> Value:
    """A size of a layer. One that is not known is a symbol of its own: the layer has a size, whichever it is."""
    value = walk.size_of(joins.given(value) if isinstance(value, Either) else value)
    if isinstance(value, (Unknown, Untyped, Either)):
        instance.assumed = f"{key} of {layer}"
        return Scalar(walk.fresh_symbol(key))
    return value


def _made(value: Value) -> MadeLayer | None:
    """A layer that is an argument of another one."""
    if isinstance(value, Instance) and isinstance(value.of, Library) and value.of.name in LAYERS and value.constructor is not None:
        return MadeLayer(LAYERS[value.of.name], value.constructor)
    return None


def _python(value: object) -> bool:
    """A default of the layer's own signature, not a value of the walk."""
    return value is None or isinstance(value, (bool, int, float, str, tuple)) or type(value).__module__.startswith("cuvil.ir")


def _container(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    from .expressions import iterate
    from .expressions import one_of as each_like
    instance = Instance(Library(name), training=True)
    items: dict[str, Value]
    if name.endswith("Dict"):
        given = args[0] if args else Mapping({})
        if not isinstance(given, Mapping):
            return walk.unknown("a container of modules that are not known", node)
        items = {str(key): value for key, value in given.items.items()}
    elif name.endswith("List"):
        listed = iterate(walk, args[0]) if args else []
        if listed is None:
            like = each_like(walk, args[0])
            if like is None:
                return walk.unknown("a container of modules that are not known", node)
            register(instance, "*", like)
            return instance
        items = {str(i): value for i, value in enumerate(listed)}
    elif len(args) == 1 and isinstance(args[0], (Mapping, Library)):
        items = {str(key): value for key, value in args[0].items.items()} if isinstance(args[0], Mapping) else {}
    elif args and isinstance(args[-1], Many):             # nn.Sequential(*layers) of an unknown number of layers
        register(instance, "*", each_like(walk, args[-1]) or walk.unknown("a container of modules that are not known", node))
        return instance
    else:
        items = {str(i): value for i, value in enumerate(args)}
    for key, value in items.items():
        register(instance, key, value)
    return instance


def items(walk: Walk, value: Value) -> list[Value] | None:
    """The modules of a container one by one; None for anything else."""
    value = value.attributes.get(derived.INNER, value) if isinstance(value, Instance) and isinstance(value.of, UserClass) else value
    if isinstance(value, Instance) and isinstance(value.of, Library) and value.of.name in CONTAINERS and "*" not in value.attributes:
        return [walk.resolve(each) for each in value.attributes.values()]
    return None


def one_of(walk: Walk, value: Instance) -> Value | None:
    """What each module of a container is like, whose number is not known: kept under "*"."""
    value = value.attributes.get(derived.INNER, value) if isinstance(value.of, UserClass) else value
    return walk.resolve(value.attributes["*"]) if isinstance(value.of, Library) and "*" in value.attributes else None


def item(walk: Walk, value: Instance, index: Value, node: cst.CSTNode) -> Value:
    inside = items(walk, value)
    if inside is not None and isinstance(index, Scalar):
        at = index.value
        if isinstance(at, str) and at in value.attributes:
            return walk.resolve(value.attributes[at])
        if isinstance(at, int) and -len(inside) <= at < len(inside):
            return inside[at]
        if isinstance(at, slice):
            parts = [p.value if isinstance(p, Scalar) else p for p in (at.start, at.stop, at.step)]
            if all(p is None or isinstance(p, int) for p in parts):
                return Sequence(inside[slice(*parts)], "list")
    like = one_of(walk, value)
    if like is not None:
        return value if isinstance(index, Scalar) and isinstance(index.value, slice) else like
    if isinstance(value.of, UserClass):
        found = find_member(walk, value.of, "__getitem__")
        if found is not None:
            return calls.call(walk, member_value(walk, *found, "__getitem__", value, node), [index], {}, node)
    return walk.unknown("an item of an object that is not known", node)


def call_instance(walk: Walk, instance: Instance, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    if isinstance(instance.of, UserClass):
        for name in ("__call__", "forward"):
            found = find_member(walk, instance.of, name)
            if found is not None:
                with within(walk, **({"regions": (*instance.regions, *walk.context.regions)} if instance.regions else {})):
                    return calls.call(walk, member_value(walk, *found, name, instance, node), args, keywords, node)
        if derived.INNER in instance.attributes:
            return derived.forward(walk, instance, args, keywords, node)
        return calls.call(walk, walk.unknown("an object that cannot be called", node), args, keywords, node)
    if instance.of.name == "torch.nn.Sequential":
        value: Value = args[0] if args else NONE
        if not instance.complete:
            return walk.refuse("a container that holds modules under names that are not known", node)
        like = one_of(walk, instance)
        if like is not None:
            return _repeated(walk, like, value, node)
        for each in list(instance.attributes.values()):
            value = calls.call(walk, each, [value], {}, node)
        return value
    return _call_layer(walk, instance, args, keywords, node)


def _of_unknown_size(walk: Walk, name: str, x: Tensor) -> TensorType | None:
    """What a layer whose sizes are not known gives: as many axes as it is given, and the type of floats that it is made of."""
    rank = len(x.type.shape) if x.type.shape is not None else None
    dtype = x.type.dtype if x.type.dtype is not None and x.type.dtype.is_float else None
    if name == "Embedding":
        return TensorType(None if rank is None else open_shape(walk, rank + 1), DType.F32)
    if name == "Linear" or name.startswith("Conv"):
        dtype = DType.F32
    elif not name.endswith(("Norm", "Norm1d", "Norm2d", "Norm3d", "Pool1d", "Pool2d", "Pool3d")):
        return None
    return TensorType(None if rank is None else open_shape(walk, rank), dtype)


def _repeated(walk: Walk, layer: Value, value: Value, node: cst.CSTNode) -> Value:
    """An unknown number of like layers, one after the other."""
    for _ in range(3):
        after = calls.call(walk, layer, [value], {}, node)
        if joins.wide(walk, value, after):
            return value
        value = walk.join(value, after)
    return walk.unknown("a container of modules that are not known", node)


def _call_layer(walk: Walk, instance: Instance, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value:
    layer, name = LAYERS.get(instance.of.name), instance.of.name
    if layer is None or not instance.complete or instance.constructor is None:
        if any(map(contains_tensor, args)):
            walk.refuse(f"{name} of a size that is not known, or that is not compiled", node)
        x = joins.given(walk.resolve(args[0])) if args else None
        if layer is not None and isinstance(x, Tensor) and x.library == "torch" and walk.facts_only:
            found = _of_unknown_size(walk, name.rpartition(".")[2], x)
            if found is not None:
                return opaque(walk, name, [x], found, node)
        return walk.unknown("a layer of unknown size", node)
    if instance.assumed:
        walk.refuse(f"the {instance.assumed} is not known", node, "constructor arguments that are known", "annotate the configuration's class")
    weights = {key: walk.resolve(instance.attributes[key]) for key in instance.weights}
    unknown = next((w for w in weights.values() if not isinstance(w, Tensor)), None)
    if unknown is not None:
        return walk.unknown("a layer with a weight that is not known", node)
    args = learn.given_to_layer(walk, name, [walk.resolve(arg) for arg in args])
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    builder = walk.builder
    builder.library, builder.origins = "torch", (walk.origin(node),)
    mark = len(builder.ops)
    try:
        given = [plain(walk, arg, "torch", tensors) for arg in args]
        named = {key: plain(walk, value, "torch", tensors) for key, value in keywords.items()}
        result = layer.forward(builder, {key: w.op for key, w in weights.items()}, instance.constructor, *given, **named)
    except Silent as silent:
        return Unknown(getattr(silent.value, "reason", "a value that is not known"), getattr(silent.value, "span", None))
    except TypeRuleError as error:
        del builder.ops[mark:]
        builder._next = builder.ops[-1].id + 1 if builder.ops else 0
        return failed(walk, error, node, name, [*args, *weights.values()], keywords)
    except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        del builder.ops[mark:]
        builder._next = builder.ops[-1].id + 1 if builder.ops else 0
        walk.refuse(f"{name} with these arguments is not compiled ({type(error).__name__}: {error})", node)
        return walk.unknown(f"{name} with unusual arguments", node)
    wrong = last_axis.mismatch(walk, mark)
    if wrong is not None:
        return failed(walk, wrong, node, name, [*args, *weights.values()], keywords)
    value = lift(walk, result, "torch", name, [*tensors, *weights.values()], mark)
    learn.sizes_met(walk, mark)
    value = walk.resolve(value)
    if isinstance(value, Tensor) and value.type.dtype is None and walk.facts_only and name.rpartition(".")[2].startswith(("Linear", "Conv")):
        dtype = next((w.type.dtype for w in weights.values() if isinstance(w, Tensor)), None)
        if dtype is not None:                              # that of its weight: an input of another one would have raised
            value = opaque(walk, name, [value], TensorType(value.type.shape, dtype), node)
    if instance.constructor.get("inplace") is True and tensors:
        return in_place(walk, tensors[0], value, node, name)
    return value
