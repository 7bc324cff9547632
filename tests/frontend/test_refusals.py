"""What cannot be compiled is refused where it stands, with what it is and something to try."""
import pytest

CASES = [
    # in-place changes that the caller would see
    ("def f(x: Float[Tensor, 'n']):\n    x += 1\n    return x", "x += 1", "`x` is an input"),
    ("def f(x: Float[Tensor, 'n']):\n    y = (x * 2).view(1, -1)\n    y.add_(1)\n    return y", "y.add_(1)", "it is a view"),
    ("def f(x: Float[Tensor, 'n']):\n    y = x.exp()\n    z = y[0]\n    y *= 2\n    return z", "y *= 2", "another tensor is a view of it"),
    ("MASK = torch.ones(3)\ndef f(x: Float[Tensor, '3']):\n    MASK.mul_(2)\n    return x", "MASK.mul_(2)", "belongs to the module"),
    ("def f(x: Float[Tensor, '2 3']):\n    y = x * 2\n    y[:, 0] = 1\n    return y", "y[:, 0]", "a part of a tensor is assigned to"),
    ("def f(x: Float[Tensor, '2 3']):\n    y = x * 2\n    y[0] += 1\n    return y", "y[0] += 1", "it is a view"),
    # control flow on data
    ("def f(x: Float[Tensor, 'n']):\n    if x.sum() > 0:\n        return x\n    return -x", "x.sum() > 0", "the test of an `if` is a tensor (bool[])"),
    ("def f(x: Float[Tensor, 'n']):\n    return x if (x > 0).all() else -x", "(x > 0).all()", "is a tensor (bool[])"),
    ("def f(x: Float[Tensor, 'n']):\n    while x.mean() > 1:\n        x = x / 2\n    return x", "x.mean() > 1", "the test of a `while` is a tensor"),
    ("def f(x: Float[Tensor, 'n']):\n    return x * x.max().item()", "x.max().item()", "needs its value"),
    ("def f(x: Float[Tensor, 'n']):\n    return x * float(x[0])", "float(x[0])", "needs its value"),
    ("def f(x: Float[Tensor, 'n 4']):\n    if x.shape[0] > 2:\n        return x\n    return -x", "x.shape[0] > 2", "hangs on sizes that are symbolic"),
    ("def f(x: Float[Tensor, 'n']):\n    for row in x:\n        x = x + row\n    return x", "x", "is not compiled"),
    ("def f(x: Float[Tensor, '3']):\n    for i in range(1000):\n        x = x + i\n    return x", "range(1000)", "a loop of 1000 rounds"),
    # what is not known
    ("def f(x: Float[Tensor, 'n']):\n    return mystery(x)", "mystery(x)", "not defined here"),
    ("def f(x: Float[Tensor, 'n']):\n    return torch.linalg.ldl_factor(x)", "torch.linalg.ldl_factor(x)", "not in the vocabulary"),
    ("def f(x: Float[Tensor, 'n']):\n    return x + torch.randn(3)", "torch.randn(3)", "drawn"),
    ("def f(x, y):\n    return x + y", "x", "parameter without a type"),
    ("def f(x: torch.Tensor):\n    return x + 1", "f", "only partly known"),
    ("def f(x: Float[Tensor, 'n']):\n    return {'a': x}", "f", "the result is {'a': f32[n]}"),
    ("def f(x: Float[Tensor, 'n']):\n    return x.shape[0], x", "f", "a part of the result is n"),
    ("def f(x: Float[Tensor, 'n']):\n    yield x", "yield x", "generator"),
    ("async def f(x: Float[Tensor, 'n']):\n    return await x", "await x", "coroutine"),
    ("def f(x: Float[Tensor, 'n']):\n    match x:\n        case 1: return x\n    return x", "", "match statement"),
    ("def f(x: Float[Tensor, 'n'], n: int):\n    return x * n", "n", "without a default"),
    # mistakes
    ("def f(x: Float[Tensor, '3 4'], w: Float[Tensor, '5 6']):\n    return x @ w", "x @ w", "inner sizes 4 and 5 differ"),
    ("def f(x: Float[Tensor, '3 4']):\n    y = torch.arange(4)\n    y += x\n    return y", "y += x", "does not fit"),
    ("def f(x: Float[Tensor, '4']):\n    y = torch.arange(4)\n    y += x\n    return y", "y += x", "cannot be stored as i64"),
    ("def f(x: Float[Tensor, 'n']):\n    a, b = (x, x, x)\n    return a", "a, b", "3 values are unpacked into 2 names"),
    ("def f(x: Float[Tensor, 'n']):\n    return g(x)\ndef g(x, y):\n    return x", "g(x)", "no argument for `y`"),
    # without end
    ("def f(x: Float[Tensor, 'n']):\n    return f(x) + 1", "f(x)", "calls itself"),
    ("class A:\n    def __init__(self):\n        self.a = A()\ndef f(x: Float[Tensor, 'n']):\n    return A().a.b(x)", "", "which is not known"),
    ("@cu.compile(input_shapes={'x': 3})\ndef f(x):\n    return x", "", "input_shapes['x'] is 3"),
    ("def f(x: Float[Tensor, '3']):\n    return x" + " + x" * 5000, "", "operators"),
    ("def f(x: Float[Tensor, '3']):\n    return " + "(" * 400 + "x" + ")" * 400, "", "nested"),
    ("def f(x: Float[Tensor, '3']:\n    return x", "", "syntax error: invalid syntax"),
    ("def f(x):\n    return (x", "", "syntax error: '(' was never closed"),
]


@pytest.mark.parametrize(("code", "where", "why"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_refusal(refused, code: str, where: str, why: str):
    error, text = refused(code + "\n")
    assert why in str(error)
    assert not where or text == where
    assert error.hint or error.expected or "syntax error" in error.what or error.code


def test_a_clash_says_where_each_size_came_from(refused):
    error, _ = refused("""
        def project(y, w):
            return y @ w
        def f(x: Float[Tensor, "b 8"]):
            h = F.relu(x)
            return project(h, torch.ones(6, 2))
    """)
    assert [e.text for e in error.evidence] == ["`h` is f32[b, 8]", "this is f32[6, 2]", "called from here"]


def test_an_unknown_function_name_names_those_there_are(refused):
    error, _ = refused("def f(x): return x\nclass A:\n    def g(self): pass\n", "h")
    assert "one of its functions: f, A.g" in str(error)
