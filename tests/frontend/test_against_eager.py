"""The same text run by Python with torch or NumPy, and captured and interpreted: the values agree, or the capture refuses.

What the front end decides (which branch, which name, which memory) is what is tested here; ops have tests of their own.
"""
import numpy as np
import pytest
import torch
from snippets import source

from cuvil.frontends.python import Workspace, capture
from cuvil.ir.interpret import run
from cuvil.ir.types import TensorType

CASES = {
    "aliases of what changes": """
        def f(x):
            a = x * 2
            b, c = a, [a]
            a += 1
            d = a + 0
            a *= 2
            return a, b, c[0], d
    """,
    "a list that grows and shrinks": """
        def f(x):
            kept = [x]
            same = kept
            for i in range(3):
                kept.append(kept[-1] * (i + 1))
            kept.pop(0)
            kept[0] = kept[0] - 1
            kept.insert(1, x)
            same.reverse()
            return torch.stack(kept), len(same) * x
    """,
    "closures see later bindings": """
        def f(x):
            k = 2
            def g(y):
                return y * k
            first = g(x)
            k = 3
            return first, g(x)
    """,
    "defaults, keywords and stars": """
        def g(a, b=2, *rest, c, d=4, **more):
            return a * b + c - d + sum(rest) + more.get("e", 0)
        def f(x):
            return g(x, c=1), g(x, 3, 5, 6, c=x, e=7), g(*[x, 1], **{"c": 2, "d": 0})
    """,
    "short circuits and conditional expressions": """
        def f(x, bias=None, flag=True):
            y = x if bias is None else x + bias
            z = (flag and 2 or 3) * y
            return z if not flag or x.shape[0] == 4 else -z
    """,
    "early return, break, continue, else": """
        def g(x, limit):
            for i in range(10):
                if i % 2:
                    continue
                if i > limit:
                    return x * i
                x = x + i
            else:
                return -x
            return x
        def f(x):
            n = 0
            while n < 5:
                n += 2
                if n == 4:
                    break
            return g(x, 3), g(x, 100), x * n
    """,
    "comprehensions, nested and filtered": """
        def f(x):
            parts = [x[i, j] for i in range(2) for j in range(3) if (i + j) % 2 == 0]
            table = {f"k{i}": x * i for i in (1, 2)}
            return torch.stack(parts), sum(v for k, v in table.items() if k != "k1")
    """,
    "integer arithmetic as Python does it": """
        def f(x):
            a, b = -7 // 2, -7 % 3
            return x * a + b, x * (7 / 2) + 2 ** 3, x + divmod(17, 5)[1] + int("12") + round(2.5) + abs(-3)
    """,
    "sizes": """
        def f(x):
            b, c = x.shape
            n = x.numel()
            return x.reshape(c, b) / n, x.view(-1) * (b * c - n + 1), x.size(0) + x, x.new_zeros(b + 1) + len(x)
    """,
    "slices and indices": """
        def f(x):
            i = -1
            return x[i], x[:, ::2], x[..., 1:-1], x[None, 0], x[0][1], x[slice(0, 2)], x[:, [0, 2]]
    """,
    "unpacking": """
        def f(x):
            (a, b), *rest, last = [x.split(2, dim=1)[:2], 1, 2, 3]
            c, = [a]
            a, b = b, a
            return a, b, c * sum(rest) + last
    """,
    "in-place methods": """
        def f(x):
            y = x.clone()
            y.add_(1).mul_(2)
            z = torch.relu(x)
            torch.nn.functional.relu(z, inplace=True)
            w = x.exp()
            w -= w.mean()
            return y, z, w, x
    """,
    "dtype and constants": """
        EPS = 1e-3
        def f(x):
            scale = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=x.dtype)
            limit = torch.finfo(x.dtype).max
            return x * scale + EPS, torch.full_like(x, limit), x.to(torch.float64).sum(), (x > 0).long()
    """,
    "a helper with its own symbols": """
        def rms(x, eps=1e-6):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        def f(x):
            return rms(x) + rms(x.t()).t()
    """,
    "attention by hand": """
        def f(x):
            q, k, v = x, x * 0.5, x - 1
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            mask = torch.ones(scores.shape, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
            return F.softmax(scores, dim=-1) @ v
    """,
    "a class that is not a module": """
        class Scale:
            factor = 2
            def __init__(self, by):
                self.by = by
            def __call__(self, x):
                return x * self.by * self.factor
            @classmethod
            def of(cls, n):
                return cls(n + 1)
        def f(x):
            return Scale(3)(x) + Scale.of(1)(x)
    """,
    "walrus, del, global constants, string tests": """
        MODE = "sum"
        def f(x):
            if (n := x.shape[0]) > 1 and MODE.startswith("s") and "u" in MODE:
                y = x * n
            del n
            return getattr(y, MODE)(-1)
    """,
}


def difference(a: np.ndarray, b) -> None:
    b = b.numpy() if isinstance(b, torch.Tensor) else np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_torch(name: str):
    code = source(CASES[name].replace("from jaxtyping", "#"))
    scope: dict = {}
    exec(code.text.replace("from jaxtyping import Float, Int\n", "").replace("import cuvil as cu\n", ""), scope)
    x = torch.linspace(-2, 2, 16).reshape(4, 4)
    function = capture(code, "f", {"x": TensorType.parse("f32[4, 4]")}, Workspace("."))
    got, want = run(function, [x.numpy()]), scope["f"](x.clone())
    want = [want] if isinstance(want, torch.Tensor) else list(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        difference(a, b)


NUMPY = {
    "a view is refused, a copy is not": """
        def f(x):
            y = np.copy(x)
            y += 1
            z = x.astype(np.float32)
            z *= 2
            return y, z, x
    """,
    "float64 scalars are strong, Python numbers weak": """
        def f(x):
            return x * np.float64(2), x * 2.0, x / np.sqrt(x.shape[0]), x + np.float32(1)
    """,
    "axes, keepdims and newaxis": """
        def f(x):
            mean = x.mean(axis=0, keepdims=True)
            return (x - mean) / x.std(axis=0), x[:, np.newaxis, :].transpose(2, 0, 1), x.T.reshape(-1), np.concatenate([x, mean])
    """,
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy(name: str):
    code = source(NUMPY[name])
    scope: dict = {}
    exec(code.text.replace("from jaxtyping import Float, Int\n", "").replace("import cuvil as cu\n", ""), scope)
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    function = capture(code, "f", {"x": TensorType.parse("f32[4, 3]")}, Workspace("."))
    for a, b in zip(run(function, [x]), scope["f"](x.copy()), strict=True):
        difference(a, b)
