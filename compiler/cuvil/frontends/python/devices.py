"""Devices: what `device=`, `.to(...)`, `.cuda()` and `.cpu()` say of where tensors and modules live.

A device that is not known by its kind is known by the user's word for it: two tensors that went `.to(self.device)` are together.
"""
from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ...ir.types import DType
from . import methods, queries
from .library import apply
from .modules import modules, move
from .pythons import python
from .values import CPU, HOST, Device, Instance, Mapping, Opaque, Scalar, Sequence, Tensor, Value, Weight
from .walk import Walk
from .workspace import dotted

assert methods and queries                     # what is said here of their functions replaces what they say
FUNCTIONS_OF_DEVICES = frozenset(("torch.Tensor.to", "torch.nn.Module.to", "torch.nn.Module.to_empty", "torch.device", "torch.load"))


def named(text: str) -> Device:
    """torch.device("cuda:0")"""
    return Device(text.partition(":")[0])


def device_of(walk: Walk, value: Value, node: cst.CSTNode | None) -> Device | None:
    """The device that an argument asks for. node: the argument's expression."""
    match value:
        case Scalar(value=str() as text):
            return named(text)
        case Scalar(value=bool()) | Scalar(value=None):
            return None
        case Scalar(value=int()):
            return Device("cuda")
        case Scalar(value=Opaque(kind="device", device=Device() as device)):
            return device
        case Tensor():
            return value.device
    word = _word(walk, node)
    return Device(like=word) if word else None


def _word(walk: Walk, node: cst.CSTNode | None) -> str:
    if node is None:
        return ""
    text = dotted(node)
    if not text and walk.frame.definition is not None and node in walk.frame.definition.tree:
        text = walk.frame.definition.tree.code(node)
    if text.endswith("self.parameters()).device"):
        return "self"
    return text if len(text) <= 60 else ""


def argument(node: cst.CSTNode, name: str, place: int) -> cst.CSTNode | None:
    """The expression of an argument of a call, by its name or place."""
    if not isinstance(node, cst.Call):
        return None
    found = next((arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == name), None)
    if found is not None:
        return found
    return node.args[place].value if len(node.args) > place and node.args[place].keyword is None and not node.args[place].star else None


def placed(walk: Walk, value: Value, device: Device | None, mark: str = "") -> Value:
    """The tensors of a value on a device."""
    match value:
        case Tensor(library="torch"):
            marks = value.marks - {"pending", "pinned"} | ({mark} if mark else set())
            if device == value.device:
                return replace(value, marks=marks)
            # It may be a copy: nobody can say that the two share memory. Where it is none, a write would be seen: so it is not compiled.
            moved = walk.own(replace(value, device=device, marks=marks - {"expanded", "shared"}, storage=walk.new_storage(), view=False))
            walk.fixed[moved.storage] = "it may be the same memory as before it was moved"
            return moved
        case Sequence(items=tuple() as items):
            return Sequence(tuple(placed(walk, item, device, mark) for item in items), value.kind)
        case Mapping():
            return replace(value, items={key: placed(walk, item, device, mark) for key, item in value.items.items()})
        case Instance():
            move(value, device)
    return value


# --- calls ----------------------------------------------------------------------------------------------------------

@python("torch.device")
def torch_device(walk: Walk, args, keywords, node) -> Value | None:
    given = args[0] if args else keywords.get("type", keywords.get("device"))
    device = device_of(walk, given, argument(node, "type", 0)) if given is not None else None
    return Scalar(Opaque("device", device if device is None or device.kind else Device(like="device")))


@python("torch.set_default_device", "torch.set_default_tensor_type")
def set_default_device(walk: Walk, args, keywords, node) -> Value | None:
    walk.host = None
    return Scalar(None)


@python("torch.Tensor.cuda", "torch.Tensor.cpu", "torch.nn.Module.cuda", "torch.nn.Module.cpu")
def to_kind(walk: Walk, args, keywords, node) -> Value | None:
    value = args[0] if args else None
    name = node.func.attr.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else ""
    if isinstance(value, Instance):
        move(value, Device(name))
        return value
    if not isinstance(value, Tensor):
        return None
    walk.shared.add(value.storage)
    return placed(walk, replace(value, view=True), Device(name), _pending(value, Device(name), keywords, args[1:]))


def _pending(value: Tensor, device: Device | None, keywords: dict[str, Value], args: list[Value]) -> str:
    """The mark of an asynchronous copy to the host."""
    asynchronous = keywords.get("non_blocking")
    off_host = value.device is None or value.device.kind != "cpu"
    return "pending" if isinstance(asynchronous, Scalar) and asynchronous.value is True and device is not None and device.kind == "cpu" and off_host else ""


@python("torch.Tensor.pin_memory")
def pin_memory(walk: Walk, args, keywords, node) -> Value | None:
    return placed(walk, args[0], args[0].device, "pinned") if args and isinstance(args[0], Tensor) else None


