"""Forms of code that models of transformers and diffusers are written in: one test for each kind, each a small program of the same form."""
import textwrap

import pytest

from cuvil.frontends.python import Workspace, understood
from cuvil.frontends.python.values import describe
from cuvil.source import Source

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import Tensor\nfrom jaxtyping import Float\n"


@pytest.fixture
def shown(tmp_path):
    def shown(code: str, name: str, **files: str) -> dict[str, str]:
        """The names that a function binds, with what is known of them when all that callers bring is counted. files: others of the package."""
        for file, text in files.items():
            (tmp_path / f"{file}.py").write_text(HEAD + textwrap.dedent(text))
        source = Source(str(tmp_path / "file.py"), HEAD + textwrap.dedent(code))
        facts = understood(source, Workspace(tmp_path))
        return {source.slice(e.span): describe(e.value) for e in facts.function(name).expressions if e.node == "Name"}
    return shown


def test_an_activation_by_a_name_that_is_not_known_keeps_the_type(shown):
    found = shown("""
        from activations import ACT2FN

        class MLP(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.act = ACT2FN[config.hidden_act]

            def forward(self, x: Float[Tensor, "b 4"]):
                y = self.act(x)
                return y
    """, "MLP.forward", activations="""
        from collections import OrderedDict

        class ClassInstantier(OrderedDict):
            def __getitem__(self, key):
                content = super().__getitem__(key)
                cls, kwargs = content if isinstance(content, tuple) else (content, {})
                return cls(**kwargs)

        ACT2FN = ClassInstantier({"gelu": nn.GELU, "relu": nn.ReLU})
    """)
    assert found["y"] == "f32[b, 4]"


def test_fields_of_an_output_by_place_and_by_name_leave_out_those_that_are_none(shown):
    found = shown("""
        from dataclasses import dataclass
        from generic import ModelOutput

        @dataclass
        class Output(ModelOutput):
            logits: torch.FloatTensor | None = None
            extra: torch.FloatTensor | None = None
            state: torch.FloatTensor | None = None

        def f(x: Float[Tensor, "b 4"]):
            out = Output(logits=x, state=x.sum(0))
            first, second, third = out[0], out[1], out["state"]
            both = out[:2]
            rest = out.to_tuple()[1]
            return first, second, third, both, rest
    """, "f", generic="""
        from collections import OrderedDict

        class ModelOutput(OrderedDict):
            def __getitem__(self, k):
                if isinstance(k, str):
                    return dict(self.items())[k]
                return self.to_tuple()[k]

            def to_tuple(self):
                return tuple(self[k] for k in self.keys())
    """)
    assert (found["first"], found["second"], found["third"], found["rest"]) == ("f32[b, 4]", "f32[4]", "f32[4]", "f32[4]")


def test_a_property_is_its_getter(shown):
    found = shown("""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self._width = 4

            @property
            def width(self):
                return self._width

            @width.setter
            def width(self, value):
                self._width = value

            def forward(self, x: Float[Tensor, "b n"]):
                y = x.view(-1, self.width)
                return y
    """, "Model.forward")
    assert found["y"].startswith("f32[") and found["y"].endswith(", 4]")


def test_apply_of_an_autograd_function_is_its_forward(shown):
    found = shown("""
        class Half(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, count):
                ctx.count = count
                return x[:, :count]

        def f(x: Float[Tensor, "b 8"]):
            y = Half.apply(x, 4)
            return y
    """, "f")
    assert found["y"] == "f32[b, 4]"


def test_a_constructor_that_is_registered_keeps_its_arguments(shown):
    found = shown("""
        from somewhere import register_to_config

        class Model(nn.Module):
            @register_to_config
            def __init__(self, patch: int = 2, width: int = 4):
                super().__init__()

            def forward(self, x: Float[Tensor, "b n"]):
                y = x.view(-1, self.config.patch, self.config.width)
                return y
    """, "Model.forward")
    assert found["y"].endswith(", 2, 4]")


