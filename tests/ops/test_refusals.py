"""What the typing rules say when types cannot go together, and that they are silent when they might."""
from __future__ import annotations

import pytest

from cuvil.ops import SPELLINGS, TypeRuleError
from cuvil.ops.definition import call, example
from cuvil.ops.examples import capture

# (expression, what is said, kind), from the common to the odd.
WRONG = [
    (dict(code="x @ y", x="f32[2, 784]", y="f32[576, 10]"), "matmul of f32[2, 784] with f32[576, 10]: inner sizes 784 and 576 differ", "shape-mismatch"),
    (dict(code="x + y", x="f32[4, 3]", y="f32[4]"), "add of f32[4, 3] with f32[4]: sizes 3 and 4 of axis -1 do not broadcast", "shape-mismatch"),
    (dict(code="x.view(3, -1)", x="f32[2, 4]"), "reshape of f32[2, 4] (8 elements) to (3, -1): 8 is not a multiple of 3", "shape-mismatch"),
    (dict(code="x.reshape(3, 3)", x="f32[2, 4]"), "reshape of f32[2, 4] (8 elements) to (3, 3) (9 elements)", "shape-mismatch"),
    (dict(code="torch.cat([x, y], 1)", x="f32[2, 3]", y="f32[4, 3]"), "sizes 2 and 4 of axis 0 differ", "shape-mismatch"),
    (dict(code="torch.stack([x, y])", x="f32[2, 3]", y="f32[2, 4]"), "stack of f32[2, 3] with f32[2, 4]", "shape-mismatch"),
    (dict(code="F.linear(x, w)", x="f32[2, 3]", w="f32[5, 4]"), "the last axis has 3 features, the weight takes 4", "shape-mismatch"),
    (dict(code="F.conv2d(x, w)", x="f32[1, 3, 8, 8]", w="f32[4, 1, 3, 3]"), "the input has 3 channels, the weight takes 1", "shape-mismatch"),
    (dict(code="F.conv2d(x, w)", x="f32[1, 3, 2, 2]", w="f32[4, 3, 3, 3]"), "no window fits axis 2", "shape-mismatch"),
    (dict(code="F.layer_norm(x, (4,))", x="f32[2, 3]"), "layer_norm of f32[2, 3] over (4)", "shape-mismatch"),
    (dict(code="torch.softmax(x, dim=2)", x="f32[2, 3]"), "axis 2 is outside a tensor of 2 axes, f32[2, 3]", "shape-mismatch"),
    (dict(code="x.permute(0, 2)", x="f32[2, 3, 4]"), "permute of f32[2, 3, 4] by (0, 2)", "index-out-of-range"),
    (dict(code="x.expand(4, 3)", x="f32[2, 3]"), "f32[2, 3] does not expand to (4, 3)", "shape-mismatch"),
    (dict(code="x[5]", x="f32[2, 3]"), "index 5 on axis 0 of f32[2, 3], which has size 2", "index-out-of-range"),
    (dict(code="x[:, 0, 0]", x="f32[2, 3]"), "3 indices for f32[2, 3], which has 2 axes", "index-out-of-range"),
    (dict(code="x[::-1]", x="f32[4]"), "a slice of a torch tensor with step -1", "argument"),
    (dict(code="torch.split(x, [1, 1])", x="f32[3]"), "which sum to 2", "shape-mismatch"),
    (dict(code="torch.einsum('ij,jk->ik', x, y)", x="f32[2, 3]", y="f32[4, 5]"), "axis j has sizes 3 and 4", "shape-mismatch"),
    (dict(code="torch.einsum('ij,jk->ik', x, y)", x="f32[2, 3, 1]", y="f32[3, 5]"), "'ij' for f32[2, 3, 1], which has 3 axes", "shape-mismatch"),
    (dict(code="torch.bmm(x, y)", x="f32[2, 3, 4]", y="f32[3, 4, 5]"), "batch sizes 2 and 3 differ", "shape-mismatch"),
    (dict(code="x @ y", x="f32[2, 3]", y="f16[3, 2]"), "the element types differ", "dtype-mismatch"),
    (dict(code="x.mean()", x="i64[4]"), "mean of i64[4]", "dtype-mismatch"),
    (dict(code="torch.softmax(x, 0)", x="i64[4]"), "softmax of i64[4]", "dtype-mismatch"),
    (dict(code="-x", x="bool[4]"), "negation of bool[4]", "dtype-mismatch"),
    (dict(code="x - y", x="bool[4]", y="bool[4]"), "subtraction of bool[4] and bool[4]", "dtype-mismatch"),
    (dict(code="x.masked_fill(y, 0)", x="f32[4]", y="f32[4]"), "masked_fill with a mask of f32[4]", "dtype-mismatch"),
    (dict(code="torch.gather(x, 0, i)", x="f32[4]", i="i64[2, 2]"), "1 and 2 axes", "shape-mismatch"),
    (dict(code="F.embedding(i, w)", i="f32[4]", w="f32[5, 2]"), "indices of f32[4]", "dtype-mismatch"),
    (dict(code="x // 0", x="i32[4]"), "integer division of i32[4] by zero", "argument"),
    (dict(code="x.amax(1)", x="f32[4, 0]"), "without elements", "argument"),
    (dict(code="F.scaled_dot_product_attention(q, k, k)", q="f32[2, 3, 8]", k="f32[2, 5, 4]"), "8 and 4 features", "shape-mismatch"),
    (dict(code="F.scaled_dot_product_attention(q, q, q, attn_mask=m)", q="f32[2, 3, 8]", m="bool[4, 4]"),
     "attention mask bool[4, 4] for scores of (2, 3, 3)", "shape-mismatch"),
    (dict(code="F.scaled_dot_product_attention(q, q, q, attn_mask=m)", q="f16[2, 3, 8]", m="f64[3, 3]"), "a mask of f64[3, 3]", "dtype-mismatch"),
    (dict(code="F.layer_norm(x, (3,), w)", x="f64[2, 3]", w="f32[3]"), "layer_norm of f64[2, 3] with a parameter of f32[3]", "dtype-mismatch"),
    (dict(code="x + 300", library="numpy", x="u8[4]"), "add of u8[4] with 300", "argument"),
]
# Right code that is not compiled: refused, never a finding.
UNCOMPILED = [dict(code="F.scaled_dot_product_attention(q, q, q, attn_mask=m)", q="f16[2, 3, 8]", m="f32[3, 3]"), dict(code="torch.sort(x)", x="f32[4]"), dict(code="torch.empty(3)"), dict(code="x[x > 0]", x="f32[4]"), dict(code="F.dropout(x)", x="f32[4]"),
              dict(code="F.pad(x, (1, 1), mode='reflect')", x="f32[1, 4]"), dict(code="torch.rand(3)"), dict(code="x.view(torch.int32)", x="f32[4]"),
              dict(code="F.batch_norm(x, m, m, training=True)", x="f32[2, 3]", m="f32[3]"), dict(code="F.adaptive_avg_pool2d(x, 3)", x="f32[1, 1, 4, 4]"),
              dict(code="F.softmax(x)", x="f32[4]"), dict(code="torch.exp(x, base=2)", x="f32[4]"), dict(code="torch.unique(x)", x="i64[4]")]
