"""How far facts go through code as people write it: one test for each kind, from the common to the odd."""
import textwrap

from cuvil.frontends.python import Workspace, analyze, understood
from cuvil.frontends.python.values import describe
from cuvil.source import Source

HEAD = "import functools\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import Tensor\nfrom jaxtyping import Float\n"


def shown(code: str, name: str) -> dict[str, str]:
    """The names that a function binds, with what is known of them when all that callers bring is counted."""
    source = Source("file.py", HEAD + textwrap.dedent(code))
    facts = understood(source, Workspace("."))
    return {source.slice(e.span): describe(e.value) for e in facts.function(name).expressions if e.node == "Name"}


def test_a_tensor_that_may_be_absent_is_one_where_it_is_used():
    found = shown("""
        def f(x: Float[Tensor, "n 4"], bias: Float[Tensor, "4"] | None = None):
            if bias is None:
                bias = torch.zeros(4)
            y = x + bias
            return y
    """, "f")
    assert found["y"] == "f32[n, 4]"


def test_what_two_branches_bind_keeps_what_they_share():
    found = shown("""
        def f(x: Float[Tensor, "n 4"], flag):
            if flag:
                y = x[:, :2]
            else:
                y = x.repeat(2, 1)
            z = y.sum(0) if flag else None
            return y, z
    """, "f")
    assert found["y"] == "f32[n2, n3]" and found["z"].startswith("f32[n") and found["z"].endswith("or None")


def test_one_of_two_modules_is_called_as_each():
    found = shown("""
        class Block(nn.Module):
            def __init__(self, dim: int, norm, gate=None):
                super().__init__()
                self.norm = nn.LayerNorm(dim) if norm else nn.Identity()
                self.act = (gate or nn.GELU)()
            def forward(self, x: Float[Tensor, "b t 8"]):
                y = self.act(self.norm(x))
                return y
    """, "Block.forward")
    assert found["y"] == "f32[b, t, 8]"


def test_blocks_of_an_unknown_number_are_walked_as_one():
    found = shown("""
        class Model(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(config.width, config.width) for _ in range(config.depth)])
            def forward(self, x: Float[Tensor, "b t c"]):
                kept = ()
                for i, layer in enumerate(self.layers):
                    kept = kept + (x,)
                    x = layer(x)
                y = x
                return y, kept
    """, "Model.forward")
    assert found["y"].startswith("f32[b, t, ")


def test_a_loop_that_changes_the_rank_leaves_it_open():
    found = shown("""
        def f(x: Float[Tensor, "n 4"], steps):
            for _ in range(steps):
                x = x.unsqueeze(0)
            y = x
            return y
    """, "f")
    assert found["y"] == "f32[...]"


def test_break_in_a_loop_is_one_of_its_ends():
    found = shown("""
        def f(x: Float[Tensor, "n 4"], steps, test):
            for _ in range(steps):
                if test(x):
                    x = x.long()
                    break
            y = x
            return y
    """, "f")
    assert found["y"] == "?[n, 4]"


def test_a_layer_of_unknown_size_has_a_size():
    found = shown("""
        class Head(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.out = nn.Linear(config.hidden, config.table["classes"])
            def forward(self, x: Float[Tensor, "b t c"]):
                y = self.out(x)
                return y
    """, "Head.forward")
    assert found["y"] == "f32[b, t, out_features]"


def test_classes_that_derive_from_layers_are_layers():
    found = shown("""
        class Norm(nn.LayerNorm):
            def __init__(self, channels, **kwargs):
                super().__init__(channels, **kwargs)
            def forward(self, x):
                return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        class Stack(nn.Sequential):
            def __init__(self, dim):
                super().__init__(nn.Linear(4, dim), nn.ReLU())
                self.add_module("last", nn.Linear(dim, 2))
                self.norm = Norm(2)
        def f(x: Float[Tensor, "n 4"]):
            y = Stack(16)(x)
            return y
    """, "f")
    assert found["y"] == "f32[n, 2]"


def test_decorators_that_pass_on_are_seen_through_and_others_are_not():
    found = shown("""
        def logged(prefix):
            def around(func):
                @functools.wraps(func)
                def inner(*args, **kwargs):
                    print(prefix)
                    return func(*args, **kwargs)
                return inner
            return around
        def doubled(func):
            def inner(*args):
                return func(*args), 2
            return inner
        @logged("half")
        def half(x):
            return x[:, :2]
        @doubled
        def both(x):
            return x[:, :2]
        def f(x: Float[Tensor, "n 4"]):
            y = half(x)
            z = both(x)
            return y, z
    """, "f")
    assert found["y"] == "f32[n, 2]" and found["z"] == "unknown"


