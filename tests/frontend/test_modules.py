"""nn.Module classes: `__init__` gives sub-modules and weights with their paths, `forward` is followed."""
import textwrap

from snippets import source

from cuvil.frontends.python import Workspace, capture
from cuvil.frontends.python.values import describe
from cuvil.ir.types import TensorType
from cuvil.source import Source


def weights(code: str, name: str, **types: str) -> dict[str, str]:
    function = capture(source(code), name, {k: TensorType.parse(v) for k, v in types.items()})
    return {op.attr("name"): str(op.type) for op in function.parameters}


def test_layers_lists_and_sequences_have_the_paths_of_the_state_dict(ir):
    code = """
        class Block(nn.Module):
            def __init__(self, width, hidden=None):
                super().__init__()
                self.up = nn.Linear(width, hidden or 4 * width, bias=False)
                self.act = nn.GELU()
            def forward(self, x):
                return self.act(self.up(x))
        class Net(nn.Module):
            def __init__(self, depth: int = 2, width: int = 8):
                super().__init__()
                self.blocks = nn.ModuleList([Block(width, width) for _ in range(depth)])
                self.head = nn.Sequential(nn.LayerNorm(width), nn.Dropout(0.5), nn.Linear(width, 3))
                self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 1)})
            def forward(self, x):
                for block in self.blocks:
                    x = x + block(x)
                if self.training:
                    x = F.dropout(x)
                x = self.head(x)
                return self.heads["a"](x)
    """
    assert weights(code, "Net.forward", x="f32[5, 8]") == {
        "blocks.0.up.weight": "f32[8, 8]", "blocks.1.up.weight": "f32[8, 8]", "head.0.weight": "f32[8]", "head.0.bias": "f32[8]",
        "head.2.weight": "f32[3, 8]", "head.2.bias": "f32[3]", "heads.a.weight": "f32[2, 3]", "heads.a.bias": "f32[2]"}


def test_the_paths_are_those_of_torch():
    code = textwrap.dedent("""
        import torch
        from torch import nn
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm2d(4)
                self.conv = nn.Conv2d(3, 4, 3)
            def forward(self, x):
                return self.norm(self.conv(x))
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.stages = nn.Sequential(Inner(), nn.Sequential(nn.ReLU(inplace=True), nn.MaxPool2d(2)))
                self.scale = nn.Parameter(torch.ones(4, 1, 1))
                self.register_buffer("shift", torch.zeros(1))
            def forward(self, x):
                return self.stages(x) * self.scale + self.shift
    """)
    scope: dict = {}
    exec(code, scope)
    state = scope["Outer"]().state_dict()
    function = capture(Source("net.py", code), "Outer.forward", {"x": TensorType.parse("f32[2, 3, 8, 8]")})
    found = {op.attr("name"): tuple(op.type.shape) for op in function.parameters}
    assert found.items() <= {name: tuple(value.shape) for name, value in state.items()}.items()
    assert state.keys() - found.keys() == {"stages.0.norm.num_batches_tracked"}


def test_inheritance_super_properties_and_tensors_made_in_init(ir):
    text = ir("""
        class Base(nn.Module):
            gain = 2.0
            def __init__(self, width: int = 4):
                super().__init__()
                self.width = width
                self.table = torch.arange(width) * 3
            @property
            def doubled(self):
                return self.width * 2
            @staticmethod
            def shift(x, by):
                return x - by
            def scaled(self, x):
                return x * self.gain
            def forward(self, x):
                return self.shift(self.scaled(x), self.doubled) + self.table
        class Derived(Base):
            def __init__(self):
                super().__init__(width=3)
            def scaled(self, x):
                return super().scaled(x).exp()
    """, "Derived.forward", x="f32[2, 3]")
    assert text == textwrap.dedent("""\
        func @Base.forward(%0: f32[2, 3] "x") -> tensor {
          %1 = constant {dtype = f32, value = 2.0} : f32[]
          %2 = mul %0, %1 : f32[2, 3]
          %3 = exp %2 : f32[2, 3]
          %4 = constant {dtype = f32, value = 6.0} : f32[]
          %5 = sub %3, %4 : f32[2, 3]
          %6 = iota {axis = 0, dtype = i64, shape = (3,)} : i64[3]
          %7 = constant {dtype = i64, value = 3} : i64[]
          %8 = mul %6, %7 : i64[3]
          %9 = cast %8 {dtype = f32} : f32[3]
          %10 = add %5, %9 : f32[2, 3]
          return %10
        }
    """).rstrip("\n") + ("\n" if text.endswith("\n") else "")


def test_a_constructor_without_defaults_gives_symbols(types):
    found = types("""
        class Attention(nn.Module):
            def __init__(self, width: int, heads: int):
                super().__init__()
                self.heads = heads
                self.qkv = nn.Linear(width, 3 * width)
            def forward(self, x: torch.Tensor):
                b, t, c = x.shape
                qkv = self.qkv(x)
                q, k, v = qkv.split(c, dim=-1)
                scores = q @ k.transpose(-2, -1)
                return scores
    """, "Attention.forward")
    assert found["qkv"] == "f32[b, t, 3*width]" and found["q"] == "f32[b, t, width]" and found["scores"] == "f32[b, t, t]"


