"""Every call that is modelled, typed by its spelling and by the library itself: shapes and element types must be the same.

calls/*.txt holds one call a line, with the types of its tensors in place: `torch.topk(f16[2, 9], 3)`. `{a|b}` stands for either, so a
line may be many calls. A line that starts with `!` is a call that the library refuses and that must be a finding; with `?` one that the
library refuses and that may pass.
"""
from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import einops
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cuvil.ir.dims import Poly, substitute, symbol
from cuvil.ir.function import Op
from cuvil.ir.types import DType, TensorType
from cuvil.ops import SPELLINGS, TypeRuleError, examples
from cuvil.ops.builder import Builder
from cuvil.ops.definition import Example
from cuvil.ops.layers import LAYERS, Layer

FILES = sorted((Path(__file__).parent / "calls").glob("*.txt"))
BRACES = re.compile(r"\{([^{}]*\|[^{}]*)\}")
DTYPES = {d.numpy: d for d in DType}
called: dict[str, set[str]] = {}


def calls(path: Path):
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield from expanded(line.strip())


def expanded(line: str) -> list[str]:
    found = BRACES.search(line)
    if found is None:
        return [line]
    return [one for choice in found[1].split("|") for one in expanded(line[:found.start()] + choice + line[found.end():])]


# --- what the library says ------------------------------------------------------------------------------------------

class Literal:
    """A dtype in front of sizes, as a tensor of the library. Matrices are positive definite, other floats near 1, integers 1."""

    def __init__(self, dtype: DType, library: str, device: str) -> None:
        self.dtype, self.library, self.device = dtype, library, device

    def __getitem__(self, shape):
        shape = shape if isinstance(shape, tuple) else (shape,)
        if self.library == "numpy":
            x = np.ones(shape, self.dtype.numpy)
            return x + np.eye(shape[-1], dtype=x.dtype) * shape[-1] if self.dtype.is_float and len(shape) > 1 and shape[-1] == shape[-2] else x
        x = torch.ones(shape, dtype=getattr(torch, self.dtype.numpy), device=self.device)
        if self.device == "cpu" and self.dtype.is_float and len(shape) > 1 and shape[-1] == shape[-2]:
            x = x + torch.eye(shape[-1]).to(x.dtype) * shape[-1]
        return x


def of_library(code: str, library: str, refused: bool):
    """The types of a call's results: from torch's meta device where that is able, else by running it. Meta tensors pass some checks."""
    for device in ("",) if library != "torch" else ("cpu",) if refused else ("meta", "cpu"):
        names = {"torch": torch, "F": F, "nn": torch.nn, "np": np, "einops": einops, **{str(d): Literal(d, library, device) for d in DType if
                                                                                       library == "torch" or d != DType.BF16}}
        with torch.no_grad(), np.errstate(all="ignore"):
            try:
                with torch.device(device or "cpu"):
                    return described(eval(code, names))
            except Exception as error:
                if device != "meta":
                    return error


def described(value):
    if isinstance(value, torch.nn.Module) or callable(value) and not isinstance(value, (torch.Tensor, np.generic)):
        return type(value).__name__
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        return tuple(value.shape), str(value.dtype).removeprefix("torch.")
    if isinstance(value, (torch.dtype, np.dtype)):
        return str(value).removeprefix("torch.")
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    return value


# --- and what we say ------------------------------------------------------------------------------------------------

def of_ours(code: str, library: str):
    try:
        return ours_described(examples.result(Builder(library), Example(code)))
    except TypeRuleError as error:
        if error.kind == "unsupported" and error.results:
            return ours_described(error.results[0] if len(error.results) == 1 else error.results)
        return error


def ours_described(value):
    if isinstance(value, Op):
        value = value.type
    if isinstance(value, TensorType):
        return value.shape, value.dtype
    if isinstance(value, DType):
        return value.numpy
    if isinstance(value, (tuple, list)):
        return [ours_described(item) for item in value]
    return value


def same(ours, real) -> bool:
    match ours, real:
        case list(), list():
            return len(ours) == len(real) and all(map(same, ours, real))
        case (tuple() | None, DType() | None), (tuple(), str()):
            shape = ours[0] is not None and len(ours[0]) == len(real[0]) and all(isinstance(d, Poly) or d == e for d, e in zip(ours[0], real[0]))
            return shape and ours[1] == DTYPES.get(real[1])
    return type(ours) is type(real) and ours == real