def test_partial_and_arguments_that_are_not_all_known():
    found = shown("""
        def scaled(x, by=2.0, axis=None):
            if axis is not None:
                return x.sum(axis)
            return x * by
        def f(x: Float[Tensor, "n 4"], **kwargs):
            y = functools.partial(scaled, by=3.0)(x)
            z = scaled(x, axis=None, **kwargs)
            return y, z
    """, "f")
    assert found["y"] == "f32[n, 4]"


def test_match_joins_its_cases():
    found = shown("""
        def f(x: Float[Tensor, "n 4"], mode):
            match mode:
                case "mean":
                    y = x.mean(0)
                case _:
                    y = x[0]
            return y
    """, "f")
    assert found["y"] == "f32[4]"


def test_callers_in_the_file_bring_what_a_function_does_not_say():
    code = """
        class Attention(nn.Module):
            def __init__(self, dim, heads=4):
                super().__init__()
                self.heads, self.qkv, self.proj = heads, nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
            def forward(self, x, mask=None):
                B, N, C = x.shape
                q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
                attn = (q @ k.transpose(-2, -1)).softmax(dim=-1)
                x = (attn @ v).transpose(1, 2).reshape(B, N, C)
                return self.proj(x)
        class Mlp(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.fc = nn.Linear(dim, dim)
            def forward(self, x):
                y = self.fc(x)
                return y
        class Model(nn.Module):
            def __init__(self, dim=64, depth=3):
                super().__init__()
                self.embed = nn.Conv2d(3, dim, 16, 16)
                self.blocks = nn.Sequential(*[nn.Sequential(Attention(dim), Mlp(dim)) for _ in range(depth)])
            def forward(self, x):
                x = self.embed(x).flatten(2).transpose(1, 2)
                return self.blocks(x)
    """
    assert shown(code, "Attention.forward")["attn"] == "f32[B, 4, N, N]" and shown(code, "Mlp.forward")["y"].startswith("f32[n, ")


def test_documented_shapes_are_shown_and_ground_no_finding():
    code = '''
        class Encoder(nn.Module):
            def forward(self, hidden_states: torch.Tensor, lengths):
                """
                Args:
                    hidden_states (`torch.FloatTensor` of shape `(batch_size, seq_len, width)`): the input
                    lengths: shape (batch_size, 2)
                """
                y = hidden_states.softmax(dim=-1)
                z = hidden_states.sum(5)
                return y, z
    '''
    assert shown(code, "Encoder.forward")["y"] == "f32[hidden_states0, hidden_states1, hidden_states2]"
    source = Source("file.py", HEAD + textwrap.dedent(code))
    assert understood(source, Workspace(".")).function("Encoder.forward").problems == ()


def test_callers_that_disagree_leave_open_where_they_do():
    code = """
        def half(x):
            y = x * 0.5
            return y
        def f(a: Float[Tensor, "n 4"]):
            return half(a)
        def g(b: Float[Tensor, "n 8"]):
            return half(b)
    """
    assert shown(code, "half")["y"] == "f32[n, axis1]"


def test_names_that_a_star_brings(tmp_path):
    (tmp_path / "layers.py").write_text(HEAD + "def half(x):\n    return x[:, :2]\n")
    source = Source(str(tmp_path / "model.py"), HEAD + 'from layers import *\ndef f(x: Float[Tensor, "n 4"]):\n    y = half(x)\n    return y\n')
    facts = understood(source, Workspace(tmp_path))
    assert {source.slice(e.span): describe(e.value) for e in facts.function("f").expressions if e.node == "Name"}["y"] == "f32[n, 2]"


def test_what_a_call_with_an_unknown_number_gives_is_no_number():
    found = analyze(Source("a.py", "import torch\n\ndef f(h: int):\n    d = torch.arange(32).float()\n    x = torch.arange(8).repeat(1, h, 1)\n"
                                  "    y = x[:, :, :, None]\n    return (y / d)[:, :, :, 0::2]\n"))
    assert found.functions[0].problems == ()
    assert found.functions[0].result.type.shape is None or len(found.functions[0].result.type.shape) == 4


def test_an_element_type_that_is_asked_for_holds_where_nothing_else_is_known(facts):
    file = facts("""
        def f(x: torch.Tensor, n):
            return torch.ones_like(x[n].float(), dtype=torch.long), x.half().softmax(n, dtype=torch.float64), torch.zeros_like(x.half(), dtype=n)
    """)
    assert [describe(item) for item in file.function("f").result.items] == ["i64[...]", "f64[...]", "?[...]"]


