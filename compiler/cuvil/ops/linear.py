"""Sums of products: matmul, and what is said in other words (linear, einsum, bmm, dot, outer, addmm).

`matmul` is the one contraction: operands (..., m, k) and (..., k, n) whose leading axes broadcast. Vectors are reshaped
around it by the spellings. Cost: 2*m*n*k (a multiply and an add).
"""
from __future__ import annotations

from ..ir.dims import Dim, product, proved_different
from ..ir.function import Op
from ..ir.types import DType, TensorType
from .arithmetic import arithmetic
from .array import np
from .builder import Builder
from .composite import composite
from .definition import CONTRACTION, TypeRuleError, define, example, spelled, unsupported
from .rules import broadcast, common, numel, shape_of, shapes
from .shape import expanded, reshaped, transposed


def _infer_matmul(operands, attrs):
    a, c = operands
    dtype = common(operands, "matmul")
    if a.shape is None or c.shape is None:
        return TensorType(None, dtype)
    if len(a.shape) < 2 or len(c.shape) < 2:
        raise TypeRuleError(f"matmul of {shapes(operands)}", "tensors of at least 2 axes")
    if proved_different(a.shape[-1], c.shape[-2]):
        raise TypeRuleError(f"matmul of {shapes(operands)}: inner sizes {a.shape[-1]} and {c.shape[-2]} differ",
                            "the last axis of the first as long as the second-to-last of the second")
    batch = broadcast([TensorType(a.shape[:-2], dtype), TensorType(c.shape[:-2], dtype)], "matmul")
    return TensorType((*batch, a.shape[-2], c.shape[-1]), dtype)


def _matmul(arrays, attrs):
    a, c = arrays
    if a.dtype == np.float16:                                        # ATen accumulates halves in f32
        return np.matmul(a.astype(np.float32), c.astype(np.float32)).astype(np.float16)
    return np.matmul(a, c)


define("matmul", CONTRACTION, arity=2, infer=_infer_matmul, evaluate=_matmul, summary="the matrix product of the last two axes",
       flops=lambda type, operands, attrs: 2 * numel(type) * operands[0].shape[-1] if operands[0].shape else 0,
       examples=(example("x @ y", x="f32[2, 3]", y="f32[3, 4]"), example("torch.matmul(x, y)", x="f32[2, 1, 3, 4]", y="f32[5, 4, 2]"),
                 example("x @ y", x="f32[3]", y="f32[3, 4]"), example("x @ y", x="f32[2, 3]", y="f32[3]"), example("torch.dot(x, y)", x="f32[5]", y="f32[5]"),
                 example("torch.bmm(x, y)", x="f32[2, 3, 4]", y="f32[2, 4, 1]"), example("np.dot(x, y)", x="f64[2, 3]", y="f64[3, 2]"),
                 example("torch.outer(x, y)", x="f32[2]", y="f32[3]"), example("torch.addmm(c, x, y)", c="f32[4]", x="f32[2, 3]", y="f32[3, 4]"),
                 example("torch.baddbmm(c, x, y, beta=0.5, alpha=2)", c="f32[2, 3, 1]", x="f32[2, 3, 4]", y="f32[2, 4, 5]"),
                 example("np.matmul(x, y)", x="i32[2, 3]", y="f32[3, 2]"), example("x @ y", x="i64[2, 3]", y="i64[3, 2]"),
                 example("x @ y", x="f16[2, 40]", y="f16[40, 3]"), example("torch.mv(x, y)", x="f32[2, 3]", y="f32[3]"),
                 example("x @ y", x="f32[2, 0]", y="f32[0, 3]")))


def _infer_linear(operands, attrs):
    x, weight, *bias = operands
    dtype = common(operands, "linear")
    if weight.shape is not None and len(weight.shape) != 2:
        raise TypeRuleError(f"linear with a weight of {weight}", "a weight of 2 axes (out, in)")
    if x.shape is None or weight.shape is None:
        return TensorType(None, dtype)
    if not x.shape:
        raise TypeRuleError(f"linear of {x}", "at least one axis")
    if proved_different(x.shape[-1], weight.shape[1]):
        raise TypeRuleError(f"linear of {x} with weight {weight}: the last axis has {x.shape[-1]} features, the weight takes {weight.shape[1]}",
                            f"a last axis of {weight.shape[1]}")
    result = TensorType((*x.shape[:-1], weight.shape[0]), dtype)
    for one in bias:
        broadcast([result, one], "linear")
    return result


