"""nn.Module instances: their weights beside the library, mapped and not copied; a file that is not theirs is refused."""
import json
import struct

import numpy as np
import pytest

import cuvil as cu
from cuvil.artifact.build import beside

torch = pytest.importorskip("torch")

MODEL = """
    class Block(nn.Module):
        def __init__(self, width: int = 8, scale: float = 1.0):
            super().__init__()
            self.scale = scale
            self.norm = nn.LayerNorm(width)
            self.up = nn.Linear(width, 2 * width)
            self.layers = nn.ModuleList([nn.Linear(2 * width, 2 * width, bias=False) for _ in range(2)])
            self.down = nn.Sequential(nn.GELU(), nn.Linear(2 * width, width))
            self.register_buffer("offset", torch.arange(width, dtype=torch.float32), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.up(self.norm(x)) * self.scale
            for layer in self.layers:
                h = torch.relu(layer(h)) + h
            return x + self.down(h) + self.offset
"""


@pytest.fixture
def block(module):
    torch.manual_seed(0)
    return module(MODEL).Block


def test_a_module_computes_what_eager_computes(block):
    model = block().eval()
    compiled = cu.compile(model)
    x = torch.randn(3, 5, 8)
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-6)
    assert {p["name"] for p in compiled.manifest["signature"]["parameters"]} == {
        "norm.weight", "norm.bias", "up.weight", "up.bias", "layers.0.weight", "layers.1.weight", "down.1.weight", "down.1.bias", "offset"}


def test_the_object_s_own_sizes_and_numbers_count_not_the_defaults(block):
    model = block(width=12, scale=0.25).eval()
    x = torch.randn(2, 12)
    with torch.inference_mode():
        torch.testing.assert_close(cu.compile(model)(x), model(x), rtol=1e-5, atol=1e-6)


MODELS = """
    class Base(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.fc = nn.Linear(width, width)
        def forward(self, x):
            return self.after(self.fc(x))

    class Inherited(Base):
        def after(self, x):
            return torch.tanh(x) * 2

    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8)
            self.drop, self.pool = nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1)
            self.bn.running_mean.normal_()
        def forward(self, x):
            return self.drop(self.pool(F.relu(self.bn(self.conv(x)))).flatten(1))

    class Tied(nn.Module):
        def __init__(self, vocabulary=50, width=16):
            super().__init__()
            self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.embedding.weight
            self.settings = {"scale": 2.0}
        def forward(self, ids):
            return self.head(self.embedding(ids) * self.settings["scale"])

    class Rotary(nn.Module):
        def __init__(self, width=16, heads=2):
            super().__init__()
            self.heads, self.size = heads, width // heads
            self.register_buffer("inverse", 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size)), persistent=False)
            self.register_buffer("nothing", None)
            self.qkv = nn.Linear(width, 3 * width)
        def forward(self, x):
            b, t, width = x.shape
            q, k, v = (part.view(b, t, self.heads, self.size).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            angles = torch.outer(torch.arange(t, dtype=torch.float32), self.inverse)
            angles = torch.cat([angles, angles], -1)
            def turned(y):
                left, right = y.chunk(2, -1)
                return torch.cat([-right, left], -1)
            q, k = (y * angles.cos() + turned(y) * angles.sin() for y in (q, k))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, width)
"""


def test_modules_as_people_write_them(module):
    """Inherited methods, running statistics, tied weights, settings in a dict, rotary positions from a buffer."""
    made = module(MODELS)
    torch.manual_seed(0)
    for model, x in ((made.Inherited(8), torch.randn(3, 8)), (made.Normed(), torch.randn(2, 3, 16, 16)),
                     (made.Tied(), torch.randint(0, 50, (2, 5))), (made.Rotary(), torch.randn(2, 5, 16))):
        model.eval()
        with torch.inference_mode():
            torch.testing.assert_close(cu.compile(model)(x), model(x), rtol=1e-5, atol=1e-6)


def test_a_layer_of_the_library_by_itself():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    for model in (torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), torch.nn.Linear(4, 5)):
        compiled = cu.compile(model.eval())
        with torch.inference_mode():
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-6)
        assert {p["name"] for p in compiled.manifest["signature"]["parameters"]} == set(model.state_dict())