def test_what_numpy_makes_of_a_number_and_what_it_draws():
    found = shown("""
        import numpy as np
        def f(x: np.ndarray, dim: int):
            x = x.astype(np.float32)
            a = x * np.sqrt(dim)
            b = x * np.random.uniform(0.9, 1.1) + np.random.rand()
            c = np.random.random(size=(3, 4))
            return a, b, c
    """, "f")
    assert {name: found[name] for name in "abc"} == {"a": "f64[...]", "b": "f32[...]", "c": "f64[3, 4]"}


def test_operations_that_fail_and_lists_of_unknown_length_cost_no_facts():
    found = shown("""
        def f(x: torch.Tensor, rows):
            B, T = x.shape
            a = B % 0
            b = [row for row in rows]
            b.reverse()
            c = b.copy()
            d = torch.zeros(3, dtype="float32")
            e = x.float()
            return a, b, c, d, e
    """, "f")
    assert (found["a"], found["d"], found["e"]) == ("unknown", "unknown", "f32[B, T]")


def test_a_package_is_found_by_its_own_name(tmp_path):
    package = tmp_path / "nets"
    (package / "layers").mkdir(parents=True)
    for folder in (package, package / "layers"):
        (folder / "__init__.py").write_text("")
    (package / "layers" / "halves.py").write_text(HEAD + "def half(x):\n    return x[:, :2]\n")
    text = HEAD + 'from nets.layers.halves import half\ndef f(x: Float[Tensor, "n 4"]):\n    y = half(x)\n    return y\n'
    for root in (tmp_path, package, package / "layers"):
        source = Source(str(root / "model.py"), text)
        facts = understood(source, Workspace(root))
        assert {source.slice(e.span): describe(e.value) for e in facts.function("f").expressions if e.node == "Name"}["y"] == "f32[n, 2]"


def test_a_dict_by_a_key_that_is_not_known_has_one_of_its_values():
    found = shown("""
        class Attention(nn.Module):
            def __init__(self, heads=4):
                super().__init__()
                self.biases, self.kept = nn.Parameter(torch.zeros(heads, 49)), {}
            def bias(self, device):
                key = str(device)
                if key not in self.kept:
                    self.kept[key] = self.biases[:, None]
                return self.kept[key]
            def forward(self, x: Float[Tensor, "b 4 n 49"]):
                y = x + self.bias(x.device)
                return y
    """, "Attention.forward")
    assert found["y"] == "f32[b, 4, n, 49]"


def test_configurations_are_set_up_copied_and_replaced():
    found = shown("""
        import copy
        from dataclasses import dataclass, replace
        @dataclass
        class Base:
            width: int
            depth: int = 2
        class Wide(Base):
            def __init__(self, width, times):
                super().__init__(width * times)
        class Model(nn.Module):
            def __init__(self, config=Wide(8, 4)):
                super().__init__()
                narrow = replace(config, width=16)
                other = copy.copy(config)
                other.width = 5
                self.a, self.b, self.c = nn.Linear(config.width, 3), nn.Linear(narrow.width, 3), nn.Linear(other.width, 3)
                self.d = copy.deepcopy(self.c)
            def forward(self, x: Float[Tensor, "b n"]):
                a, b, c, d = self.a.weight, self.b.weight, self.c.weight, self.d.weight
                return a, b, c, d
    """, "Model.forward")
    assert [found[name] for name in "abcd"] == ["f32[3, 32]", "f32[3, 16]", "f32[3, 5]", "f32[3, 5]"]


def test_layers_of_an_unknown_number_in_a_class_that_is_a_sequential():
    found = shown("""
        class Block(nn.Sequential):
            def __init__(self, width=4, norm: "int" = None, test=None):
                layers = [nn.Linear(width, width)]
                for _ in range(norm):
                    layers.append(nn.Linear(width, width))
                super().__init__(*layers)
        class Model(nn.Module):
            def __init__(self, count):
                super().__init__()
                self.block = Block(4, count)
            def forward(self, x: Float[Tensor, "b 4"]):
                y = self.block(x)
                return y
    """, "Model.forward")
    assert found["y"] == "f32[b, 4]"


def test_a_size_that_is_not_known_leaves_the_element_type_of_a_weight():
    found = shown("""
        class Model(nn.Module):
            def __init__(self, size, dtype=None):
                super().__init__()
                self.embedding = nn.Parameter(torch.zeros(1, len(size), 8, dtype=dtype))
            def forward(self, x: Float[Tensor, "b n 8"]):
                y = self.embedding.mean(dim=1)
                return y
    """, "Model.forward")
    assert found["y"] == "f32[1, 8]"