# What may be right for some sizes passes: symbols stand for any size of at least 1.
SILENT = [dict(code="x + y", x="f32[B, 3]", y="f32[C, 3]"), dict(code="x @ y", x="f32[B, T]", y="f32[U, 4]"), dict(code="x + y", x="f32[B]", y="f32[7]"),
          dict(code="x.reshape(-1, 4)", x="f32[B, T]"), dict(code="x[7]", x="f32[T]"),
          dict(code="torch.cat([x, y])", x="f32[B, C]", y="f32[T, D]"), dict(code="x[:, :4]", x="f32[B, T]"), dict(code="x + y", x="f32[...]", y="f32[3]"),
          dict(code="torch.softmax(x, 5)", x="f32[...]"), dict(code="x.sum(3)", x="?[...]"), dict(code="x * y", x="?[2]", y="f32[2]"),
          dict(code="x.sum()", x="?[2, 3]")]


def build(code, library="torch", **inputs):
    return capture(example(code, **inputs), library)


@pytest.mark.parametrize("case, said, kind", WRONG, ids=[w[0]["code"] for w in WRONG])
def test_types_that_cannot_go_together(case, said, kind):
    with pytest.raises(TypeRuleError) as error:
        build(**case)
    assert said in error.value.what and error.value.kind == kind and error.value.expected


@pytest.mark.parametrize("case", UNCOMPILED, ids=[c["code"] for c in UNCOMPILED])
def test_right_code_that_is_not_compiled(case):
    with pytest.raises(TypeRuleError) as error:
        build(**case)
    assert error.value.kind == "unsupported" and error.value.what


@pytest.mark.parametrize("case", SILENT, ids=[f"{c['code']} {c}" for c in SILENT])
def test_what_may_be_right_passes(case):
    build(**case)


def test_a_refusal_keeps_the_types_it_would_give():
    with pytest.raises(TypeRuleError) as error:
        build("torch.topk(x, 3)", x="f16[2, 9]")
    assert list(map(str, error.value.results)) == ["f16[2, 3]", "i64[2, 3]"]


def test_arguments_that_do_not_bind_say_what_would():
    with pytest.raises(TypeRuleError, match="missing a required argument: 'dim'") as error:
        call(None, "torch.softmax", (None,), {"axis": 1})
    assert error.value.expected.endswith("torch.softmax(input, dim, dtype=None)")


@pytest.mark.parametrize("name", ["torch.not_there", "numpy.linalg.tensorinv"])
def test_unknown_names_are_not_spelled(name):
    assert name not in SPELLINGS
