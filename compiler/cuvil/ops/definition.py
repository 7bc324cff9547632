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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..ir.dims import Dim
from ..ir.function import Op
from ..ir.scalar import Expr
from ..ir.types import TensorType

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


class TypeRuleError(Exception):
    """Types that cannot go together. The front end gives it a place and makes it a finding.

    what      says what clashes, with the values
    expected  says what would have been right
    kind      a neutral class: "shape-mismatch", "index-out-of-range", "dtype-mismatch"
    certainty True when every input fails; False when it may be meant
    """

    def __init__(self, what: str, expected: str = "", kind: str = "shape-mismatch") -> None:
        super().__init__(what)
        self.what, self.expected, self.kind = what, expected, kind


@dataclass(frozen=True)
class Definition:
    """One op of the vocabulary.

    name       the key used in CIR
    kind       one of the kinds above
    infer      (operand types, attrs) -> result type. Unknown parts (None) in give unknown parts out. Raises TypeRuleError.
    evaluate   (operand arrays, attrs) -> array: the meaning, in NumPy, bit-exact where the numerics contract says so
    flops      (op type, operand types, attrs) -> Dim; FMA counts 2, a transcendental counts as in FLOPS below
    at         MOVEMENT only: (op, index, read) -> Expr. `read(i, index)` is the element of operand i at an index
    decompose  COMPOSITE only: (builder, operands, attrs) -> value, through builder.emit
    combine    REDUCTION and WINDOW: the primitive that folds ("add", "maximum", ...); identity gives its start for a dtype
    examples   pairs that are its tests and documentation: see Example
    summary    one line for hover and documentation
    """

    name: str
    kind: str
    infer: Callable[[Sequence[TensorType], dict[str, Any]], TensorType]
    evaluate: Callable[[Sequence[np.ndarray], dict[str, Any]], np.ndarray]
    flops: Callable[[TensorType, Sequence[TensorType], dict[str, Any]], Dim]
    summary: str = ""
    at: Callable[[Op, tuple[Expr, ...], Callable[[int, tuple[Expr, ...]], Expr]], Expr] | None = None
    decompose: Callable[..., Any] | None = None
    combine: str = ""
    identity: Callable[[Any], Any] | None = None
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Example:
    """A runnable line of user code over small inputs; the test compares the interpreter and native code with the library.

    code     an expression over the names of inputs: "torch.softmax(x, dim=-1)"
    inputs   name -> (shape, dtype name) or a literal value
    """

    code: str
    inputs: dict[str, Any] = field(default_factory=dict)


DEFINITIONS: dict[str, Definition] = {}
SPELLINGS: dict[str, Callable[..., Any]] = {}


def define(name: str, kind: str, **parts: Any) -> Definition:
    if name in DEFINITIONS:
        raise ValueError(f"op {name} is defined twice")
    DEFINITIONS[name] = Definition(name, kind, **parts)
    return DEFINITIONS[name]


def spelled(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a capture function under dotted names: "torch.exp", "torch.Tensor.exp", "numpy.exp", "operator.add"."""
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in SPELLINGS:
                raise ValueError(f"{name} is spelled twice")
            SPELLINGS[name] = function
        return function
    return register