@python("torch.Tensor.to")
def to(walk: Walk, args, keywords, node) -> Value | None:
    if not args or not isinstance(args[0], Tensor):
        return None
    value = args[0]
    given = keywords.get("device", args[1] if len(args) > 1 else keywords.get("other"))
    dtype = keywords.get("dtype", args[2] if len(args) > 2 else None)
    expression = argument(node, "device", 0) or argument(node, "other", 0)
    if isinstance(given, Scalar) and isinstance(given.value, DType) or given is None:
        return None                                       # of its element type alone
    if not isinstance(given, (Scalar, Tensor)) and "device" not in keywords and not _says_device(_word(walk, expression)):
        result = apply(walk, "torch.Tensor.to", args, keywords, node)      # a device or an element type: neither is known after it
        return replace(result, device=None) if isinstance(result, Tensor) else result
    device = device_of(walk, given, expression)
    if isinstance(given, Tensor):
        result = apply(walk, "torch.Tensor.to", args, keywords, node)
    elif dtype is not None:
        result = apply(walk, "torch.Tensor.to", [value], {"dtype": dtype}, node)
    else:
        walk.shared.add(value.storage)
        result = replace(value, view=True)
    return placed(walk, result, device, _pending(value, device, keywords, args[2:])) if isinstance(result, Tensor) else result


def _says_device(word: str) -> bool:
    last = word.rpartition(".")[2].lower()
    return "dtype" not in last and ("dev" in last or "cuda" in last or "gpu" in last)


@python("torch.nn.Module.to", "torch.nn.Module.to_empty")
def module_to(walk: Walk, args, keywords, node) -> Value | None:
    module = args[0] if args else None
    if not isinstance(module, Instance):
        return module
    given = keywords.get("device", args[1] if len(args) > 1 else None)
    dtype = keywords.get("dtype", args[2] if len(args) > 2 else None)
    if isinstance(given, Scalar) and isinstance(given.value, DType):
        given, dtype = None, given
    if given is not None:
        word = _word(walk, argument(node, "device", 0))
        if isinstance(given, (Scalar, Tensor)) or _says_device(word):
            move(module, device_of(walk, given, argument(node, "device", 0)))
        else:
            move(module, Device(like=word) if word else None)
    if dtype is not None:
        return cast(walk, module, dtype.value if isinstance(dtype, Scalar) and isinstance(dtype.value, DType) else None, node)
    return module


for _name, _dtype in (("half", DType.F16), ("float", DType.F32), ("double", DType.F64), ("bfloat16", DType.BF16)):
    def _cast(walk: Walk, args, keywords, node, dtype=_dtype) -> Value | None:
        return cast(walk, args[0], dtype, node) if args and isinstance(args[0], Instance) else None
    python(f"torch.nn.Module.{_name}")(_cast)


def cast(walk: Walk, module: Instance, dtype: DType | None, node: cst.CSTNode) -> Value:
    """`module.half()`: all floats that it holds have another type. In place, as torch does it."""
    if dtype is None:
        return walk.unknown("a module whose weights are cast", node)
    for each in modules(module):
        for name, value in each.attributes.items():
            if isinstance(value, Weight) and value.type.dtype is not None and value.type.dtype.is_float:
                each.attributes[name] = replace(value, type=replace(value.type, dtype=dtype))
    return module


@python("torch.Tensor.requires_grad_")
def requires_grad(walk: Walk, args, keywords, node) -> Value | None:
    if not args or not isinstance(args[0], Tensor):
        return None
    given = args[1] if len(args) > 1 else keywords.get("requires_grad", Scalar(True))
    walk.shared.add(args[0].storage)
    return replace(args[0], view=True, grad=given.value if isinstance(given, Scalar) and isinstance(given.value, bool) else None)


@python("torch.nn.Module.requires_grad_")
def module_requires_grad(walk: Walk, args, keywords, node) -> Value | None:
    given = args[1] if len(args) > 1 else keywords.get("requires_grad", Scalar(True))
    for each in modules(args[0]) if args and isinstance(args[0], Instance) else ():
        each.frozen = not (isinstance(given, Scalar) and given.value is True)
    return args[0] if args else None


def host_of(text: str) -> Device | None:
    """Where a file's factory calls make their tensors."""
    return None if "set_default_device" in text or "set_default_tensor_type" in text else HOST


def asked(walk: Walk, value: Value, device: Value | None, pinned: Value | None, node: cst.CSTNode) -> Value:
    """What a call with device= and pin_memory= gives."""
    if device is not None and not (isinstance(device, Scalar) and device.value is None):
        where = device_of(walk, device, argument(node, "device", 1 << 30))
        if isinstance(value, Tensor):
            return walk.own(replace(value, device=where)) if not value.view else placed(walk, value, where)
        value = placed(walk, value, where)
    if isinstance(pinned, Scalar) and pinned.value is True:
        value = placed(walk, value, CPU, "pinned")
    return value