def test_saved_weights_are_mapped_by_who_loads_them(block, tmp_path):
    from safetensors.numpy import load_file
    model = block().eval()
    library, *_ = cu.compile(model, input_shapes={"x": (4, 8)}).save(tmp_path / "libblock.so")
    stored = load_file(tmp_path / "block.safetensors")
    np.testing.assert_array_equal(stored["up.weight"], model.up.weight.detach().numpy())
    m = cu.load(library)
    x = torch.randn(4, 8)
    with torch.inference_mode():
        torch.testing.assert_close(m(x), model(x), rtol=1e-5, atol=1e-6)
    with open("/proc/self/maps") as maps:
        assert any(str(tmp_path / "block.safetensors") in line for line in maps)


def test_weights_are_those_of_the_moment_of_compiling(block):
    model = block().eval()
    compiled = cu.compile(model)
    x = torch.randn(4, 8)
    with torch.inference_mode():
        before = compiled(x)
        model.up.weight.zero_()
        assert torch.equal(compiled(x), before)


@pytest.mark.parametrize("spoil, says", [
    (lambda m: m.train(), "training mode"),
    (lambda m: m.up.register_forward_hook(lambda *a: None), "forward hooks"),
    (lambda m: setattr(m, "scale", object()), "object|not known"),
    (lambda m: setattr(m, "up", torch.nn.Bilinear(2, 2, 2).eval()), "Bilinear"),
])
def test_what_cannot_be_taken_over_is_refused(block, spoil, says):
    model = block().eval()
    spoil(model)
    with pytest.raises(cu.CuvilError, match=says):
        cu.compile(model)(torch.randn(4, 8))


# Files that are broken, or of another model: a message each time, never a crash.

@pytest.fixture
def saved(block, tmp_path):
    return cu.compile(block().eval(), input_shapes={"x": (4, 8)}).save(tmp_path / "libblock.so")[0]


def rewritten(data: bytes, change) -> bytes:
    length, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + length])
    change(head)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + length:]


@pytest.mark.parametrize("change, says", [
    (lambda h: h.pop("up.bias"), "there is no parameter up.bias"),
    (lambda h: h["up.bias"].update(shape=[4, 4]), "parameter up.bias is F32 of rank 2"),
    (lambda h: h["up.bias"].update(dtype="F64"), "parameter up.bias is F64"),
    (lambda h: h["up.bias"].update(data_offsets=[0, 1 << 40]), "outside the file"),
    (lambda h: h["up.bias"].update(data_offsets=[1 << 63, (1 << 63) + 64]), "outside the file"),
    (lambda h: h["up.bias"].update(data_offsets=[64, 0]), "outside the file"),
    (lambda h: h["up.bias"].update(data_offsets=[1, 65]), "not aligned"),
    (lambda h: h["up.bias"].update(extra=1), "broken header"),
    (lambda h: h.update(more={"dtype": "U8", "shape": [], "data_offsets": [0, 1]}), None),
    (lambda h: h.update(__metadata__={"a": "b", "c": "\\u00e9\""}), None),
])
def test_parameters_of_another_model(saved, change, says):
    path = beside(saved, ".safetensors")
    path.write_bytes(rewritten(path.read_bytes(), change))
    if says is None:
        cu.load(saved)
        return
    with pytest.raises(cu.CuvilError, match=says):
        cu.load(saved)


def test_no_parameters(saved, tmp_path):
    beside(saved, ".safetensors").unlink()
    with pytest.raises(cu.CuvilError, match="No such file"):
        cu.load(saved)
    with pytest.raises(cu.CuvilError, match="not a .safetensors file"):
        cu.load(saved, parameters=tmp_path)


def test_any_cut_and_any_changed_byte_of_the_header_is_survived(saved):
    """Whatever stands in the file, loading it gives a model or an error."""
    path = beside(saved, ".safetensors")
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    length = struct.unpack("<Q", data[:8])[0]
    for cut in (0, 7, 8, 9, 40, length // 2, length + 8, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(cu.CuvilError):
            cu.load(saved)
    for _ in range(300):
        broken = bytearray(data)
        for place in rng.integers(0, length + 8, rng.integers(1, 4)):
            broken[place] = rng.integers(0, 256)
        path.write_bytes(broken)
        try:
            cu.load(saved)
        except cu.CuvilError:
            pass
