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