def _linear(b: Builder, operands, attrs):
    x, weight, *bias = operands
    result = product_of(b, x, transposed(b, weight, (1, 0)))
    return b.emit("add", result, bias[0]) if bias else result


composite("linear", _infer_linear, _linear, "x @ weight.T + bias",
          [example("F.linear(x, w, c)", x="f32[2, 3]", w="f32[4, 3]", c="f32[4]"), example("F.linear(x, w)", x="f32[5, 2, 3]", w="f32[4, 3]"),
           example("F.linear(x, w)", x="f32[3]", w="f32[4, 3]")], arity=None)


def product_of(b: Builder, x: Op, y: Op) -> Op:
    """torch.matmul and np.matmul of any ranks."""
    if x.type.shape is None or y.type.shape is None:
        return b.emit("matmul", x, y)
    left, right = x.type.shape, y.type.shape
    if not left or not right:
        raise TypeRuleError(f"matmul of {x.type} with {y.type}", "tensors of at least one axis; for a number *")
    if proved_different(left[-1], right[-2] if len(right) > 1 else right[0]):
        raise TypeRuleError(f"matmul of {x.type} with {y.type}: inner sizes {left[-1]} and {right[-2] if len(right) > 1 else right[0]} differ",
                            "the last axis of the first as long as the " + ("second-to-last of the second" if len(right) > 1 else "second"))
    a = reshaped(b, x, (1, *left)) if len(left) == 1 else x
    c = reshaped(b, y, (*right, 1)) if len(right) == 1 else y
    result = b.emit("matmul", a, c)
    shape = list(result.type.shape)
    if len(right) == 1:
        shape.pop()
    if len(left) == 1:
        shape.pop(-1 if len(right) == 1 else -2)
    return reshaped(b, result, shape)


def _alike(b: Builder, *values: Op) -> tuple[Op, ...]:
    """torch refuses matmul of different element types; NumPy promotes."""
    if b.library == "numpy":
        return b.promote(*values)
    known = {v.type.dtype for v in values if v.type.dtype is not None}
    if len(known) > 1:
        raise TypeRuleError(f"matmul of {' with '.join(str(v.type) for v in values)}: the element types differ",
                            "operands of one element type", "dtype-mismatch")
    if known == {DType.BOOL}:
        raise unsupported("matmul of bool elements")
    return values


@spelled("operator.matmul", "operator.imatmul", "numpy.matmul")
def matmul(b: Builder, x, y):
    return product_of(b, *_alike(b, x, y))


@spelled("torch.matmul", "torch.Tensor.matmul")
def torch_matmul(b: Builder, input, other):
    return matmul(b, input, other)


def _ranked(b: Builder, what: str, x: Op, y: Op, ranks: tuple[int, int]) -> Op:
    for value, rank in zip((x, y), ranks):
        if value.type.rank not in (None, rank):
            raise TypeRuleError(f"{what} of {x.type} with {y.type}", f"tensors of {ranks[0]} and {ranks[1]} axes")
    return matmul(b, x, y)


@spelled("torch.mm", "torch.Tensor.mm")
def mm(b: Builder, input, mat2):
    return _ranked(b, "mm", input, mat2, (2, 2))


@spelled("torch.bmm", "torch.Tensor.bmm")
def bmm(b: Builder, input, mat2):
    if input.type.shape and mat2.type.shape and proved_different(input.type.shape[0], mat2.type.shape[0]):
        raise TypeRuleError(f"bmm of {input.type} with {mat2.type}: batch sizes {input.type.shape[0]} and {mat2.type.shape[0]} differ", "equal batch sizes")
    return _ranked(b, "bmm", input, mat2, (3, 3))


@spelled("torch.mv", "torch.Tensor.mv")
def mv(b: Builder, input, vec):
    return _ranked(b, "mv", input, vec, (2, 1))


@spelled("torch.inner", "torch.Tensor.inner")
def inner(b: Builder, input, other):
    if shape_of(input) and shape_of(other):
        x, y = _alike(b, input, other)
        rank = len(shape_of(y))
        result = product_of(b, x, y if rank == 1 else transposed(b, reshaped(b, y, (product(shape_of(y)[:-1]), shape_of(y)[-1])), (1, 0)))
        return reshaped(b, result, (*shape_of(x)[:-1], *shape_of(y)[:-1]))
    return arithmetic(b, "mul", input, other)


