"""An image with its colours in OpenCV's order goes where red comes first.

What: an image that OpenCV decoded (blue, green, red) is normalised with means given as red, green, blue, or handed to PIL or a plot, without
a conversion in between.
Why: nothing fails; red and blue are exchanged, and a model that was trained on RGB sees orange sky and blue faces.
Example: `img = cv2.imread(path); x = (to_tensor(img) - MEAN) / STD` with MEAN = 0.485, 0.456, 0.406
Instead: `img = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)`
Fix: display: the model may have been trained on BGR with other means.

Silent after cvtColor or a reversal of the channels, for images read as grey, and for means in the order blue, green, red.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuvil.diagnostics import Diagnostic, Evidence, Fix

from . import flow
from .rule import Invalid, Rule

if TYPE_CHECKING:
    from cuvil.frontends.python.facts import FileFacts, FunctionFacts
    from cuvil.ir.function import Function, Op
    from cuvil.source import Span

_START = "import cv2\nimport torch\n\nMEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)\n\ndef f(path):\n"
VALID = (
    _START + "    img = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)\n    return torch.from_numpy(img).permute(2, 0, 1) / 255 - MEAN\n",
    _START + "    img = cv2.imread(path)[:, :, ::-1].copy()\n    return torch.from_numpy(img).permute(2, 0, 1) / 255 - MEAN\n",
    # Means for blue, green, red.
    "import cv2\nimport numpy as np\n\ndef f(path):\n    return cv2.imread(path) - np.array([103.53, 116.28, 123.675])\n",
    "import cv2\n\ndef f(path, out):\n    cv2.imwrite(out, cv2.imread(path))\n",
)
INVALID = (
    Invalid(_START + "    img = cv2.imread(path)\n    return »torch.from_numpy(img).permute(2, 0, 1) / 255 - MEAN«\n", "BGR"),
    Invalid("import cv2\nimport numpy as np\n\ndef f(path):\n    return »cv2.imread(path) - np.array([123.675, 116.28, 103.53])«\n", "RGB"),
    Invalid("import cv2\nfrom PIL import Image\n\ndef f(path):\n    return »Image.fromarray(cv2.imread(path))«\n", "cvtColor"),
)

# Means of red, green and blue that public models are trained with (ImageNet, CLIP, COCO), as parts of 1.
_MEANS = ((0.485, 0.456, 0.406), (0.48145466, 0.4578275, 0.40821073), (0.471, 0.448, 0.408))
_SHOWS = {"PIL.Image.fromarray": 0, "matplotlib.pyplot.imshow": 0, "torchvision.transforms.functional.normalize": 0,
          "torchvision.transforms.functional.to_pil_image": 0}


@flow.once
def check(facts: FileFacts) -> Iterator[Diagnostic]:
    from cuvil.frontends.python.values import Tensor
    for function in facts.functions:
        marks = {fact.value.op.id: fact.value.marks for fact in function.expressions if isinstance(fact.value, Tensor) and fact.value.marks}
        graph = function.function
        for op in graph.by_name.get("sub", ()) if graph is not None and marks else ():
            if op.origins and not op.origins[0].callers and "bgr" in _marks(graph, op, marks) and _in_rgb(graph, op):
                yield _finding(facts, function, op.origins[0].span, "the mean that is taken off is given as red, green, blue (RGB)")
        for call in function.calls:
            place = _SHOWS.get(call.name)
            image = call.args[place] if place is not None and len(call.args) > place else None
            if isinstance(image, Tensor) and "bgr" in image.marks and not call.context.callers:
                yield _finding(facts, function, call.span, f"{call.name.rpartition('.')[2]} takes RGB")


def _marks(graph: Function, op: Op, marks: dict[int, frozenset[str]]) -> frozenset[str]:
    image = flow.operand(graph, op)
    while image.id not in marks and image.name == "cast":
        image = flow.operand(graph, image)
    return marks.get(image.id, frozenset())


def _in_rgb(graph: Function, op: Op) -> bool:
    mean = flow.source(graph, flow.operand(graph, op, 1)).attr("value")
    if not isinstance(mean, tuple) or len(mean) != 3 or not all(isinstance(v, (int, float)) for v in mean):
        return False
    scale = 255 if max(mean) > 1 else 1
    return any(all(abs(v / scale - m) < 0.004 for v, m in zip(mean, known)) for known in _MEANS)


def _finding(facts: FileFacts, function: FunctionFacts, span: Span, why: str) -> Diagnostic:
    born = next((call.span for call in function.calls if call.name in ("cv2.imread", "cv2.imdecode", "cv2.VideoCapture.read")), None)
    return RULE.finding(f"the image is in OpenCV's order (BGR), and {why}: convert it with cv2.cvtColor(image, cv2.COLOR_BGR2RGB)", span,
                        (Evidence(born, "decoded as BGR here"),) if born is not None and born.path == facts.source.path else (),
                        Fix("display", "cv2.cvtColor(image, cv2.COLOR_BGR2RGB)"))


RULE = Rule("CUV951", "bgr-into-rgb", kind="color-order", severity="warning", certainty="likely", check=check,
            manual=__doc__, valid=VALID, invalid=INVALID)
