"""Safe fixes, held to their word: the code before and after runs on generated inputs, and gives the same bits, or before it raised.

Inputs come from what the front end knows of a function's parameters: open sizes get several numbers, open shapes and types several kinds.
"""
from __future__ import annotations

import ast
import copy
import inspect
import itertools
import math
import os
from collections.abc import Iterator

import numpy as np
import pytest

from cuvil.frontends import python
from cuvil.frontends.python.values import Tensor
from cuvil.source import Source, apply_edits
from cuvil_ide import lints
from cuvil_ide.lints import RULES

torch = pytest.importorskip("torch")

SIZES = (1, 2, 3, 4, 8)                        # what open sizes are taken to be
SHAPES = ((), (3,), (2, 3), (3, 4), (2, 3, 4), (1, 3, 4, 4), (2, 3, 8, 8))
LIMIT = 40                                     # calls of one function
WAITS = "needs an accelerator"
SAFE = [pytest.param(rule, example, id=f"{rule.name}-{i}") for rule in RULES if rule.fix == "safe"
        for i, example in enumerate(rule.invalid) if example.fixed]


def test_each_rule_with_safe_fixes_shows_one():
    assert {rule.name for rule in RULES if rule.fix == "safe"} == {parameter.values[0].name for parameter in SAFE}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule, example", SAFE)
def test_before_and_after_are_the_same_bits(rule, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = example.code.replace("»", "").replace("«", "")
    source = Source("example.py", before)
    (found,) = [d for d in lints.check(python.analyze(source)) if d.name == rule.name]
    assert found.fix.applicability == "safe" and apply_edits(source, found.fix.edits) == example.fixed
    if ast.dump(ast.parse(before)) == ast.dump(ast.parse(example.fixed)):
        return                                   # only a comment changed
    if "torch.compile(" in before and not torch.cuda.is_available():
        pytest.skip(WAITS)                       # only a GPU runs graphs whose outputs are overwritten
    outcomes = [compare(a, b) for a, b in runs(before, example.fixed)]
    wrong = [outcome for outcome in outcomes if outcome not in ("same", "raised before", "raises")]
    assert not wrong, f"{wrong[0]}\n{before}"
    shown = outcomes[1:] or outcomes             # that the module itself is the same says nothing of its functions
    if not {"same", "raised before"} & set(shown):
        assert not torch.cuda.is_available() and "cuda" in before, f"no input runs this code, so nothing is shown of its fix:\n{before}"
        pytest.skip(WAITS)


def runs(before: str, after: str) -> Iterator[tuple]:
    """Pairs of outcomes: of the module itself, then of each function and of each module class on each input."""
    one, two = execute(before), execute(after)
    yield one, two
    if not (isinstance(one, dict) and isinstance(two, dict)):
        return
    facts = python.analyze(Source("example.py", before))
    for function in facts.functions:
        owner, _, method = function.name.rpartition(".")
        if "." in owner or method.startswith("__") or (owner or method) not in one:
            continue
        for arguments in itertools.islice(inputs(function, getattr(one[owner], method) if owner else one[method]), LIMIT):
            yield tuple(call(names, owner, method, copy.deepcopy(arguments)) for names in (one, two))


def execute(code: str) -> dict | Exception:
    names = {"__name__": "example"}
    try:
        torch.manual_seed(0)
        exec(compile(code, "example.py", "exec"), names)
    except Exception as error:
        return error
    return names


def call(names: dict, owner: str, method: str, arguments: list):
    """The result of a call and its arguments as it left them, or what it raised."""
    torch.manual_seed(0)
    np.random.seed(0)
    try:
        function = getattr(made(names[owner]), method) if owner else names[method]
        return function(*arguments), arguments
    except Exception as error:
        return error


def made(cls):
    """An object of a class, on small numbers where its constructor has no defaults."""
    if not isinstance(cls, type) or cls.__init__ is object.__init__:
        return cls()
    wanted = [p for p in list(inspect.signature(cls.__init__).parameters.values())[1:] if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD]
    return cls(*[4 for _ in wanted])


def inputs(facts, function) -> Iterator[list]:
    """Arguments of a function: its known types at several sizes."""
    known = dict(facts.parameters)
    names = [p.name for p in inspect.signature(function).parameters.values() if p.name != "self" and p.kind == p.POSITIONAL_OR_KEYWORD]
    for size, shape, kind in itertools.product(SIZES, SHAPES, (torch.float32, torch.float16, torch.int64)):
        yield [argument(name, known.get(name), size, shape, kind) for name in names]


class Scale(torch.nn.Module):
    """A model of tensors of any shape, with a weight that wants a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return x * self.weight


def argument(name: str, value, size: int, shape: tuple, kind):
    if name == "device":
        return torch.device("cpu")
    if name in ("model", "net", "module", "encoder", "f"):
        return Scale()
    if not isinstance(value, Tensor):
        return os.path.join(os.curdir, "weights.pt") if "path" in name else size if "size" in name or name in ("n", "i", "k") else draw(shape, kind)
    known = value.type.shape
    sizes = shape if known is None else tuple(d if isinstance(d, int) else size for d in known)
    tensor = draw(sizes, getattr(torch, str(np.dtype(value.type.dtype.numpy)), kind) if value.type.dtype is not None and value.type.dtype.numpy != "bfloat16" else
                  torch.bfloat16 if value.type.dtype is not None else kind)
    return tensor.numpy() if value.library == "numpy" else tensor


def draw(shape: tuple, kind):
    generator = torch.Generator().manual_seed(math.prod(shape) + 7)
    if kind.is_floating_point:
        return torch.randn(shape, generator=generator).to(kind)
    return torch.randint(0, 2, shape, generator=generator).to(kind)


def compare(before, after) -> str:
    if isinstance(before, Exception):
        return "raises" if isinstance(after, Exception) else "raised before"
    if isinstance(after, Exception):
        return f"the fix raises {type(after).__name__}: {after}"
    return "same" if same(before, after) else f"the fix gives {after!r} for {before!r}"


def same(a, b) -> bool:
    """The same bits: NaN is NaN, and 0.0 is not -0.0."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if (a.shape, a.dtype, a.device, a.requires_grad) != (b.shape, b.dtype, b.device, b.requires_grad):
            return False
        a, b = (t.detach().cpu().contiguous().reshape(-1).view(torch.uint8) if t.numel() else t.detach() for t in (a, b))
        return torch.equal(a, b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return (a.shape, a.dtype) == (b.shape, b.dtype) and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    if isinstance(a, dict) and isinstance(b, dict):
        plain = [{name: value for name, value in d.items() if isinstance(value, (torch.Tensor, np.ndarray, bool, int, float, str, list, tuple))} for d in (a, b)]
        return plain[0].keys() == plain[1].keys() and all(same(plain[0][name], plain[1][name]) for name in plain[0])
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.nn.Module) and isinstance(b, torch.nn.Module):
        return same(dict(a.state_dict()), dict(b.state_dict()))
    if isinstance(a, float) and isinstance(b, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return type(a).__name__ == type(b).__name__ and (a == b or not isinstance(a, (int, str, bytes, np.generic)))
