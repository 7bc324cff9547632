"""Small functions to put through passes: written as calls of the libraries, or drawn at random from a seed."""
import random
from collections.abc import Callable

import cuvil.ops  # noqa: F401
from cuvil.ir.function import Function
from cuvil.ir.types import TensorType
from cuvil.lineage import Origin
from cuvil.ops.builder import Builder
from cuvil.ops.definition import call
from cuvil.source import Span


class Say:
    """Writes a function as its source would: `s("torch.exp", x)`; every call has a line of its own for its origin."""

    def __init__(self, library: str = "torch", **inputs: str) -> None:
        self.builder = Builder(library)
        self.line = 1
        self.inputs = [self.builder.input(name, i, TensorType.parse(type)) for i, (name, type) in enumerate(inputs.items())]

    def __call__(self, name: str, *args, **keywords):
        self.line += 1
        with self.builder.at(Origin(Span("f.py", self.line, 4, self.line, 20), "Call")):
            return call(self.builder, name, args, keywords)

    def function(self, *results, name: str = "f") -> Function:
        origin = Origin(Span("f.py", 1, 0, self.line + 1, 0), "FunctionDef")
        return self.builder.function(name, results, "tensor" if len(results) == 1 else "tuple", origin)


UNARY = ("torch.exp", "torch.neg", "torch.abs", "torch.relu", "torch.tanh", "torch.floor", "torch.sigmoid")
BINARY = ("operator.add", "operator.mul", "operator.sub", "torch.maximum", "operator.truediv")


def drawn(seed: int, length: int = 24) -> Function:
    """A random function of two matrices: elementwise ops, rows, views, products, and values that many read."""
    rng = random.Random(seed)
    s = Say(x="f32[4, 6]", y="f32[4, 6]")
    pool = list(s.inputs)
    square = [v for v in pool]

    def any_of() -> object:
        return rng.choice(square[-6:] if rng.random() < 0.7 else square)

    steps: list[Callable[[], object]] = [
        lambda: s(rng.choice(UNARY), any_of()),
        lambda: s(rng.choice(BINARY), any_of(), any_of()),
        lambda: s(rng.choice(BINARY), any_of(), rng.choice((1, 0.0, -0.0, 2.0, 1.0))),
        lambda: s("operator.mul", any_of(), s("torch.sum", any_of(), dim=rng.choice((0, 1)), keepdim=True)),
        lambda: s("operator.sub", any_of(), s("torch.amax", any_of(), 1, keepdim=True)),
        lambda: s("torch.softmax", any_of(), rng.choice((0, 1))),
        lambda: s("torch.transpose", s("torch.transpose", any_of(), 0, 1), 0, 1),
        lambda: s("torch.reshape", s("torch.reshape", any_of(), (24,)), (4, 6)),
        lambda: s("operator.matmul", any_of(), s("torch.transpose", any_of(), 0, 1)),
        lambda: s("torch.cat", [s("operator.getitem", any_of(), (slice(None), slice(0, 2))),
                                s("operator.getitem", any_of(), (slice(None), slice(2, 6)))], dim=1),
    ]
    for _ in range(length):
        value = rng.choice(steps)()
        if value.type.shape == (4, 4):                     # a product; put back to the common shape by another
            value = s("operator.matmul", value, any_of())
        square.append(value)
    results = [square[-1]] + [v for v in square[2:-1] if rng.random() < 0.1]
    return s.function(*dict.fromkeys(results))