def test_a_caller_that_does_not_know_does_not_say_otherwise():
    code = """
        def half(x):
            y = x * 0.5
            return y
        def f(a: Float[Tensor, "n 4"]):
            return half(a)
        def g(b: Tensor):
            return half(b)
    """
    assert shown(code, "half")["y"] == "f32[n, 4]"


def test_no_element_type_asked_for_is_the_default_one(facts):
    file = facts("""
        def f(x: torch.Tensor, n, dtype=None):
            return (torch.empty((3, 4), dtype=None), torch.randn(n, 4, dtype=dtype), torch.rand_like(x.float(), dtype=torch.float64), torch.Tensor(3, 4),
                    torch.Tensor(n, 4), torch.Tensor([1, 2]), torch.Tensor(n))
    """)
    assert [describe(item) for item in file.function("f").result.items] == ["f32[3, 4]", "?[n, 4]", "f64[...]", "f32[3, 4]", "f32[n2, 4]", "f32[2]", "f32[...]"]


def test_a_model_of_many_blocks_is_made_once_for_its_methods(facts):
    file = facts("""
        class Block(nn.Module):
            def __init__(self, dim, rate):
                super().__init__()
                self.a, self.b, self.c, self.d, self.rate = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim), rate
            def forward(self, x):
                return self.d(self.c(self.b(self.a(x))))
        class Model(nn.Module):
            def __init__(self, depth=200):
                super().__init__()
                self.blocks = nn.Sequential(*[Block(8, i / depth) for i in range(depth)])
                self.head = nn.Linear(8, 3)
            def forward(self, x: Float[Tensor, "n 8"]):
                return self.head(x)
    """)
    assert describe(file.function("Model.forward").result) == "f32[n, 3]"


def test_an_index_of_a_long_range_is_an_index():
    found = shown("""
        def f():
            x = torch.zeros(1000, 3)
            for i in range(1000):
                row = x[i]
            return row
    """, "f")
    assert found["row"] == "f32[3]"


def test_code_that_takes_classes_names_and_partials_alike_is_followed():
    found = shown("""
        import types
        class NormAct(nn.BatchNorm2d):
            def __init__(self, width, act=True):
                super().__init__(width)
                self.act = nn.ReLU() if act else nn.Identity()
            def forward(self, x):
                torch._assert(x.ndim == 4, "four axes")
                return self.act(super().forward(x))
        FUSED = {"batchnorm2d": NormAct}
        KINDS = {kind for kind in FUSED.values()}
        def fused(norm):
            given = {}
            if isinstance(norm, functools.partial):
                given.update(norm.keywords)
                norm = norm.func
            if norm in KINDS or isinstance(norm, types.FunctionType):
                made = norm
            else:
                made = FUSED[norm.__name__.lower()]
            return functools.partial(made, **given)
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = fused(nn.BatchNorm2d)(8), fused(NormAct)(8), fused(functools.partial(NormAct, act=False))(8)
            def forward(self, x: Tensor):
                a, b, c = self.a(x.float()), self.b(x.float()), self.c(x.float())
                d = self.c.act
                return a, b, c, d
    """, "Model.forward")
    assert found["d"] == "Identity object"
    found = shown("""
        class Norm(nn.Module):
            def forward(self, x: Tensor):
                torch._assert(x.ndim == 4, f"expected 4D input (got {x.ndim}D input)")
                y = x.mean((2, 3), dtype=torch.float32)
                return y
    """, "Norm.forward")
    assert found["y"] == "f32[x0, x1]"


def test_fields_of_configurations_have_their_defaults():
    found = shown("""
        from dataclasses import dataclass, field
        from typing import Type
        @dataclass
        class Layers:
            act: Type = nn.ReLU
            width: int = field(default=4)
        @dataclass
        class Config:
            layers: Layers = field(default_factory=Layers)
            if torch.cuda.is_available():
                fast: bool = True
            sizes: list = field(default_factory=list)
        class Model(nn.Module):
            def __init__(self, config=Config()):
                super().__init__()
                self.act, self.fc = config.layers.act(), nn.Linear(config.layers.width + len(config.sizes), 3)
            def forward(self, x: Float[Tensor, "b 4"]):
                y = self.act(self.fc(x))
                return y
    """, "Model.forward")
    assert found["y"] == "f32[b, 3]"


def test_a_constructor_that_passes_all_on_is_that_of_its_base():
    found = shown("""
        class Block(nn.Module):
            def __init__(self, width: int, factor=2, bias=True):
                super().__init__()
                self.fc = nn.Linear(width, width * factor, bias=bias)
            def forward(self, x: Float[Tensor, "b n"]):
                y = self.fc(x)
                return y
        class Quantizable(Block):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)
                self.act = nn.ReLU()
            def forward(self, x: Float[Tensor, "b n"]):
                y = self.act(self.fc(x))
                return y
    """, "Quantizable.forward")
    assert found["y"] == "f32[b, 2*width]"


