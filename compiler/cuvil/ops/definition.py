"""What an op is: one block that holds its typing rule, meaning, cost and loop form.

    define("exp", ELEMENTWISE, infer=same_type, evaluate=np.exp, flops=..., examples=[...])

Everything that treats ops alike (verifier, interpreter, cost, lowering, documentation, tests) reads these blocks; nothing
elsewhere has a case for a single op, except the templates for contraction, convolution and reduction, which are keyed by kind.

Spellings are how user code says it. A spelling is a Python function of a Builder and of the call's arguments, registered
under the dotted names it is captured from; its signature is the library's own, so arguments bind as in a real call:

    @spelled("torch.softmax", "torch.nn.functional.softmax", "torch.Tensor.softmax")
    def softmax(b, input, dim, dtype=None):
        return b.emit("softmax", input, axis=b.axis(dim, input))
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from ..ir.dims import Dim
from ..ir.scalar import Expr
from ..ir.types import DType, TensorType

if TYPE_CHECKING:
    import numpy as np

# Kinds: how an op is lowered. The value of an op at an index is ...
SOURCE = "source"              # given: input, parameter
ELEMENTWISE = "elementwise"    # one primitive of ir/scalar.py (the op has its name) on the elements at the same index, broadcast
MOVEMENT = "movement"          # an element of an operand at another index, or a constant: `at` says which (reshape, pad, gather, iota)
REDUCTION = "reduction"        # folded from elements along axes: attrs axes, keepdims; `combine` and `identity` say how
CONTRACTION = "contraction"    # sums of products: matmul
CONVOLUTION = "convolution"    # conv2d
WINDOW = "window"              # folded from a sliding window: pooling
COMPOSITE = "composite"        # named for people; `decompose` says what it is made of


Read = Callable[[int, Sequence[Expr]], Expr]

# What one element of a primitive costs in floating-point operations, as performance models count them: a fused multiply-add
# is 2, a division or square root (one long-latency instruction) counts as 1 like an addition, and a transcendental as the
# length of the usual polynomial for 32-bit floats with its range reduction (Cephes, as in cephes/single). Moving data and
# deciding (cast, select, comparison, bit operations) is 0 or 1.
FLOPS = {"exp": 12, "exp2": 10, "expm1": 14, "log": 14, "log2": 14, "log1p": 16, "sin": 14, "cos": 14, "tan": 18, "tanh": 16,
         "erf": 18, "atan": 16, "atan2": 20, "sinh": 16, "cosh": 16, "pow": 28, "rsqrt": 2, "floordiv": 4, "truncdiv": 2, "mod": 4,
         "cast": 0, "select": 0}


class TypeRuleError(Exception):
    """Types that cannot go together. The front end gives it a place and makes it a finding.

    what      says what clashes, with the values
    expected  says what would have been right
    kind      a neutral class. Findings: "shape-mismatch", "index-out-of-range", "dtype-mismatch", "argument". Never findings:
              "unsupported" (right code that Cuvil does not compile), "unknown" (the result hangs on something not known)
    results   of unsupported code the types it would give, where they are known: facts go on, only compilation ends. One type is a
              tensor, several are a tuple, and a tuple inside is one again: (f32[2], (f32[3], f32[3])) of an LSTM
    """

    def __init__(self, what: str, expected: str = "", kind: str = "shape-mismatch", results: tuple[Any, ...] = ()) -> None:
        super().__init__(what)
        self.what, self.expected, self.kind, self.results = what, expected, kind, results


def unsupported(what: str, instead: str = "", results: tuple[Any, ...] = ()) -> TypeRuleError:
    """A refusal of right code: what is not compiled, what to write instead if there is something, and the types it would give."""
    return TypeRuleError(what, instead, "unsupported", results)


def not_known(what: str) -> TypeRuleError:
    """The result of a call hangs on something not known, say the length of a shape. Silent for lints."""
    return TypeRuleError(what, "", "unknown")


@dataclass(frozen=True)
class Definition:
    """One op of the vocabulary.

    name       the key used in CIR
    kind       one of the kinds above
    infer      (operand types, attrs) -> result type. Unknown parts (None) in give unknown parts out. Raises TypeRuleError.
    evaluate   (operand arrays, attrs) -> array: the meaning, in NumPy, bit-exact where the numerics contract says so
    flops      (op type, operand types, attrs) -> Dim; FMA counts 2, a transcendental counts as in FLOPS below
    at         MOVEMENT only: (op type, operand types, attrs, index, read) -> Expr, the value of the result at an index.
               `read(i, index)` is the element of operand i at an index, which must lie inside it
    guard      MOVEMENT only, with at's signature: what must be true at every index (gathered positions inside the tensor), else
               the run fails; `at` itself never reads outside. None: nothing can go wrong
    decompose  COMPOSITE only: (builder, operands, attrs) -> Op, through builder.emit, one step (it may emit composites)
    fails      what is wrong when `guard` does not hold, for the message of the run that fails
    combine    REDUCTION and WINDOW: the primitive that folds ("add", "maximum", ...); identity gives its start for a dtype
    examples   pairs that are its tests and documentation: see Example
    summary    one line for hover and documentation
    arity      how many operands it takes; None when that varies
    """

    name: str
    kind: str
    infer: Callable[[Sequence[TensorType], dict[str, Any]], TensorType]
    evaluate: Callable[[Sequence[np.ndarray], dict[str, Any]], np.ndarray]
    flops: Callable[[TensorType, Sequence[TensorType], dict[str, Any]], Dim]
    summary: str = ""
    at: Callable[[TensorType, Sequence[TensorType], dict[str, Any], Sequence[Expr], Read], Expr] | None = None
    guard: Callable[[TensorType, Sequence[TensorType], dict[str, Any], Sequence[Expr], Read], Expr] | None = None
    fails: str = "an index is out of range"
    decompose: Callable[..., Any] | None = None
    combine: str = ""
    identity: Callable[[Any], Any] | None = None
    examples: tuple[Example, ...] = ()
    arity: int | None = 1


@dataclass(frozen=True)
class Example:
    """A runnable line of user code over small inputs; the test compares the interpreter and native code with the library.

    code     an expression over the names of inputs: "torch.softmax(x, dim=-1)"
    inputs   name -> (shape, dtype name), given Values or an array; a partial TensorType where nothing is run
    """

    code: str
    inputs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Values:
    """Given numbers as an input: nested lists, or one number, of a dtype."""

    dtype: str
    items: Any


def values(dtype: str, items: Any) -> Values:
    return Values(DType.parse(dtype).numpy, items)


def example(code: str, **inputs: Any) -> Example:
    """An Example with inputs as type texts ("f32[2, 3]", filled with numbers by the reader) or given values."""
    read = {name: TensorType.parse(v) if isinstance(v, str) else v for name, v in inputs.items()}
    return Example(code, {n: (t.shape, t.dtype.numpy) if isinstance(t, TensorType) and t.complete else t for n, t in read.items()})


def call(b: Any, name: str, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Capture a call by its dotted name. Arguments bind to the library's own signature; TypeRuleError when they do not."""
    function = SPELLINGS[name]
    try:
        _signature(function).bind(b, *args, **keywords)
    except TypeError as error:
        raise unsupported(f"{name}: {error}", f"the arguments that Cuvil captures: {name}{_shown(_signature(function))}") from None
    return function(b, *args, **keywords)