def wrong(line: str, library: str) -> str:
    code = line.lstrip("!? ")
    real = of_library(code, library, line[0] in "!?")
    try:
        ours = of_ours(code, library)
    except Exception as error:
        ours = f"{type(error).__name__}: {error}"
    finding = isinstance(ours, TypeRuleError) and ours.kind not in ("unsupported", "unknown")
    said = f"{ours.kind}: {ours.what}" if isinstance(ours, TypeRuleError) else ours
    if line[0] in "!?":
        good = isinstance(real, Exception) and (finding or line[0] == "?" and not isinstance(ours, str))
    else:
        good = not isinstance(real, Exception) and same(ours, real)
    return "" if good else f"{line}\n    library  {real!r}\n    ours     {said!r}"


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    """Which names the lines of all files reach."""
    call, arguments = examples.call, Layer.arguments
    monkeypatch.setattr(examples, "call", lambda b, name, args, keywords: (note(name), call(b, name, args, keywords))[1])
    monkeypatch.setattr(Layer, "arguments", lambda layer, args, keywords: (note(layer.name), arguments(layer, args, keywords))[1])


def note(name: str) -> None:
    called.setdefault(name, set()).add(current[0])


current = [""]


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
@pytest.mark.filterwarnings("ignore")
def test_types_are_the_library_s(path):
    library, failures = path.stem.partition("_")[0], []
    for current[0] in calls(path):
        failures.append(wrong(current[0], library))
    failures = [f for f in failures if f]
    assert not failures, f"{len(failures)} calls differ\n" + "\n".join(failures)


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_types_hold_for_symbolic_sizes(path, monkeypatch):
    """Every size of 2 or more as a symbol: what is right stays no finding, and the type with the sizes put in is the type of the sizes."""
    concrete, library, failures = examples._Literal.__getitem__, path.stem.partition("_")[0], []
    for line in calls(path):
        if line[0] in "!?":
            continue
        expected = of_ours(line, library)
        monkeypatch.setattr(examples._Literal, "__getitem__", lambda literal, shape: concrete(literal, tuple(
            symbol(f"d{size}") if size > 1 else size for size in (shape if isinstance(shape, tuple) else (shape,)))))
        try:
            ours = of_ours(line, library)
        except (TypeError, ValueError, AttributeError, IndexError, KeyError, OverflowError):
            ours = None                                                # as the front end takes it: arguments a rule was not written for
        monkeypatch.setattr(examples._Literal, "__getitem__", concrete)
        if isinstance(ours, TypeRuleError):
            if ours.kind not in ("unsupported", "unknown"):
                failures.append(f"{line}\n    {ours.kind}: {ours.what}")
        elif not fits(ours, expected):
            failures.append(f"{line}\n    symbolic  {ours!r}\n    concrete  {expected!r}")
    assert not failures, f"{len(failures)} calls differ\n" + "\n".join(failures)


def fits(symbolic, concrete) -> bool:
    """With the sizes put in, nothing that is known differs."""
    match symbolic, concrete:
        case None, _:
            return True
        case list(), list():
            return len(symbolic) == len(concrete) and all(map(fits, symbolic, concrete))
        case (tuple() | None, DType() | None), (tuple() | None, DType() | None):
            dtype = None in (symbolic[1], concrete[1]) or symbolic[1] == concrete[1]
            if symbolic[0] is None or concrete[0] is None:
                return dtype
            return dtype and len(symbolic[0]) == len(concrete[0]) and all(map(fits, symbolic[0], concrete[0]))
        case Poly(), _:
            size = substitute(symbolic, {f"d{n}": n for n in range(2, 401)})
            return isinstance(size, Poly) or isinstance(concrete, Poly) or size == concrete
    return isinstance(concrete, Poly) or symbolic == concrete


@pytest.mark.filterwarnings("ignore")
def test_every_call_has_examples():
    for path in FILES:
        for current[0] in calls(path):
            with suppress(Exception):                           # what it gives is for the tests above
                of_ours(current[0].lstrip("!? "), path.stem.partition("_")[0])
    reached = {SPELLINGS[n] for n in called if n in SPELLINGS}
    again = {n for n in SPELLINGS if n.startswith(("operator.i", "builtins.")) and SPELLINGS[n] in reached}       # x += y is x + y
    elsewhere = {"torch.Tensor.cuda", "torch.view_as_real"}         # need a device, and complex numbers, whose type has no name here
    missing = sorted(n for n in {*SPELLINGS, *LAYERS} - again - elsewhere if len(called.get(n, ())) < 2)
    assert not missing, f"{len(missing)} names with less than two examples: {' '.join(missing)}"