def test_configurations_are_objects_with_their_defaults():
    code = """
        from dataclasses import dataclass, field
        @dataclass
        class Config:
            width: int = 6
            layers: int = 2
            names: list = field(default_factory=list)
            @property
            def hidden(self):
                return self.width * 2
        class Net(nn.Module):
            def __init__(self, config: Config):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(config.layers))
                self.out = nn.Linear(config.width, config.hidden)
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.out(x)
    """
    assert weights(code, "Net.forward", x="f32[1, 6]") == {
        "layers.0.weight": "f32[6, 6]", "layers.0.bias": "f32[6]", "layers.1.weight": "f32[6, 6]", "layers.1.bias": "f32[6]",
        "out.weight": "f32[12, 6]", "out.bias": "f32[12]"}


def test_a_module_made_inside_a_function(ir):
    text = ir("""
        def f(x: Float[Tensor, "2 4"]):
            net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
            return net(x)
    """)
    assert 'parameter %1: f32[4, 4] "0.weight"' in text and "tanh" in text


def test_an_element_type_is_learnt_from_the_weights_it_meets():
    code = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(4, 2)
            def forward(self, x: torch.Tensor):
                n, c = x.shape
                return self.out(x.reshape(n, c) * 2)
    """
    function = capture(source(code), "Net.forward", None, Workspace("."))
    assert str(function.inputs[0].type) == "f32[n, 4]"


def test_sizes_of_a_configuration_that_is_not_known_are_symbols(types):
    found = types("""
        class MLP(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.heads, self.size = config.heads, config.width // config.heads
                self.up = nn.Linear(config.width, 2 * config.width, bias=config.bias)
                self.act = nn.SiLU()
            def forward(self, x: torch.Tensor):
                b, t, c = x.shape
                y = self.act(self.up(x))
                z = y.view(b, t, 2, self.heads, self.size)
                return z
    """, "MLP.forward")
    assert found["y"] == "f32[b, t, 2*width]" and found["z"] == "f32[b, t, 2, heads, (width // heads)]"


def test_what_is_taken_for_an_unknown_argument_is_for_facts_only(refused):
    error, text = refused("""
        class MLP(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.up = nn.Linear(4, 8, bias=config.bias)
            def forward(self, x):
                return self.up(x)
    """, "MLP.forward", x="f32[2, 4]")
    assert text == "self.up(x)" and "the bias of torch.nn.Linear is not known" in str(error)


def test_an_image_layer_tells_the_axes_of_its_input(types):
    found = types("""
        class Stem(nn.Module):
            def __init__(self, channels: int, width: int = 8):
                super().__init__()
                self.conv = nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False)
                self.norm = nn.BatchNorm2d(width)
            def forward(self, image):
                y = self.norm(self.conv(image)).relu()
                return y
    """, "Stem.forward")
    assert found["y"] == "f32[n, 8, ((h - 1) // 2) + 1, ((w - 1) // 2) + 1]"


def test_tensors_that_a_module_keeps_are_not_changed_by_a_call(refused):
    error, text = refused("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps = torch.zeros(3)
            def forward(self, x):
                self.steps += 1
                return x + self.steps
    """, "Net.forward", x="f32[3]")
    assert "it is kept by the module" in str(error)


def test_arguments_that_are_not_tensors_are_values():
    code = source("""
        def f(x, axis=0, sizes=None, keep=True):
            return x.sum(axis, keepdim=keep).reshape(sizes)
    """)
    function = capture(code, "f", {"x": TensorType.parse("f32[2, 6]"), "axis": 1, "sizes": (1, 2), "keep": False})
    assert [op.name for op in function.body] == ["reduce_sum", "reshape"] and str(function.ops[-1].type) == "f32[1, 2]"


def test_a_prototype_is_made_once_and_changed_by_nobody(facts):
    file = facts("""
        class Net(nn.Module):
            def __init__(self, width: int = 4):
                super().__init__()
                self.kept, self.out = [1], nn.Linear(width, 2)
            def first(self, x: Float[Tensor, "n 4"]):
                self.kept.append(2)
                return self.out(x) * len(self.kept)
            def second(self, x: Float[Tensor, "n 4"]):
                return self.out(x) * len(self.kept)
    """)
    values = [[op.attr("value") for op in f.function.ops if op.name == "constant"] for f in file.functions[1:]]
    assert values == [[2.0], [1.0]]


def test_a_size_that_only_the_constructor_knows_is_asked_for(refused):
    error, text = refused("""
        class Heads(nn.Module):
            def __init__(self, heads: int):
                super().__init__()
                self.heads = heads
            def forward(self, x: Float[Tensor, "b 64"]):
                return x.view(x.shape[0], self.heads, -1)
    """, "Heads.forward")
    assert "the size `heads` is of no input and no weight" in str(error) and text.startswith("x.view(")


def test_modules_are_added_under_names_that_are_formatted(facts):
    file = facts("""
        class Net(nn.Module):
            def __init__(self, blocks=(4, 8)):
                super().__init__()
                self.body = nn.Sequential()
                width = 2
                for i, size in enumerate(blocks):
                    self.body.add_module("block%d" % (i + 1), nn.Linear(width, size))
                    width = size
                self.odd = nn.Sequential()
                self.odd.add_module("block%d" % unknown, nn.Linear(3, 3))
            def forward(self, x: Float[Tensor, "n 2"]):
                y = self.body(x)
                z = self.odd(x)
                return y
    """)
    found = {fact.name: describe(fact.value) for fact in file.function("Net.forward").assigns}
    assert found == {"y": "f32[n, 8]", "z": "unknown"}