def test_a_dict_changed_by_one_that_is_not_known_has_values_that_are_not_known():
    found = shown("""
        class Model(nn.Module):
            def __init__(self, config):
                super().__init__()
                given = {"bias": False}
                given.update(config)
                self.fc = nn.Linear(4, 3, **given)
            def forward(self, x: Float[Tensor, "b 4"]):
                bias = self.fc.bias
                return bias
    """, "Model.forward")
    assert found["bias"] == "unknown"


def test_a_model_that_is_also_made_otherwise_is_not_shown_as_by_its_defaults_alone():
    code = """
        class Model(nn.Module):
            def __init__(self, flat=False):
                super().__init__()
                self.flat = flat
            def forward(self, x: Float[Tensor, "b 3 h w"]):
                y = x.flatten(1) if self.flat else x
                return y
        def model(pretrained=False):
            return Model(flat=True)
    """
    assert shown(code, "Model.forward")["y"] == "f32[...]"


def test_calls_that_differ_in_one_walk_stay_so_whatever_another_says():
    code = """
        def flat(x, axes=1):
            y = x.flatten(axes)
            return y
        class Model(nn.Module):
            def forward(self, x: Float[Tensor, "b 3 h w"]):
                return flat(x), flat(x, 2)
        class Other(nn.Module):
            def forward(self, x: Float[Tensor, "b 3 h w"]):
                return flat(x)
    """
    assert shown(code, "flat")["y"] == "f32[...]"


def test_lists_of_tensors_that_layers_take_are_batches_of_images():
    found = shown("""
        class Head(nn.Module):
            def __init__(self, width: int = 8, classes=5):
                super().__init__()
                self.conv, self.classes = nn.Conv2d(width, 3 * classes, 3, padding=1), classes
            def forward(self, features: list[Tensor]):
                found = []
                for each in features:
                    y = self.conv(each)
                    N, _, H, W = y.shape
                    z = y.view(N, -1, self.classes, H, W).permute(0, 3, 4, 1, 2).reshape(N, -1, self.classes)
                    found.append(z)
                all = torch.cat(found, dim=1)
                return all
    """, "Head.forward")
    assert found["y"].startswith("f32[") and found["y"].count(",") == 3 and found["all"].startswith("f32[") and found["all"].count(",") == 2


def test_a_call_that_changes_an_object_changes_it_each_time():
    body = "                x = x + 1\n" * 40
    found = shown(f"""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.kept = None
            def keep(self, x):
{body}                self.kept = x
                return x
            def forward(self, x: Float[Tensor, "b 4"]):
                self.keep(x)
                self.kept = None
                self.keep(x)
                y = self.kept
                return y
    """, "Model.forward")
    assert found["y"] == "f32[b, 4]"


def test_a_size_given_as_shape_is_a_size(facts):
    value = facts("def f(a: int):\n    y = np.zeros(shape=(a, 3), dtype=np.int32)\n    return y[0]\n").functions[0].result
    assert str(value.type) == "i32[3]"


def test_elements_repeated_along_an_axis_keep_theirs(facts):
    value = facts("def f(x: Float[Tensor, 'b 1 d'], n: int):\n    return torch.repeat_interleave(x, n, axis=1)\n").functions[0].result
    assert value.type.rank == 3


def test_a_mask_beside_known_floats_is_of_any_type(facts):
    found = facts("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.q = nn.Linear(8, 8)
            def forward(self, x: Float[Tensor, "b t 8"], mask: Tensor, seen: Tensor):
                y = self.q(x * mask)
                return F.scaled_dot_product_attention(y, y, y, attn_mask=~seen) * ~mask
    """)
    assert found.functions[-1].problems == ()


def test_nothing_is_said_of_no_elements(facts):
    assert facts("def f():\n    sizes = []\n    return torch.as_tensor(sizes, dtype=torch.long).prod(1)\n").functions[0].problems == ()


def test_an_element_type_that_only_an_annotation_claims_is_no_ground_for_a_problem(facts):
    code = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(8)
            def forward(self, x: {}):
                return self.norm(x)
    """
    for claimed in ("torch.LongTensor", "torch.LongTensor | None = None"):
        assert facts(code.format(claimed)).functions[-1].problems == ()
    assert facts(code.format('Int[Tensor, "b 8"]')).functions[-1].problems != ()
