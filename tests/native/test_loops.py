"""Loop nests as text: what is merged, hoisted, folded and packed; index algebra; the memory plan."""
from __future__ import annotations

import cuvil.ops  # noqa: F401
from cuvil import loops
from cuvil.ir.scalar import Index, apply, const
from cuvil.ir.types import DType, TensorType
from cuvil.loops.index import interval, simplify, within
from cuvil.loops.nest import show
from cuvil.ops.builder import Builder
from cuvil.passes.fuse import fuse
from cuvil.targets import choose, named

F32 = DType.F32
AVX512 = named("x86_64_avx512")


def text(make, *shapes: tuple[int, ...]) -> str:
    return "\n".join(nest.text for nest in program(make, *shapes).nests)


def program(make, *shapes: tuple[int, ...]) -> loops.Program:
    b = Builder()
    result = make(b, *(b.input(name, i, TensorType(s, F32)) for i, (name, s) in enumerate(zip("xyz", shapes))))
    return loops.program(fuse(b.function("f", [result])), AVX512)


def test_loops_over_contiguous_memory_are_one():
    assert text(lambda b, x, y: b.emit("add", x, y), (2, 3, 5), (2, 3, 5)) == """\
kernel k0_add:
  vector i2 in 30 by 32:
    v0: f32 = x[i2]
    v1: f32 = y[i2]
    v2: f32 = v0 + v1
    %2[i2] = v2"""


def test_what_does_not_change_comes_out_of_the_loop():
    assert text(lambda b, x, y: b.emit("add", x, b.emit("exp", y)), (4, 40), (4, 1)) == """\
kernel k0_exp:
  vector i0 in 4 by 4:
    v1: f32 = y[i0]
    v2: f32 = exp(v1)
    %2[i0] = v2
kernel k1_add:
  serial i0 in 4:
    v2: f32 = %2[i0]
    vector i1 in 40 by 32:
      v0: f32 = x[(i0 * 40) + i1]
      v3: f32 = v0 + v2
      %3[(i0 * 40) + i1] = v3"""


def test_a_row_kernel_goes_over_its_row_three_times():
    def softmax(b, x):
        e = b.emit("exp", b.emit("sub", x, b.emit("reduce_max", x, axes=(1,), keepdims=True)))
        return b.emit("div", e, b.emit("reduce_sum", e, axes=(1,), keepdims=True))
    assert text(softmax, (3, 64)) == """\
kernel k0_reduce_max_sub_exp:
  serial i0 in 3:
    acc1: f32 = -inf, to maximum in 16 lanes
    vector i1 in 64 by 16:
      v0: f32 = x[(i0 * 64) + i1]
      acc1 folds v0
    v1: f32 = total of acc1
    acc4: f32 = 0, to add in 16 lanes
    vector i1 in 64 by 16:
      v0_1: f32 = x[(i0 * 64) + i1]
      v2: f32 = v0_1 - v1
      v3: f32 = exp(v2)
      row of %3[i1] = v3
      acc4 folds v3
    v4: f32 = total of acc4
    vector i1 in 64 by 16:
      v3_1: f32 = row of %3[i1]
      v5: f32 = v3_1 / v4
      %5[(i0 * 64) + i1] = v5"""


def test_a_matmul_packs_panels_and_finishes_each_tile():
    found = text(lambda b, x, y: b.emit("neg", b.emit("matmul", x, y)), (24, 8), (8, 90))
    assert "panel of y[(k * 32) + j] = (b1 if ((panel * 32) + j) < 90 else 0)" in found
    assert "v3: f32 = neg(sum)" in found and found.count("tile of") == 1


# Every statement has an id of its own and says which ops it came from.
def test_statements_know_their_ops():
    nest, = program(lambda b, x, y: b.emit("mul", b.emit("add", x, y), x), (8,), (8,)).nests
    statements = [s for _, s in nest.statements]
    assert [s.id for s in statements] == [f"loop:k0.{i}" for i in range(len(statements))]
    assert all(s.origins for s in statements)
    assert {o for s in statements for o in s.origins} == {"ir:%0", "ir:%1", "ir:%2", "ir:%3"}


def test_index_algebra_undoes_reshapes():
    i, j = Index("i"), Index("j")
    flat = apply("add", apply("mul", i, const(12)), j)
    ranges = {"i": 5, "j": 12}
    assert show(simplify(apply("floordiv", flat, const(12)), ranges)) == "i"
    assert show(simplify(apply("mod", flat, const(12)), ranges)) == "j"
    assert show(simplify(apply("mod", apply("floordiv", flat, const(4)), const(3)), ranges)) == "j // 4"
    odd = apply("add", apply("mul", apply("floordiv", flat, const(7)), const(7)), apply("mod", flat, const(7)))
    assert show(simplify(odd, ranges)) == "(i * 12) + j"


def test_index_bounds_are_proved():
    i = Index("i")
    assert interval(apply("sub", apply("mul", i, const(3)), const(1)), {"i": 4}) == (-1, 8)
    assert within(apply("minimum", apply("add", i, const(2)), const(4)), 5, {"i": 9})
    assert not within(apply("sub", i, const(1)), 5, {"i": 4})


# x -> a -> b -> c -> d: when c is written nobody reads a any more, so two places are enough for three values.
def test_the_memory_plan_reuses_places():
    def chain(b, x, y):
        for _ in range(4):
            x = b.emit("matmul", x, y)
        return x
    planned = program(chain, (100, 64), (64, 64))
    assert planned.scratch == 2 * 100 * 64 * 4


def test_a_target_is_chosen_by_what_the_host_can_do():
    assert choose({"avx2", "fma", "f16c"}).name == "x86_64_avx2"
    assert choose(frozenset()).name == "generic"
