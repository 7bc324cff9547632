"""What torchvision.transforms make of images: shapes, element types, colours."""
import pytest

from cuvil.frontends.python import Workspace, understood
from cuvil.frontends.python.values import Tensor
from cuvil.source import Source

HEADER = "import numpy as np\nimport torch\nfrom PIL import Image\nfrom torchvision import transforms as T\nimport torchvision.transforms.functional as F\n"
CASES = [
    ("T.ToTensor()(im)", "f32[3, height, width]"), ("T.PILToTensor()(im)", "u8[3, height, width]"), ("F.to_tensor(np.array(im))", "f32[3, height, width]"),
    ("T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), T.Normalize([0.5], [0.5])])(im)", "f32[3, 224, 224]"),
    ("F.resize(T.ToTensor()(im), [32, 48])", "f32[3, 32, 48]"), ("F.center_crop(T.ToTensor()(im), 16)", "f32[3, 16, 16]"),
    ("T.Resize((8, 9))(torch.zeros(2, 3, 4, 4))", "f32[2, 3, 8, 9]"), ("T.ToTensor()(im.convert('L'))", "f32[1, height, width]"),
    ("T.ConvertImageDtype(torch.float16)(T.PILToTensor()(im))", "f16[3, height, width]"), ("F.to_tensor(torch.zeros(2, 3).numpy())", "f32[1, 2, 3]"),
]


def value(expression: str):
    source = Source("file.py", f"{HEADER}def f(path):\n    im = Image.open(path).convert('RGB')\n    return {expression}\n")
    facts, = understood(source, Workspace()).functions
    return next(e.value for e in reversed(facts.expressions) if e.span.line == 8 and isinstance(e.value, Tensor))


@pytest.mark.parametrize("expression, type", CASES)
def test_transforms(expression, type):
    assert str(value(expression).type) == type


def test_colours_stay():
    assert "rgb" in value("T.Normalize([0.5], [0.5])(T.ToTensor()(im))").marks


def test_an_unknown_step_gives_an_unknown_image():
    with pytest.raises(StopIteration):
        value("T.Compose([T.ToTensor(), g])(im)")
