"""Gradients and inference mode of tensors; training and evaluation of modules."""


def test_what_hangs_on_a_gradient(bound):
    found = bound("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 4)
                self.register_buffer("scale", torch.ones(4))
            def forward(self, x: Float[Tensor, "n 4"]):
                a = self.lin(x)
                b = self.scale * 2
                c = a.detach()
                d = a.argmax(-1)
                e = x * 2
                with torch.no_grad():
                    g = self.lin(x)
                with torch.inference_mode():
                    h = self.lin(x)
                i = torch.zeros(3, requires_grad=False)
                j = torch.zeros_like(a)
                return a
    """, "Net.forward")
    assert {name: value.grad for name, value in found.items()} == {
        "a": True, "b": False, "c": False, "d": False, "e": None, "g": False, "h": False, "i": False, "j": False}
    assert [name for name, value in found.items() if value.inference] == ["h"]


def test_frozen_modules_have_no_gradient(bound):
    found = bound("""
        def f(x: Float[Tensor, "n 4"]):
            net = nn.Linear(4, 4).requires_grad_(False)
            w = net.weight
            p = nn.Parameter(torch.zeros(4), requires_grad=False)
    """)
    assert found["w"].grad is False and found["p"].trainable is False


NET = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 4)
                self.drop = nn.Dropout(0.1)
            def forward(self, x):
                return self.drop(self.lin(x))
"""


def modes(file, name: str = "f") -> list[tuple[str, bool | None]]:
    """The calls of modules, with the mode at that moment."""
    return [(file.source.slice(call.span), call.training) for call in file.function(name).calls
            if call.receiver is not None and not call.context.callers and call.name in ("Net", "torch.nn.Dropout", "torch.nn.Linear", "Holder")]


def test_a_module_trains_until_it_is_told_otherwise_through_all_its_names(facts):
    assert modes(facts(NET + """
        def f(x: Float[Tensor, "n 4"]):
            net = Net()
            net(x)
            other = net
            other.eval()
            net(x), net.drop(x)
            net.train(False), net.lin.train()
            net(x), net.lin(x)
            net.train()
            net(x), net.drop(x)
            return Net().eval().requires_grad_(False)(x)
    """)) == [("net(x)", True), ("net(x)", False), ("net.drop(x)", False), ("net(x)", False), ("net.lin(x)", True), ("net(x)", True),
              ("net.drop(x)", True), ("Net().eval().requires_grad_(False)(x)", False)]


def test_a_mode_that_hangs_on_a_branch_or_on_unknown_code_is_not_known(facts):
    assert modes(facts(NET + """
        def f(x: Float[Tensor, "n 4"], flag, prepare):
            a = Net()
            if flag:
                a.eval()
            a(x)
            b = Net()
            prepare(b)
            b(x)
            return a
    """)) == [("a(x)", None), ("b(x)", None)]


def test_helpers_switch_modules_and_callers_see_it(facts):
    assert modes(facts(NET + """
        def ready(model):
            model.eval()
            return model
        def f(x: Float[Tensor, "n 4"]):
            net = ready(Net())
            return net(x)
    """)) == [("net(x)", False)]


def test_self_may_have_been_switched_by_anyone_and_what_it_holds_by_its_file(facts):
    assert modes(facts(NET + """
        class Net2(Net):
            def f(self, x: Float[Tensor, "n 4"]):
                return self.drop(x)
    """), "Net2.f") == [("self.drop(x)", None)]
    scorer = """
        class Scorer:
            def __init__(self):
                self.net = Net()
            def f(self, x: Float[Tensor, "n 4"]):
                return self.net(x)
    """
    assert modes(facts(NET + scorer), "Scorer.f") == [("self.net(x)", True)]
    assert modes(facts(NET + scorer + "        def start(scorer):\n            scorer.net.eval()\n"), "Scorer.f") == [("self.net(x)", None)]


def test_a_module_of_the_file_is_in_the_mode_that_the_file_leaves_it_in(facts):
    text = NET + """
        net = Net()
        def f(x: Float[Tensor, "n 4"]):
            return net(x)
    """
    assert modes(facts(text)) == [("net(x)", True)]
    assert modes(facts(text + "        net.eval()\n")) == [("net(x)", None)]


def test_pretrained_models_of_transformers_are_evaluated(facts):
    file = facts("""
        from transformers import AutoModel
        def f(ids: Int[Tensor, "b t"]):
            model = AutoModel.from_pretrained("x")
            hidden = model(input_ids=ids).last_hidden_state
            model.train()
            model(input_ids=ids)
    """)
    assert [call.training for call in file.function("f").calls if call.name == "transformers.AutoModel"] == [False, True]
    hidden = next(fact.value for fact in file.function("f").assigns if fact.name == "hidden")
    assert str(hidden.type) == "?[b, t, hidden]"
