"""Which ops share a kernel, and why not. Kernels run in order, each from what earlier ones wrote."""
import numpy as np
import pytest
from programs import Say, drawn

from cuvil import passes
from cuvil.ir.function import Function
from cuvil.ir.interpret import run
from cuvil.ir.kernel import KernelGraph
from cuvil.ops.definition import DEFINITIONS
from cuvil.passes.fuse import PACKED, VIEWS, fuse

HEAVY = {"reduction", *PACKED}


def kernels(function: Function, opt_level: int = 2) -> KernelGraph:
    optimized = passes.run(function)
    graph = fuse(optimized.function, opt_level, optimized.composites)
    check(graph)
    return graph


def titles(graph: KernelGraph) -> list[str]:
    return [kernel.name for kernel in graph.kernels]


def kind(graph: KernelGraph, id: int) -> str:
    return DEFINITIONS[graph.function.by_id[id].name].kind


def check(graph: KernelGraph) -> None:
    """What loops/ relies on (the module's docstring), for any graph."""
    function = graph.function
    memory = {op.id for op in (*function.inputs, *function.parameters)}
    for kernel in graph.kernels:
        members, root = set(kernel.ops), function.by_id[kernel.root]
        assert list(kernel.ops) == [op.id for op in function.ops if op.id in members]
        assert memory >= set(kernel.inputs) and not members & set(kernel.inputs)
        for id in kernel.ops:
            assert all(o in members or o in kernel.inputs for o in function.by_id[id].operands)
        assert kernel.outputs and not memory & set(kernel.outputs)
        heavy = [id for id in kernel.ops if kind(graph, id) in HEAVY]
        if kernel.kind in PACKED:
            assert heavy == [root.id] and len(kernel.outputs) == 1
            behind = [id for id in kernel.ops if function.ops.index(function.by_id[id]) > function.ops.index(root)
                      and reads(function, id, root.id)]
            assert all(kind(graph, id) == "elementwise" and function.by_id[id].type.shape == root.type.shape for id in behind)
            todo = [o for o in root.operands if o in members]
            while todo:
                op = function.by_id[todo.pop()]
                assert op.name in VIEWS
                todo += [o for o in op.operands if o in members]
        elif kernel.kind == "reduction":
            rows = {(function.by_id[function.by_id[id].operands[0]].type.shape, function.by_id[id].attr("axes")) for id in heavy}
            assert len(rows) == 1
        else:
            assert not heavy and kernel.outputs == (kernel.root,)
        memory |= set(kernel.outputs)
    assert memory >= set(function.results)
    assert all(decision.reason for decision in graph.decisions)
    edges = {(o, op.id) for op in function.body for o in op.operands if kind(graph, o) != "source"}
    inside = {id for kernel in graph.kernels for id in kernel.ops}
    assert {(d.producer, d.consumer) for d in graph.decisions} == {e for e in edges if e[1] in inside}


def reads(function: Function, id: int, other: int) -> bool:
    todo = [id]
    while todo:
        op = function.by_id[todo.pop()]
        if other in op.operands:
            return True
        todo += op.operands
    return False


