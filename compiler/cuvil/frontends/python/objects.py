"""Objects of libraries that are neither torch nor NumPy, as far as rules ask for them: images, tokenizers, pretrained models.

What a call gives is an opaque op of the type that its documentation states: for facts only, a function that calls one is never compiled.
"""
from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ...ir.function import Op
from ...ir.types import DType, TensorType
from . import traits, transforms
from .devices import to
from .marks import OTHER_ORDER
from .pythons import FUNCTIONS, python
from .values import Instance, Library, Mapping, Mask, Scalar, Sequence, Tensor, Unknown, Value
from .walk import Walk

BATCH, OUTPUT = "transformers.BatchEncoding", "transformers.ModelOutput"
NOT_MODELS = ("Tokenizer", "TokenizerFast", "Processor", "Config", "FeatureExtractor", "Streamer")


def found(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """The result of a call of a library by the form of its name, or None."""
    home, _, last = name.rpartition(".")
    if home.startswith("transformers.") and last == "from_pretrained":
        return _pretrained(walk, home, args, keywords, node)
    if name.startswith("torchvision.models.") and last[:1].islower() and not last.startswith(("get_weight", "get_model_w", "get_model_b", "list_", "create_")):
        return Instance(Library(name), complete=False, training=True)      # built in training mode, with its weights or without
    if home.startswith("transformers.") and last == "generate":
        ids = keywords.get("input_ids", args[1] if len(args) > 1 else None)
        given = [value for value in (*args[1:], *keywords.values()) if isinstance(value, Tensor)]
        batch = ids.type.shape[0] if isinstance(ids, Tensor) and ids.type.shape else walk.fresh_symbol("batch")
        return outside(walk, name, given, TensorType((batch, walk.fresh_symbol("tokens")), DType.I64), "torch", node)
    if name.startswith("torchvision.transforms."):
        return transforms.made(walk, name, args, keywords, node)
    if name == "timm.create_model":
        return Instance(Library(name), complete=False, training=True)
    if name.startswith("PIL.Image.Image."):
        return _picture_method(walk, last, args, keywords)
    return None


OF_CLASS = {"onnxruntime.InferenceSession": {}, "cv2.VideoCapture": {}, "PIL.Image.Image": {"mode": Unknown("the mode of an image")}}


def of_class(name: str) -> Instance | None:
    """A parameter that is declared as one of these objects."""
    return Instance(Library(name), dict(OF_CLASS[name]), complete=False) if name in OF_CLASS else None


@python("onnxruntime.InferenceSession")
def session(walk: Walk, args, keywords, node) -> Value | None:
    made = of_class("onnxruntime.InferenceSession")
    made.attributes["path"] = args[0] if args else keywords.get("path_or_bytes", Unknown("the model of a session"))
    return made


def outside(walk: Walk, call: str, operands: list[Tensor], type: TensorType, library: str, node: cst.CSTNode) -> Tensor:
    """A tensor that a library makes."""
    walk.refuse(f"{call} is not in the vocabulary", node, "a function that `cuvil explain --mapping` lists")
    walk.builder.origins = (walk.origin(node),)
    op: Op = walk.builder.append("opaque", tuple(each.op.id for each in operands), {"call": call}, type)
    return traits.made(walk, op, library, call, operands)


# --- images ---------------------------------------------------------------------------------------------------------

def _picture(walk: Walk, call: str, order: str, node: cst.CSTNode) -> Tensor:
    type = TensorType((walk.fresh_symbol("height"), walk.fresh_symbol("width"), 3), DType.U8)
    return replace(outside(walk, call, [], type, "numpy", node), marks=frozenset((order, "hwc")))


@python("cv2.imread", "cv2.imdecode")
def imread(walk: Walk, args, keywords, node) -> Value | None:
    flag = keywords.get("flags", args[1] if len(args) > 1 else Library("cv2.IMREAD_COLOR"))
    word = flag.name.rpartition(".")[2] if isinstance(flag, Library) else {1: "IMREAD_COLOR", 0: "IMREAD_GRAYSCALE"}.get(getattr(flag, "value", None), "")
    match word:
        case "IMREAD_COLOR":
            return _picture(walk, "cv2.imread", "bgr", node)
        case "IMREAD_COLOR_RGB":
            return _picture(walk, "cv2.imread", "rgb", node)
        case "IMREAD_GRAYSCALE":
            return outside(walk, "cv2.imread", [], TensorType((walk.fresh_symbol("height"), walk.fresh_symbol("width")), DType.U8), "numpy", node)
    return outside(walk, "cv2.imread", [], TensorType(None, None), "numpy", node)


@python("cv2.VideoCapture")
def capture(walk: Walk, args, keywords, node) -> Value | None:
    return Instance(Library("cv2.VideoCapture"), complete=False)


@python("cv2.VideoCapture.read", "cv2.VideoCapture.retrieve")
def frame(walk: Walk, args, keywords, node) -> Value | None:
    return Sequence((Unknown("whether there is a frame"), _picture(walk, "cv2.VideoCapture.read", "bgr", node)))


@python("cv2.resize", "cv2.GaussianBlur", "cv2.copyMakeBorder", "cv2.flip", "cv2.warpAffine", "cv2.medianBlur", "cv2.rotate")
def same_picture(walk: Walk, args, keywords, node) -> Value | None:
    """An image of other sizes: its element type, channels and colours stay."""
    image = args[0] if args else None
    if not isinstance(image, Tensor):
        return None
    shape, size = image.type.shape, keywords.get("dsize", args[1] if len(args) > 1 else None)
    if shape is not None and len(shape) in (2, 3):
        given = [each.value for each in size.items if isinstance(each, Scalar)] if isinstance(size, Sequence) else []
        known = _called(node, "resize") and len(given) == 2 and all(isinstance(each, int) for each in given)
        sides = (given[1], given[0]) if known else (walk.fresh_symbol("height"), walk.fresh_symbol("width"))
        shape = (*sides, *shape[2:])
    made = outside(walk, f"cv2.{_last(node)}", [image], TensorType(shape, image.type.dtype), "numpy", node)
    return replace(made, marks=image.marks & {"bgr", "rgb", "hwc"})


@python("cv2.cvtColor")
def convert_colour(walk: Walk, args, keywords, node) -> Value | None:
    image, code = args[0] if args else None, keywords.get("code", args[1] if len(args) > 1 else None)
    if not isinstance(image, Tensor):
        return None
    word = code.name.rpartition(".")[2] if isinstance(code, Library) else ""
    before, _, after = word.removeprefix("COLOR_").partition("2")
    shape = image.type.shape
    if after == "GRAY":
        return outside(walk, "cv2.cvtColor", [image], TensorType(None if shape is None else shape[:2], image.type.dtype), "numpy", node)
    if shape is not None and len(shape) == 2:
        shape = (*shape, 3)
    made = outside(walk, "cv2.cvtColor", [image], TensorType(shape if len(after) == 3 else None, image.type.dtype), "numpy", node)
    if {before, after} == {"BGR", "RGB"}:
        known = next((mark for mark in ("bgr", "rgb") if mark in image.marks), "")
        return replace(made, marks=frozenset((OTHER_ORDER[known] if known else after.lower(), "hwc")))
    return replace(made, marks=frozenset((after.lower(), "hwc"))) if after in ("RGB", "BGR") else made


def _last(node: cst.CSTNode) -> str:
    func = node.func if isinstance(node, cst.Call) else None
    return func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""


def _called(node: cst.CSTNode, name: str) -> bool:
    return _last(node) == name


@python("PIL.Image.open")
def open_picture(walk: Walk, args, keywords, node) -> Value | None:
    return Instance(Library("PIL.Image.Image"), {"mode": Unknown("the mode of a file's image")}, complete=False)


def _picture_method(walk: Walk, last: str, args: list[Value], keywords: dict[str, Value]) -> Value | None:
    image = args[0] if args else None
    if not isinstance(image, Instance):
        return None
    if last == "convert":
        return Instance(image.of, {"mode": args[1] if len(args) > 1 else keywords.get("mode", Unknown("a mode"))}, complete=False)
    return image if last in ("resize", "crop", "rotate", "transpose", "copy", "filter", "thumbnail", "resize_exact") else None


def array_of_picture(walk: Walk, image: Instance, node: cst.CSTNode) -> Value | None:
    """np.array(image): u8[height, width, 3] of a picture that was converted to RGB."""
    if not isinstance(image.of, Library) or image.of.name != "PIL.Image.Image":
        return None
    mode = image.attributes.get("mode")
    match mode:
        case Scalar(value="RGB"):
            return _picture(walk, "numpy.array", "rgb", node)
        case Scalar(value="L"):
            return outside(walk, "numpy.array", [], TensorType((walk.fresh_symbol("height"), walk.fresh_symbol("width")), DType.U8), "numpy", node)
    made = outside(walk, "numpy.array", [], TensorType(None, None if isinstance(mode, Scalar) else DType.U8), "numpy", node)
    return made if isinstance(mode, Scalar) else replace(made, marks=frozenset(("rgb", "hwc")))


# --- transformers ---------------------------------------------------------------------------------------------------

def _pretrained(walk: Walk, home: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    kind = home.rpartition(".")[2]
    if kind.endswith(("Tokenizer", "TokenizerFast")):
        side = keywords.get("padding_side")
        return Instance(Library("transformers.Tokenizer"), {} if side is None else {"padding_side": side}, complete=False)
    if kind.endswith(NOT_MODELS):
        return None
    return Instance(Library(home), complete=False, training=False)         # from_pretrained ends with eval()


def call_object(walk: Walk, instance: Instance, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """A call of one of these objects, or None."""
    name = instance.of.name if isinstance(instance.of, Library) else ""
    if name == "transformers.Tokenizer":
        return _tokenized(walk, instance, args, keywords, node)
    if name.startswith("torchvision.transforms."):
        return transforms.called(walk, instance, args, node)
    if name.startswith("transformers."):
        return _model_output(walk, name, args, keywords, node)
    return None


def _tokenized(walk: Walk, tokenizer: Instance, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """tokenizer(texts, return_tensors="pt"): ids and the mask of those that are no padding."""
    wanted = keywords.get("return_tensors")
    if not isinstance(wanted, Scalar) or wanted.value not in ("pt", "np"):
        return None
    texts = args[0] if args else keywords.get("text")
    count = 1 if isinstance(texts, Scalar) and isinstance(texts.value, str) else len(texts.items) if isinstance(texts, Sequence) else None
    type = TensorType((count or walk.fresh_symbol("batch"), walk.fresh_symbol("tokens")), DType.I64)
    library = "torch" if wanted.value == "pt" else "numpy"
    side, padding = tokenizer.attributes.get("padding_side"), keywords.get("padding")
    padded = isinstance(padding, Scalar) and bool(padding.value) and padding.value != "do_not_pad" and count != 1
    known = isinstance(side, Scalar) and side.value in ("left", "right")
    marks = frozenset((f"padded-{side.value}",)) if padded and known else frozenset()
    ids = replace(outside(walk, "transformers.Tokenizer", [], type, library, node), marks=marks)
    mask = outside(walk, "transformers.Tokenizer", [ids], type, library, node)
    mask = replace(mask, mask=Mask(True, "01", "tokenizer", walk.span(node)), marks=marks)
    return Mapping({"input_ids": ids, "attention_mask": mask}, BATCH)


HEADS = (("ForCausalLM", "logits", ("vocabulary",)), ("LMHeadModel", "logits", ("vocabulary",)), ("ForMaskedLM", "logits", ("vocabulary",)),
         ("ForTokenClassification", "logits", ("labels",)), ("ForSequenceClassification", "logits", None), ("Model", "last_hidden_state", ("hidden",)))


def _model_output(walk: Walk, name: str, args: list[Value], keywords: dict[str, Value], node: cst.CSTNode) -> Value | None:
    """What a pretrained model gives for token ids, as far as the class of its head says it."""
    ids = keywords.get("input_ids", args[0] if args else None)
    head = next(((key, axes) for ending, key, axes in HEADS if name.endswith(ending)), None)
    if head is None or not isinstance(ids, Tensor):
        return None
    key, axes = head
    shape = None
    if ids.type.shape is not None and len(ids.type.shape) == 2:
        shape = (ids.type.shape[0], walk.fresh_symbol("labels")) if axes is None else (*ids.type.shape, walk.fresh_symbol(axes[0]))
    given = [value for value in (*args, *keywords.values()) if isinstance(value, Tensor)]
    made = outside(walk, name, given, TensorType(shape, None), "torch", node)
    frozen = walk.context.grad in ("no_grad", "inference")
    return Mapping({key: replace(made, grad=False if frozen else True, marks=ids.marks & {"padded-left", "padded-right"} if axes else frozenset())}, OUTPUT)


@python(f"{BATCH}.to")
def batch_to(walk: Walk, args, keywords, node) -> Value | None:
    batch = args[0] if args else None
    if not isinstance(batch, Mapping):
        return None
    return replace(batch, items={key: to(walk, [value, *args[1:]], keywords, node) if isinstance(value, Tensor) else value for key, value in batch.items.items()})


for _name in ("keys", "values", "items", "get", "pop", "update"):
    for _kind in (BATCH, OUTPUT):
        FUNCTIONS[f"{_kind}.{_name}"] = FUNCTIONS[f"builtins.dict.{_name}"]
