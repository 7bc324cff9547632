"""What is around a place: loops, grad modes, compiled regions, tests, what a try catches, and the calls that lead there."""


def around(file, name: str = "f") -> dict[str, object]:
    """The contexts of calls by their text."""
    return {file.source.slice(call.span): call.context for call in file.function(name).calls}


def test_loops_are_known_with_their_rounds_and_comprehensions_too(facts):
    found = around(facts("""
        def f(x: Float[Tensor, "n 4"], batches):
            for i in range(3):
                x.add(1)
                while unknown():
                    x.sub(2)
            [t.mul(3) for t in (x, x)]
            x.div(4)
    """))
    rounds = {text: [(loop.rounds, loop.comprehension) for loop in context.loops] for text, context in found.items() if text.startswith(("x.", "t."))}
    assert rounds == {"x.add(1)": [(3, False)], "x.sub(2)": [(None, False), (3, False)], "t.mul(3)": [(2, True)], "x.div(4)": []}


def test_the_grad_mode_comes_from_with_blocks_decorators_and_calls(facts):
    found = around(facts("""
        @torch.no_grad()
        def f(x: Float[Tensor, "n 4"], mode=None):
            x.add(1)
            with torch.inference_mode():
                x.add(2)
                with torch.enable_grad():
                    x.add(3)
            with torch.set_grad_enabled(flag):
                x.add(4)
            torch.set_grad_enabled(False)
            x.add(5)
            with torch.autocast("cuda"):
                x.add(6)
    """))
    assert {text: context.grad for text, context in found.items() if text.startswith("x.")} == {
        "x.add(1)": "no_grad", "x.add(2)": "inference", "x.add(3)": "grad", "x.add(4)": None, "x.add(5)": "no_grad", "x.add(6)": "no_grad"}
    assert [context.autocast for text, context in found.items() if text.startswith("x.")] == [False, False, False, False, False, True]


def test_a_plain_function_does_not_know_its_callers_mode_and_the_calls_it_makes_do(facts):
    file = facts("""
        def g(x):
            return x.add(1)
        def f(x: Float[Tensor, "n 4"]):
            with torch.no_grad():
                return g(x)
    """)
    inner, outer = (call for call in file.function("f").calls if call.name != "torch.no_grad")
    assert inner.name == "torch.Tensor.add" and inner.context.grad == "no_grad"
    assert [file.source.slice(caller) for caller in inner.context.callers] == ["g(x)"] and outer.context.callers == ()


def test_tests_hold_inside_branches_and_after_guards_that_leave(facts):
    file = facts("""
        def f(x: Float[Tensor, "n 4"], flag, other):
            if flag:
                x.add(1)
            else:
                x.add(2)
            if other:
                return x.add(3)
            try:
                x.add(4)
            except (RuntimeError, torch.cuda.OutOfMemoryError):
                pass
    """)
    tests = {text: [(file.source.slice(span), outcome) for span, outcome in context.tests] for text, context in around(file).items()}
    assert tests == {"x.add(1)": [("flag", True)], "x.add(2)": [("flag", False)], "x.add(3)": [("other", True)], "x.add(4)": [("other", False)]}
    assert around(file)["x.add(4)"].caught == ("RuntimeError", "torch.cuda.OutOfMemoryError")


def test_what_compiles_or_traces_code_is_known_at_its_definition(facts):
    file = facts("""
        @torch.compile(mode="reduce-overhead")
        def a(x): return x.add(1)
        def b(x): return torch.exp(x)
        b = torch.compile(b)
        class Net(nn.Module):
            def forward(self, x): return torch.exp(x)
        class Holder:
            def __init__(self):
                self.net = torch.compile(Net().eval())
        def export(path):
            model = Net().to("cpu").eval()
            torch.onnx.export(model, (torch.zeros(2),), path)
        @torch.jit.script
        def c(x): return x.add(1)
        @torch.compiler.disable
        def d(x): return x.add(1)
        def e(x): return re.compile("x").match(torch.exp(x))
    """)
    how = {function.name: [region.how for region in function.calls[-1].context.regions] for function in file.functions if function.calls}
    assert how["a"] == ["compile", "cudagraph"] and how["b"] == ["compile"] and how["c"] == ["script"] and how["d"] == [] and how["e"] == []
    assert how["Net.forward"] == ["compile", "trace"]


def test_what_is_compiled_where_it_is_called_is_compiled_inside(facts):
    file = facts("""
        def g(x):
            return x.add(1)
        def f(x: Float[Tensor, "n 4"]):
            fast = torch.compile(g)
            return fast(x) + g(x)
    """)
    inside = [call.context for call in file.function("f").calls if call.name == "torch.Tensor.add"]
    assert [[region.how for region in context.regions] for context in inside] == [["compile"], ["compile"]]      # g is handed over in this file


def test_calls_say_what_they_are_methods_of_and_whether_their_result_is_dropped(facts):
    file = facts("""
        def f(x: Float[Tensor, "n 4"]):
            x.clamp(0)
            y = torch.clamp(x, 0)
            "{}".format(y)
            return y
    """)
    calls = [(call.name, len(call.args), call.receiver is not None, call.discarded) for call in file.function("f").calls]
    assert calls == [("torch.Tensor.clamp", 2, True, True), ("torch.clamp", 2, False, False), ("builtins.str.format", 2, True, True)]


def test_places_that_ask_for_a_truth_value_are_branches(facts):
    file = facts("""
        def f(x: Float[Tensor, "n 4"], flag):
            if flag and x.any():
                pass
            y = 1 if x.all() else 2
            assert not x.any()
            while x.sum() > 0:
                x = x - 1
            z = flag or x.max()
            for row in x: pass
    """)
    found = [(branch.kind, file.source.slice(branch.span)) for branch in file.function("f").branches]
    assert found == [("and", "flag"), ("and", "x.any()"), ("if", "flag and x.any()"), ("ternary", "x.all()"), ("not", "x.any()"), ("assert", "not x.any()"),
                     ("while", "x.sum() > 0"), ("or", "flag"), ("for", "x")]


def test_unrolled_rounds_are_one_fact(facts):
    file = facts("""
        def f(x: Float[Tensor, "n 4"]):
            for i in range(200):
                x = x.add(i)
            return x
    """)
    assert len(file.function("f").calls) == 2 and len(file.function("f").assigns) == 2
