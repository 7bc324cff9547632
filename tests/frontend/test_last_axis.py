"""What is known of the last axis where the rank is not: who takes it wants it to be so long."""
import pytest

LAYERS = """
    class Net(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.up, self.down, self.wide = nn.Linear(10, 16), nn.Linear(32, 4), nn.Linear(16, 4)
            self.norm, self.table = nn.LayerNorm(d), nn.Embedding(100, d)
        def forward(self, x, y: Tensor):
            return {}
"""


@pytest.mark.parametrize("code", [
    "self.down(self.up(x))", "self.down(self.up(x).relu() * 0.5 + 1)", "self.down(F.gelu(self.up(x)))", "self.down(self.norm(x))", "self.down(self.table(x))",
    "self.down(x + self.up(x))", "self.down((y @ torch.randn(3, 8)).softmax(-1))", "self.up(x) @ torch.randn(8, 3)", "F.linear(self.up(x), torch.randn(5, 7))",
    "self.norm(self.wide(x))"])
def test_a_layer_that_takes_another_length_raises_for_every_rank(facts, code):
    problem, = facts(LAYERS.format(code)).functions[-1].problems
    assert problem.kind == "shape-mismatch" and "[..., " in problem.what


@pytest.mark.parametrize("code", [
    "self.wide(self.up(x))", "self.wide(self.norm(self.table(x)))", "self.down(self.up(x).transpose(1, 2))", "self.down(self.up(x).mean(1))",
    "self.down(self.up(x).reshape(-1, 32))", "self.down(torch.cat([self.up(x), self.up(x)], -1))", "self.wide(x + self.table(y))", "self.down(x @ y)",
    "self.down(self.up(x).unsqueeze(-1))", "self.down(x * torch.randn(1))", "self.up(x) @ torch.randn(16)", "self.down(self.up(x).flatten(1))"])
def test_what_may_be_as_long_is_no_problem(facts, code):
    assert facts(LAYERS.format(code)).functions[-1].problems == ()