def test_modules_hung_on_a_plain_module_are_called(shown):
    found = shown("""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.mid = nn.Module()
                self.mid.first = nn.Linear(4, 8)

            def forward(self, x: Float[Tensor, "b 4"]):
                y = self.mid.first(x)
                return y
    """, "Model.forward")
    assert found["y"] == "f32[b, 8]"


def test_layers_without_weights_have_none_and_strides_for_each_axis(shown):
    found = shown("""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(4, elementwise_affine=False)
                self.conv = nn.Conv2d(3, 8, 4, stride=2, bias=False)

            def forward(self, x: Float[Tensor, "b 4"]):
                w = self.norm.weight
                c = self.conv.bias
                s = self.conv.stride[0]
                y = F.layer_norm(x.float(), (4,), self.norm.weight.float() if self.norm.weight is not None else None)
                return w, c, s, y
    """, "Model.forward")
    assert (found["w"], found["c"], found["s"], found["y"]) == ("None", "None", "2", "f32[b, 4]")


def test_what_is_not_known_keeps_the_rank_where_only_sizes_hang_on_it(shown):
    found = shown("""
        def f(x: Float[Tensor, "b 4"], image: Float[Tensor, "b 3 8 8"], weight: Float[Tensor, "6 3 3 3"], step, n: int):
            a = F.conv2d(image, weight, None, step)
            c = x.repeat(2, n, 1)
            d = x.repeat_interleave(n)
            e = x.repeat_interleave(n, dim=0)
            g = x * int(step)
            h = x[int(step):]
            return a, c, d, e, g, h
    """, "f")
    ranks = {name: found[name].count(",") + 1 for name in "acdeh"}
    assert ranks == {"a": 4, "c": 3, "d": 1, "e": 2, "h": 2} and found["g"] == "f32[b, 4]"


def test_numbers_out_of_a_tensor_are_numbers_and_an_item_at_one_is_none(shown):
    found = shown("""
        def f(x: Float[Tensor, "b 4"], ids: torch.LongTensor, table):
            n = x.max().item()
            a = x * n
            c = x + table[n]
            d = x + n * table
            return a, c, d
    """, "f")
    assert found["a"] == "f32[b, 4]" and not found["c"].startswith("f32[") and not found["d"].startswith("f32[")


def test_the_type_of_a_linear_layer_is_that_of_its_weight(shown):
    found = shown("""
        class Model(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.project = nn.Linear(width, 8)

            def forward(self, x: torch.Tensor, steps: Float[Tensor, "b"]):
                y = self.project(x)
                return y
    """, "Model.forward")
    assert found["y"].startswith("f32")


def test_rotary_frequencies_of_a_rule_that_is_not_known_have_one_axis(shown):
    found = shown("""
        from rope import ROPE

        class Rotary(nn.Module):
            def __init__(self, config):
                super().__init__()
                inv_freq, self.scaling = ROPE[config.kind](config)
                self.inv_freq = nn.Buffer(inv_freq, persistent=False)

            def forward(self, x: Float[Tensor, "b t 8"], position_ids: torch.LongTensor):
                f = position_ids[:, :, None].float() * self.inv_freq
                c = self.inv_freq.cos() * self.scaling
                return f, c
    """, "Rotary.forward", rope="""
        def _compute_linear_scaling_rope_parameters(config, device=None):
            return config.scale ** torch.arange(config.width), 1.0

        def _compute_yarn_parameters(config, device=None):
            return config.scale ** torch.arange(config.width), config.factor

        ROPE = {"linear": _compute_linear_scaling_rope_parameters, "yarn": _compute_yarn_parameters}
    """)
    assert found["c"].startswith("f32[n") and found["c"].count(",") == 0


def test_sizes_of_two_words_are_documented_sizes(shown):
    found = shown('''
        class Model(nn.Module):
            def forward(self, hidden_states: torch.Tensor):
                """
                Args:
                    hidden_states (`torch.Tensor` of shape `(batch size, channels, height, width)`): images
                """
                y = hidden_states.relu()
                return y
    ''', "Model.forward")
    assert found["y"].startswith("f32[") and found["y"].count(",") == 3