@spelled("torch.dot", "torch.Tensor.dot", "torch.vdot")
def dot(b: Builder, input, other):
    return _ranked(b, "dot", input, other, (1, 1))


@spelled("numpy.inner")
def numpy_inner(b: Builder, a, c):
    return inner(b, a, c)


@spelled("numpy.dot", "numpy.ndarray.dot")
def numpy_dot(b: Builder, a, c):
    if not shape_of(a) or not shape_of(c):
        return arithmetic(b, "mul", a, c)
    if len(shape_of(c)) > 2 or len(shape_of(a)) > 2 and len(shape_of(c)) > 1:
        left, right = shape_of(a), shape_of(c)
        if proved_different(left[-1], right[-2]):
            raise TypeRuleError(f"np.dot of {a.type} with {c.type}: inner sizes {left[-1]} and {right[-2]} differ", "equal inner sizes")
        raise unsupported(f"np.dot of {a.type} with {c.type}", "np.matmul or np.einsum",
                          (TensorType((*left[:-1], *right[:-2], right[-1]), b.common_dtype([a.type, c.type])),))
    return matmul(b, a, c)


@spelled("torch.outer", "torch.Tensor.outer", "torch.ger", "numpy.outer")
def outer(b: Builder, input, vec2):
    x, y = b.promote(input, vec2)
    return b.emit("mul", reshaped(b, x, (product(shape_of(x)), 1)), reshaped(b, y, (1, product(shape_of(y)))))


def _added(b: Builder, input, product, beta, alpha):
    if alpha != 1:
        product = arithmetic(b, "mul", product, alpha)
    if beta == 0:
        return product
    return arithmetic(b, "add", input if beta == 1 else arithmetic(b, "mul", input, beta), product)


@spelled("torch.addmm", "torch.Tensor.addmm")
def addmm(b: Builder, input, mat1, mat2, beta=1, alpha=1):
    return _added(b, input, mm(b, mat1, mat2), beta, alpha)


@spelled("torch.baddbmm", "torch.Tensor.baddbmm")
def baddbmm(b: Builder, input, batch1, batch2, beta=1, alpha=1):
    return _added(b, input, bmm(b, batch1, batch2), beta, alpha)


@spelled("torch.nn.functional.linear")
def linear(b: Builder, input, weight, bias=None):
    _alike(b, *(v for v in (input, weight, bias) if v is not None))
    return b.emit("linear", input, weight, *(() if bias is None else (bias,)))


# --- einsum ---------------------------------------------------------------------------------------------------------

