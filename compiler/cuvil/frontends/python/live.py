"""A live nn.Module as the object its source describes: what `self` is when its `forward` is walked.

Attributes are read, no code of the module runs. Numbers, strings and tuples of them are compiled in; parameters and buffers
become `parameter` ops named by their path; layers of torch.nn keep their constructor's arguments. What cannot be taken over
is Unknown, and refused where the code uses it. Training mode, hooks and parametrised weights are refused at once.
"""
from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import libcst as cst

from ...diagnostics import CuvilError
from ...ir.function import Function
from ...ir.types import DType, TensorType
from ...ops.layers import LAYERS
from ...source import Source
from . import classes, layers
from .capture import CAPTURE_STEPS, deep_enough, walk_function
from .values import Instance, Library, Mapping, Scalar, Sequence, Unknown, UserClass, Value, Weight
from .walk import Walk
from .workspace import Workspace

# Attributes that torch.nn.Module keeps for itself.
_OWN = frozenset(("training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"))
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def capture_module(model: Any, source: Source, inputs: dict[str, TensorType] | None, workspace: Workspace) -> Function:
    """The CIR of model.forward; its parameters are those of model.named_parameters() and named_buffers(). CuvilError when refused."""
    deep_enough()
    walk = Walk(workspace, CAPTURE_STEPS)
    namespace = workspace.open(source)
    receiver = instance_of(walk, model, "")
    if not isinstance(receiver.of, UserClass):
        around = namespace.syntax.by_name["Around"]
        receiver = Instance(UserClass("Around", around.node, namespace), {"module": receiver})      # not registered: paths stay as they are
    found = classes.find_member(walk, receiver.of, "forward")
    if found is None or not isinstance(found[1].node, cst.FunctionDef):
        raise CuvilError(f"the source of {type(model).__name__}.forward is not in {namespace.path}", expected="a forward method that can be read")
    owner, definition = found
    outcome = walk_function(walk, owner.module, definition, inputs, receiver)
    if outcome.refusal is not None:
        raise outcome.refusal
    if outcome.function is None or not outcome.function.results:
        raise CuvilError(f"{type(model).__name__}.forward computes no tensor", expected="a forward that returns tensors")
    return outcome.function


def source_around(model: Any) -> Source:
    """The forward of a module that holds nothing but this layer of the library (nn.Sequential, nn.Linear), as if someone had written it."""
    parameters = list(inspect.signature(type(model).forward).parameters.values())[1:]
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    arguments = ", ".join(needed)
    return Source(f"{type(model).__name__}.py", f"import torch.nn as nn\n\n\nclass Around(nn.Module):\n    def forward(self, {arguments}):\n"
                                                f"        return self.module({arguments})\n")


def is_layer(model: Any) -> bool:
    return type(model).__module__.startswith("torch.nn.modules.")


def instance_of(walk: Walk, module: Any, path: str) -> Instance:
    """The module and everything below it as abstract objects."""
    name = f"{type(module).__name__}{f' at {path}' if path else ''}"
    if module.training:
        raise CuvilError(f"{name} is in training mode", expected="a module in inference mode", hint="call model.eval() first", code="CUV030")
    if any(getattr(module, hooks, None) for hooks in _HOOKS):
        raise CuvilError(f"{name} has forward hooks, which are Python code that would not run", hint="remove the hooks", code="CUV030")
    library = f"torch.nn.{type(module).__name__}" if is_layer(module) else ""
    if library in layers.CONTAINERS:
        instance = Instance(Library(library))
    elif library:
        return _layer(walk, module, library, path)
    else:
        instance = Instance(_class(walk, type(module), name))
        for key, value in vars(module).items():
            if key not in _OWN and not key.startswith(("_forward_", "_backward_", "_state_dict_", "_load_state_", "_is_full_")):
                instance.attributes[key] = _value(value)
    for key, tensor in (*module._parameters.items(), *module._buffers.items()):
        classes.register(instance, key, Scalar(None) if tensor is None else Weight(type_of(tensor, path, key)))
    for key, child in module._modules.items():
        below = f"{path}.{key}" if path else key
        classes.register(instance, key, Scalar(None) if child is None else instance_of(walk, child, below))
    return instance


