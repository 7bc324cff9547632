"""torchvision.transforms: what each transform makes of an image, a picture of PIL, an array (H, W, C) or a tensor (..., C, H, W)."""
from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ...ir.types import DType, TensorType
from .values import Instance, Library, Scalar, Sequence, Tensor, Value
from .walk import Walk

HOMES = ("torchvision.transforms.", "torchvision.transforms.v2.")
SAME = frozenset((
    "Normalize", "RandomHorizontalFlip", "RandomVerticalFlip", "ColorJitter", "GaussianBlur", "RandomErasing", "RandomAdjustSharpness", "RandomAutocontrast",
    "RandomEqualize", "RandomInvert", "RandomPosterize", "RandomSolarize", "GaussianNoise", "normalize", "hflip", "vflip", "gaussian_blur", "adjust_brightness",
    "adjust_contrast", "adjust_saturation", "adjust_hue", "adjust_gamma", "adjust_sharpness", "invert", "equalize", "autocontrast", "erase"))
SIZED = frozenset(("Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop", "resize", "center_crop"))
CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4}


def made(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """A transform as an object, or the result of one as a function; None when it is none that is known."""
    if not name.startswith(HOMES):
        return None
    home, _, last = name.rpartition(".")
    if home.endswith(".functional"):
        return _applied(walk, last, args[0] if args else keywords.get("img", keywords.get("pic", keywords.get("inpt"))), args[1:], keywords, node)
    if last in SAME or last in SIZED or last in ("Compose", "ToTensor", "PILToTensor", "ConvertImageDtype", "ToDtype", "ToImage", "Grayscale"):
        given = {str(n): value for n, value in enumerate(args)} | keywords
        return Instance(Library(name), {"arguments": Sequence(tuple(args)), **given}, complete=False)
    return None


def called(walk: Walk, transform: Instance, args: list[Value], node: cst.CSTNode) -> Value | None:
    """A transform given an image; None when it is not known what comes out."""
    last = transform.of.name.rpartition(".")[2]
    image, given = args[0] if args else None, transform.attributes
    if last == "Compose":
        steps = given.get("0", given.get("transforms"))
        if not isinstance(steps, Sequence):
            return None
        for step in steps.items:
            if not isinstance(step, Instance) or not isinstance(step.of, Library) or not step.of.name.startswith(HOMES):
                return None
            image = called(walk, step, [image] if image is not None else [], node)
            if image is None:
                return None
        return image
    keywords = {key: value for key, value in given.items() if key != "arguments" and not key.isdigit()}
    return _applied(walk, last, image, list(given["arguments"].items), keywords, node)


def _applied(walk: Walk, last: str, image: Value | None, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    image = walk.resolve(image) if image is not None else None
    picture = isinstance(image, Instance) and isinstance(image.of, Library) and image.of.name == "PIL.Image.Image"
    if not picture and not isinstance(image, Tensor):
        return None
    if last in ("ToTensor", "to_tensor", "PILToTensor", "pil_to_tensor", "ToImage", "to_image"):
        return _to_tensor(walk, last, image, node)
    if last in SAME:
        return image if picture else _like(walk, last, image, image.type, node)
    if last in SIZED:
        if picture:
            sides = _sides(last, args[0] if args else keywords.get("size"))
            return image if sides is None else Instance(image.of, {**image.attributes, "sides": Sequence(tuple(map(Scalar, sides)))}, complete=False)
        return _like(walk, last, image, _resized(walk, last, image.type, args[0] if args else keywords.get("size")), node)
    if last in ("ConvertImageDtype", "ToDtype", "convert_image_dtype", "to_dtype") and not picture:
        dtype = args[0] if args else keywords.get("dtype", Library("torch.float32"))
        kind = dtype.value if isinstance(dtype, Scalar) and isinstance(dtype.value, DType) else None
        return _like(walk, last, image, TensorType(image.type.shape, kind), node)
    return None


def _to_tensor(walk: Walk, last: str, image: Instance | Tensor, node: cst.CSTNode) -> Tensor:
    """(C, H, W): u8 images become floats from 0 to 1 in ToTensor, and stay as they are in PILToTensor."""
    scaled = last in ("ToTensor", "to_tensor")
    if isinstance(image, Instance):
        mode = image.attributes.get("mode")
        channels = CHANNELS.get(mode.value) if isinstance(mode, Scalar) else None
        known = image.attributes.get("sides")
        sides = tuple(each.value for each in known.items) if isinstance(known, Sequence) else (walk.fresh_symbol("height"), walk.fresh_symbol("width"))
        type, operands = TensorType((channels or walk.fresh_symbol("channels"), *sides), DType.U8), []
        order = frozenset(("rgb",)) if channels == 3 else frozenset()
    else:
        own = image.type.shape
        shape = (own[2], own[0], own[1]) if own is not None and len(own) == 3 else (1, *own) if own is not None and len(own) == 2 else None
        type, order, operands = TensorType(shape, image.type.dtype), image.marks & {"rgb", "bgr"}, [image]
    name = "torchvision.transforms.PILToTensor"
    if scaled:
        name = "torchvision.transforms.ToTensor" if type.dtype == DType.U8 else "torchvision.transforms.ToTensor.unscaled"
        type = TensorType(type.shape, DType.F32 if type.dtype == DType.U8 else type.dtype)
    return replace(_outside(walk, name, operands, type, node), marks=order)


def _like(walk: Walk, last: str, image: Tensor, type: TensorType, node: cst.CSTNode) -> Tensor:
    return replace(_outside(walk, f"torchvision.transforms.{last}", [image], type, node), marks=image.marks & {"rgb", "bgr"})


def _outside(walk: Walk, call: str, operands: list[Tensor], type: TensorType, node: cst.CSTNode) -> Tensor:
    from .objects import outside
    return outside(walk, call, operands, type, "torch", node)


def _resized(walk: Walk, last: str, type: TensorType, size: Value | None) -> TensorType:
    """An image of other sides; one number is the shorter side when resizing, and both sides when cropping."""
    if type.shape is None or len(type.shape) < 2:
        return TensorType(None, type.dtype)
    sides = _sides(last, size) or (walk.fresh_symbol("height"), walk.fresh_symbol("width"))
    return TensorType((*type.shape[:-2], *sides), type.dtype)


def _sides(last: str, size: Value | None) -> tuple[int, int] | None:
    """(height, width) where the argument says both."""
    if isinstance(size, Sequence) and len(size.items) == 2 and all(isinstance(each, Scalar) and isinstance(each.value, int) for each in size.items):
        return size.items[0].value, size.items[1].value
    if isinstance(size, Scalar) and isinstance(size.value, int) and last not in ("Resize", "resize"):
        return size.value, size.value
    return None