def _terms(equation: str, operands) -> tuple[list[list[str]], list[str]]:
    """The letters of each operand and of the result; an ellipsis becomes the letters "0", "1", ... of leading axes."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms, widest, found = left.split(","), 0, []
    if len(terms) != len(operands):
        raise TypeRuleError(f"einsum {equation!r} of {len(operands)} tensors", f"{len(terms)} tensors", "argument")
    for term, type in zip(terms, operands):
        before, dots, after = term.partition("...")
        spare = len(type.shape) - len(before) - len(after)
        if spare < 0 or spare and not dots:
            raise TypeRuleError(f"einsum {equation!r}: {term!r} for {type}, which has {len(type.shape)} axes", f"{len(type.shape)} letters", "shape-mismatch")
        widest = max(widest, spare)
        found.append([*before, *(f"{i}" for i in range(-spare, 0)), *after])
    if arrow:
        before, dots, after = right.partition("...")
        return found, [*before, *(f"{i}" for i in range(-widest, 0) if dots), *after]
    letters = [c for c in left if c not in ",."]
    return found, [*(f"{i}" for i in range(-widest, 0)), *sorted(c for c in set(letters) if letters.count(c) == 1)]


def _sizes(equation, terms, operands) -> dict[str, Dim]:
    sizes: dict[str, Dim] = {}
    for term, type in zip(terms, operands):
        for letter, size in zip(term, type.shape):
            before = sizes.get(letter, 1)
            if before != 1 and size != 1 and proved_different(before, size):
                raise TypeRuleError(f"einsum {equation!r} of {shapes(operands)}: axis {letter} has sizes {before} and {size}", f"one size for {letter}")
            sizes[letter] = size if before == 1 else before
    return sizes


def _infer_einsum(operands, attrs):
    dtype = common(operands, "einsum")
    if any(t.shape is None for t in operands):
        return TensorType(None, dtype)
    terms, result = _terms(attrs["equation"], operands)
    sizes = _sizes(attrs["equation"], terms, operands)
    for letter in result:
        if letter not in sizes:
            raise TypeRuleError(f"einsum {attrs['equation']!r}: {letter!r} of the result stands in no operand", "letters of the operands", "argument")
    return TensorType(tuple(sizes[c] for c in result), dtype)


def _einsum(b: Builder, operands, attrs):
    """Left to right, two operands at a time: axes are batch (in both and needed later), summed (in both, not needed), or of one side."""
    terms, result = _terms(attrs["equation"], [o.type for o in operands])
    value, letters = _alone(b, operands[0], terms[0], set(result).union(*terms[1:]))
    for n in range(1, len(operands)):
        needed = set(result).union(*terms[n + 1:])
        other, own = _alone(b, operands[n], terms[n], needed | set(letters))
        value, letters = _pair(b, value, letters, other, own, needed)
    value, letters = _alone(b, value, letters, set(result))
    return transposed(b, value, [letters.index(c) for c in result])


def _alone(b: Builder, x: Op, letters: list[str], needed: set[str]):
    """x with letters summed that nothing else needs."""
    if len(set(letters)) != len(letters):
        raise unsupported("einsum with a letter twice in one operand (a diagonal)", "torch.diagonal")
    axes = tuple(i for i, c in enumerate(letters) if c not in needed)
    if axes:
        x = b.emit("reduce_sum", x, axes=axes, keepdims=False)
    return x, [c for c in letters if c in needed]


def _pair(b: Builder, x: Op, left: list[str], y: Op, right: list[str], needed: set[str]):
    batch = [c for c in left if c in right and c in needed]
    inner = [c for c in left if c in right and c not in needed]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    sizes = dict(zip(left, x.type.shape))
    for c, d in zip(right, y.type.shape):
        sizes[c] = d if sizes.get(c, 1) == 1 else sizes[c]
    if any(dict(zip(left, x.type.shape))[c] != sizes[c] or dict(zip(right, y.type.shape))[c] != sizes[c] for c in inner):
        x = expanded(b, x, [sizes[c] for c in left])                 # a summed axis of size 1 on one side is repeated
        y = expanded(b, y, [sizes[c] for c in right])
    a = transposed(b, x, [left.index(c) for c in (*batch, *rows, *inner)])
    c_ = transposed(b, y, [right.index(c) for c in (*batch, *inner, *columns)])
    lead = lambda v, names: [dict(zip(names, v.type.shape))[c] for c in batch]
    a = reshaped(b, a, (*lead(x, left), product([sizes[c] for c in rows]), product([sizes[c] for c in inner])))
    c_ = reshaped(b, c_, (*lead(y, right), product([sizes[c] for c in inner]), product([sizes[c] for c in columns])))
    if inner:
        full = b.emit("matmul", a, c_)
    else:
        full = b.emit("mul", a, c_)                                  # nothing is summed: an outer product over the batch
    return reshaped(b, full, [sizes[c] for c in (*batch, *rows, *columns)]), [*batch, *rows, *columns]


composite("einsum", _infer_einsum, _einsum, "a sum of products, axes named by letters",
          [example("torch.einsum('bhqd,bhkd->bhqk', x, y)", x="f32[2, 2, 3, 4]", y="f32[2, 2, 5, 4]"),
           example("torch.einsum('ij,jk', x, y)", x="f32[2, 3]", y="f32[3, 4]"),
           example("torch.einsum('...ij->...ji', x)", x="f32[2, 3, 4]"), example("np.einsum('i,j->ij', x, y)", x="f64[2]", y="f64[3]"),
           example("torch.einsum('bi,bi->b', x, y)", x="f32[2, 3]", y="f32[2, 3]"), example("torch.einsum('ij->', x)", x="f32[2, 3]"),
           example("torch.einsum('ab,bc,cd->ad', x, y, z)", x="f32[2, 3]", y="f32[3, 4]", z="f32[4, 2]"),
           example("torch.einsum('b...d,d->b...', x, y)", x="f32[2, 5, 3]", y="f32[3]")],
          arity=None)


@spelled("torch.einsum", "numpy.einsum")
def einsum(b: Builder, equation, *operands, optimize=False):
    if not isinstance(equation, str):
        raise unsupported("einsum with axes as lists", "an equation such as 'ij,jk->ik'")
    values = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    return b.emit("einsum", *_alike(b, *values), equation=equation)