def _class(walk: Walk, cls: type, name: str) -> UserClass:
    try:
        path = inspect.getsourcefile(cls)
    except TypeError:
        path = None
    namespace = walk.workspace.namespace(path) if path else None
    definition = namespace.syntax.by_name.get(cls.__qualname__) if namespace is not None else None
    if definition is None or not isinstance(definition.node, cst.ClassDef):
        raise CuvilError(f"the source of {name} is not there: {path or 'no file'}", expected="a class at the top level of a readable file", code="CUV030")
    return UserClass(definition.name, definition.node, namespace)


def _layer(walk: Walk, module: Any, name: str, path: str) -> Instance:
    """A layer of torch.nn, rebuilt from its attributes, which are named like its constructor's arguments."""
    layer = LAYERS.get(name)
    if layer is None:
        return Instance(Library(name), complete=False)             # refused where it is called
    given = {}
    for key, parameter in inspect.signature(layer.constructor).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or key in ("device", "dtype"):
            continue
        value = getattr(module, key, parameter.default)
        if key in ("bias", "add_bias_kv") and not isinstance(value, bool):
            value = getattr(module, key, None) is not None or getattr(module, "in_proj_bias", None) is not None
        if value is parameter.empty or not _plain(value):
            return Instance(Library(name), complete=False)
        given[key] = tuple(value) if isinstance(value, list) else value
    made = layers.library_class(walk, name, [], {key: _value(value) for key, value in given.items()}, None)
    if not isinstance(made, Instance) or walk.refusal is not None:
        raise walk.refusal or CuvilError(f"{name}{f' at {path}' if path else ''} cannot be compiled", code="CUV030")
    held = {f"{prefix}{key}": tensor for prefix, child in module.named_modules() for key, tensor in
            ((f"{'.' if prefix else ''}{k}", t) for k, t in (*child._parameters.items(), *child._buffers.items())) if tensor is not None}
    for key in made.weights:
        wanted = made.attributes[key].type
        if key not in held or tuple(held[key].shape) != wanted.shape:
            found = list(held[key].shape) if key in held else "missing"
            raise CuvilError(f"{key} of {name} at {path or 'the top'} is {found}", expected=str(wanted), code="CUV030")
        made.attributes[key] = Weight(type_of(held[key], path, key), made, key)
    return made


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str)) or isinstance(value, (tuple, list)) and all(map(_plain, value))


def _value(value: Any) -> Value:
    """An attribute as a value of the walk."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return Scalar(value)
    if isinstance(value, (tuple, list)):
        items = [_value(item) for item in value]
        return Sequence(items if isinstance(value, list) else tuple(items), "list" if isinstance(value, list) else "tuple")
    if isinstance(value, dict) and all(isinstance(key, (str, int)) for key in value):
        return Mapping({key: _value(item) for key, item in value.items()})
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        try:
            return Scalar(DType.parse(str(value).removeprefix("torch.")))
        except ValueError:
            return Unknown("an element type that is not compiled")
    return Unknown(f"an attribute of type {type(value).__name__}")


def type_of(tensor: Any, path: str, key: str) -> TensorType:
    name = f"{path}.{key}" if path else key
    try:
        dtype = DType.parse(str(tensor.dtype).removeprefix("torch."))
    except ValueError:
        raise CuvilError(f"parameter {name} has the element type {tensor.dtype}", expected=", ".join(d.numpy for d in DType), code="CUV030") from None
    return TensorType(tuple(map(int, tensor.shape)), dtype)


def package_root(path: str) -> Path:
    """The folder that holds the outermost package of a file: where its imports are looked up."""
    folder = Path(path).absolute().parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder
