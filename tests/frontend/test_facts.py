"""What is known of code without compiling it: values, mistakes with their evidence, and silence about the rest."""
import textwrap

import pytest

from cuvil.diagnostics import DEFECT
from cuvil.frontends.python import Analyzer, Workspace
from cuvil.frontends.python.values import Unknown, describe
from cuvil.interrupted import Interrupted
from cuvil.source import Source


def problems(file) -> list[str]:
    return [f"{p.kind} at {file.source.slice(p.span)}" for f in file.functions for p in f.problems] + [
        f"{p.kind} at {file.source.slice(p.span)}" for p in file.problems]


def test_shapes_that_do_not_fit_are_found_where_they_meet_and_in_the_calls_that_lead_there(facts):
    file = facts("""
        def project(x, w):
            return x @ w
        def run():
            return project(torch.zeros(2, 3), torch.zeros(4, 5))
    """)
    assert problems(file) == ["shape-mismatch at x @ w"]
    (problem,) = file.function("run").problems
    assert problem.operation == "@" and [file.source.slice(c) for c in problem.callers] == ["project(torch.zeros(2, 3), torch.zeros(4, 5))"]
    assert [(file.source.slice(e.span), e.text) for e in problem.evidence] == [
        ("torch.zeros(2, 3)", "this is f32[2, 3]"), ("torch.zeros(4, 5)", "this is f32[4, 5]")]


def test_axes_and_items_out_of_range(facts):
    assert problems(facts("""
        def f(x: Float[Tensor, "a b"]):
            return torch.softmax(x, dim=2), x.shape[2], x.sum(axis=-3)
    """)) == ["shape-mismatch at torch.softmax(x, dim=2)", "index-out-of-range at x.shape[2]", "shape-mismatch at x.sum(axis=-3)"]


def test_sizes_that_may_fit_are_no_finding(facts):
    assert problems(facts("""
        def f(x: Float[Tensor, "a b"], y: Float[Tensor, "c d"], flag=False, other=None):
            x + y, x @ y, torch.cat([x, y])
            x.view(-1, 7), x.reshape(4, -1)
            if flag:
                torch.zeros(3) + torch.zeros(4)
            if other is None:
                other = torch.zeros(3)
            return other + torch.zeros(3)
    """)) == []


def test_unknown_is_silent_and_has_a_countable_reason(facts):
    file = facts("""
        def f(x, config):
            y = x @ config.weight
            return (y + torch.zeros(3)).sum(-99)
    """)
    assert problems(file) == []
    assert set(file.unknown) == {"parameter without a type"} and file.understood == 1


def test_a_parameter_is_a_tensor_once_its_shape_is_unpacked_or_asserted(types):
    found = types("""
        def f(logits, labels, image):
            rows, _ = logits.shape
            assert labels.shape == (rows,)
            assert image.ndim == 3 and image.shape[0] == 3
            best = torch.softmax(logits, dim=-1).amax(dim=-1, keepdim=True)
            gap = best - labels
            planes = image.sum(dim=0)
            return gap
    """)
    assert found["best"] == "?[rows, 1]" and found["gap"] == "?[rows, rows]" and found["planes"] == "?[image1, image2]"


def test_checks_give_symbols_their_sizes(types):
    found = types("""
        def f(x: torch.Tensor, y: torch.Tensor):
            b, c, h, w = x.shape
            assert (c, h) == (3, 32)
            if h != w:
                raise ValueError("not square")
            if y.dim() != 2:
                raise ValueError
            z = x.flatten(1)
            u = y[0]
            return z
    """)
    assert found["z"] == "?[b, 3072]" and found["u"] == "?[y1]"


def test_the_same_word_for_another_size_is_another_symbol(types):
    found = types("""
        def f(q: torch.Tensor, k: torch.Tensor):
            b, t, c = q.shape
            b, t, c = k.shape
            return q, k
    """)
    assert found["q"] == "?[b, t, c]" and found["k"] == "?[b2, t2, c2]"


def test_both_sides_of_an_undecided_branch_are_walked_and_joined(types):
    found = types("""
        def f(x: Float[Tensor, "n 4"], flag):
            if flag:
                y = x * 2
                z = x.sum(0)
            else:
                y = x + 1
                z = x
            return y, z
    """)
    assert found["y"] == "f32[n, 4]" and found["z"] == "f32[...]"


def test_a_loop_of_unknown_length_keeps_what_each_round_keeps(types):
    found = types("""
        def f(x: Float[Tensor, "n 4"], steps):
            kept = []
            for step in range(steps):
                x = torch.cat([x, x])
                kept.append(x)
            last = x
            all_ = kept
            return x
    """)
    assert found["last"] == "f32[n2, 4]" and found["all_"].startswith("[f32[n")


def test_formatting_and_calls_are_recorded_for_rules(facts):
    file = facts("""
        import logging
        def f(x: Float[Tensor, "n 4"], name: str = "a"):
            logging.info("%s of %d", name, x.shape[1])
            "{} {}".format(1)
            return F.softmax(x, dim=-1)
    """)
    calls = [(c.name, [describe(a) for a in c.args], [k for k, _ in c.keywords]) for c in file.function("f").calls]
    assert calls == [("logging.info", ["'%s of %d'", "'a'", "4"], []), ("builtins.str.format", ["'{} {}'", "1"], []),
                     ("torch.nn.functional.softmax", ["f32[n, 4]"], ["dim"])]


def test_entry_points_under_any_name(facts):
    file = facts("""
        import cuvil
        from cuvil import compile as build
        @cu.compile
        def a(x): return x
        @cuvil.compile(input_shapes={"x": ("n",)}, opt_level=1)
        def b(x): return x
        @build(target="cpu")
        def c(x): return x
        def d(x): return x.shape
    """)
    assert {f.name: f.entry and f.entry.options for f in file.functions} == {
        "a": {}, "b": {"input_shapes": {"x": ("n",)}, "opt_level": 1}, "c": {"target": "cpu"}, "d": None}
    assert [file.source.slice(f.entry.span) for f in file.functions if f.entry][1].startswith("@cuvil.compile(input_shapes")


def test_the_facts_of_module_level_code(facts):
    file = facts("weights = torch.zeros(2, 3)\nbroken = weights @ torch.ones(2)\n")
    assert problems(file) == ["shape-mismatch at weights @ torch.ones(2)"]
    assert any(describe(e.value) == "f32[2, 3]" for e in file.expressions)


TWO = textwrap.dedent("""
    import torch
    from helper import scale
    WIDTH = 4
    def one(x):
        return scale(torch.zeros(WIDTH))
    def two():
        return torch.ones(3) + 1
""")


def test_an_edit_walks_again_only_what_hangs_on_it(tmp_path):
    (tmp_path / "helper.py").write_text("def scale(x):\n    return x * 2\ndef other(x):\n    return x.sum()\n")
    path = str(tmp_path / "main.py")
    analyzer = Analyzer(Workspace(tmp_path))
    first = analyzer.analyze(Source(path, TWO))
    assert describe(first.function("one").result) == "f32[4]"
    same = analyzer.analyze(Source(path, TWO))
    assert all(a is b for a, b in zip(first.functions, same.functions))
    edited = analyzer.analyze(Source(path, TWO.replace("torch.ones(3)", "torch.ones(5)")))
    assert edited.function("one") is first.function("one") and describe(edited.function("two").result) == "f32[5]"
    constant = analyzer.analyze(Source(path, TWO.replace("WIDTH = 4", "WIDTH = 7")))
    assert describe(constant.function("one").result) == "f32[7]" and constant.function("two") is not edited.function("two")
    again = analyzer.analyze(Source(path, TWO.replace("WIDTH = 4", "WIDTH = 7")))
    (tmp_path / "helper.py").write_text("def scale(x):\n    return x[None]\ndef other(x):\n    return x.sum()\n")
    helped = analyzer.analyze(Source(path, TWO.replace("WIDTH = 4", "WIDTH = 7")))
    assert describe(helped.function("one").result) == "f32[1, 7]" and helped.function("two") is again.function("two")


def test_a_module_that_appears_is_seen_where_it_was_missing(tmp_path):
    path, code = str(tmp_path / "main.py"), "import torch\nfrom later import scale\ndef f():\n    return scale(torch.ones(3))\n"
    analyzer = Analyzer(Workspace(tmp_path))
    assert describe(analyzer.analyze(Source(path, code)).function("f").result) == "unknown"
    (tmp_path / "later.py").write_text("def scale(x):\n    return x[None]\n")
    assert describe(analyzer.analyze(Source(path, code)).function("f").result) == "f32[1, 3]"
    (tmp_path / "later.py").unlink()
    assert describe(analyzer.analyze(Source(path, code)).function("f").result) == "unknown"


def test_a_broken_function_shows_its_last_facts_and_others_stay():
    analyzer = Analyzer(Workspace("."))
    first = analyzer.analyze(Source("m.py", TWO))
    broken = analyzer.analyze(Source("m.py", TWO.replace("torch.ones(3) + 1", "torch.ones(3 + 1")))
    assert broken.stale == {"two"} and "was never closed" in str(broken.function("two").refusal)
    assert describe(broken.function("two").result) == "f32[3]" and broken.function("one") is first.function("one")


def test_every_prefix_of_code_gives_facts():
    code = TWO + "class A(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return [y for y in x.shape if y] + [*x, f'{x}']\n"
    analyzer = Analyzer(Workspace("."))
    for end in range(0, len(code), 3):
        analyzer.analyze(Source("m.py", code[:end]))
    for start in range(0, len(code), 7):
        Analyzer(Workspace(".")).analyze(Source("m.py", code[:start] + code[start + 5:]))


def test_helpers_are_imported_from_the_workspace_only(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("from .deep import twice\nimport torch\nSIZE = 3\nclass K:\n    size = 5\n")
    (package / "deep.py").write_text("from . import parts\ndef twice(x):\n    return x + x.new_zeros(parts.SIZE)\n")
    code = "import torch\nimport package.parts\nfrom package import parts as p\nfrom package.parts import twice, K\nfrom missing import gone\n" \
           "def f():\n    return twice(torch.ones(p.SIZE)), p.twice(torch.ones(1)), torch.ones(K.size), gone(1)\n"
    facts = Analyzer(Workspace(tmp_path)).analyze(Source(str(tmp_path / "main.py"), code))
    assert [describe(item) for item in facts.function("f").result.items] == ["f32[3]", "f32[3]", "f32[5]", "unknown"]
    (tmp_path / "elsewhere").mkdir()
    outside = Analyzer(Workspace(tmp_path / "elsewhere")).analyze(Source(str(tmp_path / "main.py"), code))
    assert isinstance(outside.function("f").result.items[0], Unknown)


def test_a_walk_of_a_large_file_can_be_stopped_and_goes_on_where_it_was():
    code = "import torch\n" + "".join(f"def f{i}():\n    return torch.zeros({i + 1})\n" for i in range(700))
    asked = []
    Analyzer(Workspace(".")).analyze(Source("m.py", code), lambda: asked.append(1))
    analyzer, all_of_it = Analyzer(Workspace(".")), len(asked)
    asked.clear()
    with pytest.raises(Interrupted):
        analyzer.analyze(Source("m.py", code), lambda: asked.append(1) or len(asked) > all_of_it * 2 // 3)
    asked.clear()
    facts = analyzer.analyze(Source("m.py", code), lambda: asked.append(1))
    assert 0 < len(asked) < all_of_it // 2 and describe(facts.function("f699").result) == "f32[700]"
    place = facts.function("f3").expressions[0].span
    assert facts.source.slice(place) == facts.module.code(facts.module.node_at(place.line, place.column))[:len(facts.source.slice(place))]


def test_a_walk_is_stopped_within_a_function_too():
    code = "import torch\ndef f(x: torch.Tensor):\n" + "".join(f"    x = x + {i}\n" for i in range(300)) + "    return x\n"
    analyzer, asked = Analyzer(Workspace(".")), []
    with pytest.raises(Interrupted):
        analyzer.analyze(Source("m.py", code), lambda: asked.append(1) or len(asked) > 50)
    assert len(asked) == 51 and len(analyzer.analyze(Source("m.py", code)).function("f").function.ops) > 300


def test_at_a_glance_only_what_was_typed_is_walked_and_the_rest_stands_where_it_moved():
    code = "import torch\nSIZE = 4\ndef one():\n    return torch.ones(SIZE)\ndef two():\n    return torch.ones(3) + 1\n"
    analyzer = Analyzer(Workspace("."))
    first = analyzer.analyze(Source("m.py", code))
    typed = analyzer.glance(Source("m.py", code.replace("one():", "one():\n    SIZE = 9")), bool)
    assert [d.name for d in typed.fresh] == ["one"] and describe(typed.facts.function("one").result) == "f32[9]"
    moved, before = typed.facts.function("two"), first.function("two")
    assert [(e.span, e.value) for e in moved.expressions] == [(e.span.lower(1), e.value) for e in before.expressions]
    broken = analyzer.glance(Source("m.py", code.replace("one():", "one():\n    SIZE = (9")), bool)
    assert [d.name for d in broken.fresh] == ["one"] and describe(broken.facts.function("one").result) == "f32[9]"
    assert "syntax error" in str(broken.facts.function("one").refusal)
    constant = analyzer.glance(Source("m.py", code.replace("SIZE = 4", "SIZE = 7")), bool)
    assert describe(constant.facts.function("one").result) == "f32[4]"
    assert describe(analyzer.analyze(Source("m.py", code.replace("SIZE = 4", "SIZE = 7"))).function("one").result) == "f32[7]"


def test_a_first_glance_walks_until_it_is_enough():
    glance = Analyzer(Workspace(".")).glance(Source("m.py", TWO), lambda: True)
    assert len(glance.fresh) == 1 and not glance.complete and [f.name for f in glance.facts.functions] == ["one", "two"]
    assert Analyzer(Workspace(".")).glance(Source("m.py", TWO), lambda: False).complete


def test_a_dict_with_an_unknown_key_keeps_its_values_and_may_hold_any_other(facts):
    file = facts("""
        def f(key):
            feed = {"x": 1}
            feed[key] = torch.zeros(3)
            return "y" in feed, len(feed), feed
    """)
    assert [describe(item) for item in file.function("f").result.items] == ["unknown", "unknown", "{'x': unknown, ?: f32[3]}"]


def test_a_list_beside_an_array_is_an_array(facts):
    file = facts("""
        import numpy as np
        def f():
            return (np.zeros((4, 3)) - [0.5, 0.4, 0.3]) / (1, 2, 3)
    """)
    assert describe(file.function("f").result) == "f64[4, 3]"


# A package's `__init__` reaches all of its files; a name that nobody asks for costs nothing.
def test_a_module_that_is_imported_is_read_when_a_name_of_it_is_asked_for(tmp_path):
    (tmp_path / "used.py").write_text("SIZE = 3\n")
    (tmp_path / "other.py").write_text("from unseen import nothing\nSIZE = 4\n")
    path = str(tmp_path / "a.py")
    text = ("import typing, torch\nif typing.TYPE_CHECKING:\n    from other import SIZE as OTHER\n    from used import SIZE\nelse:\n"
            "    from other import SIZE as OTHER\n    from used import SIZE\n\ndef f():\n    x = torch.zeros(SIZE)\n    return x\n")
    workspace = Workspace(tmp_path)
    function = Analyzer(workspace).analyze(Source(path, text)).functions[0]
    assert describe(function.result) == "f32[3]"
    assert workspace.asked(path)[0] == {str(tmp_path / "used.py")}


def test_squeeze_of_an_axis_of_any_size_leaves_the_rank_open(types):
    found = types("""
        def f(x: Float[Tensor, "b 1 3"]):
            one = x.squeeze(1)
            three = x.squeeze(2)
            any = x.squeeze(0)
            long = torch.cat([x, x]).squeeze(0)
            return one, three, any, long
    """)
    assert (found["one"], found["three"], found["any"], found["long"]) == ("f32[b, 3]", "f32[b, 1, 3]", "f32[...]", "f32[2*b, 1, 3]")


def test_the_graph_of_a_method_is_whole_when_its_object_was_given_another(facts):
    file = facts("""
        class Steps:
            def __init__(self, n: int = 10):
                self.table = torch.ones(n)
                self.tables = {"a": torch.zeros(n)}

        class Pipe:
            def __init__(self, steps: Steps):
                self.steps = steps

            def at(self, x: Float[Tensor, "10"]):
                return x + self.steps.table * self.steps.tables["a"]
    """)
    function = file.function("Pipe.at")
    ids = {op.id for op in function.function.ops}
    assert describe(function.result) == "f32[10]" and all(operand in ids for op in function.function.ops for operand in op.operands)


def test_what_an_object_was_made_with_is_no_parameter_of_its_methods(facts):
    file = facts("""
        class Pipe:
            def __init__(self, vae):
                self.vae = vae

            def encode(self, image):
                image = torch.relu(image)
                return image, self.vae
    """)
    assert [describe(item) for item in file.function("Pipe.encode").result.items] == ["?[...]", "unknown"]


# `x or 8` is true whatever x is, but it is not `True`.
def test_an_unknown_operand_of_or_decides_a_test_and_no_value(types):
    found = types("""
        def f(height, x: Float[Tensor, "3"]):
            size = height or 8
            y = torch.zeros(3, size // 4)
            if height or 8:
                z = x + 1
            else:
                z = x.sum()
            return y, z
    """)
    assert found["z"] == "f32[3]" and found["y"] != "f32[3, 0]"


def test_windows_in_a_loop_cost_no_more_than_windows(facts):
    file = facts("""
        def tiles(x: torch.Tensor, start: int, stop: int):
            for i in range(40):
                start, stop = min(start + x.shape[1], stop) // 2, max(start, stop // 2)
                x = x[:, start:stop]
            return x.float()
    """)
    assert file.function("tiles").refusal.code != DEFECT and describe(file.function("tiles").result).startswith(("f32", "unknown"))


@pytest.mark.parametrize("bits", ["w & (w - 1)", "w | 1", "w ^ h", "1 << w", "w >> 1", "2 << (w // 2)"])
def test_sizes_have_bits(facts, bits):
    file = facts(f"""
        def f(x: torch.Tensor):
            h, w = x.shape
            if ({bits}) != 0:
                x = x.float()
            return x
    """)
    assert problems(file) == []


# A NumPy scalar and a float computed of sizes are Python numbers to a torch tensor.
@pytest.mark.parametrize(("code", "type"), [
    ("np.log(10000.0) * t.float()", "f32[8]"), ("t.half() * np.float32(2)", "f16[8]"), ("-np.log(3.0) / t.float()", "f32[8]"), ("t * np.log(3.0)", "f32[8]"),
    ("(n / 3) * t", "f32[8]"), ("(n / 3) * t.float()", "f32[8]"), ("(n / 3) * t.float().sum()", "f32[]"), ("t.double() * (n / 3)", "f64[8]"),
    ("t.float() * np.ones(8)", "f64[8]"), ("np.ones(8) * t.float()", "unknown"), ("t + np.int64(2)", "i64[8]")])
def test_numbers_beside_tensors(types, code, type):
    assert types(f"""
        import numpy as np
        def f(x: Float[Tensor, "n"]):
            n = x.shape[0]
            t = torch.arange(8)
            y = {code}
            return y
    """)["y"] == type


def test_a_layer_whose_size_is_none_for_now_has_no_known_size(facts):
    file = facts("""
        class Config:
            def __init__(self, labels=None):
                self.labels = labels

        class Head(torch.nn.Module):
            def __init__(self, config: Config):
                super().__init__()
                self.classifier = torch.nn.Linear(8, config.labels)

            def forward(self, x: Float[Tensor, "n 8"]):
                return self.classifier(x)
    """)
    assert problems(file) == [] and "None" not in describe(file.function("Head.forward").result)


# A number picks it; it is no number itself, so what is added to it may have more axes.
def test_an_item_at_a_number_may_be_anything(types):
    found = types("""
        def f(layers, i: int, bias: Float[Tensor, "4 8"]):
            layer = layers[i]
            gate = layer.store(bias)
            y = gate.view(2, 3, 4, 8) + bias
            z = [][i] + bias
            n = i + bias
            return y, z, n
    """)
    assert (found["y"], found["n"]) == ("?[...]", "f32[4, 8]") and found["z"] != "f32[4, 8]"


def test_a_function_that_is_too_large_with_its_defaults_costs_itself_alone(facts):
    file = facts("""
        def small(x: Float[Tensor, "3"]):
            return x + 1

        def large(x: torch.Tensor, rounds: int = 200, scale=None):
            if scale is not None:
                x = x * scale
            for a in range(rounds):
                for b in range(rounds):
                    for c in range(rounds):
                        x = x + a * b * c
            return x
    """)
    assert describe(file.function("small").result) == "f32[3]" and file.function("large").refusal is not None
