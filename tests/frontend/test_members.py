"""Facts of classes: what is set on self, whether it is registered, and where it is read."""


def test_attributes_with_their_values_and_where_they_are_read(facts):
    file = facts("""
        class Base(nn.Module):
            pass
        class Net(Base):
            def __init__(self, width=4):
                super().__init__()
                self.lin = nn.Linear(width, width)
                self.grid = torch.arange(5)
                self.layers = [nn.Linear(3, 3)]
                self.gain = nn.Parameter(torch.zeros(3))
                self.register_buffer("keep", torch.ones(5))
                setattr(self, "odd", torch.zeros(2))
            def forward(self, x):
                self.cache = x + self.grid
                return self.lin(x) * self.gain
        class Plain:
            def __init__(self, net):
                self.net = net
                self.weights = torch.zeros(3)
    """)
    net, plain = file.classes
    assert (net.name, net.bases, net.module) == ("Net", ("Base", "torch.nn.Module"), True) and (plain.name, plain.module) == ("Plain", False)
    assert [(fact.name, fact.method, fact.registered) for fact in net.attributes] == [
        ("lin", "__init__", True), ("grid", "__init__", False), ("layers", "__init__", False), ("gain", "__init__", True), ("keep", "__init__", True),
        ("odd", "__init__", False), ("cache", "forward", False)]
    assert [(name, file.source.slice(span)) for name, span in net.reads] == [("grid", "self.grid"), ("lin", "self.lin"), ("gain", "self.gain")]


def test_a_weight_that_none_chooses_is_no_ground_for_a_problem_where_an_argument_would_make_another(facts):
    code = """
        class Base(nn.Module):
            def __init__(self, block=None):
                super().__init__()
                self.block = block
                if self.block is None:
                    self.scale = nn.Parameter(torch.tensor(1.0))
                else:
                    self.scale = nn.Parameter(torch.ones(block[0], block[1]))
                self.bias = nn.Parameter(torch.tensor(1.0))
        class Grouped(Base):
            def __init__(self, block=None):
                super().__init__(block=block)
            def forward(self, x):
                return x / self.{}.size(1)
    """
    assert facts(code.format("scale")).functions[-1].problems == ()
    assert [problem.kind for problem in facts(code.format("bias")).functions[-1].problems] == ["shape-mismatch"]
