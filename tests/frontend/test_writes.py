"""Changes in place: what is written, and what is known of tensors and views after it."""
from cuvil.frontends.python.values import describe


def writes(file, name: str = "f") -> list[tuple[str, str, str]]:
    return [(file.source.slice(fact.span), fact.operation, fact.name) for fact in file.function(name).writes]


def test_every_way_to_write_is_a_fact(facts):
    file = facts("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.zeros(4)
            def f(self, x: Float[Tensor, "4"], y: Float[Tensor, "4"]):
                x += 1
                x[0] = 2
                x[1] *= 3
                x.relu_()
                x.copy_(y)
                self.table[0] = 1
                torch.add(x, y, out=self.table)
                x.clamp(0)
                return x
    """)
    assert writes(file, "Net.f") == [
        ("x += 1", "+=", "x"), ("x[0]", "[]=", "x"), ("x[1] *= 3", "*=", "x"), ("x.relu_()", "relu_", "x"), ("x.copy_(y)", "copy_", "x"),
        ("self.table[0]", "[]=", "self.table"), ("torch.add(x, y, out=self.table)", "out=", "self.table")]


def test_a_tensor_keeps_its_type_when_it_is_written_to_and_so_do_views_of_it(bound):
    found = bound("""
        def f(x: Float[Tensor, "n 4"]):
            y = x + 1
            v = y[0]
            y[:, 1] = 0
            a = y * 2
            b = v * 2
            v.add_(1)
            c = y * 2
            return c
    """)
    assert [describe(found[name]) for name in "abc"] == ["f32[n, 4]", "f32[4]", "f32[n, 4]"]


def test_a_write_stands_in_the_flow(facts):
    """What is read after a write does not look like what was there before it."""
    file = facts("""
        def f():
            y = torch.zeros(3)
            v = y[:2]
            v.add_(5)
            return y.exp(), v.exp()
    """)
    function = file.function("f").function
    operands = [function.by_id[op.operands[0]].name for op in function.ops if op.name == "exp"]
    assert operands == ["opaque", "add"]


def test_two_names_of_one_tensor_see_one_write(bound):
    found = bound("""
        def f(x: Float[Tensor, "n 4"]):
            y = x.clone()
            z = y
            y.mul_(2)
            a = z.sum()
            return a
    """)
    assert found["y"].storage == found["z"].storage != -1


def test_a_function_that_writes_into_what_is_not_its_own_is_refused_still(refused):
    error, text = refused("def f(x):\n    x[0] = 1\n    return x", x="f32[3]")
    assert text == "x[0]"


def test_results_of_several_tensors_have_names(bound):
    found = bound("""
        def f(x: Float[Tensor, "n 4"]):
            values, indices = x.topk(2)
            best = x.max(dim=1).values
            order = torch.sort(x, dim=0).indices
            return values
    """)
    assert {name: describe(value) for name, value in found.items()} == {
        "values": "f32[n, 2]", "indices": "i64[n, 2]", "best": "f32[n]", "order": "i64[n, 4]"}


def test_what_is_not_compiled_is_an_op_with_its_operands(facts):
    file = facts("""
        def f(x: Float[Tensor, "n 4"]):
            y = torch.softmax(x, dim=-1)
            return y.topk(2).values.log()
    """)
    function = file.function("f").function
    (log,) = [op for op in function.ops if op.name == "log"]
    chosen = function.by_id[log.operands[0]]
    assert chosen.name == "opaque" and function.by_id[chosen.operands[0]].name == "softmax"
    assert "topk" in file.function("f").refusal.what


def test_a_shape_that_is_changed_in_place_is_no_write(facts):
    file = facts("""
        def f(x: Float[Tensor, "n 4"]):
            y = x + 1
            y.unsqueeze_(0)
            z = y * 2
            return z
    """)
    function = file.function("f")
    assert function.writes == () and function.problems == ()
    assert describe(next(fact.value for fact in function.assigns if fact.name == "z")) == "f32[1, n, 4]"