def run_kernels(graph: KernelGraph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Each kernel from memory to memory, its members by their meaning."""
    function = graph.function
    memory = {op.id: array for op, array in zip(function.inputs, arrays, strict=True)}
    for kernel in graph.kernels:
        values = {id: memory[id] for id in kernel.inputs}
        for id in kernel.ops:
            op = function.by_id[id]
            values[id] = np.asarray(DEFINITIONS[op.name].evaluate([values[o] for o in op.operands], dict(op.attrs)))
        memory |= {id: values[id] for id in kernel.outputs}
    return [memory[id] for id in function.results]


# The shapes of inference code.

def test_a_chain_of_elementwise_ops_is_one_kernel():
    s = Say(x="f32[8, 16]", y="f32[16]")
    x, y = s.inputs
    graph = kernels(s.function(s("torch.exp", s("operator.mul", s("operator.add", x, y), 2.0))))
    assert titles(graph) == ["k0_exp"] and graph.kernels[0].kind == "elementwise"
    assert [d.reason for d in graph.decisions if d.fused][0] == "elementwise into its consumer"


def test_a_softmax_is_one_kernel():
    s = Say(x="f32[8, 16]")
    graph = kernels(s.function(s("torch.softmax", s.inputs[0], -1)))
    assert titles(graph) == ["k0_softmax"] and graph.kernels[0].kind == "reduction"
    assert "same rows: read again while they are in cache" in {d.reason for d in graph.decisions}


def test_a_layer_norm_with_its_weight_is_one_kernel():
    s = Say(x="f32[8, 16]", w="f32[16]", b="f32[16]")
    x, w, b = s.inputs
    graph = kernels(s.function(s("torch.nn.functional.layer_norm", x, (16,), w, b)))
    assert titles(graph) == ["k0_layer_norm"]


def test_a_linear_layer_keeps_its_bias_and_activation():
    s = Say(x="f32[8, 16]", w="f32[32, 16]", b="f32[32]")
    graph = kernels(s.function(s("torch.nn.functional.gelu", s("torch.nn.functional.linear", *s.inputs))))
    assert titles(graph) == ["k0_linear_gelu"] and graph.kernels[0].kind == "contraction"
    assert "epilogue: applied before the result is stored" in {d.reason for d in graph.decisions}


def test_attention_is_three_kernels():
    s = Say(q="f32[2, 4, 16, 8]", k="f32[2, 4, 16, 8]", v="f32[2, 4, 16, 8]")
    q, k, v = s.inputs
    scores = s("operator.truediv", s("operator.matmul", q, s("torch.transpose", k, -2, -1)), 8 ** 0.5)
    graph = kernels(s.function(s("operator.matmul", s("torch.softmax", scores, -1), v)))
    assert [kernel.kind for kernel in graph.kernels] == ["contraction", "reduction", "contraction"]
    moved = next(d for d in graph.decisions if graph.function.by_id[d.producer].name == "transpose")
    assert moved.fused and moved.reason == "movement: an index map in its consumer"


def test_a_gated_block_joins_the_later_matmul():
    s = Say(x="f32[8, 16]", w1="f32[16, 32]", w3="f32[16, 32]", w2="f32[32, 16]")
    x, w1, w3, w2 = s.inputs
    gate = s("operator.mul", s("torch.nn.functional.silu", s("operator.matmul", x, w1)), s("operator.matmul", x, w3))
    graph = kernels(s.function(s("operator.add", x, s("operator.matmul", gate, w2))))
    assert [kernel.kind for kernel in graph.kernels] == ["contraction"] * 3
    assert titles(graph) == ["k0_matmul_silu", "k1_matmul_mul", "k2_matmul_add"]


def test_a_residual_that_is_normalised_is_written_by_the_row_kernel():
    s = Say(x="f32[8, 16]", y="f32[8, 16]", w="f32[16, 16]")
    x, y, w = s.inputs
    h = s("operator.add", x, y)
    normed = s("torch.nn.functional.layer_norm", h, (16,))
    graph = kernels(s.function(s("operator.add", h, s("operator.matmul", normed, w))))
    assert [(kernel.kind, len(kernel.outputs)) for kernel in graph.kernels] == [("reduction", 2), ("contraction", 1)]


# What does not fuse says why.

def reason(graph: KernelGraph, producer: str, consumer: str) -> str:
    by_id = graph.function.by_id
    found = [d for d in graph.decisions if not d.fused and by_id[d.producer].name == producer and by_id[d.consumer].name == consumer]
    assert found, [(by_id[d.producer].name, by_id[d.consumer].name, d.fused, d.reason) for d in graph.decisions]
    return found[0].reason


def test_an_elementwise_value_is_not_computed_inside_a_matmul():
    s = Say(x="f32[8, 16]", w="f32[16, 16]")
    x, w = s.inputs
    graph = kernels(s.function(s("operator.matmul", s("torch.exp", x), w)))
    assert reason(graph, "exp", "matmul") == "contraction needs packed operands: it reads each element many times"


def test_an_expensive_value_that_two_kernels_read_is_computed_once():
    s = Say(x="f32[8, 16]", y="f32[16, 8]")
    x, y = s.inputs
    e = s("torch.exp", x)
    graph = kernels(s.function(s("torch.sum", e, 0), s("torch.sum", e, 1)))
    assert reason(graph, "exp", "reduce_sum") == "read by 2 kernels"


def test_a_cheap_value_that_two_kernels_read_is_computed_in_each():
    s = Say(x="f32[8, 16]")
    e = s("torch.neg", s.inputs[0])
    graph = kernels(s.function(s("torch.sum", e, 0), s("torch.sum", e, 1)))
    assert len(graph.kernels) == 2
    assert "cheap enough to compute in each of 2 kernels" in {d.reason for d in graph.decisions}


def test_an_expensive_value_is_not_computed_again_for_each_row_it_is_broadcast_to():
    s = Say(x="f32[8, 1]", y="f32[8, 512]")
    x, y = s.inputs
    graph = kernels(s.function(s("operator.add", s("torch.exp", x), y)))
    assert reason(graph, "exp", "add") == "broadcast: each element would be computed many times"


def test_rows_too_long_for_the_cache_are_read_twice_from_memory():
    s = Say(x="f32[4, 1000000]")
    graph = kernels(s.function(s("torch.softmax", s.inputs[0], -1)))
    assert "the rows do not stay in cache between two passes over them" in {d.reason for d in graph.decisions if not d.fused}


# One row is the work of one thread, which a short row is not worth sharing. Its length decides, not how it lies.
@pytest.mark.parametrize("type, axis, count", [
    ("f32[1, 64]", -1, 1), ("f32[64]", 0, 1), ("f32[64, 1]", 0, 1), ("f32[1, 4096]", -1, 1), ("f32[1, n]", -1, 1), ("f32[1, 1, 1]", 1, 1),
    ("f32[1, 4097]", -1, 4), ("f32[1, 0]", -1, 1)])
def test_one_short_row_is_one_kernel(type, axis, count):
    s = Say(x=type)
    graph = kernels(s.function(s("torch.softmax", s.inputs[0], axis)))
    assert len(graph.kernels) == count
    apart = {d.reason for d in graph.decisions if not d.fused}
    assert ("one long row: each pass over it is shared among threads" in apart) == (count > 1)
    if "n" not in type:
        x = np.linspace(-3, 3, num=graph.function.inputs[0].type.numel, dtype=np.float32).reshape(graph.function.inputs[0].type.shape)
        (y,) = run_kernels(graph, [x])
        np.testing.assert_array_equal(y, run(graph.function, [x])[0])


def test_levels_turn_fusion_off():
    s = Say(x="f32[8, 16]", w="f32[32, 16]", b="f32[32]")
    function = s.function(s("torch.relu", s("torch.nn.functional.linear", *s.inputs)))
    none, some, all_ = (kernels(function, level) for level in (0, 1, 2))
    assert len(none.kernels) > 3 and [len(graph.kernels) for graph in (some, all_)] == [2, 1]
    assert reason(none, "transpose", "matmul") == "fusion is off at opt_level 0"
    assert reason(some, "matmul", "add") == "epilogues are off at opt_level 1"


def test_bytes_are_symbolic_where_sizes_are():
    s = Say(x="f32[B, 16]")
    graph = kernels(s.function(s("torch.exp", s("torch.neg", s.inputs[0]))))
    assert [str(d.bytes) for d in graph.decisions] == ["128*B"]


def test_shifted_sums_do_not_double_at_each_step():
    """y[i] = x[i] + x[i + 1], twenty times: as one expression it would have a million reads."""
    s = Say(x="f32[64]")
    value = s.inputs[0]
    for _ in range(20):
        n = value.type.shape[0]
        value = s("operator.add", s("operator.getitem", value, slice(0, n - 1)), s("operator.getitem", value, slice(1, n)))
    graph = kernels(s.function(value))
    assert 2 <= len(graph.kernels) <= 20


def test_a_long_function_takes_time_in_proportion():
    """Doubling the length must not quadruple the number of decisions or members."""
    def size(blocks: int) -> int:
        s = Say(x="f32[8, 16]", w="f32[16, 16]")
        x, w = s.inputs
        for _ in range(blocks):
            x = s("operator.add", x, s("torch.relu", s("operator.matmul", s("torch.softmax", x, -1), w)))
        graph = kernels(s.function(x))
        return sum(len(kernel.ops) for kernel in graph.kernels)
    assert size(40) == 2 * size(20)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("level", [0, 1, 2])
def test_any_function_runs_kernel_by_kernel(seed, level):
    function = drawn(seed + 1000)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((4, 6)).astype(np.float32) for _ in range(2)]
    graph = kernels(function, level)
    with np.errstate(all="ignore"):
        for got, want in zip(run_kernels(graph, arrays), run(graph.function, arrays), strict=True):
            np.testing.assert_array_equal(got, want)