_signature = cache(inspect.signature)                # reading a signature is most of the cost of a small call


def _shown(signature: inspect.Signature) -> str:
    shown = [p for p in list(signature.parameters.values())[1:] if not p.name.startswith("_")]
    return str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))


DEFINITIONS: dict[str, Definition] = {}
SPELLINGS: dict[str, Callable[..., Any]] = {}
SPELLING_EXAMPLES: list[Example] = []            # of spellings that have no op of their own


def define(name: str, kind: str, **parts: Any) -> Definition:
    if name in DEFINITIONS:
        raise ValueError(f"op {name} is defined twice")
    DEFINITIONS[name] = Definition(name, kind, **parts)
    return DEFINITIONS[name]


def spelled(*names: str, examples: Sequence[Example] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a capture function under dotted names: "torch.exp", "torch.Tensor.exp", "numpy.exp", "operator.add"."""
    SPELLING_EXAMPLES.extend(examples)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in SPELLINGS:
                raise ValueError(f"{name} is spelled twice")
            SPELLINGS[name] = function
        return function
    return register


def typed(*names: str, instead: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a call that is understood and not compiled: facts go on behind it, compilation ends there.

    The rule takes what a spelling takes and gives the types of the results: a TensorType, or a (nested) tuple of them.
        @typed("torch.linalg.inv", "torch.inverse")
        def inverse(b, A):
            return square(b, A)
    """
    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(rule)
        def refuse(b, *args, **keywords):
            results = rule(b, *args, **keywords)
            raise unsupported(names[0], instead, (results,) if isinstance(results, TensorType) or len(results) == 1 else results)
        spelled(*names)(refuse)
        return rule
    return register
