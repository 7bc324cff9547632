"""Small texts that ask for work without end: classes and functions of themselves, sizes that double, nesting. Each is answered in bounded time."""
import time

import pytest
from linted import linted

SECONDS = 30                                  # of the processor, for one text on a slow machine; unbounded, each would take hours or all memory
HEAD = "import torch\nfrom torch import nn\n\n\n"


def function(*lines: str) -> str:
    return HEAD + "def f(x: torch.Tensor, n):\n" + "".join(f"    {line}\n" for line in lines)


def nested(header: str, depth: int, inner: str = "x = x + 1") -> str:
    """`header` in itself; {} is the level."""
    return function(*(" " * i + header.format(i) for i in range(depth)), " " * depth + inner)


def module(name: str, *parts: str, base: str = "nn.Module") -> str:
    made = "".join(f"        self.m{i} = {part}()\n" for i, part in enumerate(parts))
    called = " + ".join(f"self.m{i}(x)" for i in range(len(parts))) or "x"
    return f"class {name}({base}):\n    def __init__(self):\n        super().__init__()\n{made}\n    def forward(self, x: torch.Tensor):\n        return {called}\n\n\n"


DEEP = {
    "parentheses": function(f"return {'(' * 90}x{')' * 90}"),
    "too many parentheses": function(f"return {'(' * 3000}x{')' * 3000}"),
    "calls in calls": function(f"return {'torch.relu(' * 60}x{')' * 60}"),
    "lists in lists": function(f"return {'[' * 3000}x{']' * 3000}"),
    "a chain of operators": function("return x" + " + x" * 900),
    "a chain of or": function("return x" + " or x" * 900),
    "a chain of comparisons": function("return x" + " < x" * 900),
    "conditional expressions": function("return " + "x if n else " * 300 + "x"),
    "lambdas": function("return " + "lambda: " * 300 + "x"),
    "methods of methods": function("return x" + ".relu()" * 900),
    "if in if": nested("if n > {}:", 90),
    "for in for": nested("for i{} in range(3):", 18),
    "while in while": nested("while x.sum() > {}:", 18),
    "with in with": nested("with torch.no_grad():", 18),
    "functions in functions": nested("def g{}(x):", 90, "return x + torch.ones(3)"),
    "classes in classes": nested("class C{}:", 90, "y = torch.ones(3)"),
    "elif": function("if n == 0:", "    x = x + 1", *(line for i in range(500) for line in (f"elif n == {i}:", f"    x = x + {i}"))),
    "decorators": HEAD + "@torch.no_grad()\n" * 500 + "def f(x: torch.Tensor):\n    return x\n",
    "annotations": HEAD + f"def f(x: {'list[' * 80}torch.Tensor{']' * 80}):\n    return x\n",
}
OF_THEMSELVES = {
    "a function": function("return f(f(x, n), n) + f(x, n)"),
    "functions": HEAD + "".join(f"def f{i}(x: torch.Tensor):\n    return f{(i + 1) % 20}(x) + f{(i + 7) % 20}(x)\n\n\n" for i in range(20)),
    "functions that double": HEAD + "def f0(x: torch.Tensor):\n    return x + 1\n\n\n"
                             + "".join(f"def f{i}(x: torch.Tensor):\n    return f{i - 1}(x) + f{i - 1}(x)\n\n\n" for i in range(1, 30)),
    "a module": HEAD + module("M", "M", "M"),
    "modules": HEAD + "".join(module(f"M{i}", f"M{(i + 1) % 9}", f"M{(i + 2) % 9}") for i in range(9)),
    "modules that double": HEAD + module("M0") + "".join(module(f"M{i}", f"M{i - 1}", f"M{i - 1}") for i in range(1, 30)),
    "a class": HEAD + "class A(A):\n    pass\n\n\n" + module("B", "C", base="C") + module("C", "B", base="B"),
    "classes of two": HEAD + "class A0: pass\nclass B0: pass\n" + "".join(
        f"class A{i}(A{i - 1}, B{i - 1}): pass\nclass B{i}(B{i - 1}, A{i - 1}): pass\n" for i in range(1, 31)) + module("M", base="A30")
        + "print(issubclass(A30, M), isinstance(A30(), B0))\n",
    "decorators": HEAD + "@f\ndef f(x: torch.Tensor):\n    return f(x)\n\n\n@h\ndef g(x):\n    return x + torch.ones(1)\n\n\n@g\ndef h(x):\n    return x\n\n\n@C\nclass C: pass\n",
    "properties and operators": HEAD + "class A:\n" + "".join(f"    def {name}(self, *a):\n        return {body} + torch.zeros(3)\n\n" for name, body in (
        ("__getattr__", "getattr(self, a[0])"), ("__call__", "self(a)"), ("__getitem__", "self[a]"), ("__len__", "len(self)"), ("__add__", "self + a"),
        ("__iter__", "iter(self)"), ("g", "self.g() + self + self[0] + len(self) + self.b"))),
    "lambdas": function("return (lambda g: g(g))(lambda g: g(g)) + x"),
    "lists": function("a = [x]", "a.append(a)", "a[0] = a", "d = {'a': a}", "d['d'] = d", "print(a == a, d)", "return torch.stack(a)"),
    "names": HEAD + "A = B\nB = A\nC = C\nimport any\nfrom any import *\nfrom any import A, D\nfrom . import any\n\n\ndef f(x: A):\n    return x + D + any.any.D\n",
}
DOUBLING = {
    "a list": function("a = [x]", *["a = a + a"] * 60, "return torch.stack(a)"),
    "a string": function("a = 'ab'", *["a = a + a"] * 60, "return a"),
    "pairs": HEAD + "a = (1,)\n" + "a = (a, a)\n" * 60 + "print(a == a, hash(a))\n",
    "a square": HEAD + "a = 3\n" + "a = a * a\n" * 60 + "b = 9 ** 9 ** 9 ** 9\nc = 1 << 10 ** 10\nd = 'a' * 10 ** 12\ne = [1] * 10 ** 12\nf = 10 ** 400000000\n",
    "library functions": function("import math", "a = math.factorial(10 ** 9)", "b = math.comb(10 ** 9, 10 ** 8)", "c = pow(3, 10 ** 9)", "d = '%1000000000d' % 3",
                                  "e = f'{3:1000000000d}'", "g = '{:1000000000d}'.format(3)", "h = 'a'.ljust(10 ** 10)", "i = list(range(10 ** 10))",
                                  "j = sum(range(10 ** 10))", "k = bytes(10 ** 10)", "l = tuple([0] * 10 ** 9)", "return x.view(a, b, c) + i[0]"),
    "a loop": function("for i in range(10 ** 12):", "    for j in range(10 ** 9):", "        x = torch.cat([x, x * i * j])", "return x"),
    "sizes": function("h, w = x.shape", *["h = h * (h + w)"] * 40, "return x.view(h, -1)"),
    "a composition": function("g = lambda y: y + 1", *["g = (lambda h: lambda y: h(h(y)))(g)"] * 40, "return g(x)"),
    "a tensor taken apart": function("a, *b = torch.zeros(10 ** 9)", "c = torch.zeros(10 ** 9).unbind()", "d = torch.chunk(x, 10 ** 8)", "e = [y for y in torch.zeros(10 ** 8)]",
                                     "return torch.zeros(10 ** 9).tolist(), list(x.shape) * 10 ** 8"),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=f"{kind}: {name}") for kind, texts in (
    ("deep", DEEP), ("of themselves", OF_THEMSELVES), ("doubling", DOUBLING)) for name, text in texts.items()])
def test_the_work_is_bounded(text: str):
    started = time.process_time()
    linted(text)
    assert time.process_time() - started < SECONDS
